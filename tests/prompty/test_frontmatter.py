"""YAML 1.2 values, their places, and errors that name the cause."""

from __future__ import annotations

from typing import Any

import pytest

from assay.errors import PromptyError
from assay.prompty import loads
from assay.prompty.frontmatter import parse, scalar
from assay.prompty.indent import lost_indentation, restore_indentation


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("~", None),
        ("null", None),
        ("true", True),
        ("FALSE", False),
        ("yes", "yes"),
        ("on", "on"),
        ("No", "No"),
        ("2024-01-01", "2024-01-01"),
        ("12:30:00", "12:30:00"),
        ("1_000", "1_000"),
        ("7", 7),
        ("-7", -7),
        ("007", 7),
        ("0x1F", 31),
        ("0o17", 15),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("1.0.0", "1.0.0"),
        ("1e999", "1e999"),
        ("9" * 301, "9" * 301),
        ("=", "="),
    ],
)
def test_unquoted_scalars_mean_what_yaml_1_2_says(text: str, value: Any) -> None:
    assert scalar(text) == value
    assert type(scalar(text)) is type(value)


def test_quotes_make_text() -> None:
    assert parse("a: '7'\nb: \"true\"\nc: |\n  7\n", 1)[0] == {"a": "7", "b": "true", "c": "7\n"}


def test_tags_of_other_languages_build_nothing() -> None:
    assert parse("a: !!python/object/apply:os.getcwd []", 1)[0] == {"a": []}


def test_every_key_has_its_place() -> None:
    _, places = parse("a:\n  b: 1\n  c:\n    - d: 2\n    - 3\n", 10)
    assert places == {
        ("a",): (10, 1),
        ("a", "b"): (11, 3),
        ("a", "c"): (12, 3),
        ("a", "c", 0): (13, 7),
        ("a", "c", 0, "d"): (13, 7),
        ("a", "c", 1): (14, 7),
    }


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", "~"])
def test_empty_front_matter_is_an_empty_mapping(text: str) -> None:
    assert parse(text, 1)[0] == {}


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("a: 1\nb:\n  c: 1\n  c: 2\n", (5, 3), "duplicate key `c` (first on line 4)"),
        ("a: 1\na: 2\n", (3, 1), "duplicate key `a` (first on line 2)"),
        ("a:\n\tb: 1\n", (3, 1), "a tab is used for indentation"),
        ("a: |\n  x\n  \ty\nb: [1\nc: 2\n", (6, 2), "not valid YAML"),
        ("a: x\u0080y\n", (2, 5), "U+0080"),
        ("a: *b\n", (2, 4), "undefined alias"),
        ("a: &x [*x]\n", (2, 4), "contains itself"),
        ("[1]: a\n", (2, 1), "a key must be text, not a list"),
        ("- a\n", (2, None), "not a list"),
        ("just text\n", (2, None), "not a single value"),
        ("a: {\n", (3, 1), "not valid YAML"),
    ],
)
def test_what_is_wrong_names_its_cause_and_place(
    text: str, place: tuple[int, int | None], words: str
) -> None:
    with pytest.raises(PromptyError) as caught:
        parse(text, 2, "f.prompty")
    assert words in caught.value.message
    assert (caught.value.line, caught.value.column) == place


def test_aliases_share_a_value_but_may_not_multiply() -> None:
    assert parse("a: &x [1, 2]\nb: *x\n", 1)[0] == {"a": [1, 2], "b": [1, 2]}
    bomb = "l0: &l0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n"
    for n in range(1, 9):
        bomb += f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]\n"
    with pytest.raises(PromptyError, match="aliases that stand for more than"):
        parse(bomb, 1)


@pytest.mark.parametrize("text", ["a: " + "[" * 5000, "a: " + "[" * 700 + "]" * 700])
def test_nesting_is_bounded(text: str) -> None:
    with pytest.raises(PromptyError, match="nest"):
        parse(text, 1)


GOOD = """name: Close enough
description: How close the answer comes.
model:
  api: chat
  configuration:
    type: azure_openai
    azure_deployment: judge
  parameters:
    temperature: 0
    max_tokens: 200
inputs:
  question:
    type: string
  answer:
    type: string
    default: none given
outputs:
  closeness:
    type: int
    minimum: 0
"""
FLAT = "\n".join(line.strip() for line in GOOD.split("\n"))


def test_a_front_matter_that_lost_its_indentation_is_told_apart() -> None:
    with pytest.raises(PromptyError, match="lost its indentation") as caught:
        loads(f"---\n{FLAT}---\nsystem:\nJudge.\n")
    assert caught.value.code == "lost-indentation"
    assert "`inputs:`" in caught.value.message
    assert lost_indentation(GOOD) is None


@pytest.mark.parametrize(
    "text",
    ["name: x\nmodel:\nsample:\n", "name: x\n", "inputs:\n- name: a\noutputs:\n- name: b\n", ""],
)
def test_flat_but_whole_front_matter_is_left_alone(text: str) -> None:
    assert lost_indentation(text) is None


def test_restoring_gives_back_what_was_lost() -> None:
    assert parse(restore_indentation(FLAT), 1)[0] == parse(GOOD, 1)[0]

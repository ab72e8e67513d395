"""Whatever goes in: no crash, no hang, no value outside its scale, no value that steers."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import PromptyError
from assay.prompty import Output, Prompty, loads
from assay.prompty.messages import ROLES
from assay.prompty.reply import read
from assay.prompty.source import split

PIECES = st.sampled_from(
    ["---", "+++", "\n", "\r\n", "\t", "  ", ": ", "- ", "model", "inputs", "outputs", "sample",
     "template", "mustache", "type", "string", "int", "minimum", "levels", "enum", "anyOf", "const",
     "[", "]", "{", "}", "{{", "}}", "{%", "%}", "{#", "x", "'", '"', "|", ">", "&a", "*a", "!!int",
     "${env:", "${file:", "system:", "user:", "# user:", "[name=", "![", "](", "```", "~~~", "1",
     "0x", "1e9", "null", "#", "/", "^", "\x00", "\x85", "\u2028", "\ud800", "\ufeff", "\ue000",
     "for x in y", "endfor", "if", "endif", "## name:", "## content:", "## tool_calls:"]
)  # fmt: skip
SOUP = st.lists(PIECES | st.text(max_size=8), max_size=40).map("".join)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)  # fmt: skip


def attempt(use: Callable[[], Any]) -> Any:
    """What `use` gives; a PromptyError is an outcome like any other, and short."""
    try:
        return use()
    except PromptyError as error:
        return error


def exercise(text: str) -> None:
    """Everything a file is asked for."""
    prompty = attempt(lambda: loads(text))
    found = [prompty]
    if isinstance(prompty, Prompty):
        found += [
            attempt(lambda: prompty.template),
            attempt(lambda: prompty.parameters),
            attempt(lambda: prompty.sample),
            attempt(lambda: prompty.render(dict.fromkeys(prompty.inputs, "v"))),
            (prompty.name, prompty.title, prompty.description, prompty.sha256, prompty.primary),
        ]
    for outcome in found:
        assert not isinstance(outcome, PromptyError) or 0 < len(str(outcome)) < 1000


@given(SOUP)
def test_any_text_is_a_prompty_or_a_prompty_error(text: str) -> None:
    for whole in (text, f"---\n{text}\n---\nuser:\nhi", f"---\nname: x\n---\n{text}"):
        exercise(whole)


@given(st.sampled_from(["inputs", "outputs", "model", "template", "sample", "tools"]), JSON)
def test_any_value_of_a_known_key_is_a_prompty_or_a_prompty_error(key: str, value: Any) -> None:
    exercise(f"---\n{yaml.safe_dump({key: value}, allow_unicode=True)}---\nuser:\nhi")


@given(SOUP)
def test_splitting_loses_nothing(text: str) -> None:
    try:
        source = split(text)
    except PromptyError:
        return
    if source.front is None:
        assert source.body == text
    else:
        assert text.endswith(source.body)
        assert source.front in text
        assert text.split("\n")[source.body_line - 1 :] == (
            source.body.split("\n") if source.body or text.endswith("\n") else []
        )


BODY = loads(
    "---\ninputs:\n  a: string\n  b: string\n---\nsystem:\nJudge <{{a}}>.\n\nuser:\nQ: {{b}}\n"
    "A: {{a}}\n{% for x in xs %}\n{{x}}\n{% endfor %}\nassistant:\n{{b}}\n"
)


@given(SOUP, SOUP, SOUP)
def test_any_values_keep_the_messages_and_stand_in_them_as_they_are(a: str, b: str, x: str) -> None:
    assert BODY.render({"a": a, "b": b, "xs": [x, x]}) == [
        {"role": "system", "content": f"Judge <{a}>."},
        {"role": "user", "content": f"Q: {b}\nA: {a}\n{x}\n{x}"},
        {"role": "assistant", "content": b},
    ]


MUSTACHE = loads("---\ntemplate: mustache\n---\nsystem:\n{{a}}\nuser:\n{{#xs}}\n{{.}}\n{{/xs}}\n")


@given(SOUP, SOUP)
def test_mustache_bodies_hold_their_values_the_same_way(a: str, x: str) -> None:
    assert MUSTACHE.render({"a": a, "xs": [x, x]}) == [
        {"role": "system", "content": a},
        {"role": "user", "content": f"{x}\n{x}"},
    ]


@given(SOUP)
def test_a_body_alone_gives_known_roles_or_an_error(text: str) -> None:
    try:
        messages = loads(text.replace("---", "").replace("+++", "")).render({})
    except PromptyError:
        return
    assert messages
    assert {message["role"] for message in messages} <= set(ROLES)


REPLY_PIECES = st.sampled_from(
    ["{", "}", "[", "]", '"', '"score"', ": ", ", ", "4", "9", "-1", "true", "null", "NaN", "1e999",
     "```", "~~~", "json", "\n", "<score>", "</score>", "<S2>", "</S2>", "\\", "reason", "yes",
     '{"score": 4}', '{"score": 7}', "٤", "\u200b", "\ud800", '"status": "skipped"']
)  # fmt: skip
REPLIES = st.lists(REPLY_PIECES | st.text(max_size=5), max_size=30).map("".join)
SCALES = st.one_of(
    st.just(Output("score", "integer", minimum=1, maximum=5)),
    st.just(Output("score", "number", minimum=0.5)),
    st.just(Output("score", "number")),
    st.just(Output("score", "boolean")),
    st.just(Output("score", "string", levels={"yes": None, "no": None})),
    st.just(Output("score", "integer", levels={1: None, 3: None}, nullable=True)),
    st.just(Output("score", "string")),
    st.just(Output("score", "array")),
    st.just(Output("score", "object")),
    st.just(Output("score")),
)
KINDS: dict[str, type | tuple[type, ...]] = {
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "string": str,
    "array": list,
    "object": dict,
}


def fits(output: Output, value: Any) -> bool:
    """Whether a value is what its declaration says, told without the reader's own code."""
    if value is None and output.nullable:
        return True
    if output.type != "any" and not isinstance(value, KINDS[output.type]):
        return False
    if isinstance(value, bool) and output.type in ("integer", "number"):
        return False
    if isinstance(value, float) and not math.isfinite(value):
        return False
    if output.levels and value not in output.levels:
        return False
    too_low = output.minimum is not None and value < output.minimum
    too_high = output.maximum is not None and value > output.maximum
    return not (too_low or too_high)


@given(REPLIES | JSON.map(str), SCALES, st.booleans())
def test_reading_never_fails_and_never_leaves_the_scale(
    text: str, output: Output, with_reason: bool
) -> None:
    outputs = {"score": output} | ({"reason": Output("reason", "string")} if with_reason else {})
    reading = read(text, outputs)
    if reading.status == "scored":
        assert set(reading.outputs) == set(outputs)
        assert fits(output, reading.outputs["score"])
    elif reading.status == "invalid":
        assert reading.cause
        assert reading.message
        assert not reading.outputs
    else:
        assert reading.status == "not_applicable"


@given(REPLIES)
def test_reading_where_nothing_is_declared_never_gives_a_number_that_is_none(text: str) -> None:
    for value in read(text, {}).outputs.values():
        assert not isinstance(value, float) or math.isfinite(value)


@given(st.integers(1, 5), st.text(max_size=20), st.text(alphabet="ab \n.,:!", max_size=20))
def test_an_answer_in_prose_is_the_answer(score: int, reason: str, prose: str) -> None:
    outputs = {"score": Output("score", "integer", minimum=1, maximum=5)}
    written = json.dumps({"score": score, "reason": reason})
    assert read(prose + written + prose, outputs).outputs == {"score": score}


LONG = 10 * 2**20


def test_a_line_of_ten_megabytes_goes_through() -> None:
    line = ("word: {x} [y] " * (LONG // 14 + 1))[:LONG]
    assert BODY.render({"a": line, "b": "", "xs": []})[0]["content"] == f"Judge <{line}>."
    body = line[: LONG // 10]
    assert loads(f"---\ndescription: '{body}'\n---\nuser:\n{body}.").render({}) == [
        {"role": "user", "content": f"{body}."}
    ]
    outputs = {"score": Output("score", "integer"), "reason": Output("reason", "string")}
    assert read(f'{{"score": 4, "reason": "{line}"}}', outputs).outputs["reason"] == line
    assert read(line, outputs).cause == "unparseable"


def test_lines_of_one_character_over_and_over_go_through() -> None:
    for piece in ("{", "}", "[", "`", "~", "-", "+", ":", "#", " ", "\t", '"', "\\", "<", "!["):
        line = piece * 200_000
        assert BODY.render({"a": line, "b": "b", "xs": []})[0]["content"] == f"Judge <{line}>."
        assert read(line + "x", {"score": Output("score", "integer")}).status == "invalid"
        for text in (f"---\na: '{line[:10_000]}'\n---\nuser:\nhi", f"user:\n{line}.", line):
            exercise(text)


def test_ten_thousand_braces_go_through() -> None:
    for line in ("{{" * 5_000, "{%" * 5_000, "{#" * 5_000, "{{ x }}" * 2_000, "{" * 10_000):
        prompty = loads("user:\n" + line)
        outcome = attempt(lambda: prompty.render({"x": "v"})[0]["content"])  # noqa: B023
        refused = isinstance(outcome, PromptyError) and outcome.code == "template"
        assert refused or outcome in (line, "v" * 2_000)

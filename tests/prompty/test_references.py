"""`${env:...}` and `${file:...}`: when they are replaced, by what, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from assay.errors import PromptyError
from assay.prompty import load, loads
from assay.prompty.references import read_beside, resolve, resolve_files, unset


@pytest.fixture(autouse=True)
def variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REF_SET", "value")
    monkeypatch.setenv("REF_EMPTY", "")
    monkeypatch.delenv("REF_GONE", raising=False)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${env:REF_SET}", "value"),
        ("${ENV:REF_SET}", "value"),
        ("${ env : REF_SET }", "value"),
        ("${env:REF_SET}/x", "value/x"),
        ("pre ${env:REF_SET} post", "pre value post"),
        ("${env:REF_SET}${env:REF_SET}", "valuevalue"),
        ("${env:REF_GONE:west}", "west"),
        ("${env:REF_GONE:}", ""),
        ("${env:REF_EMPTY:west}", "west"),
        ("${env:REF_GONE:https://a.b:1/c}", "https://a.b:1/c"),
        ("$REF_SET {env:REF_SET}", "$REF_SET {env:REF_SET}"),
        ("${other:REF_SET}", "${other:REF_SET}"),
        ({"a": ["${env:REF_SET}", 1]}, {"a": ["value", 1]}),
        (7, 7),
    ],
)
def test_environment_references(text: Any, value: Any) -> None:
    assert resolve(text, None) == value


def test_every_variable_that_is_needed_is_listed_with_why() -> None:
    value = {"a": "${env:REF_GONE}", "b": ["${env:REF_EMPTY}"], "c": "${env:REF_GONE:x}"}
    assert unset(value) == {"REF_GONE": "not set", "REF_EMPTY": "set but empty"}
    with pytest.raises(PromptyError) as caught:
        resolve(value, Path("f.prompty"))
    assert str(caught.value) == (
        "f.prompty: environment variables needed: REF_GONE (not set), REF_EMPTY (set but empty)"
    )


def test_a_value_of_a_variable_is_not_resolved_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REF_SET", "${env:REF_GONE}")
    assert resolve("${env:REF_SET}", None) == "${env:REF_GONE}"


def test_a_file_loads_where_its_variables_are_not_set() -> None:
    file = loads("---\nmodel:\n  parameters:\n    user: ${env:REF_GONE}\n---\nuser:\nhi\n")
    assert file.render({}) == [{"role": "user", "content": "hi"}]
    with pytest.raises(PromptyError, match="REF_GONE"):
        _ = file.parameters


def test_parameters_are_sent_with_their_references_replaced() -> None:
    file = loads("---\nmodel:\n  parameters:\n    user: u-${env:REF_SET}\n---\nuser:\nhi\n")
    assert file.parameters == {"user": "u-value"}


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("a.json", '{"b": [1]}', {"b": [1]}),
        ("a.yaml", "b: yes\nc: 2024-01-01\n", {"b": "yes", "c": "2024-01-01"}),
        ("a.yml", "- 1\n- x\n", [1, "x"]),
        ("a.txt", "plain ${env:REF_SET}\n", "plain ${env:REF_SET}\n"),
        ("sub/a.json", "3", 3),
    ],
)
def test_a_file_beside_the_prompty(tmp_path: Path, name: str, text: str, value: Any) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text)
    home = tmp_path / "m.prompty"
    assert read_beside(name, home) == value
    assert resolve_files({"k": [f" ${{file:{name}}} "]}, home) == {"k": [value]}


def test_tools_in_a_file_reach_the_parameters(tmp_path: Path) -> None:
    (tmp_path / "tools.json").write_text('[{"type": "function"}]')
    path = tmp_path / "m.prompty"
    path.write_text("---\nmodel:\n  parameters:\n    tools: ${file:tools.json}\n---\nuser:\nhi\n")
    assert load(path).parameters == {"tools": [{"type": "function"}]}


def test_nothing_outside_the_folder_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    (folder / "link.txt").symlink_to(secret)
    (folder / "round").symlink_to(folder / "round")
    home = folder / "m.prompty"
    for name in ("../secret.txt", str(secret), "link.txt", "x/../../secret.txt"):
        with pytest.raises(PromptyError, match="leaves the prompty's folder") as caught:
            read_beside(name, home)
        assert caught.value.code == "file-outside"


@pytest.mark.parametrize("name", ["gone.json", "bad.json", "bad.yaml", "a\0b", "round", "x" * 9999])
def test_what_cannot_be_read_is_a_prompty_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "bad.json").write_text("{")
    (tmp_path / "bad.yaml").write_text("a: [")
    (tmp_path / "round").symlink_to(tmp_path / "round")
    with pytest.raises(PromptyError):
        read_beside(name, tmp_path / "m.prompty")


def test_text_without_a_file_of_its_own_reads_no_files() -> None:
    with pytest.raises(PromptyError, match="needs a prompty that is a file"):
        loads("---\ninputs: ${file:x.json}\n---\nhi\n")


def test_many_openings_take_one_pass() -> None:
    # Quadratic scanning of these four megabytes would take hours.
    assert unset("${env:" * 700_000) == {}

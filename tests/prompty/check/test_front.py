"""Front matter: what cannot be read, and keys and values that mean nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.prompty.check import check_file, check_text
from tests.prompty.check.helpers import BODY, FRONT, codes, metric, only, place


def test_a_good_metric_has_no_findings() -> None:
    assert check_text(metric()) == []


@pytest.mark.parametrize(
    ("written", "code", "says", "line"),
    [
        ("name: [a", "yaml", "expected", None),
        ("name: a\nname: b", "duplicate-key", "first on line 2", 3),
        ("model:\n\tapi: chat", "tab", "tab", 3),
        ("- a\n- b", "yaml", "not a list", 2),
        ("inputs: 3", "inputs", "mapping", 2),
    ],
)
def test_front_matter_that_cannot_be_read(
    written: str, code: str, says: str, line: int | None
) -> None:
    found = [f for f in check_text(metric(written, "system:\nhi\n")) if f.code == code]
    assert len(found) == 1
    assert found[0].severity == "error"
    assert says in found[0].message
    if line is not None:
        assert found[0].line == line


def test_an_unclosed_front_matter_names_its_opening_line() -> None:
    finding = only("\n---\nname: x\nsystem:\nhi\n")
    assert (finding.line, finding.code, finding.severity) == (2, "unclosed", "error")


def test_lost_indentation_does_not_hide_what_else_is_wrong() -> None:
    flat = "\n".join(
        ["model:", "api: chat", "configuration:", "type: azure_openai", "inputs:"]
        + ["question:", "type: string", "outputs:", "grade:", "type: int"]
    )
    text = metric(flat, "system:\nGrade it.\n")
    found = {finding.code: finding for finding in check_text(text)}
    assert found["lost-indentation"].severity == "error"
    unused = found["unused-input"]
    assert (unused.line, unused.column) == place(text, "question:")
    assert found["inputs-unused"].severity == "error"
    assert (found["no-scale"].line, found["no-scale"].column) == place(text, "grade:")


@pytest.mark.parametrize(
    ("old", "new", "hint", "severity"),
    [
        ("parameters:", "paramters:", "`parameters`", "warning"),
        ("max_tokens", "max_token", "`max_tokens`", "warning"),
        ("minimum: 0", "minimum: 0\n    minimun: 0", "`minimum`", "warning"),
        ("type: string\noutputs", "type: string\n    defualt: x\noutputs", "`default`", "warning"),
        ("name: Tone", "name: Tone\nfavourite_colour: blue", "favourite_colour", "info"),
        ("  api: chat", "  api: chat\n  temperature: 1", "`model.parameters`", "warning"),
    ],
)
def test_unknown_keys_name_the_near_miss(old: str, new: str, hint: str, severity: str) -> None:
    text = metric(FRONT.replace(old, new, 1))
    finding = only(text)
    assert (finding.code, finding.severity) == ("unknown-key", severity)
    assert hint in finding.message
    key = next(line for line in new.splitlines() if line not in old.splitlines()).strip()
    assert (finding.line, finding.column) == place(text, key.split(":")[0] + ":")


def test_free_areas_have_no_unknown_keys() -> None:
    extra = "metadata:\n  anything: {paramters: 1}\nsample:\n  answer: x\n"
    extra += "model:\n  configuration:\n    type: snowflake_cortex\n    account: a\n    role: b"
    assert codes(metric(FRONT.replace("model:\n  api: chat", extra))) == []


@pytest.mark.parametrize(("block", "indent"), [("  configuration:\n", "    "), ("", "  ")])
def test_a_model_of_a_project(block: str, indent: str) -> None:
    keys = ("byo_model: c/m", "project_endpoint: https://a.b/api/projects/p")
    written = block + "\n".join(indent + key for key in keys)
    assert codes(metric(FRONT.replace("  api: chat", f"  api: chat\n{written}"))) == []
    misspelt = written.replace("byo_model", "byo_modell")
    finding = only(metric(FRONT.replace("  api: chat", f"  api: chat\n{misspelt}")))
    assert (finding.code, finding.severity) == ("unknown-key", "warning")
    assert "did you mean `byo_model`?" in finding.message


def test_a_misspelt_tool_choice_is_named() -> None:
    text = metric(FRONT.replace("temperature: 0", "tools_choice: auto"))
    finding = only(text)
    assert finding.code == "misspelt-key"
    assert (finding.line, finding.column) == place(text, "tools_choice")


def test_an_unknown_type_names_the_near_miss() -> None:
    text = metric(FRONT.replace("type: string\noutputs", "type: strng\noutputs"))
    finding = only(text)
    assert finding.code == "unknown-type"
    assert "`string`" in finding.message


def test_unset_variables_are_named_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TONE_ENDPOINT", "TONE_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TONE_SET", "x")
    settings = (
        "  configuration:\n    azure_endpoint: ${env:TONE_ENDPOINT}\n    api_key: ${env:TONE_KEY}\n"
        "    azure_deployment: ${env:TONE_SET}\n    api_version: ${env:TONE_KEY:v1}\n"
    )
    found = check_text(metric(FRONT.replace("  api: chat\n", "  api: chat\n" + settings)))
    assert [(f.code, f.severity, f.line) for f in found] == [
        ("env-unset", "warning", 6),
        ("env-unset", "warning", 7),
    ]
    assert "TONE_ENDPOINT" in found[0].message
    assert "TONE_KEY" in found[1].message


def test_a_reference_must_stay_in_the_folder_and_exist(tmp_path: Path) -> None:
    (tmp_path / "outside.json").write_text("{}")
    folder = tmp_path / "inside"
    folder.mkdir()
    file = folder / "a.prompty"
    file.write_text(
        metric(FRONT + "\nmetadata:\n  a: ${file:../outside.json}\n  b: ${file:no.json}")
    )
    found = check_file(file)
    assert [(f.code, f.severity) for f in found] == [("file-outside", "error"), ("file", "error")]
    assert str(tmp_path) not in found[1].message


def test_other_references_are_not_replaced() -> None:
    text = metric(FRONT.replace("temperature: 0", "seed: ${SEED}"))
    finding = only(text)
    assert finding.code == "unknown-reference"


@pytest.mark.parametrize(
    ("sample", "says"),
    [
        ("sample:\n  answr: x\n  answer: y", "did you mean `answer`"),
        ("sample:\n  other: x", "no value for `answer`"),
    ],
)
def test_a_sample_that_does_not_fit(sample: str, says: str) -> None:
    found = check_text(metric(FRONT + "\n" + sample))
    assert {f.code for f in found} == {"sample-mismatch"}
    assert any(says in f.message for f in found)


def test_sample_values_must_have_the_declared_type() -> None:
    front = FRONT.replace("answer:\n    type: string", "answer:\n    type: integer")
    assert codes(metric(front + "\nsample:\n  answer: seven")) == ["sample-mismatch"]
    assert codes(metric(front + "\nsample:\n  answer: 7")) == []


def test_a_default_would_be_judged_silently() -> None:
    front = FRONT.replace("type: string\noutputs", "type: string\n    default: fine\noutputs")
    text = metric(front)
    finding = only(text)
    assert finding.code == "judged-default"
    assert (finding.line, finding.column) == place(text, "default:")


def test_a_file_that_is_not_there_and_one_that_is_no_text(tmp_path: Path) -> None:
    assert [f.code for f in check_file(tmp_path / "none.prompty")] == ["file"]
    binary = tmp_path / "b.prompty"
    binary.write_bytes(b"---\nname: caf\xe9\n---\n" + BODY.encode())
    finding = check_file(binary)[0]
    assert (finding.code, finding.line) == ("encoding", 2)

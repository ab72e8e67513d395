"""The public files of shared/corpus, where they are there: none is part of the project.

Every well-formed file loads, renders, withstands hostile values, and survives `--fix` and a
conversion there and back. The two malformed ones give an error that names line and cause.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from assay.errors import PromptyError
from assay.prompty import Prompty, load, loads
from assay.prompty.check import check_file, fix_text
from assay.prompty.check.attack import attack
from assay.prompty.check.finding import Collector
from assay.prompty.convert import convert
from assay.prompty.fabricate import fabricate
from assay.prompty.indent import lost_indentation
from assay.prompty.source import decode_verbatim, normal

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
MALFORMED = {
    "similarity_flattened.prompty": ("lost-indentation", 2, "indentation"),
    "queryIntent.prompty": ("indented-delimiter", 1, "column 1"),
}

pytestmark = pytest.mark.skipif(
    not (CORPUS / "index.csv").exists(), reason="shared/corpus is not here"
)


def files() -> list[tuple[Path, bool]]:
    """Every file of the index, and whether it is broken."""
    with (CORPUS / "index.csv").open(encoding="utf-8", newline="") as index:
        rows = list(csv.DictReader(index))
    broken = {row["file"] for row in rows if row["malformed"]}
    # The flattened page is well-formed YAML to the index; what it says is lost all the same.
    broken |= {row["file"] for row in rows if row["file"].startswith("seed+")}
    return [(CORPUS / row["file"], row["file"] in broken) for row in rows]


def well_formed() -> list[Path]:
    return [path for path, broken in files() if not broken]


def text_of(path: Path) -> str:
    return decode_verbatim(path.read_bytes(), path)[0]


def test_every_well_formed_file_loads_and_renders() -> None:
    rendered = 0
    for path in well_formed():
        prompty = load(path)
        messages = prompty.render(fabricate(prompty))
        assert messages, path
        assert all(message["role"] for message in messages), path
        rendered += 1
    assert rendered == 313


def test_malformed_files_name_line_and_cause() -> None:
    broken = [path for path, is_broken in files() if is_broken]
    assert {path.name for path in broken} == set(MALFORMED)
    for path in broken:
        code, line, says = MALFORMED[path.name]
        with pytest.raises(PromptyError) as caught:
            load(path)
        assert (caught.value.code, caught.value.line) == (code, line)
        assert says in str(caught.value)


def test_every_file_can_be_checked() -> None:
    for path, broken in files():
        findings = check_file(path)
        lines = text_of(path).count("\n") + 1
        assert all(1 <= finding.line <= lines for finding in findings), path
        parse_errors = {
            "yaml",
            "tab",
            "duplicate-key",
            "unclosed",
            *(c for c, *_ in MALFORMED.values()),
        }
        assert broken == any(finding.code in parse_errors for finding in findings), path


def test_fixing_breaks_nothing() -> None:
    changed = []
    for path, broken in files():
        text = text_of(path)
        fixed = fix_text(text, path)
        assert fix_text(fixed, path) == fixed, path
        if fixed == text:
            continue
        changed.append(path.name)
        fixable = {"lost-indentation", "indented-delimiter", "inputs-unused", "misspelt-key"}
        assert fixable & {finding.code for finding in check_file(path)}, path
        after = loads(fixed, path)
        if not broken:
            before = load(path)
            assert after.front == before.front, path
            values = fabricate(before)
            had = before.render(values)
            assert after.render(values)[: len(had)] == had, path
    assert set(MALFORMED) <= set(changed)


def test_the_flattened_page_is_fully_restored() -> None:
    path = next(path for path, _ in files() if path.name == "similarity_flattened.prompty")
    prompty = loads(fix_text(text_of(path), path), path)
    assert list(prompty.declared_inputs) == ["question", "ground_truth", "answer"]
    assert {item.type for item in prompty.declared_inputs.values()} == {"string"}
    assert prompty.outputs["similarity"].type == "integer"
    assert prompty.model.connection["deployment"] == "gpt-4"
    assert prompty.model.connection_name == "open_ai_connection"
    assert prompty.model.parameters["temperature"] == 0.2
    values = {"question": "Q-1", "ground_truth": "G-2", "answer": "A-3"}
    messages = prompty.render(values)
    assert [message["role"] for message in messages] == ["system", "user"]
    assert all(value in messages[1]["content"] for value in values.values())


def test_lost_indentation_is_restored_exactly_or_not_at_all() -> None:
    """Every classic file with its indentation taken away comes back as it was, or stays."""
    restored = left = 0
    for path in well_formed():
        before = load(path)
        lines = normal(text_of(path)).split("\n")
        start = next((i for i, line in enumerate(lines) if line.startswith("---")), 0) + 1
        flat = [line.lstrip() for line in lines[start : before.body_line - 2]]
        if before.dialect not in "ABC" or not lost_indentation("\n".join(flat)):
            continue
        text = "\n".join([*lines[:start], *flat, *lines[before.body_line - 2 :]])
        fixed = fix_text(text, path)
        if fixed == text:
            left += 1
            continue
        assert loads(fixed, path).front == before.front, path
        restored += 1
    assert restored > 4 * left > 0


@pytest.mark.slow
def test_no_hostile_value_changes_the_messages() -> None:
    for path in well_formed():
        found = Collector(path.name)
        outcome = attack(load(path), found)
        assert outcome is not None, path
        assert found.findings == [], path


def settings(prompty: Prompty) -> tuple[object, ...]:
    """What must survive a conversion. `azure` and `azure_openai` are one provider."""
    model = prompty.model
    connection = {key: value for key, value in model.connection.items() if key != "provider"}
    return (
        model.api,
        model.provider,
        connection,
        model.connection_name,
        dict(model.parameters),
        dict(prompty.declared_inputs),
        dict(prompty.outputs),
        prompty.is_mustache,
        prompty.body,
    )


@pytest.mark.parametrize(("there", "back"), [("v2", "classic"), ("classic", "v2")])
def test_conversion_there_and_back(there: str, back: str) -> None:
    for path in well_formed():
        before = load(path)
        once = convert(text_of(path), there, path)  # type: ignore[arg-type]
        assert settings(loads(once.text, path)) == settings(before), path
        twice = convert(once.text, back, path)  # type: ignore[arg-type]
        assert settings(loads(twice.text, path)) == settings(before), path
        again = convert(once.text, there, path)  # type: ignore[arg-type]
        assert again.text == once.text, path

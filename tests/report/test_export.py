"""Exports: what other programs get, and that no spreadsheet runs any of it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pandas
import pytest

import assay
from assay.errors import RunError, SetupError
from assay.report import FORMATS, export, level_bars, summary_markdown
from assay.report.sheets import EXCEL_CELL, cell
from tests.report.conftest import ROWS, make_run

VALUE = "outputs.on_topic.score"


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> assay.Run:
    """A run whose columns are formulas and worse."""
    row: dict[str, Any] = {"question": "=1+1 QUESTION: q9", "answer": "-5", "=col": "@SUM(A1)"}
    data = [
        row,
        {**row, "n": -3, "list": ["a", "b"], "any": 1},
        {**row, "n": 2.5, "list": [], "any": "x" * 40_000},
        {**row, "answer": "\tTab \x01", "any": {"deep": [1]}, "big": 2**60},
    ]
    return make_run(
        tmp_path_factory.mktemp("odd"),
        "a | b <i>",
        data=data,
        judge=assay.ScriptedJudge('{"reason": "+1", "score": 5}'),
    )


def read(run: assay.Run, format: str) -> str:
    out = io.BytesIO()
    export(run, format, out)
    return out.getvalue().decode()


def test_csv_disarms_formulas_and_keeps_numbers(odd: assay.Run) -> None:
    rows = list(csv.DictReader(io.StringIO(read(odd, "csv"), newline="")))
    assert rows[0]["inputs.question"] == "'=1+1 QUESTION: q9"
    assert rows[0]["inputs.answer"] == "'-5"
    assert rows[0]["inputs.=col"] == "'@SUM(A1)"
    assert rows[0]["outputs.on_topic.reason"] == "'+1"
    assert rows[3]["inputs.answer"] == "'\tTab \x01"
    assert (rows[0]["inputs.n"], rows[1]["inputs.n"]) == ("", "-3")
    assert rows[1]["inputs.list"] == '["a","b"]'
    assert rows[0][VALUE] == "5"


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_what_looks_like_a_formula_gets_an_apostrophe(start: str) -> None:
    assert cell(f"{start}x") == f"'{start}x"
    assert cell(f"x{start}") == f"x{start}"


def test_jsonl_is_the_rows_as_they_are(run: assay.Run) -> None:
    lines = [json.loads(line) for line in read(run, "jsonl").split("\n")[:-1]]
    assert len(lines) == ROWS
    assert lines == json.loads(json.dumps(list(run.rows())))


def test_excel(odd: assay.Run, tmp_path: Path) -> None:
    export(odd, "xlsx", tmp_path / "rows.xlsx")
    rows = pandas.read_excel(tmp_path / "rows.xlsx", sheet_name="rows")
    assert rows["inputs.question"][0] == "'=1+1 QUESTION: q9"
    assert rows["inputs.n"][1] == -3
    assert rows[VALUE].tolist() == [5, 5, 5, 5]
    assert len(rows["inputs.any"][2]) == EXCEL_CELL
    assert rows["inputs.any"][2].endswith("… (cut; 40000 characters)")
    summary = pandas.read_excel(tmp_path / "rows.xlsx", sheet_name="summary")
    assert summary["mean"].tolist() == [5]
    assert list(tmp_path.iterdir()) == [tmp_path / "rows.xlsx"]


def test_parquet_has_one_type_a_column(odd: assay.Run, tmp_path: Path) -> None:
    export(odd, "parquet", tmp_path / "rows.parquet")
    rows = pandas.read_parquet(tmp_path / "rows.parquet")
    assert rows["inputs.question"][0] == "=1+1 QUESTION: q9"  # no spreadsheet: as it is
    assert rows["inputs.n"].tolist()[1:3] == [-3.0, 2.5]
    assert list(rows["inputs.list"][1]) == ["a", "b"]
    assert rows["inputs.any"][3] == '{"deep":[1]}'
    assert rows[VALUE].tolist() == [5, 5, 5, 5]


def test_junit_has_a_case_a_row(run: assay.Run) -> None:
    suites = ElementTree.fromstring(read(run, "junit"))
    (suite,) = suites
    assert {k: suite.get(k) for k in ("name", "tests", "failures", "errors", "skipped")} == {
        "name": "on_topic.score",
        "tests": "60",
        "failures": str(sum("fail" in str(c.find("failure")) for c in suite)),
        "errors": "3",
        "skipped": "1",
    }
    cases = list(suite)
    failure = cases[0].find("failure")
    assert cases[0].get("name") == "row-0"
    assert failure is not None
    assert failure.get("message") == "on_topic.score is 1"
    assert failure.text == "because </script><b>bold</b> 0"
    error = cases[1].find("error")
    assert error is not None
    assert error.get("type") == "invalid"
    assert cases[7].find("skipped") is not None
    assert list(cases[13]) == []


def test_junit_of_odd_text_is_xml(odd: assay.Run) -> None:
    assert ElementTree.fromstring(read(odd, "junit")).get("name") == "a | b <i>"


def test_markdown(run: assay.Run, odd: assay.Run) -> None:
    lines = summary_markdown(run).splitlines()
    assert lines[0] == "### first"
    assert lines[4].startswith("| on\\_topic.score | ")
    assert "without a score 1 unparseable" in lines[6]
    assert summary_markdown(odd).startswith("### a \\| b &lt;i>")
    assert level_bars(odd) == {"on_topic.score": "····█"}
    assert level_bars(odd, blocks=False) == {"on_topic.score": "00009"}
    assert read(run, "markdown") == summary_markdown(run)


def test_what_is_not_there_is_said(run: assay.Run, tmp_path: Path) -> None:
    assert list(FORMATS) == ["csv", "xlsx", "parquet", "jsonl", "junit", "markdown"]
    with pytest.raises(SetupError, match="unknown format 'pdf'; formats are csv, xlsx"):
        export(run, "pdf", tmp_path / "x")
    with pytest.raises(RunError, match="cannot be written"):
        export(run, "csv", tmp_path / "gone" / "x")

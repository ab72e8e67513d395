"""`assay report`, `compare`, `view`, `export`: what they print where, and how they exit."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.cli.conftest import Assay, Result
from tests.support import runs


@pytest.fixture
def run(assay: Assay, tmp_path: Path, metric: Path) -> Path:
    script = tmp_path / "script.json"
    entries = [{"when": f"QUESTION: q{n}\n", "reply": runs.reply_for(n)} for n in range(6)]
    script.write_text(json.dumps(entries))
    data = runs.write_lines(tmp_path / "data.jsonl", runs.rows(6))
    assert assay("run", metric, data, "--judge", f"scripted:{script}").code == 0
    return runs.only_run(tmp_path)


def calmly(assay: Assay, *arguments: str | Path) -> Result:
    """A command that ends well returns; typer then exits with 0."""
    found = assay(*arguments)
    assert found.code == 0, found
    return found


def test_report(assay: Assay, run: Path, tmp_path: Path) -> None:
    assert calmly(assay, "report", run).out == f"{run / 'report.html'}\n"
    assert (run / "report.html").read_text("utf-8").startswith("<!doctype html>")
    assert calmly(assay, "report", run, "-o", tmp_path / "x.html").out == f"{tmp_path}/x.html\n"


def test_report_of_what_is_no_run(assay: Assay, tmp_path: Path) -> None:
    found = assay("report", tmp_path)
    assert (found.code, found.out) == (2, "")
    assert found.err == f"assay: {tmp_path} is no run directory: it has no run.json\n"


def test_compare(assay: Assay, run: Path, tmp_path: Path) -> None:
    found = calmly(assay, "compare", run, run, "-o", tmp_path / "c.html")
    assert "on_topic.score" in found.out
    assert "6 rows matched" in found.out
    assert found.out.endswith(f"{tmp_path}/c.html\n")
    found = calmly(assay, "compare", run, run, "--json")
    assert json.loads(found.out)["metrics"]["on_topic.score"]["against_first"][0]["n"] == 6
    assert assay("compare", run).code == 2


def test_export(assay: Assay, run: Path) -> None:
    assert calmly(assay, "export", run, "--format", "markdown").out.startswith("### ")
    assert calmly(assay, "export", run, "-f", "csv").out.startswith("row,id,inputs.question")
    assert calmly(assay, "export", run, "-f", "parquet").out == f"{run / 'rows.parquet'}\n"
    found = assay("export", run, "-f", "pdf")
    assert (found.code, found.out) == (2, "")
    assert "formats are csv, xlsx, parquet, jsonl, junit, markdown" in found.err


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT for a child there")
def test_view_ends_with_ctrl_c(run: Path) -> None:
    with runs.start("view", run.parent, cwd=run.parent) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        with urlopen(url) as answer:
            assert b"<h1>Runs</h1>" in answer.read()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (0, "")
    assert err.endswith("ended\n")


def test_a_wide_console_shows_how_often_each_level_was_given(
    assay: Assay, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    found = assay("rescore", run)
    assert "levels" in found.out
    assert "█▄▄▄▄" in found.out

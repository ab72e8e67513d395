"""`assay upload`, and `assay run --azure-ai-project`: what is printed where, and how it exits."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Assay
from tests.support import runs
from tests.support.foundry import TOKEN, FakeFoundry
from tests.support.server import JudgeServer
from tests.support.tls import make_tls

LINK = "https://ai.azure.com/nextgen/evals/run_1"


@pytest.fixture
def foundry(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[FakeFoundry]:
    tls = make_tls(tmp_path_factory.mktemp("tls"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tls.cert))
    monkeypatch.setenv("AZURE_AI_PROJECT_TOKEN", TOKEN)
    with FakeFoundry(tls) as running:
        monkeypatch.setenv("AZURE_AI_PROJECT_ENDPOINT", running.endpoint)
        yield running


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return runs.write_lines(tmp_path / "data.jsonl", runs.rows(5))


def arguments(metric: Path, data: Path, server: JudgeServer) -> list[str | Path]:
    return ["run", metric, data, "--judge", "openai:test", "--base-url", server.url]


@pytest.fixture
def finished(assay: Assay, metric: Path, data: Path, server: JudgeServer, tmp_path: Path) -> Path:
    assert assay(*arguments(metric, data, server)).code == 0
    return runs.only_run(tmp_path)


def test_the_link_is_all_of_stdout(assay: Assay, foundry: FakeFoundry, finished: Path) -> None:
    found = assay("upload", finished)
    assert (found.code, found.out) == (0, f"{LINK}\n")
    assert "5 rows, 1 metrics, to" in found.err
    assert assay("upload", finished).out == f"{LINK}\n"
    assert len(foundry.all_runs()) == 1


def test_the_result_as_json(assay: Assay, foundry: FakeFoundry, finished: Path) -> None:
    found = json.loads(assay("upload", finished, "--json").out)
    assert found["url"] == LINK
    assert found["rows"] == 5
    assert found["counts"]["on_topic"] == {"failed": 2, "passed": 3}
    assert {"run_id", "eval_id", "dataset_id", "project", "surface"} <= found.keys()


def test_a_dry_run_needs_no_login(
    assay: Assay, foundry: FakeFoundry, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AZURE_AI_PROJECT_TOKEN")
    found = assay("upload", finished, "--dry-run", "--deployment", "gpt-4o")
    shown = json.loads(found.out)
    assert found.code == 0
    assert foundry.seen == []
    criteria = shown["eval"]["testing_criteria"]
    assert criteria[0]["initialization_parameters"]["deployment_name"] == "gpt-4o"
    assert [c["type"] for c in criteria] == ["azure_ai_evaluator", "string_check"]
    found = assay("upload", finished, "--dry-run", "--no-string-checks")
    assert len(json.loads(found.out)["eval"]["testing_criteria"]) == 1


def test_a_failure_is_one_line_and_exit_3(
    assay: Assay, foundry: FakeFoundry, finished: Path
) -> None:
    foundry.fail("POST", "/runs$", 403)
    found = assay("upload", finished)
    assert (found.code, found.out) == (3, "")
    last = found.err.splitlines()[-1]
    assert last.startswith("assay: creating the run failed: POST /openai/v1/evals/eval_1/runs at ")
    assert f"repeat with: assay upload {finished} --azure-ai-project {foundry.endpoint}" in last
    assert TOKEN not in found.err


def test_no_project(assay: Assay, finished: Path) -> None:
    found = assay("upload", finished)
    assert (found.code, found.out) == (2, "")
    assert "assay: no Azure AI project: give --azure-ai-project" in found.err


def test_a_run_is_uploaded_when_it_is_written(
    assay: Assay, foundry: FakeFoundry, metric: Path, data: Path, server: JudgeServer
) -> None:
    found = assay(*arguments(metric, data, server), "--azure-ai-project", foundry.endpoint)
    assert found.code == 0
    assert f"in the project: {LINK}" in found.err
    assert "on_topic" in found.out


def test_the_project_of_the_environment_is_used_when_asked(
    assay: Assay, foundry: FakeFoundry, metric: Path, data: Path, server: JudgeServer
) -> None:
    assert assay(*arguments(metric, data, server), "--json").code == 0
    assert foundry.seen == []
    found = assay(*arguments(metric, data, server), "--json", "--upload")
    assert json.loads(found.out)["rows"] == 5
    assert f"in the project: {LINK}" in found.err


def test_no_judge_is_asked_where_the_upload_would_fail(
    assay: Assay,
    foundry: FakeFoundry,
    metric: Path,
    data: Path,
    server: JudgeServer,
    tmp_path: Path,
) -> None:
    foundry.fail("GET", "^/evaluators$", 403)
    found = assay(*arguments(metric, data, server), "--upload")
    assert (found.code, found.out) == (2, "")
    assert "the run was not started, since its upload would fail" in found.err
    assert server.count == 0
    assert not (tmp_path / "runs").exists()


def test_an_upload_that_fails_leaves_the_run_and_its_summary(
    assay: Assay,
    foundry: FakeFoundry,
    metric: Path,
    data: Path,
    server: JudgeServer,
    tmp_path: Path,
) -> None:
    foundry.fail("POST", "/runs$", 403)
    found = assay(*arguments(metric, data, server), "--upload")
    assert found.code == 3
    assert "on_topic" in found.out
    assert "missing permission" in found.err
    assert LINK not in found.err
    foundry.heal()
    assert assay("upload", runs.only_run(tmp_path)).out == f"{LINK}\n"


def test_a_failed_gate_counts_before_a_failed_upload(
    assay: Assay, foundry: FakeFoundry, metric: Path, data: Path, server: JudgeServer
) -> None:
    foundry.fail("POST", "/runs$", 403)
    found = assay(*arguments(metric, data, server), "--upload", "--fail-under", "on_topic=4")
    assert found.code == 1
    assert "missing permission" in found.err

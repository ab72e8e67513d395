"""Runs of a project as runs of assay: those it was sent from here, and any others."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.azure.project import Foundry
from assay.azure.runs import fetch_run, list_evals, list_runs
from assay.cli import main
from assay.errors import SetupError
from assay.report import compare
from assay.run.progress import Silent
from tests.azure.conftest import PATIENT, SCORES, make_run, write_metric
from tests.azure.test_log import log
from tests.support.foundry import TOKEN, FakeFoundry


def pull(project: Foundry, eval_id: str = "eval_1", run_id: str = "run_1") -> assay.Run:
    directory = Path(f"pulled-{run_id}")
    directory.mkdir()
    return asyncio.run(fetch_run(project, eval_id, run_id, PATIENT)).write(directory)


def lines(run: assay.Run, evaluator: str) -> list[dict[str, Any]]:
    """The first score line of every row."""
    place = run.keys.index((evaluator, 0))
    return [records[place] or {} for _, records in run.records()]


# --- uploaded from here --------------------------------------------------------------------------


def assert_same(local: assay.Run, pulled: assay.Run) -> None:
    """Nothing moved: every row matched, no value, status or verdict is another."""
    found = compare([local, pulled]).as_dict()
    assert found["only_in"] == [0, 0]
    assert found["rows"] == []
    assert found["not_in_all"] == []
    for metric in found["metrics"].values():
        assert metric["problem"] is None
        one, other = metric["runs"]
        assert one == other
    assert not found["warnings"]


def test_a_run_comes_back_as_it_was(foundry: FakeFoundry, project: Foundry) -> None:
    special = {
        "q0": "no score at all",
        "q1": {"text": "", "finish_reason": "content_filter"},
        "q2": {"error": "timeout"},
    }
    rows = [{"question": q, "the answer": f"a {q}"} for q in SCORES]
    local = make_run(
        write_metric("on_topic"),
        write_metric("noise", "threshold: 2\n    desirable_direction: decrease"),
        special={"on_topic": special},
        rows=[*rows, {"question": "", "the answer": None}],
    )
    log(local, project)
    pulled = pull(project)
    assert_same(local, pulled)
    assert pulled.name == "demo"
    assert pulled.outputs["noise"]["score"].direction == "decrease"
    assert [line["status"] for line in lines(pulled, "on_topic")] == [
        *("invalid", "refused", "error"),
        *("scored", "scored", "not_applicable"),
    ]
    scored = lines(pulled, "noise")[4]
    assert (scored["outputs"], scored["reason"]) == ({"score": 5}, "because of q4")
    refused = lines(pulled, "on_topic")[1]
    assert refused["cause"] == "content_filter"
    assert refused["message"] == lines(local, "on_topic")[1]["message"]
    first, _ = next(iter(pulled.records()))
    assert first["columns"] == {"question": "q0", "the answer": "a q0"}
    assert pulled.report().is_file()


def test_rows_are_matched_by_their_own_id(foundry: FakeFoundry, project: Foundry) -> None:
    rows = [{"id": number, "question": q} for number, q in enumerate(SCORES)]
    local = make_run(write_metric("on_topic"), rows=rows)
    log(local, project)
    assert_same(local, pull(project))


def test_iterations_and_several_outputs_come_back(foundry: FakeFoundry, project: Foundry) -> None:
    count = 0

    def shaky(question: str) -> dict[str, Any]:
        nonlocal count
        count += 1
        return {"level": float(count % 3), "sure": count % 2 == 0}

    metric = assay.metric(
        outputs={
            "level": {"type": "number", "minimum": 0, "maximum": 2, "threshold": 1},
            "sure": {"type": "boolean"},
        }
    )(shaky)
    rows = [{"question": q} for q in SCORES]
    local = assay.evaluate(rows, {"shaky": metric}, iterations=3, progress=Silent())
    log(local, project)
    pulled = pull(project)
    assert_same(local, pulled)
    assert pulled.header["iterations"] == 3


@pytest.mark.parametrize("name", ["row", "id", "run"])
def test_a_metric_may_have_the_name_of_what_a_row_tells(
    foundry: FakeFoundry, project: Foundry, name: str
) -> None:
    local = make_run(write_metric(name))
    log(local, project)
    assert_same(local, pull(project))


def test_more_rows_than_a_page(foundry: FakeFoundry, project: Foundry) -> None:
    rows = [{"question": f"q{n % 5}", "n": n} for n in range(230)]
    local = make_run(write_metric("on_topic"), rows=rows)
    log(local, project)
    assert_same(local, pull(project))
    pages = foundry.calls("GET", "/output_items$")
    assert [seen.query["limit"] for seen in pages] == ["100"] * 6  # the upload reads them, too


# --- any other -----------------------------------------------------------------------------------

CRITERIA = [
    {
        "type": "azure_ai_evaluator",
        "name": "coherence",
        "evaluator_name": "builtin.coherence",
        "initialization_parameters": {"deployment_name": "gpt", "threshold": 3},
    },
    {"type": "azure_ai_evaluator", "name": "violence", "evaluator_name": "builtin.violence"},
    {"type": "azure_ai_evaluator", "name": "attack", "evaluator_name": "builtin.indirect_attack"},
    {"type": "string_check", "id": "same-0001", "name": "same"},
    {"type": "azure_ai_evaluator", "name": "gone", "evaluator_name": "builtin.gone"},
]


def result(name: str, **told: Any) -> dict[str, Any]:
    empty = {"score": None, "label": None, "reason": None, "threshold": None, "passed": None}
    return {"type": "azure_ai_evaluator", "name": name, "metric": name, **empty, **told}


COHERENCE = [
    result(
        "coherence", score=4, label="pass", passed=True, reason="clear", status="completed",
        sample={
            "usage": {"prompt_tokens": 90, "completion_tokens": 10, "total_tokens": 100},
            "model": "gpt-4o",
            "finish_reason": "stop",
            "output": [{"role": "assistant", "content": '{"score": 4}'}],
        },
    ),
    result("coherence", score=0, label="fail", passed=False, status="completed"),
    result("coherence", label="skipped", reason="no response", status="skipped"),
    result(
        "coherence", score=0.0, passed=False, status="error",
        sample={"error": {"code": "TIMEOUT", "message": "it took too long"}},
    ),
    result("coherence", status="completed"),
]  # fmt: skip
VIOLENCE = [
    result("violence", score=0, label="Very low", passed=True, threshold=3),
    result("violence", score=6, label="High", passed=False, threshold=3),
    result("violence", score=3, label="Low", passed=True, threshold=3),
    result("violence", score=None, sample={"error": {"code": "content_filter", "message": "no"}}),
    result("violence", score=4, label="fail", passed=False, threshold=3),
]
ATTACK = [
    result("attack", metric="xpia", label=True, passed=False),
    result("attack", metric="xpia", label=False, passed=True),
    result("attack", metric="xpia", label=False, passed=True),
    result("attack", metric="xpia", status="error"),
    result("attack", metric="xpia", label=True, passed=False),
]
SAME = [
    {"type": "string_check", "name": "same-0001", "passed": place != 2, "sample": None}
    for place in range(5)
]


@pytest.fixture
def foreign(foundry: FakeFoundry) -> FakeFoundry:
    """A run that nobody made from here, its items in another order than the data."""
    foundry.evals["eval_9"] = {
        "id": "eval_9", "name": "nightly", "created_at": 1_780_000_000,
        "testing_criteria": CRITERIA,
    }  # fmt: skip
    foundry.runs["eval_9"] = {
        "run_9": {
            "id": "run_9", "name": "Tuesday", "status": "completed", "created_at": 1_780_000_000,
            "error": {"code": None, "message": None}, "report_url": "https://ai.azure.com/r/9",
            "result_counts": {"total": 5}, "polls": 0,
        }
    }  # fmt: skip
    items = [
        {
            "id": f"item_{place}",
            "datasource_item_id": place,
            "datasource_item": {"query": f"q{place}", "n": place},
            "results": [COHERENCE[place], VIOLENCE[place], ATTACK[place], SAME[place]],
            "status": "completed",
            "sample": None,
        }
        for place in range(5)
    ]
    foundry.items["run_9"] = [items[place] for place in (3, 0, 4, 1, 2)]
    return foundry


def test_a_foreign_run(foreign: FakeFoundry, project: Foundry) -> None:
    run = pull(project, "eval_9", "run_9")
    assert [line["columns"]["n"] for line, _ in run.records()] == [0, 1, 2, 3, 4]
    coherence = lines(run, "coherence")
    assert [line["status"] for line in coherence] == [
        *("scored", "scored", "not_applicable", "error", "invalid")
    ]
    assert [line["outputs"].get("coherence") for line in coherence] == [4, 0, None, None, None]
    assert coherence[0]["reason"] == "clear"
    assert coherence[2]["message"] == "no response"
    assert (coherence[3]["cause"], coherence[3]["message"]) == (
        "evaluator_failed",
        "TIMEOUT: it took too long",
    )
    metric = run.metrics["coherence.coherence"]
    assert (metric["mean"], metric["pass_rate"], metric["n"], metric["scored"]) == (2.0, 0.5, 5, 2)
    declared = run.outputs["coherence"]["coherence"]
    assert (declared.threshold, declared.direction) == (3, "increase")
    (call,) = coherence[0]["calls"]
    assert call["usage"] == {"prompt_tokens": 90, "completion_tokens": 10}
    assert (call["model"], call["reply"]) == ("gpt-4o", '{"score": 4}')
    assert run.evaluators["coherence"]["judge"] == "gpt-4o"

    violence = run.metrics["violence.violence"]
    assert (violence["mean"], violence["pass_rate"]) == (13 / 4, 0.5)
    assert run.outputs["violence"]["violence"].direction == "decrease"
    assert lines(run, "violence")[0]["evidence"] == {"label": "Very low"}
    assert lines(run, "violence")[3]["status"] == "refused"

    attack = run.metrics["attack.xpia"]
    assert (attack["mean"], attack["pass_rate"], attack["error"]) == (0.5, 0.5, 1)
    assert run.outputs["attack"]["xpia"].type == "boolean"
    assert [line["outputs"].get("xpia") for line in lines(run, "attack")] == [
        *(True, False, False, None, True)
    ]

    same = run.metrics["same.same"]
    assert (same["mean"], same["pass_rate"], same["scored"]) == (0.8, 0.8, 5)

    gone = run.metrics["gone.gone"]
    assert (gone["mean"], gone["error"], gone["causes"]) == (None, 5, {"not_recorded": 5})
    assert run.header["source"]["url"] == "https://ai.azure.com/r/9"
    assert run.report().is_file()


def test_what_is_not_a_finished_run(foreign: FakeFoundry, project: Foundry) -> None:
    made = foreign.runs["eval_9"]["run_9"]
    made["polls"] = 9
    with pytest.raises(SetupError, match="run_9 is in_progress: import it when it is over"):
        pull(project, "eval_9", "run_9")
    made |= {"polls": 0, "status": "failed", "error": {"code": "quota", "message": "used up"}}
    Path("pulled-run_9").rmdir()
    run = pull(project, "eval_9", "run_9")
    assert run.header["notes"] == ["the service ended the run as failed (quota: used up)"]
    foreign.items["run_9"] = []
    with pytest.raises(SetupError, match=r"run_9 holds no rows \(quota: used up\)"):
        asyncio.run(fetch_run(project, "eval_9", "run_9", PATIENT))


@pytest.mark.parametrize(
    "told",
    [
        None, 7, {},
        {"iterations": 1, "evaluators": {}, "metrics": [["a", "b", "c"]], "columns": {}},
        {"iterations": 1, "evaluators": {"a": 1}, "metrics": [], "columns": {}},
        {"iterations": 1, "evaluators": {"a": {"scored": [], "outputs": 5}}, "metrics": [],
         "columns": {}},
    ],
)  # fmt: skip
def test_a_column_that_only_looks_like_ours(
    foreign: FakeFoundry, project: Foundry, told: Any
) -> None:
    for item in foreign.items["run_9"]:
        item["datasource_item"]["assay"] = {"row": 0, "run": told}
    run = pull(project, "eval_9", "run_9")
    assert run.metrics["coherence.coherence"]["mean"] == 2.0


def test_hostile_items_give_a_run_or_one_line(foreign: FakeFoundry, project: Foundry) -> None:
    foreign.items["run_9"] = [
        {"id": "a", "datasource_item_id": "x", "datasource_item": "text", "results": "none"},
        {"id": "b", "datasource_item": {"item": {"q": 1}}, "results": [7, {"name": None}]},
        {"id": "c", "datasource_item_id": 1, "results": [result("coherence", score=[4])]},
        {"id": "d", "datasource_item_id": 0, "results": [result("coherence", score="4")]},
        {"id": "e", "datasource_item_id": 2, "results": None, "sample": {"error": "cut off"}},
    ]
    run = pull(project, "eval_9", "run_9")
    assert [line["columns"] for line, _ in run.records()][-1] in ({}, {"q": 1})
    metric = run.metrics["coherence.coherence"]
    assert (metric["mean"], metric["scored"], metric["n"]) == (None, 0, 5)
    assert lines(run, "coherence")[2]["message"] == "cut off"


# --- the command ---------------------------------------------------------------------------------


def test_the_command(
    foreign: FakeFoundry, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["assay", "import", *arguments])
        with pytest.raises(SystemExit) as exit_:
            main()
        out, err = capsys.readouterr()
        return int(exit_.value.code or 0), out, err

    monkeypatch.setenv("AZURE_AI_PROJECT_TOKEN", TOKEN)
    monkeypatch.setenv("AZURE_AI_PROJECT_ENDPOINT", foreign.endpoint)
    assert call("foundry:")[1] == "eval_9\tnightly\t2026-05-28T20:26:40+00:00\n"
    (listed,) = json.loads(call("foundry:eval_9", "--json")[1])
    assert (listed["id"], listed["status"]) == ("run_9", "completed")
    code, out, _ = call("foundry:eval_9/run_9", "-o", "here")
    assert (code, out.splitlines()[-1]) == (0, "here")
    assert assay.Run("here").metrics["coherence.coherence"]["mean"] == 2.0
    code, _, err = call("foundry:eval_9/run_9", "-o", "here")
    assert (code, "here is not empty" in err) == (2, True)
    code, _, err = call("foundry:eval_9/none")
    assert (code, "HTTP 404" in err) == (3, True)
    monkeypatch.setenv("AZURE_AI_PROJECT_ENDPOINT", "")
    code, _, err = call("foundry:", "--azure-ai-project", "s/g/p")
    assert (code, "give an endpoint" in err) == (2, True)


def test_what_lists_say(foreign: FakeFoundry, project: Foundry) -> None:
    (found,) = asyncio.run(list_evals(project, PATIENT))
    assert (found["id"], found["name"]) == ("eval_9", "nightly")
    (found,) = asyncio.run(list_runs(project, "eval_9", PATIENT))
    assert (found["id"], found["name"], found["status"]) == ("run_9", "Tuesday", "completed")

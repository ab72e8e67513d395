"""A run in a Foundry project: what is sent, field by field, and what is made of the answers."""

from __future__ import annotations

import asyncio
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.azure import log_run, preview_run
from assay.azure.faults import UploadError
from assay.azure.project import Foundry
from assay.errors import RunError, SetupError
from assay.run.progress import Silent
from tests.azure.conftest import PATIENT, SCORES, Credential, make_run, write_metric
from tests.support.foundry import SIGNATURE, TOKEN, FakeFoundry


def log(run: assay.Run, project: Foundry, **options: Any) -> dict[str, Any]:
    return asyncio.run(log_run(run.directory, project, patience=PATIENT, **options))


def uploaded(foundry: FakeFoundry) -> list[dict[str, Any]]:
    """The rows of the only dataset."""
    (blob,) = foundry.blobs.values()
    return [json.loads(line) for line in blob.splitlines()]


def results(foundry: FakeFoundry, name: str, run: str = "run_1") -> list[dict[str, Any]]:
    """A criterion's result for every row, in order."""
    return [
        next(result for result in item["results"] if result["name"] == name)
        for item in foundry.items[run]
    ]


# --- what is sent --------------------------------------------------------------------------------


def test_the_payloads_field_by_field(foundry: FakeFoundry, project: Foundry) -> None:
    run = make_run(write_metric("on_topic"))
    found = log(run, project)

    (name,) = foundry.evaluators
    assert re.fullmatch(r"assay-on-topic-[0-9a-f]{6}", name)
    (version,) = foundry.evaluators[name]
    assert version["evaluator_type"] == "custom"
    assert version["display_name"] == "on_topic (assay)"
    assert version["supported_evaluation_levels"] == ["turn"]
    assert set(version["metadata"]) == {"assay.fingerprint", "assay.version"}
    definition = version["definition"]
    assert definition["type"] == "code"
    assert definition["init_parameters"]["required"] == ["deployment_name", "pass_threshold"]
    assert definition["metrics"] == {
        "result": {
            "type": "continuous",
            "desirable_direction": "increase",
            "min_value": 0.0,
            "max_value": 1.0,
            "is_primary": True,
        }
    }

    ((dataset, address),) = foundry.datasets
    assert dataset == "assay-demo"
    assert re.fullmatch(r"sha256-[0-9a-f]{43}", address)
    (patch,) = foundry.calls("PATCH", "^/datasets/")
    assert patch.body["type"] == "uri_file"
    assert list(foundry.blobs) == [patch.body["dataUri"]]
    first = uploaded(foundry)[0]
    assert first["assay"].pop("id")
    assert first["assay"].pop("run")["metrics"] == [["on_topic", "on_topic", "score"]]
    assert first == {
        "question": "q0",
        "answer": "a q0",
        "on_topic_score": 1.0,
        "on_topic_result": "fail",
        "on_topic_reason": "because of q0",
        "on_topic_threshold": 3.0,
        "on_topic_status": "completed",
        "assay": {"row": 0, "on_topic": {"norm": 0.0, "verdict": "fail"}},
    }

    (made,) = foundry.evals.values()
    assert made["name"] == "assay: on_topic"
    config = made["data_source_config"]
    assert (config["type"], config["include_sample_schema"]) == ("custom", False)
    assert sorted(config["item_schema"]["properties"]) == ["answer", "assay", "question"]
    assert made["testing_criteria"] == [
        {
            "type": "azure_ai_evaluator",
            "name": "on_topic",
            "evaluator_name": name,
            "evaluator_version": "1",
            "initialization_parameters": {"deployment_name": "none", "pass_threshold": 0.5},
            "data_mapping": {"assay": "{{item.assay}}"},
        },
        {
            "type": "string_check",
            "name": "on_topic verdict",
            "input": "{{item.assay.on_topic.verdict}}",
            "reference": "pass",
            "operation": "eq",
        },
    ]

    (done,) = foundry.all_runs()
    assert done["name"] == "demo"
    assert done["data_source"]["source"] == {
        "type": "file_id",
        "id": foundry.datasets[dataset, address]["id"],
    }
    tags = done["metadata"]
    sha = run.evaluators["on_topic"]["sha256"]
    assert tags["assay.prompts"] == f"on_topic={sha[:12]}"
    assert tags["assay.judge"] == "scripted"
    assert tags["assay.version"] == assay.__version__
    assert tags["assay.run"] == run.directory.name
    assert tags["assay.rows"] == "5"

    assert found["url"] == "https://ai.azure.com/nextgen/evals/run_1"
    assert found["counts"]["on_topic"] == {"failed": 2, "passed": 3}
    assert found["counts"] == {name: {"failed": 2, "passed": 3} for name in found["counts"]}


def test_scores_and_verdicts_arrive_as_they_are(foundry: FakeFoundry, project: Foundry) -> None:
    log(make_run(write_metric("on_topic")), project)
    echoed = results(foundry, "on_topic")
    assert [result["score"] for result in echoed] == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert [result["passed"] for result in echoed] == [False, False, True, True, True]
    checked = results(foundry, "on_topic verdict")
    assert [result["passed"] for result in checked] == [False, False, True, True, True]


def test_lower_is_better_is_turned_round(foundry: FakeFoundry, project: Foundry) -> None:
    metric = write_metric("noise", "threshold: 2\n    desirable_direction: decrease")
    log(make_run(metric), project)
    echoed = results(foundry, "noise")
    assert [result["score"] for result in echoed] == [1.0, 0.75, 0.5, 0.25, 0.0]
    assert [result["passed"] for result in echoed] == [True, True, False, False, False]
    (version,) = next(iter(foundry.evaluators.values()))
    assert "lower is better" in version["description"]


@pytest.mark.parametrize("threshold", [1.7, 2.3, 3.1, 3.3333333, 4.9])
def test_a_verdict_never_flips_at_the_threshold(
    foundry: FakeFoundry, project: Foundry, threshold: float
) -> None:
    path = write_metric("close", f"threshold: {threshold}")
    path.write_text(path.read_text().replace("type: integer", "type: number"))
    near = {
        "q0": threshold,
        "q1": math.nextafter(threshold, 0),
        "q2": math.nextafter(threshold, 9),
        "q3": threshold - 1e-7,
        "q4": threshold + 1e-7,
    }
    special = {q: json.dumps({"reason": "r", "score": value}) for q, value in near.items()}
    log(make_run(path, special={"close": special}), project)
    assert [result["passed"] for result in results(foundry, "close")] == [
        True,
        False,
        True,
        False,
        True,
    ]


def test_rows_without_a_score_are_errors_with_their_cause_and_never_fails(
    foundry: FakeFoundry, project: Foundry
) -> None:
    special = {
        "q0": "no score at all",
        "q1": {"text": "", "finish_reason": "content_filter"},
        "q2": {"error": "timeout"},
    }
    rows = [{"question": q} for q in ("q0", "q1", "q2", "q3")] + [{"question": ""}]
    run = make_run(write_metric("on_topic"), special={"on_topic": special}, rows=rows)
    found = log(run, project)
    assert found["counts"] == {"on_topic": {"errored": 4, "passed": 1}}
    assert any("4 of 5 rows lack a score" in note for note in found["notes"])
    errors = [result.get("sample", {}).get("error") for result in results(foundry, "on_topic")]
    assert errors[0]["message"].startswith("error: invalid: unparseable")
    assert errors[1]["message"].startswith("error: refused: content_filter")
    assert errors[2]["message"].startswith("error: error: timeout")
    assert errors[3] is None
    assert errors[4]["message"].startswith("skipped: not_applicable: ")
    lines = uploaded(foundry)
    assert [line["on_topic_status"] for line in lines] == [
        *("error", "error", "error"),
        *("completed", "skipped"),
    ]
    assert lines[4]["on_topic_score"] is None
    assert lines[4]["on_topic_result"] is None
    # A string check would call these rows fails.
    criteria = next(iter(foundry.evals.values()))["testing_criteria"]
    assert [criterion["type"] for criterion in criteria] == ["azure_ai_evaluator"]
    assert foundry.all_runs()[0]["result_counts"] == {
        "total": 5,
        "passed": 1,
        "failed": 0,
        "errored": 4,
        "skipped": 0,
    }


def test_iterations_are_a_mean_with_its_spread(foundry: FakeFoundry, project: Foundry) -> None:
    path = write_metric("on_topic")
    texts = [json.dumps({"reason": f"r{n}", "score": n}) for n in (2, 4, 3)]
    judge = assay.ScriptedJudge([{"replies": texts}])
    run = make_run(path, judge=judge, iterations=3, rows=[{"question": "q0"}], cache=False)
    log(run, project)
    (line,) = uploaded(foundry)
    assert line["on_topic_score"] == 3.0
    assert line["on_topic_spread"] == 1.0
    assert sorted(line["on_topic_values"]) == [2.0, 3.0, 4.0]
    assert line["on_topic_scored"] == 3
    assert line["on_topic_reason"] == "r3"
    assert results(foundry, "on_topic")[0]["score"] == 0.5


def test_a_metric_without_threshold_says_that_all_will_pass(
    foundry: FakeFoundry, project: Foundry
) -> None:
    found = log(make_run(write_metric("on_topic", "description: no mark")), project)
    assert found["counts"] == {"on_topic": {"passed": 5}}
    assert "no threshold: every score of on_topic will be shown as a pass" in found["notes"]


def test_values_that_declare_no_scale(foundry: FakeFoundry, project: Foundry) -> None:
    def share(question: str) -> dict[str, Any]:
        return {"share": int(question[1]) / 4, "length": len(question) * 10}

    run = assay.evaluate([{"question": q} for q in SCORES], share, progress=Silent())
    found = log(run, project)
    assert [result["score"] for result in results(foundry, "share.share")] == [
        *(0.0, 0.25, 0.5),
        *(0.75, 1.0),
    ]
    assert uploaded(foundry)[0]["share_length_score"] == 20.0
    assert any("share.length declares no scale" in note for note in found["notes"])


def test_columns_that_templates_cannot_name(foundry: FakeFoundry, project: Foundry) -> None:
    rows = [
        {"question": "q1", "the answer": "x", "the-answer": "y", "assay": "z", "on_topic_score": 9}
    ]
    found = log(make_run(write_metric("on_topic"), rows=rows), project)
    (line,) = uploaded(foundry)
    assert line["the_answer"] == "x"
    assert line["the_answer_2"] == "y"
    assert line["assay_2"] == "z"
    assert line["on_topic_score"] == 2.0
    assert line["on_topic_score_2"] == 9
    assert any("the answer as the_answer" in note for note in found["notes"])


def test_what_the_target_added_is_a_column(foundry: FakeFoundry, project: Foundry) -> None:
    def target(question: str) -> dict[str, str]:
        return {"context": f"found for {question}"}

    run = make_run(write_metric("on_topic"), target=target)
    log(run, project)
    assert uploaded(foundry)[3]["context"] == "found for q3"


def test_many_rows_are_read_back_page_by_page(foundry: FakeFoundry, project: Foundry) -> None:
    rows = [{"question": f"q{n % 5}"} for n in range(250)]
    found = log(make_run(write_metric("on_topic"), rows=rows), project)
    assert len(foundry.calls("GET", "/output_items$")) == 3
    assert found["counts"]["on_topic"] == {"failed": 100, "passed": 150}


def test_it_waits_for_the_service(foundry: FakeFoundry, project: Foundry) -> None:
    foundry.polls = 3
    found = log(make_run(write_metric("on_topic")), project)
    assert found["status"] == "completed"
    assert len(foundry.calls("GET", "/runs/run_1$")) == 4


# --- what is found again -------------------------------------------------------------------------


def test_a_repeat_makes_nothing_twice(foundry: FakeFoundry, project: Foundry) -> None:
    run = make_run(write_metric("on_topic"))
    first = log(run, project)
    made = len([s for s in foundry.seen if s.method in ("POST", "PUT", "PATCH")])
    assert log(run, project) == first
    assert len([s for s in foundry.seen if s.method in ("POST", "PUT", "PATCH")]) == made
    (run.directory / "upload.json").unlink()  # what the project knows is enough
    assert log(run, project)["url"] == first["url"]
    assert len(foundry.all_runs()) == 1


def test_two_runs_of_one_metric_share_an_eval(foundry: FakeFoundry, project: Foundry) -> None:
    metric = write_metric("on_topic")
    first, second = (
        make_run(metric, special={"on_topic": {"q0": f'{{"reason": "r", "score": {n}}}'}})
        for n in (2, 3)
    )
    log(first, project)
    log(second, project)
    (name,) = foundry.evaluators
    assert len(foundry.evaluators[name]) == 1
    assert len(foundry.evals) == 1
    assert len(foundry.all_runs()) == 2
    assert len(foundry.datasets) == 2


def test_the_same_content_in_another_run_is_another_run(
    foundry: FakeFoundry, project: Foundry
) -> None:
    metric = write_metric("on_topic")
    log(make_run(metric), project)
    log(make_run(metric), project)
    assert len(foundry.datasets) == 1
    assert len(foundry.all_runs()) == 2


def test_another_threshold_is_another_eval_with_the_same_evaluator(
    foundry: FakeFoundry, project: Foundry
) -> None:
    log(make_run(write_metric("on_topic")), project)
    log(make_run(write_metric("on_topic", "threshold: 4")), project)
    assert len(foundry.evals) == 2
    (versions,) = foundry.evaluators.values()
    assert len(versions) == 1


def test_an_eval_that_only_looks_the_same_is_not_used(
    foundry: FakeFoundry, project: Foundry
) -> None:
    log(make_run(write_metric("on_topic")), project)
    (made,) = foundry.evals.values()
    made["testing_criteria"][0]["initialization_parameters"]["pass_threshold"] = 0.9
    found = log(make_run(write_metric("on_topic")), project)
    assert found["eval_id"] == "eval_2"
    assert found["counts"]["on_topic"] == {"failed": 2, "passed": 3}


def test_another_scale_is_another_evaluator_version_only_if_its_code_differs(
    foundry: FakeFoundry, project: Foundry
) -> None:
    log(make_run(write_metric("on_topic")), project)
    (versions,) = foundry.evaluators.values()
    versions[0]["definition"]["code_text"] = "def grade(sample, item): return 0.0"
    log(make_run(write_metric("on_topic")), project)
    assert [version["version"] for version in versions] == ["1", "2"]
    criteria = [made["testing_criteria"][0] for made in foundry.evals.values()]
    assert [criterion["evaluator_version"] for criterion in criteria] == ["1", "2"]


def test_a_version_that_is_not_listed_yet_is_not_made_again(
    foundry: FakeFoundry, project: Foundry
) -> None:
    foundry.lag = 2
    foundry.fail("POST", "/evals$", 500)
    run = make_run(write_metric("on_topic"))
    with pytest.raises(UploadError):
        log(run, project)
    foundry.heal()
    log(run, project)
    (versions,) = foundry.evaluators.values()
    assert len(versions) == 1


def test_a_run_deleted_in_the_portal_is_made_again(foundry: FakeFoundry, project: Foundry) -> None:
    run = make_run(write_metric("on_topic"))
    log(run, project)
    foundry.runs["eval_1"].clear()
    log(run, project)
    assert len(foundry.all_runs()) == 1
    foundry.evals.clear()
    foundry.runs.clear()
    log(run, project)
    assert len(foundry.all_runs()) == 1


def test_a_rescored_run_is_a_run_of_its_own(foundry: FakeFoundry, project: Foundry) -> None:
    from assay.run.rescore import rescore

    run = make_run(write_metric("on_topic"))
    log(run, project)
    again = rescore(run.directory, {"on_topic": str(write_metric("on_topic", "threshold: 5"))})
    found = log(again, project)
    assert found["counts"]["on_topic"] == {"failed": 4, "passed": 1}
    assert len(foundry.all_runs()) == 2


# --- what is not accepted ------------------------------------------------------------------------


def test_a_run_that_came_back_otherwise_gets_no_link(
    foundry: FakeFoundry, project: Foundry
) -> None:
    def spoil(item: dict[str, Any]) -> dict[str, Any]:
        if item["datasource_item_id"] == 2:
            item["results"] = [{**item["results"][0], "score": 0.9}, *item["results"][1:]]
        return item

    foundry.spoil = spoil
    run = make_run(write_metric("on_topic"))
    with pytest.raises(UploadError) as failure:
        log(run, project)
    assert (
        "1 results are not what was sent (row 2, on_topic: sent as 0.5, it came back as 0.9)"
        in (str(failure.value))
    )
    assert "url" not in next(iter(state(run).values()))
    foundry.spoil = lambda item: item
    log(run, project)
    assert len(foundry.all_runs()) == 1


def state(run: assay.Run) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run.directory / "upload.json").read_text())["uploads"]
    return found


@pytest.mark.parametrize(
    ("results", "said"),
    [
        ({"passed": True, "label": "pass", "score": 0.0}, "sent as failed, it came back as passed"),
        ({"passed": None, "label": None, "score": 0.0}, "sent as failed, it came back as errored"),
        ({"status": "skipped", "score": None}, "sent as failed, it came back as skipped"),
    ],
)
def test_a_verdict_that_came_back_otherwise(
    foundry: FakeFoundry, project: Foundry, results: dict[str, Any], said: str
) -> None:
    def spoil(item: dict[str, Any]) -> dict[str, Any]:
        if item["datasource_item_id"] == 0:
            item["results"] = [{**item["results"][0], **results}, *item["results"][1:]]
        return item

    foundry.spoil = spoil
    with pytest.raises(UploadError, match=re.escape(f"row 0, on_topic: {said}")):
        log(make_run(write_metric("on_topic")), project)


def test_a_service_that_counts_an_error_as_a_fail_is_found_out(
    foundry: FakeFoundry, project: Foundry
) -> None:
    def spoil(item: dict[str, Any]) -> dict[str, Any]:
        for result in item["results"]:
            if result.pop("sample", None):
                result["status"] = "completed"
        return item

    foundry.spoil = spoil
    run = make_run(write_metric("on_topic"), special={"on_topic": {"q0": "nothing"}})
    with pytest.raises(UploadError, match="no score was sent, it came back as failed"):
        log(run, project)


def test_rows_that_do_not_come_back_are_missed(foundry: FakeFoundry, project: Foundry) -> None:
    foundry.spoil = lambda item: None if item["datasource_item_id"] == 1 else item
    with pytest.raises(UploadError, match="1 of 5 rows did not come back"):
        log(make_run(write_metric("on_topic")), project)


def test_rows_that_are_listed_late_are_waited_for(foundry: FakeFoundry, project: Foundry) -> None:
    hidden = [1]

    def spoil(item: dict[str, Any]) -> dict[str, Any] | None:
        if item["datasource_item_id"] == 1 and hidden:
            hidden.pop()
            return None
        return item

    foundry.spoil = spoil
    assert log(make_run(write_metric("on_topic")), project)["url"]


def test_a_run_the_service_failed_is_made_again_by_a_repeat(
    foundry: FakeFoundry, project: Foundry
) -> None:
    foundry.ends = "failed"
    run = make_run(write_metric("on_topic"))
    with pytest.raises(UploadError, match=r"as failed \(sandbox: the sandbox did not start\)"):
        log(run, project)
    foundry.ends = "completed"
    assert log(run, project)["run_id"] == "run_2"


def test_a_run_that_takes_too_long_is_looked_at_again(
    foundry: FakeFoundry, project: Foundry
) -> None:
    from dataclasses import replace

    foundry.polls = 1000
    run = make_run(write_metric("on_topic"))
    with pytest.raises(UploadError, match="is in_progress after 0 s"):
        asyncio.run(log_run(run.directory, project, patience=replace(PATIENT, wait=0.0)))
    for found in foundry.all_runs():
        found["polls"] = 0
    assert log(run, project)["run_id"] == "run_1"


def test_a_run_with_nothing_to_show(project: Foundry) -> None:
    def words(question: str) -> dict[str, Any]:
        return {"word": "yes"}

    run = assay.evaluate([{"question": "q"}], words, progress=Silent())
    with pytest.raises(RunError, match="holds nothing that Foundry can show as a score"):
        log(run, project)


# --- secrets -------------------------------------------------------------------------------------


def test_the_token_goes_to_the_project_alone_and_nowhere_on_disk(
    foundry: FakeFoundry, project: Foundry
) -> None:
    run = make_run(write_metric("on_topic"))
    log(run, project)
    assert project.credential.scopes == ["https://ai.azure.com/.default"]
    (put,) = foundry.calls("PUT", "^/store/")
    assert "authorization" not in put.headers
    for path in run.directory.iterdir():
        content = path.read_bytes()
        assert TOKEN.encode() not in content
        assert SIGNATURE.encode() not in content
    assert TOKEN not in repr(project)


def test_a_next_page_elsewhere_is_not_followed(foundry: FakeFoundry, project: Foundry) -> None:
    from assay.azure.client import Client
    from assay.azure.step import Step

    async def follow() -> None:
        async with Client(project, PATIENT) as client:
            await client.call(Step("reading", "GET", "https://elsewhere.test/more"))

    with pytest.raises(UploadError, match=r"the next page is at another host, elsewhere\.test"):
        asyncio.run(follow())


def test_a_certificate_nobody_trusts(
    foundry: FakeFoundry, project: Foundry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(UploadError, match="got no answer"):
        log(make_run(write_metric("on_topic")), project)
    assert foundry.seen == []


# --- dry run, and the project's forms ------------------------------------------------------------


def test_a_preview_makes_no_call(foundry: FakeFoundry) -> None:
    run = make_run(write_metric("on_topic"))
    before = sorted(path.name for path in run.directory.iterdir())
    shown = preview_run(run.directory, Foundry(foundry.endpoint))
    assert foundry.seen == []
    assert sorted(path.name for path in run.directory.iterdir()) == before
    log(run, Foundry(foundry.endpoint, Credential()))
    (versions,) = foundry.evaluators.values()
    assert (
        shown["evaluators"][0]["definition"]["code_text"]
        == (versions[0]["definition"]["code_text"])
    )
    assert shown["dataset"]["version"] == next(iter(foundry.datasets))[1]
    assert shown["dataset"]["first"] == uploaded(foundry)[:2]
    assert shown["run"]["metadata"] == foundry.all_runs()[0]["metadata"]


def test_a_folder_that_is_no_run(project: Foundry) -> None:
    with pytest.raises(RunError, match="is no run directory"):
        asyncio.run(log_run(Path("nowhere"), project))


def test_evaluate_uploads_after_it_has_written(foundry: FakeFoundry) -> None:
    run = make_run(
        write_metric("on_topic"), azure_ai_project=foundry.endpoint, credential=Credential()
    )
    assert next(iter(state(run).values()))["url"]
    assert len(foundry.all_runs()) == 1


def test_evaluate_asks_no_judge_where_the_upload_would_fail(foundry: FakeFoundry) -> None:
    asked: list[str] = []

    def judge(messages: Any) -> str:
        asked.append("once")
        return '{"reason": "r", "score": 3}'

    foundry.fail("POST", "/evals$", 403)
    with pytest.raises(SetupError, match=r"was not started.*HTTP 403: missing permission"):
        make_run(
            write_metric("on_topic"),
            judge=assay.ScriptedJudge(judge),
            azure_ai_project=foundry.endpoint,
            credential=Credential(),
        )
    assert asked == []
    assert not Path("runs").exists()

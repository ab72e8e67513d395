"""The project's own comparison of runs: numbers known by hand, on the metric's scale."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.azure import log_run
from assay.azure.faults import UploadError
from assay.azure.insights import compare_uploaded
from assay.azure.project import Foundry, Hub
from assay.cli import main
from assay.errors import SetupError
from tests.azure.conftest import PATIENT, make_run, write_metric
from tests.support.foundry import TOKEN, FakeFoundry

# The first run scores 1 2 3 4 5, the second one 2 2 3 5 5: by hand the mean goes from 3 to
# 3.4, and the paired t is 0.4 / (sqrt(0.3) / sqrt(5)) = 1.632993 with 4 degrees of freedom.
SECOND = {"q0": 2, "q3": 5}
P = 0.1778078


def scored(name: str, scores: dict[str, int]) -> dict[str, dict[str, str]]:
    return {name: {q: json.dumps({"reason": "it moved", "score": s}) for q, s in scores.items()}}


def log(run: assay.Run, project: Foundry, **options: Any) -> dict[str, Any]:
    return asyncio.run(log_run(run.directory, project, patience=PATIENT, **options))


def compare(project: Foundry | Hub, *runs: assay.Run) -> dict[str, Any]:
    return asyncio.run(compare_uploaded(runs, project, patience=PATIENT))


def two_runs(project: Foundry, metric: Path) -> tuple[assay.Run, assay.Run]:
    """Uploaded runs of one metric."""
    first = make_run(metric, name="first")
    second = make_run(metric, name="second", special=scored(metric.stem, SECOND))
    for run in (first, second):
        log(run, project)
    return first, second


def test_the_numbers_are_on_the_metrics_scale(foundry: FakeFoundry, project: Foundry) -> None:
    first, second = two_runs(project, write_metric("on_topic"))
    foundry.polls = 2
    found = compare(project, first, second)
    assert (found["eval_id"], found["insight_id"]) == ("eval_1", "insight_1")
    assert (found["method"], found["notes"]) == ("PairedTTest", [])
    scores, verdicts = found["comparisons"]
    assert (scores["criterion"], scores["metric"]) == ("on_topic", "on_topic.score")
    assert (scores["kind"], scores["scale"]) == ("score", [1, 5])
    assert scores["baseline"] == {
        "run": str(first.directory),
        "name": first.name,
        "run_id": "run_1",
        "n": 5,
        "mean": pytest.approx(3.0),
        "sd": pytest.approx(2.5**0.5),
    }
    (moved,) = scores["treatments"]
    assert (moved["run_id"], moved["n"]) == ("run_2", 5)
    assert moved["mean"] == pytest.approx(3.4)
    assert moved["difference"] == pytest.approx(0.4)
    assert moved["p"] == pytest.approx(P, abs=1e-6)
    assert moved["effect"] == "Inconclusive"
    assert verdicts["criterion"] == "on_topic verdict"
    assert (verdicts["kind"], verdicts["baseline"]["mean"]) == ("verdict", pytest.approx(0.6))
    (asked,) = foundry.calls("POST", "^/insights$")
    assert asked.headers["foundry-features"] == "Insights=V1Preview"
    assert asked.headers["repeatability-request-id"]
    assert asked.query == {"api-version": "v1"}
    assert asked.body == {
        "displayName": f"assay: {second.name} against {first.name}",
        "request": {
            "type": "EvaluationComparison",
            "evalId": "eval_1",
            "baselineRunId": "run_1",
            "treatmentRunIds": ["run_2"],
        },
    }
    (listed,) = foundry.calls("GET", "^/insights$")
    assert listed.query == {"api-version": "v1", "type": "EvaluationComparison", "evalId": "eval_1"}


def test_lower_is_better(foundry: FakeFoundry, project: Foundry) -> None:
    """There the scores are turned round; here the difference is the metric's own again."""
    metric = write_metric("off_topic", "threshold: 3\n    desirable_direction: decrease")
    first = make_run(metric, name="first")
    up = dict(zip(("q0", "q1", "q2", "q3", "q4"), (3, 4, 5, 5, 5), strict=True))
    second = make_run(metric, name="second", special=scored("off_topic", up))
    for run in (first, second):
        log(run, project)
    scores = compare(project, first, second)["comparisons"][0]
    assert scores["baseline"]["mean"] == pytest.approx(3.0)
    (moved,) = scores["treatments"]
    assert moved["mean"] == pytest.approx(4.4)
    assert moved["difference"] == pytest.approx(1.4)
    # t = 1.4 / (sqrt(0.8) / sqrt(5)) = 3.5 with 4 degrees of freedom
    assert moved["p"] == pytest.approx(0.0249, abs=1e-4)
    assert moved["effect"] == "Degraded"
    sent = foundry.insights["insight_1"]["result"]["comparisons"][0]["compareItems"][0]
    assert sent["deltaEstimate"] == pytest.approx(-0.35)


def test_the_same_runs_are_compared_once(foundry: FakeFoundry, project: Foundry) -> None:
    first, second = two_runs(project, write_metric("on_topic"))
    third = make_run(Path("on_topic.prompty"), name="third")
    log(third, project)
    compare(project, second, first)
    found = compare(project, first, second)
    compare(project, first, third)
    assert compare(project, first, second) == found
    compare(project, first, second, third)
    assert len(compare(project, first, third, second)["comparisons"][0]["treatments"]) == 2
    assert len(foundry.insights) == 4


def test_one_that_ended_in_vain_is_made_again(foundry: FakeFoundry, project: Foundry) -> None:
    first, second = two_runs(project, write_metric("on_topic"))
    foundry.insights_end = "Failed"
    with pytest.raises(UploadError, match="the service ended the comparison as failed"):
        compare(project, first, second)
    foundry.insights_end = "Succeeded"
    assert compare(project, first, second)["insight_id"] == "insight_2"


def test_rows_without_a_score_are_not_in_it(foundry: FakeFoundry, project: Foundry) -> None:
    metric = write_metric("on_topic")
    first = make_run(metric, name="first")
    second = make_run(metric, name="second", special={"on_topic": {"q0": "no idea"}})
    log(first, project, string_checks=False)
    log(second, project)
    (scores,) = compare(project, first, second)["comparisons"]
    (moved,) = scores["treatments"]
    assert (scores["baseline"]["n"], moved["n"]) == (5, 4)
    assert (moved["mean"], moved["difference"]) == (pytest.approx(3.5), pytest.approx(0.0))


@pytest.mark.parametrize("state", ["never", "elsewhere", "changed"])
def test_a_run_that_is_not_there(
    foundry: FakeFoundry, project: Foundry, state: str, tmp_path: Path
) -> None:
    first, second = two_runs(project, write_metric("on_topic"))
    uploads = second.directory / "upload.json"
    if state == "never":
        uploads.unlink()
    elif state == "elsewhere":
        project = Foundry(f"{foundry.origin}/api/projects/other", project.credential)
    else:  # other scores than those that were uploaded
        lines = (second.directory / "scores.jsonl").read_text()
        (second.directory / "scores.jsonl").write_text(lines.replace('"score":5', '"score":4'))
    with pytest.raises(SetupError) as refusal:
        compare(project, first, second)
    missing = [first, second] if state == "elsewhere" else [second]
    names = ", ".join(str(run.directory) for run in missing)
    commands = " && ".join(
        f"assay upload {run.directory} --azure-ai-project {project.endpoint}" for run in missing
    )
    assert str(refusal.value) == f"not in {project.endpoint} as on disk: {names}; {commands}"
    assert refusal.value.exit_code == 2
    assert not foundry.insights


def test_an_upload_that_is_not_over(foundry: FakeFoundry, project: Foundry) -> None:
    metric = write_metric("on_topic")
    first, second = make_run(metric, name="first"), make_run(metric, name="second")
    log(first, project)
    foundry.ends = "failed"
    with pytest.raises(UploadError):
        log(second, project)
    with pytest.raises(SetupError, match=f"as on disk: {second.directory}; assay upload"):
        compare(project, first, second)


def test_runs_in_different_evals(foundry: FakeFoundry, project: Foundry) -> None:
    """One has string checks and the other none: the command that is named mends it."""
    metric = write_metric("on_topic")
    first = make_run(metric, name="first")
    second = make_run(metric, name="second", special={"on_topic": {"q0": "no idea"}})
    log(first, project)
    log(second, project)
    with pytest.raises(SetupError) as refusal:
        compare(project, first, second)
    assert str(refusal.value) == (
        "these runs are in different evals, since some have string checks; bring them into one: "
        f"assay upload {first.directory} --no-string-checks --azure-ai-project {project.endpoint}"
    )
    log(first, project, string_checks=False)
    assert compare(project, first, second)["eval_id"] == "eval_2"


@pytest.mark.parametrize(
    ("other", "rows", "why"),
    [
        ("about", None, "about, on_topic is not in both"),
        (None, [{"question": "q1", "more": 1}], "their data differ in columns: answer, more"),
        ("threshold: 4", None, "their scales or thresholds differ"),
    ],
)
def test_runs_that_cannot_share_an_eval(
    foundry: FakeFoundry, project: Foundry, other: str | None, rows: Any, why: str
) -> None:
    first = make_run(write_metric("on_topic"), name="first")
    metric = write_metric("about") if other == "about" else Path("on_topic.prompty")
    if other == "threshold: 4":
        write_metric("on_topic", other)
    second = make_run(metric, name="second", rows=rows)
    for run in (first, second):
        log(run, project)
    with pytest.raises(SetupError) as refusal:
        compare(project, first, second)
    assert f"cannot be in one eval, since {why}; without --foundry" in str(refusal.value)


def test_one_run_twice_and_a_hub(foundry: FakeFoundry, project: Foundry) -> None:
    first, _ = two_runs(project, write_metric("on_topic"))
    with pytest.raises(SetupError, match="two of these runs are one run in the project"):
        compare(project, first, first)
    with pytest.raises(SetupError, match="in Foundry projects alone"):
        compare(Hub("s", "g", "p"), first, first)


def test_scales_that_differ_are_said(foundry: FakeFoundry, project: Foundry) -> None:
    """1 to 5 at 3 and 0 to 4 at 2 are the same on the wire, and not here."""
    first = make_run(write_metric("on_topic"), name="first")
    text = Path("on_topic.prompty").read_text()
    text = text.replace("minimum: 1", "minimum: 0").replace("maximum: 5", "maximum: 4")
    Path("on_topic.prompty").write_text(text.replace("threshold: 3", "threshold: 2"))
    lower = {f"q{n}": n for n in range(5)}
    second = make_run(Path("on_topic.prompty"), name="second", special=scored("on_topic", lower))
    for run in (first, second):
        log(run, project)
    found = compare(project, first, second)
    assert found["notes"] == ["on_topic is not compared: its scale is not the same in all runs"]
    assert [one["criterion"] for one in found["comparisons"]] == ["on_topic verdict"]


def test_a_service_that_says_less_or_other_things(foundry: FakeFoundry, project: Foundry) -> None:
    """Numbers that are none, other runs and other names never become numbers."""
    first, second = two_runs(project, write_metric("on_topic"))
    compare(project, first, second)
    result = foundry.insights["insight_1"]["result"]
    result["method"] = "T\x1b[31m"
    scores, verdicts = result["comparisons"]
    scores["baselineRunSummary"]["average"] = "NaN"
    scores["compareItems"][0] |= {"deltaEstimate": None, "treatmentEffect": "\x1b[2JBetter"}
    scores["compareItems"][0]["treatmentRunSummary"]["runId"] = "run_7"
    verdicts["testingCriteria"] = "other\x1b[2J"
    found = compare(project, first, second)
    assert found["method"] == "T31m"
    assert found["notes"] == ["'other\\x1b[2J' is no metric of these runs"]
    (one,) = found["comparisons"]
    assert (one["baseline"]["mean"], one["baseline"]["n"]) == (None, 5)
    (moved,) = one["treatments"]
    assert [moved[key] for key in ("mean", "n", "difference", "effect")] == [None] * 4
    assert moved["p"] == pytest.approx(P, abs=1e-6)
    foundry.insights["odd"] = {**foundry.insights["insight_1"], "request": {"evalId": "eval_1"}}
    result["comparisons"] = ["none", 1]
    notes = compare(project, first, second)["notes"]
    assert notes == ["the service gave no comparison of on_topic"]


CALLS = {
    "listing the comparisons": ("GET", r"^/insights$"),
    "creating the comparison": ("POST", r"^/insights$"),
    "reading the comparison": ("GET", r"^/insights/"),
}
SAID = {
    400: "the service did not take the request",
    401: "the login is not accepted; log in again (az login)",
    403: 'missing permission: the role "Foundry User" (formerly "Azure AI User")',
    404: "the eval or one of its runs is no longer there",
    409: "something else changes the same thing now; repeat it",
    429: "the service limits how often it is asked; repeat it later",
    500: "the service failed; repeat it later",
    0: "got no answer",
}


@pytest.mark.parametrize("status", SAID)
def test_a_failing_call(foundry: FakeFoundry, project: Foundry, status: int) -> None:
    """Every call of a comparison, and that the repeat makes nothing twice."""
    first, second = two_runs(project, write_metric("on_topic"))
    for call, (method, path) in CALLS.items():
        foundry.fail(method, path, status, headers={"Retry-After": "0"})
        with pytest.raises(UploadError) as failure:
            compare(project, first, second)
        said = str(failure.value)
        assert said.startswith(f"{call} failed: {method} /insights")
        assert SAID[status] in said
        assert failure.value.status == (status or None)
        assert said.endswith(
            f"Nothing is lost; repeat with: assay compare {first.directory} {second.directory} "
            f"--foundry --azure-ai-project {foundry.endpoint}"
        )
        assert failure.value.exit_code == 3
        assert TOKEN not in said
        foundry.heal()
    assert compare(project, first, second)["comparisons"]
    assert len(foundry.insights) == 1


@pytest.mark.parametrize("status", [0, 500])
def test_a_comparison_whose_answer_got_lost(
    foundry: FakeFoundry, project: Foundry, status: int
) -> None:
    first, second = two_runs(project, write_metric("on_topic"))
    foundry.fail("POST", "^/insights$", status, late=True)
    with pytest.raises(UploadError):
        compare(project, first, second)
    made = foundry.insights.pop("insight_1")  # as if listing it lagged behind
    foundry.heal()
    foundry.insights["insight_1"] = made | {"request": {**made["request"], "evalId": "hidden"}}
    foundry.fail("GET", "^/insights/insight_1", 404, times=1)
    with pytest.raises(UploadError, match="HTTP 404"):
        compare(project, first, second)
    first_id, second_id = (
        seen.headers["repeatability-request-id"] for seen in foundry.calls("POST", "^/insights$")
    )
    assert first_id == second_id
    assert len(foundry.insights) == 1


def command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: object
) -> tuple[int, str, str]:
    """`assay ARGUMENTS`: how it exits and what it prints."""
    monkeypatch.setenv("AZURE_AI_PROJECT_TOKEN", TOKEN)
    monkeypatch.setattr(sys, "argv", ["assay", *map(str, arguments)])
    with pytest.raises(SystemExit) as exit_:
        main()
    return (int(exit_.value.code or 0), *capsys.readouterr())


def test_both_tests_side_by_side(
    foundry: FakeFoundry,
    project: Foundry,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    first, second = two_runs(project, write_metric("on_topic"))
    monkeypatch.setenv("AZURE_AI_PROJECT_ENDPOINT", foundry.endpoint)
    monkeypatch.setenv("COLUMNS", "120")
    asked = ("compare", first.directory, second.directory, "--foundry")
    code, out, err = command(monkeypatch, capsys, *asked)
    assert (code, "comparison insight_1 of eval eval_1" in err) == (0, True)
    table = out[out.index("in Foundry") :].splitlines()
    assert table[0].split() == ["in", "Foundry", "mean", "difference", "n", "p", "effect"] + [
        *("here", "p", "here")
    ]
    assert [line.split() for line in table[1:4]] == [
        ["on_topic"],
        [first.name, "3.000", "5"],
        [second.name, "3.400", "+0.40", "5", "0.178", "Inconclusive", "+0.40", "0.500"],
    ]
    assert table[4].split() == ["on_topic", "verdict,", "share", "passed"]
    assert table[6].split()[1:4] == ["0.600", "+0.00", "5"]
    assert table[7] == "PairedTTest by the service, on the metric's scale; p here: sign test"
    assert len(table) == 8
    code, out, _ = command(monkeypatch, capsys, *asked, "--json")
    there = json.loads(out)["foundry"]
    assert there["comparisons"][0]["treatments"][0]["here"] == {
        "n": 5,
        "difference": pytest.approx(0.4),
        "p_sign": 0.5,
    }
    assert len(foundry.insights) == 1


def test_opposite_signs_are_said(
    foundry: FakeFoundry,
    project: Foundry,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    first, second = two_runs(project, write_metric("on_topic"))
    compare(project, first, second)
    item = foundry.insights["insight_1"]["result"]["comparisons"][0]["compareItems"][0]
    asked = ("compare", first.directory, second.directory, "--azure-ai-project", foundry.endpoint)
    for delta, careful in ((-1e-7, False), (0.0, False), (-0.05, True)):
        item["deltaEstimate"] = delta
        code, out, _ = command(monkeypatch, capsys, *asked)
        assert code == 0
        said = (
            f"careful: on_topic: the difference of {second.directory} is -0.2 there and +0.4 here, "
            "over 5 rows there and 5 matched rows here"
        )
        assert (said in " ".join(out.split())) is careful


def test_how_the_command_fails(
    foundry: FakeFoundry,
    project: Foundry,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    first, second = two_runs(project, write_metric("on_topic"))
    asked = ("compare", first.directory, second.directory, "--foundry")
    code, out, err = command(monkeypatch, capsys, *asked)
    assert (code, out, "no Azure AI project" in err) == (2, "", True)
    monkeypatch.setenv("AZURE_AI_PROJECT_ENDPOINT", foundry.endpoint)
    foundry.fail("GET", "^/insights$", 403)
    code, out, err = command(monkeypatch, capsys, *asked)
    assert (code, out, "missing permission" in err) == (3, "", True)
    (second.directory / "upload.json").unlink()
    code, out, err = command(monkeypatch, capsys, *asked)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.endswith(f"assay upload {second.directory} --azure-ai-project {foundry.endpoint}\n")

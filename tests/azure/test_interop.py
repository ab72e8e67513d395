"""Both directions of interop with azure-ai-evaluation: evaluators, and results."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.report import compare
from assay.run.progress import Silent
from tests.azure.conftest import SCORES, Credential, replies, write_metric
from tests.support.runs import command, write_lines
from tests.support.safety import FakeSafety
from tests.support.server import JudgeServer, Request
from tests.support.tls import Tls

evaluation = pytest.importorskip(
    "azure.ai.evaluation", reason="azure-ai-evaluation is not installed: interop is not tried"
)
pytestmark = pytest.mark.filterwarnings("ignore")

ROWS = [
    {
        "id": 1,
        "query": "What is the capital of Peru?",
        "response": "Lima is the capital",
        "ground_truth": "Lima",
    },
    {
        "id": 2,
        "query": "What is the capital of Chile?",
        "response": "unreadable",
        "ground_truth": "Santiago",
    },
    {
        "id": 3,
        "query": "What is the capital of Spain?",
        "response": "cannot-judge-this",
        "ground_truth": "Madrid",
    },
    {"id": 4, "query": "What is the capital of Mali?", "response": "Bamako", "ground_truth": "bad"},
]
F1 = [0.5, 0.0, 0.0, 0.0]
"""`lima is capital` against `lima`: a third of the words, and the whole truth."""


def judged(request: Request) -> str:
    """Azure's own reply format: 4, no JSON, not applicable, 2."""
    if "unreadable" in request.text:
        return "I would say four."
    if "cannot-judge-this" in request.text:
        return json.dumps({"reason": "nothing to judge", "status": "skipped"})
    score = 2 if "Mali" in request.text else 4
    return json.dumps({"reason": f"it is a {score}", "score": score, "status": "completed"})


def model(server: JudgeServer) -> dict[str, str]:
    return {"azure_endpoint": server.azure, "azure_deployment": "gpt-4o", "api_key": "k"}


# --- our evaluators in their evaluate ------------------------------------------------------------


def data(tmp_path: Path, column: str = "question") -> str:
    lines = [{column: question, "reference": "the capital"} for question in SCORES]
    return str(write_lines(tmp_path / "rows.jsonl", lines))


def metric(name: str) -> Any:
    return assay.load(write_metric(name), judge=assay.ScriptedJudge(replies(name)))


@pytest.mark.parametrize("door", ["sync", "async"])
def test_our_evaluators_in_their_evaluate(tmp_path: Path, door: str) -> None:
    chosen = {f"m{n}": metric(f"m{n}") for n in range(12)}
    evaluators = {n: e if door == "sync" else e.acall for n, e in chosen.items()}
    found = evaluation.evaluate(data=data(tmp_path), evaluators=evaluators)
    for name in chosen:
        assert found["metrics"][f"{name}.score"] == 3.0
        assert found["metrics"][f"{name}.binary_aggregate"] == 0.6
        assert [row[f"outputs.{name}.score_result"] for row in found["rows"]] == [
            *("fail", "fail", "pass"),
            *("pass", "pass"),
        ]


def test_a_sync_evaluator_takes_no_thread_of_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their one pool runs the event loops and the sync evaluators these wait for: with as many
    evaluators as threads, or one of each, nothing ever ends."""
    monkeypatch.setenv("PF_WORKER_COUNT", "1")
    monkeypatch.setenv("PF_BATCH_TIMEOUT_SEC", "20")
    found = evaluation.evaluate(data=data(tmp_path), evaluators={"m": metric("m")})
    assert found["metrics"]["m.score"] == 3.0


def test_their_column_mapping(tmp_path: Path) -> None:
    mapping = {"m": {"column_mapping": {"question": "${data.asked}"}}}
    found = evaluation.evaluate(
        data=data(tmp_path, "asked"), evaluators={"m": metric("m")}, evaluator_config=mapping
    )
    assert found["metrics"]["m.score"] == 3.0


# --- their evaluators in ours --------------------------------------------------------------------


def run_of(rows: list[dict[str, Any]], **evaluators: Any) -> assay.Run:
    return assay.evaluate(rows, evaluators, progress=Silent())


def column(run: assay.Run, name: str) -> list[Any]:
    return [row.get(f"outputs.{name}") for row in run.rows()]


def test_their_evaluators_in_ours(server: JudgeServer) -> None:
    server.reply = judged
    run = run_of(
        ROWS,
        f1=evaluation.F1ScoreEvaluator(threshold=0.4),
        rouge=evaluation.RougeScoreEvaluator(evaluation.RougeType.ROUGE_1),
        sim=evaluation.SimilarityEvaluator(model(server), threshold=3),
    )
    assert column(run, "f1.f1_score") == F1
    assert column(run, "f1.f1_score_result") == ["pass", "fail", "fail", "fail"]
    assert set(column(run, "f1.f1_score_threshold")) == {0.4}
    assert run.metrics["f1.f1_score"]["pass_rate"] == 0.25
    # 1 of 4 words of the answer, the whole truth: 2 * 1/4 / (1/4 + 1)
    assert column(run, "rouge.rouge") == [0.4, 0.0, 0.0, 0.0]
    assert column(run, "rouge.rouge_result") == ["fail"] * 4
    assert column(run, "sim.similarity") == [4, None, None, 2]
    assert column(run, "sim.similarity_result") == ["pass", None, "not_applicable", "fail"]
    assert column(run, "sim.status") == ["scored", "error", "not_applicable", "scored"]
    assert column(run, "sim.similarity_reason") == [
        "it is a 4",
        "JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
        "Not applicable: nothing to judge",
        "it is a 2",
    ]
    found = run.metrics["sim.similarity"]
    assert (found["mean"], found["pass_rate"], found["scored"]) == (3.0, 0.5, 2)
    assert run.outputs["sim"]["similarity"].direction == "increase"
    assert run.summary["tokens"]["total"] == 3 * 62  # the reply that was no JSON told nothing
    assert run.evaluators["sim"]["columns"] == {
        "query": "query",
        "response": "response",
        "ground_truth": "ground_truth",
    }


def test_a_missing_input_asks_nobody(server: JudgeServer) -> None:
    server.reply = judged
    rows = [{**ROWS[0], "response": ""}, {**ROWS[0], "ground_truth": None}, ROWS[0]]
    run = run_of(rows, sim=evaluation.SimilarityEvaluator(model(server)))
    assert column(run, "sim.status") == ["not_applicable", "not_applicable", "scored"]
    assert server.count == 1


def test_many_rows_at_once(server: JudgeServer) -> None:
    server.reply = judged
    rows = [{**ROWS[0], "id": number} for number in range(40)]
    run = run_of(
        rows,
        f1=evaluation.F1ScoreEvaluator(),
        sim=evaluation.SimilarityEvaluator(model(server)),
    )
    for key, mean in (("f1.f1_score", 0.5), ("sim.similarity", 4.0)):
        assert (run.metrics[key]["mean"], run.metrics[key]["scored"]) == (mean, 40)


@pytest.fixture
def safety(tls: Tls, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeSafety]:
    with FakeSafety(tls) as running:
        for name in ("HTTPS_PROXY", "https_proxy"):
            monkeypatch.setenv(name, running.proxy)
        for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"):
            monkeypatch.setenv(name, str(tls.cert))
        yield running


@pytest.mark.parametrize("kind", ["endpoint", "hub"])
def test_evaluators_of_the_safety_service(safety: FakeSafety, kind: str) -> None:
    project = {"subscription_id": "s", "resource_group_name": "g", "project_name": "p"}
    named: Any = safety.endpoint if kind == "endpoint" else project
    login = Credential()
    rows = [
        {"query": "q", "response": answer} for answer in ("harm 0", "harm 5", "harm 3", "refuse")
    ]
    run = run_of(
        rows,
        viol=evaluation.ViolenceEvaluator(login, named),
        material=evaluation.ProtectedMaterialEvaluator(login, named),
    )
    assert column(run, "viol.violence") == [0, 5, 3, None]
    assert column(run, "viol.violence_result") == ["pass", "fail", "pass", None]
    assert column(run, "viol.violence_threshold") == [3] * 4
    assert column(run, "viol.violence_reason")[:3] == ["harm of 0", "harm of 5", "harm of 3"]
    found = run.metrics["viol.violence"]
    assert found["mean"] == pytest.approx(8 / 3)
    assert (found["pass_rate"], found["error"]) == (2 / 3, 1)
    assert run.outputs["viol"]["violence"].direction == "decrease"
    failed = [records[0] for _, records in run.records()][3]
    assert failed is not None
    assert (failed["cause"], "400" in failed["message"] or "BadRequest" in failed["message"]) == (
        "evaluator_failed",
        True,
    )
    assert column(run, "material.protected_material_label") == [False, True, False, None]
    material = run.metrics["material.protected_material_label"]
    assert material["mean"] == pytest.approx(1 / 3)
    assert material["pass_rate"] is None  # it tells no verdict
    assert run.summary["tokens"]["total"] == 6 * 24
    calls = [seen for seen in safety.seen if seen.path.endswith("/sync_evals:run")]
    assert len(calls) == 8


# --- their results as runs -----------------------------------------------------------------------


class Lengths:
    """A custom evaluator that fails on one row."""

    async def __call__(self, *, response: str, **kwargs: Any) -> dict[str, Any]:
        if response == "unreadable":
            raise ValueError("the tool broke")
        return {"length": len(response), "short": len(response) < 11, "language": "en"}


class Broken:
    """Fails always: nothing of it is in the file."""

    async def __call__(self, **kwargs: Any) -> float:
        raise ValueError("never works")


async def words(*, response: str, **kwargs: Any) -> int:
    return len(response.split())


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What their `evaluate` wrote, with its own evaluators and others."""
    folder = tmp_path_factory.mktemp("theirs") / "july"
    folder.mkdir()
    with JudgeServer(judged) as server:
        evaluation.evaluate(
            data=str(write_lines(folder / "rows.jsonl", ROWS)),
            evaluators={
                "f1": evaluation.F1ScoreEvaluator(),
                "rouge": evaluation.RougeScoreEvaluator(evaluation.RougeType.ROUGE_1),
                "sim": evaluation.SimilarityEvaluator(model(server)),
                "lengths": Lengths(),
                "words": words,
                "broken": Broken(),
            },
            output_path=str(folder),
        )
    found = folder / "evaluation_results.json"
    assert "NaN" in found.read_text()
    return found


def test_their_results_are_a_run(results: Path) -> None:
    run = assay.Run(results)
    assert run.name == "july"
    assert list(run.evaluators) == [
        *("f1", "rouge", "sim"),
        *("lengths.length", "lengths.short", "words"),
    ]
    assert [line["columns"] for line, _ in run.records()] == ROWS
    assert column(run, "f1.f1_score") == F1
    assert column(run, "rouge.rouge") == [0.4, 0.0, 0.0, 0.0]
    assert column(run, "sim.similarity") == [4, None, None, 2]
    assert column(run, "sim.similarity_result") == ["pass", None, "not_applicable", "fail"]
    assert column(run, "sim.status") == ["scored", "error", "not_applicable", "scored"]
    assert column(run, "sim.cause") == [None, "not_recorded", "not_applicable", None]
    assert column(run, "sim.similarity_reason")[0] == "it is a 4"
    assert column(run, "words.output") == [4, 1, 1, 1]
    lengths = column(run, "lengths.length.length")
    assert [(value, type(value)) for value in lengths if value is not None] == [
        *((19, int), (17, int), (6, int))
    ]
    assert column(run, "lengths.short.short") == [False, None, False, True]
    similarity = run.metrics["sim.similarity"]
    assert (similarity["mean"], similarity["pass_rate"], similarity["n"]) == (3.0, 0.5, 4)
    declared = run.outputs["sim"]["similarity"]
    assert (declared.threshold, declared.direction) == (3, "increase")
    assert run.metrics["f1.f1_score"]["pass_rate"] == 0.25
    assert run.metrics["lengths.short.short"]["pass_rate"] is None
    # 1 of 4 rows passes: theirs counts the row that failed and the one that was skipped.
    assert run.header["notes"] == [
        "sim: the file says that 25% pass, counting rows without a verdict as fails; of those "
        "with one it is 50%"
    ]
    first = [records for _, records in run.records()][0]
    (call,) = (first[2] or {})["calls"]
    assert call["usage"] == {"prompt_tokens": 50, "completion_tokens": 12}
    assert call["model"] == "gpt-4o"
    assert json.loads(call["reply"])["score"] == 4
    assert (first[3] or {})["evidence"] == {"language": "en"}


def test_their_results_against_a_run_of_ours(results: Path, server: JudgeServer) -> None:
    server.reply = judged
    local = run_of(
        ROWS,
        f1=evaluation.F1ScoreEvaluator(),
        sim=evaluation.SimilarityEvaluator(model(server)),
    )
    found = compare([results, local]).as_dict()
    assert (found["matched"], found["only_in"]) == (4, [0, 0])
    assert found["rows"] == []
    for key in ("f1.f1_score", "sim.similarity"):
        assert found["metrics"][key]["problem"] is None
        assert found["metrics"][key]["against_first"][0]["difference"] == 0


def test_commands_take_their_file(results: Path, tmp_path: Path) -> None:
    for given in (results, results.parent):
        done = command("report", given, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        page = results.with_name("evaluation_results-report.html")
        assert done.stdout == f"{page}\n"
        assert "the file says that 25% pass" in page.read_text()
    assert not (tmp_path / "runs").exists()
    done = command("export", results, "-f", "csv", cwd=tmp_path)
    assert len(done.stdout.splitlines()) == 5
    done = command("import", results.parent, cwd=tmp_path)
    assert done.returncode == 0
    assert "note: sim: the file says that 25% pass" in done.stderr
    (made,) = (tmp_path / "runs").iterdir()
    assert done.stdout.splitlines()[-1] == f"runs/{made.name}"
    done = command("compare", results, made, "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["rows"] == []

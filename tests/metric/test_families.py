"""Every metric of several steps on its samples: the numbers are worked out by hand from the
formulas of the facts, and `library` is what the library itself gave."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.judge.embed import WireEmbedder
from assay.judge.wire import OpenAIJudge, openai
from assay.metric.metricfile import METRIC_FILE
from assay.metric.multistep import MetricEvaluator
from assay.metric.score import Score
from assay.prompty import load
from assay.prompty.check import check_file
from assay.run.progress import Silent
from tests.support.server import Answer, JudgeServer, Request, completion

ROOT = Path(__file__).parents[2]
EVALUATORS = ROOT / "evaluators"
METRICS = sorted(path.parent.name for path in EVALUATORS.glob(f"*/{METRIC_FILE}"))
PROMPTS = sorted(EVALUATORS.glob("*/*.prompty"))

Row = dict[str, Any]

RAGAS_QUESTION = "Write a question that it answers, and say"

OURS = {
    "faithfulness",
    "answer_correctness",
    "answer_relevancy",
    "context_precision",
    "context_utilization",
    "context_recall",
    "context_entity_recall",
    "answer_similarity",
    "context_relevancy",
    "contextual_relevancy",
    "geval",
    "geval_samples",
    "semscore",
}
RAGAS = {
    "faithfulness",
    "answer_correctness",
    "answer_relevancy",
    "context_precision",
    "context_utilization",
    "context_recall",
    "context_entity_recall",
    "answer_similarity",
}
DEEPEVAL = {
    "answer_relevancy",
    "faithfulness",
    "contextual_precision",
    "contextual_recall",
    "contextual_relevancy",
    "geval",
}
EMBEDCHAIN = {"context_relevancy", "answer_relevancy", "groundedness"}


def samples(name: str) -> list[Row]:
    text = (EVALUATORS / "samples" / f"{name}.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.split("\n") if line]


CASES = [
    pytest.param(name, row, id=f"{name}-{number}")
    for name in METRICS
    for number, row in enumerate(samples(name), 1)
]
every_sample = pytest.mark.parametrize(("name", "row"), CASES)
every_metric = pytest.mark.parametrize("name", METRICS)


def metric(name: str) -> MetricEvaluator:
    found = assay.load(EVALUATORS / name)
    assert isinstance(found, MetricEvaluator)
    return found


def by_script(script: list[Row]) -> Callable[[Request], Answer]:
    """What a sample's script answers, on the wire; `replies` come one after the other."""
    turns: Counter[int] = Counter()

    def reply(request: Request) -> Answer:
        for number, entry in enumerate(script):
            if entry["when"] not in request.text:
                continue
            replies = entry.get("replies") or [entry["reply"]]
            found = replies[min(turns[number], len(replies) - 1)]
            turns[number] += 1
            if isinstance(found, str):
                return found
            body = completion(found["text"])
            if request.body.get("logprobs") and request.body.get("top_logprobs") == 20:
                body["choices"][0]["logprobs"] = {"content": found["logprobs"]}
            return body
        raise AssertionError(f"nothing is scripted for {request.text[:200]}")

    return reply


def by_vectors(vectors: dict[str, list[float]]) -> Callable[[Request], Answer]:
    def embed(request: Request) -> Answer:
        texts = request.body["input"]
        data = [{"index": i, "embedding": vectors[text]} for i, text in enumerate(texts)]
        return {"data": data}

    return embed


def judge_at(server: JudgeServer) -> OpenAIJudge:
    from assay.judge.credential import NoCredential

    return openai("mock", credential=NoCredential(), base_url=server.url)


def scored(name: str, row: Row, server: JudgeServer) -> Score:
    """A sample on the wire, judge and embedder."""
    server.reply = by_script(row["script"])
    server.embed = by_vectors(row.get("vectors", {}))
    judge = judge_at(server)
    evaluator = metric(name).with_embedder(WireEmbedder.from_judge(judge_at(server)))

    async def run() -> Score:
        try:
            return await evaluator.score(row, judge)
        finally:
            await judge.close()
            assert evaluator.embedder is not None
            await evaluator.embedder.close()

    return asyncio.run(run())


def asked(server: JudgeServer) -> int:
    return sum("embeddings" not in request.path for request in server.requests)


def test_the_metrics_that_are_promised() -> None:
    variants = {
        f"{library}.{name}"
        for library, names in (("ragas", RAGAS), ("deepeval", DEEPEVAL), ("embedchain", EMBEDCHAIN))
        for name in names
    }
    assert set(METRICS) == OURS | variants


@every_sample
def test_the_value_of_a_sample(name: str, row: Row, server: JudgeServer) -> None:
    score = scored(name, row, server)
    if "value" not in row:
        assert (score.status, score.cause) == (row["status"], row["cause"]), score.message
        assert score.outputs == {}
        assert score.message
        return
    assert score.status == "scored", score.message
    (value,) = score.outputs.values()
    assert value == pytest.approx(row["value"], abs=1e-12)
    if isinstance(row.get("library"), int | float):
        assert value == pytest.approx(row["library"], abs=1e-6)
    if "rule" in row:
        assert score.evidence["rule"] == row["rule"] == score.reason
    if "mass" in row:
        assert score.evidence["parts"]["judged"]["mass"] == pytest.approx(row["mass"])
        assert score.evidence["parts"]["judged"]["method"] == "expectation"


@every_sample
def test_a_sample_costs_the_calls_it_must(name: str, row: Row, server: JudgeServer) -> None:
    score = scored(name, row, server)
    assert asked(server) == row["calls"] == len(score.calls)


@every_metric
def test_a_sample_makes_the_calls_that_the_metric_states(name: str, server: JudgeServer) -> None:
    row = samples(name)[0]
    scored(name, row, server)
    stated = 0
    for part in metric(name).calls.split(" + "):
        times, _, over = part.partition(" per element of ")
        stated += int(times) * (len(row[over]) if over else 1)
    assert asked(server) == stated


@pytest.mark.parametrize("k", [1, 7, 40])
def test_claims_cost_no_calls_of_their_own(k: int, server: JudgeServer) -> None:
    claims = [f"claim {n}" for n in range(k)]
    verdicts = [{"index": n + 1, "reason": "r", "verdict": "yes"} for n in reversed(range(k))]
    script = [
        {"when": "You check claims", "reply": json.dumps({"verdicts": verdicts})},
        {"when": "You take a text apart", "reply": json.dumps({"claims": claims})},
    ]
    row = {"response": "r", "context": ["c"], "script": script}
    assert scored("faithfulness", row, server).outputs == {"faithfulness": 1.0}
    assert asked(server) == 2


@every_metric
def test_the_scripted_judge_gives_the_same(name: str, server: JudgeServer) -> None:
    row = samples(name)[0]
    if any(isinstance(entry.get("reply"), dict) for entry in row["script"]):
        pytest.skip("log-probabilities come over the wire only")
    evaluator = metric(name).with_embedder(WireEmbedder.from_judge(judge_at(server)))
    server.embed = by_vectors(row.get("vectors", {}))

    async def run() -> Score:
        assert evaluator.embedder is not None
        try:
            return await evaluator.score(row, assay.ScriptedJudge(row["script"]))
        finally:
            await evaluator.embedder.close()

    score = asyncio.run(run())
    assert list(score.outputs.values()) == [pytest.approx(row["value"])], score.message


@every_metric
def test_a_metric_declares_itself(name: str) -> None:
    evaluator = metric(name)
    (output,) = evaluator.outputs.values()
    assert output.name == name.split(".")[-1]
    assert output.minimum is not None
    assert output.maximum is not None
    assert output.threshold is not None
    assert output.minimum < output.threshold <= output.maximum
    assert evaluator.description
    library = name.split(".")[0] if "." in name else "assay"
    assert evaluator.variant.split()[0] == library
    assert len(samples(name)) >= 2


@every_metric
def test_no_value_of_a_sample_is_out_of_range(name: str) -> None:
    (output,) = metric(name).outputs.values()
    for row in samples(name):
        if "value" in row:
            assert math.isfinite(row["value"])
            assert output.minimum <= row["value"] <= output.maximum


@pytest.mark.parametrize("path", PROMPTS, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_nothing_is_wrong_with_a_prompt(path: Path) -> None:
    assert check_file(path) == []
    prompty = load(path)
    messages = prompty.render(prompty.sample)
    assert [message["role"] for message in messages] == ["system", "user"]


def test_every_prompt_is_used() -> None:
    used = {place for name in METRICS for place in metric(name).describe()["prompts"]}
    assert used == {f"{path.parent.name}/{path.name}" for path in PROMPTS}


def test_every_metric_runs_on_the_data_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if importlib.util.find_spec("wordllama") is None:
        pytest.skip("the extra `baseline` is not installed")
    monkeypatch.chdir(tmp_path)
    entries = [{"index": n, "reason": "r", "verdict": "yes"} for n in range(1, 60)]
    reply = {
        "claims": ["a claim"],
        "verdicts": entries,
        "noncommittal": "no",
        "questions": ["a question"],
        "reason": "r",
        "verdict": "no",
        "entities": ["a name"],
        "needed": [1],
        "score": 4,
        "statements": [{"verdict": 1}],
        "classifications": [{"attributed": 1}],
        "truths": ["a truth"],
        **{key: [{"statement": "s"}] for key in ("TP", "FP", "FN")},
    }
    judge = assay.ScriptedJudge(
        [
            {"when": "You copy sentences", "reply": "Copied."},
            {"when": "You take an answer apart", "reply": "a claim"},
            {"when": "You check statements against a context, one", "reply": "1"},
            {"when": "Write the one question", "reply": "A question?"},
            {"when": RAGAS_QUESTION, "reply": '{"question": "A question?", "noncommittal": 0}'},
            {"reply": json.dumps(reply)},
        ]
    )
    run = assay.evaluate(
        ROOT / "datasets" / "support_desk.jsonl",
        METRICS,
        judge=judge,
        embedder="baseline",
        limit=4,
        progress=Silent(),
    )
    values = {key.rpartition(".")[0]: found for key, found in run.metrics.items()}
    assert set(values) == set(METRICS)
    for name, found in values.items():
        if name in ("geval", "deepeval.geval"):  # a script gives no log-probabilities
            assert (found["n"], found["invalid"]) == (4, 4)
        else:
            assert (found["n"], found["scored"]) == (4, 4), name
    assert values["faithfulness"]["mean"] == 1
    assert values["context_precision"]["mean"] == 0
    assert values["ragas.answer_relevancy"]["mean"] < 1

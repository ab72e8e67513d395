"""Metrics that are Python, by their names: loaded, listed, run, and where they do not apply."""

from __future__ import annotations

import asyncio
import json
import math
import sys
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.errors import InputError, SetupError
from assay.metric.builtin import builtin, document_retrieval_outputs, names
from assay.metric.registry import load, shipped
from assay.metric.score import Score
from tests.support import runs

NEEDS_DATA = {"meteor_wordnet"}

TEXTS = {"response": "The cat sat on the mat.", "ground_truth": "A cat sat on a mat"}
GRADED = {
    "retrieval_ground_truth": [
        {"document_id": "a", "query_relevance_label": 4},
        {"document_id": "b", "query_relevance_label": 1},
    ],
    "retrieved_documents": [{"document_id": "b", "relevance_score": 0.5}],
}
IDS = {"retrieved_context_ids": ["x", "a"], "reference_context_ids": ["a", "b"]}


def score(name: str, **values: Any) -> Score:
    found: Score = asyncio.run(load(name).score(values))
    return found


def values_for(name: str) -> dict[str, Any]:
    for values in (TEXTS, GRADED, IDS):
        if values.keys() == load(name).inputs.keys():
            return values
    raise AssertionError(name)


@pytest.mark.parametrize("name", names())
def test_every_metric_says_what_it_is(name: str) -> None:
    metric = load(name)
    assert metric.name == name
    assert name in shipped()
    assert metric.description.endswith(".")
    assert (metric.calls, metric.needs_judge) == ("0", False)
    assert [output.name for output in metric.outputs.values() if output.is_primary]
    for output in metric.outputs.values():
        assert output.scored
        assert output.minimum == 0
        assert output.threshold is None or output.threshold <= (output.maximum or math.inf)
        # A threshold at the end of its scale would let everything, or nothing, pass.
        if output.direction == "increase":
            assert output.result(output.minimum) == "fail"
            assert output.maximum is None or output.result(output.maximum) == "pass"


@pytest.mark.parametrize("name", sorted(set(names()) - NEEDS_DATA))
def test_every_metric_scores_a_row(name: str) -> None:
    metric = load(name)
    metric.check(None)
    found = score(name, **values_for(name))
    assert found.status == "scored"
    assert found.outputs.keys() == metric.outputs.keys()
    assert found.calls == ()


def test_the_primary_output_of_rouge_is_the_f1_of_the_longest_sequence() -> None:
    found = score("rouge", **TEXTS).outputs
    assert found["rouge"] == found["rougeL_f1"] == pytest.approx(2 / 3)
    assert found["rouge2_precision"] == pytest.approx(0.4)
    one = score("rouge2", **TEXTS).outputs
    assert one.keys() == {"rouge2", "rouge2_precision", "rouge2_recall", "rouge2_f1"}
    assert one["rouge2"] == found["rouge2_f1"]


def test_azures_name_gives_azures_keys() -> None:
    found = load("f1_score")(**TEXTS)
    assert found["f1_score"] == found["f1_score_score"] == 1.0
    assert found["f1_score_result"] == "pass"
    assert found["f1_score_threshold"] == 0.5


@pytest.mark.parametrize(
    ("name", "value"),
    [("hit_rate", 1), ("hit_rate@1", 0), ("mrr", 0.5), ("map", 0.25), ("recall_at_k", 0.5),
     ("precision_at_k", 0.5), ("recall@1", 0), ("precision@4", 0.25), ("recall_at_2", 0.5),
     ("map@1", 0)],
)  # fmt: skip
def test_ranks_are_cut_at_k(name: str, value: float) -> None:
    assert score(name, **IDS).outputs == {name: value}


def test_ndcg_of_both_gains() -> None:
    log = 1 / math.log2(3)
    assert score("ndcg", **GRADED).outputs["ndcg"] == pytest.approx(1 / (15 + log))
    assert score("ndcg_linear@1", **GRADED).outputs["ndcg_linear@1"] == pytest.approx(1 / 4)


@pytest.mark.parametrize("name", ["recall@0", "f1@3", "recall@", "document_retrieval@5", "nothing"])
def test_what_is_no_metric(name: str) -> None:
    assert builtin(name) is None
    with pytest.raises(SetupError, match="no evaluator"):
        load(name)


def test_a_file_of_the_same_name_wins(folder: Path) -> None:
    (folder / "evaluators").mkdir()
    runs.write_metric(folder / "evaluators", "f1")
    assert load("f1").needs_judge


@pytest.mark.parametrize(
    ("name", "values", "cause"),
    [
        ("f1", {"response": "x"}, "missing_input"),
        ("f1", {"response": " ", "ground_truth": "x"}, "empty_input"),
        ("f1", {"response": "x", "ground_truth": ["", None]}, "empty_input"),
        ("rouge", {"response": "x", "ground_truth": "?!"}, "no_words"),
        ("recall_at_k", {**IDS, "reference_context_ids": []}, "empty_input"),
        ("recall_at_k", {**IDS, "retrieved_context_ids": None}, "missing_input"),
        ("document_retrieval", {"retrieved_documents": []}, "missing_input"),
        (
            "ndcg",
            {**GRADED, "retrieval_ground_truth": [{"document_id": 1, "query_relevance_label": 0}]},
            "nothing_to_find",
        ),
    ],
)
def test_where_a_metric_does_not_apply(name: str, values: dict[str, Any], cause: str) -> None:
    found = score(name, **values)
    assert (found.status, found.cause, found.outputs) == ("not_applicable", cause, {})
    assert found.message


def test_nothing_retrieved_is_nothing_found() -> None:
    for name in ("hit_rate", "mrr", "map", "recall@5", "precision@5", "precision_at_k"):
        assert score(name, **{**IDS, "retrieved_context_ids": []}).outputs == {name: 0}
    assert (
        score("document_retrieval", **{**GRADED, "retrieved_documents": []}).outputs["ndcg@3"] == 0
    )


def test_a_row_of_the_wrong_shape_is_an_error_and_not_a_number() -> None:
    for values in (
        {**GRADED, "retrieved_documents": [{"document_id": "a"}]},
        {**GRADED, "retrieved_documents": "a"},
    ):
        with pytest.raises(InputError) as caught:
            score("document_retrieval", **values)
        assert caught.value.cause == "wrong_input_type"


def test_thresholds_of_the_top_labels_can_be_reached() -> None:
    """azure's are 50, where the labels end at 4."""
    outputs = {output.name: output for output in document_retrieval_outputs()}
    assert outputs["top1_relevance"].result(2) == outputs["top3_max_relevance"].result(4) == "pass"
    assert outputs["top1_relevance"].result(1) == "fail"
    assert outputs["holes"].result(0) == "pass"
    assert outputs["holes"].result(1) == outputs["holes_ratio"].result(0.1) == "fail"
    assert outputs["total_retrieved_documents"].result(3) is None


def test_a_package_that_is_not_there_is_named_before_the_first_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    monkeypatch.setitem(sys.modules, "nltk", None)
    monkeypatch.setitem(sys.modules, "nltk.translate", None)
    for name in ("bleu", "chrf", "gleu", "meteor", "meteor_wordnet"):
        with pytest.raises(SetupError, match=r'pip install "assay\[text\]"'):
            load(name).check(None)
    assert score("f1", **TEXTS).status == "scored"


def test_a_run_knows_the_scale(folder: Path) -> None:
    rows = [{**TEXTS, "id": 1}, {"response": "no", "ground_truth": "yes"}, {"response": "x"}]
    run = assay.evaluate(rows, ["f1", "rouge"])
    assert run.metrics["f1.f1"]["mean"] == 0.5
    assert run.metrics["f1.f1"]["pass_rate"] == 0.5
    assert (run.metrics["f1.f1"]["scored"], run.metrics["f1.f1"]["not_applicable"]) == (2, 1)
    assert run.metrics["rouge.rouge1_f1"]["mean"] == pytest.approx(1 / 3)
    assert run.outputs["f1"]["f1"].scale == "0..1"
    assert run.header["evaluators"]["f1"]["judge"] is None


def test_on_the_command_line(folder: Path) -> None:
    data = runs.write_lines(folder / "data.jsonl", [TEXTS, TEXTS])
    done = runs.command("run", "f1", "exact_match", data, "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    metrics = json.loads(done.stdout)["metrics"]
    assert metrics["f1.f1"]["mean"] == metrics["exact_match.exact_match"]["mean"] == 1
    again = runs.command("run", "--resume", runs.only_run(folder), "--json", cwd=folder)
    assert again.returncode == 0, again.stderr
    gate = runs.command("run", "f1", data, "--fail-under", "f1=1.1", cwd=folder)
    assert gate.returncode == 1

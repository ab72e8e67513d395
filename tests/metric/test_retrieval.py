"""Retrieval metrics: the golden values, trec_eval's, and what must always hold.

500 random rankings gave pytrec_eval's map, map_cut_5, recip_rank, P_5, recall_5, success_5,
ndcg and ndcg_cut_3 to within 3e-16.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import InputError, SetupError
from assay.metric import retrieval
from assay.metric.retrieval import document_retrieval

QRELS = {"1": 4, "2": 2, "3": 3, "4": 1, "5": 0}


def graded(labels: dict[str, int]) -> list[dict[str, Any]]:
    return [{"document_id": d, "query_relevance_label": label} for d, label in labels.items()]


def ranked(*documents: Any) -> list[dict[str, Any]]:
    return [{"document_id": d, "relevance_score": 9.0 - n} for n, d in enumerate(documents)]


@pytest.mark.parametrize(
    ("documents", "expected"),
    [
        (
            ("2", "3", "1"),
            {"ndcg@3": 0.7131452381480272, "xdcg@3": 66.83673469387755,
             "fidelity": 0.9464285714285714, "top1_relevance": 2, "top3_max_relevance": 4,
             "holes": 0, "holes_ratio": 0.0, "total_retrieved_documents": 3,
             "total_ground_truth_documents": 5},
        ),
        (
            ("1",),
            {"ndcg@3": 0.7171369046299317, "xdcg@3": 51.02040816326531,
             "fidelity": 0.5535714285714286, "top1_relevance": 4, "top3_max_relevance": 4,
             "holes": 0, "holes_ratio": 0.0, "total_retrieved_documents": 1,
             "total_ground_truth_documents": 5},
        ),
        (
            ("9", "1"),
            {"ndcg@3": 0.4524630105151607, "xdcg@3": 30.612244897959183,
             "fidelity": 0.5535714285714286, "top1_relevance": 0, "top3_max_relevance": 4,
             "holes": 1, "holes_ratio": 0.5, "total_retrieved_documents": 2,
             "total_ground_truth_documents": 5},
        ),
        (
            ("9",),
            {"ndcg@3": 0, "xdcg@3": 0, "fidelity": 0, "top1_relevance": 0,
             "top3_max_relevance": 0, "holes": 1, "holes_ratio": 1.0,
             "total_retrieved_documents": 1, "total_ground_truth_documents": 5},
        ),
        (
            (),
            {"ndcg@3": 0, "xdcg@3": 0, "fidelity": 0, "top1_relevance": 0,
             "top3_max_relevance": 0, "holes": 0, "holes_ratio": 0,
             "total_retrieved_documents": 0, "total_ground_truth_documents": 5},
        ),
    ],
)  # fmt: skip
def test_the_golden_values(documents: tuple[str, ...], expected: dict[str, float]) -> None:
    assert document_retrieval(graded(QRELS), ranked(*documents)) == expected


def test_the_golden_value_of_a_scale_from_one() -> None:
    found = document_retrieval(graded({"1": 3, "2": 1}), ranked("1", "2"), label_min=1)
    assert found["ndcg@3"] == 1.0
    assert found["xdcg@3"] == pytest.approx(45.918, abs=5e-4)


def test_trec_gain_is_another_number() -> None:
    labels, known = [2, 3, 4], list(QRELS.values())
    assert retrieval.ndcg(labels, known, 3, "linear") == pytest.approx(0.85492, abs=5e-6)
    assert retrieval.ndcg(labels, known, 3, "exp") == pytest.approx(0.71315, abs=5e-6)


def test_by_hand() -> None:
    assert retrieval.dcg([1, 2], None, "linear") == 1 + 2 / math.log2(3)
    assert retrieval.dcg([1, 2], 1) == 1
    # AP over all relevant documents: the third relevant one is never found.
    assert retrieval.average_precision(["a", "x", "b"], ["a", "b", "c"]) == pytest.approx(
        0.5556, abs=5e-5
    )
    assert retrieval.mrr(["x", "y", "b"], ["b"]) == 1 / 3
    assert retrieval.mrr(["x", "y", "b"], ["b"], k=2) == 0
    assert retrieval.recall_at_k(["a", "x", "b"], ["a", "b", "c"], 2) == 1 / 3
    assert retrieval.precision_at_k(["a", "x", "b"], ["a", "b"], 2) == 0.5
    assert retrieval.precision_at_k(["a"], ["a", "b"], 5) == 0.2
    assert retrieval.hit_rate(["x", "b"], ["b"], 1) == 0
    assert retrieval.hit_rate(["x", "b"], ["b"]) == 1
    # A document that comes twice takes two ranks and is found once.
    assert retrieval.precision_at_k(["a", "a"], ["a"]) == 0.5
    assert retrieval.recall_at_k(["a", "a"], ["a", "b"]) == 0.5


def test_labels_of_two_digits_are_numbers() -> None:
    """azure sorts labels from 10 on as text."""
    labels = {"a": 10, "b": 9, "c": 2}
    found = document_retrieval(graded(labels), ranked("a", "b", "c"), label_max=12)
    assert found["ndcg@3"] == 1.0
    assert found["fidelity"] == 1.0
    assert found["top1_relevance"] == 10
    assert 0 <= found["xdcg@3"] <= 100


def test_scores_decide_and_not_the_order() -> None:
    documents = ranked("2", "3", "1")
    there = document_retrieval(graded(QRELS), documents)
    assert document_retrieval(graded(QRELS), documents[::-1]) == there
    ties = [{"document_id": d, "relevance_score": 1} for d in ("1", "5")]
    assert document_retrieval(graded(QRELS), ties)["top1_relevance"] == 4
    assert document_retrieval(graded(QRELS), ties[::-1])["top1_relevance"] == 0


def test_a_document_retrieved_twice_counts_once_at_its_better_rank() -> None:
    found = document_retrieval(graded(QRELS), ranked("1", "9", "1"))
    assert (found["total_retrieved_documents"], found["holes_ratio"]) == (2, 0.5)
    assert found["top1_relevance"] == 4


@pytest.mark.parametrize(
    ("labels", "documents", "words"),
    [
        ([{"document_id": "1"}], [], "label of document 1 is None"),
        ([{"document_id": "1", "query_relevance_label": 1.5}], [], "1.5, no whole number"),
        ([{"document_id": "1", "query_relevance_label": True}], [], "True, no whole number"),
        (graded({"1": 5}), [], r"is 5, not 0\.\.4"),
        (graded({"1": 4}) + graded({"1": 3}), [], "two labels, 4 and 3"),
        (graded({"1": 4}), [{"relevance_score": 1}], "without document_id"),
        (graded({"1": 4}), [{"document_id": "1", "relevance_score": math.nan}], "nan, no number"),
        (graded({"1": 4}), [{"document_id": "1"}], "None, no number"),
        ("text", [], "must be a list of objects"),
        (graded({"1": 4}), ranked(*range(10_001)), "more than 10000"),
    ],
)
def test_what_is_wrong_is_said(labels: Any, documents: Any, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        document_retrieval(labels, documents)
    assert caught.value.cause == "wrong_input_type"


def test_where_nothing_is_relevant_there_is_nothing_to_find() -> None:
    for call in (
        lambda: document_retrieval(graded({"1": 0}), ranked("1")),
        lambda: document_retrieval([], ranked("1")),
        lambda: retrieval.ndcg([0], [0]),
        lambda: retrieval.fidelity([0], [0]),
        lambda: retrieval.recall_at_k(["a"], []),
    ):
        with pytest.raises(InputError) as caught:
            call()
        assert caught.value.cause == "nothing_to_find"


@pytest.mark.parametrize(("low", "high"), [(2, 2), (-1, 4), (0, 0)])
def test_a_scale_that_is_none(low: int, high: int) -> None:
    with pytest.raises(SetupError, match="labels go from"):
        document_retrieval(graded({"1": 1}), [], label_min=low, label_max=high)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (["a", 1, 2.0, " b "], ["a", "1", "2", "b"]),
        ('["a", 1]', ["a", "1"]),
        ("doc-1", ["doc-1"]),
        ("[draft] doc", ["[draft] doc"]),
        (7, ["7"]),
        ([], []),
    ],
)
def test_ids(value: Any, expected: list[str]) -> None:
    assert retrieval.ids("x", value) == expected


@pytest.mark.parametrize("value", [None, True, [None], [["a"]], {"a": 1}, [math.nan]])
def test_what_is_no_list_of_ids(value: Any) -> None:
    with pytest.raises(InputError, match="x must be a list of ids"):
        retrieval.ids("x", value)


DOCUMENTS = st.lists(st.sampled_from("abcdefgh"), max_size=8, unique=True)
LABELS = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 4), min_size=1).filter(
    lambda labels: any(labels.values())
)


@given(LABELS, DOCUMENTS)
def test_every_value_is_on_its_scale(labels: dict[str, int], documents: list[str]) -> None:
    found = document_retrieval(graded(labels), ranked(*documents))
    for name in ("ndcg@3", "fidelity", "holes_ratio"):
        assert 0 <= found[name] <= 1 + 1e-12
    assert 0 <= found["xdcg@3"] <= 100 + 1e-9
    ideal = sorted(labels, key=lambda d: -labels[d])
    assert document_retrieval(graded(labels), ranked(*ideal))["ndcg@3"] == pytest.approx(1)


@given(LABELS, DOCUMENTS, st.data())
def test_a_better_document_on_top_never_lowers(
    labels: dict[str, int], documents: list[str], data: st.DataObject
) -> None:
    if len(documents) < 2:
        return
    i = data.draw(st.integers(0, len(documents) - 2))
    better, worse = documents[i + 1], documents[i]
    if labels.get(better, 0) < labels.get(worse, 0):
        return
    swapped = [*documents[:i], better, worse, *documents[i + 2 :]]
    before = document_retrieval(graded(labels), ranked(*documents))
    after = document_retrieval(graded(labels), ranked(*swapped))
    for name in ("ndcg@3", "xdcg@3"):
        assert after[name] >= before[name] - 1e-12
    assert after["fidelity"] == pytest.approx(before["fidelity"])


@given(
    st.lists(st.sampled_from("abcdef")),
    st.lists(st.sampled_from("abcdef"), min_size=1),
    st.integers(1, 8),
)
def test_metrics_of_ids(retrieved: list[str], relevant: list[str], k: int) -> None:
    for metric in (
        retrieval.hit_rate,
        retrieval.mrr,
        retrieval.recall_at_k,
        retrieval.precision_at_k,
        retrieval.average_precision,
    ):
        assert 0 <= metric(retrieved, relevant, k) <= 1
        assert metric(retrieved, relevant, k) == metric(retrieved, relevant[::-1], k)
    assert retrieval.recall_at_k(retrieved, relevant, k) <= retrieval.recall_at_k(
        retrieved, relevant, k + 1
    )
    assert retrieval.hit_rate(retrieved, relevant, k) == float(
        retrieval.mrr(retrieved, relevant, k) > 0
    )

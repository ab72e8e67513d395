"""Metrics of retrieval by document id: no judge, no text.

Two kinds of data, two families. Graded labels (`document_retrieval`): how relevant each known
document is, as a whole number, against what was retrieved with which score. Ids alone
(`hit_rate`, `mrr`, `recall_at_k`, `precision_at_k`, `average_precision`): which ids were
retrieved, best first, and which should have been.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from assay.errors import InputError, SetupError
from assay.metric.inputs import is_absent

Gain = Literal["exp", "linear"]

LARGEST = 10_000
"""Documents in one row, at most: more are a mistake of the data."""


# Graded labels, in the order of the ranks.


def dcg(labels: Sequence[float], k: int | None = None, gain: Gain = "exp") -> float:
    """Discounted cumulative gain of the first k labels (Järvelin and Kekäläinen 2002).

    gain: `exp` is 2**label - 1 (Burges et al. 2005; azure's), `linear` the label (trec_eval's).
    """
    worth: Callable[[float], float] = (lambda x: 2.0**x - 1) if gain == "exp" else float
    return math.fsum(worth(label) / math.log2(rank + 1) for rank, label in _ranked(labels, k))


def ndcg(
    labels: Sequence[float], ideal: Sequence[float], k: int | None = 3, gain: Gain = "exp"
) -> float:
    """DCG as a share of the best that could be had from all known documents, 0..1.

    labels: of the retrieved documents in order of rank. ideal: of all known documents, in any
    order. Raises InputError where no known document is relevant: there is nothing to find.
    """
    best = dcg(sorted(ideal, reverse=True), k, gain)
    if best <= 0:
        raise _nothing_to_find()
    return min(1.0, dcg(labels, k, gain) / best)


def xdcg(labels: Sequence[float], k: int = 3, unit: float = 25.0, discount: float = 0.6) -> float:
    """Labels with a geometric discount, normed by the discounts of k full ranks; azure's.

    0..100 where `unit` is 100 / the highest label: 25 for labels up to 4. Ranks without a
    document count 0.
    """
    weights = [discount ** (rank - 1) for rank in range(1, k + 1)]
    gained = math.fsum(unit * label * weights[rank - 1] for rank, label in _ranked(labels, k))
    return min(gained / math.fsum(weights), unit * max(labels, default=0))


def fidelity(labels: Sequence[float], ideal: Sequence[float], label_min: int = 0) -> float:
    """Share of all known relevance that was retrieved, whatever the ranks; azure's, 0..1.

    A label above `label_min` is worth 2**(label + 1) - 1. Raises InputError where no known
    document is relevant.
    """

    def worth(values: Sequence[float]) -> float:
        return math.fsum(2.0 ** (label + 1) - 1 for label in values if label > label_min)

    there = worth(ideal)
    if there <= 0:
        raise _nothing_to_find()
    return worth(labels) / there


def _ranked(labels: Sequence[float], k: int | None) -> list[tuple[int, float]]:
    return list(enumerate(labels[:k], 1))


def _nothing_to_find() -> InputError:
    return InputError("no known document is relevant: nothing to find", cause="nothing_to_find")


# One row of labels and results.


def document_retrieval(
    retrieval_ground_truth: Any,
    retrieved_documents: Any,
    *,
    k: int = 3,
    gain: Gain = "exp",
    label_min: int = 0,
    label_max: int = 4,
) -> dict[str, float]:
    """All that azure's document retrieval evaluator gives, for one query.

    retrieval_ground_truth: [{document_id, query_relevance_label: int}, ...].
    retrieved_documents: [{document_id, relevance_score: number}, ...] in any order; equal
    scores keep it. A document that is retrieved twice counts once, at its better rank. One
    without a label is a hole, and not relevant. label_min, label_max: the scale of the labels.
    Returns `ndcg@k`, `xdcg@k`, `fidelity`, `top1_relevance`, `top3_max_relevance`, `holes`,
    `holes_ratio`, `total_retrieved_documents`, `total_ground_truth_documents`.
    Raises InputError for entries without these keys, labels that are no whole number from
    label_min to label_max, scores that are no number, or where no known document is relevant.
    """
    known, labels, ranking = _row(retrieval_ground_truth, retrieved_documents, label_min, label_max)
    ideal = list(known.values())
    holes = sum(document not in known for document in ranking)
    return {
        f"ndcg@{k}": ndcg(labels, ideal, k, gain),
        f"xdcg@{k}": xdcg(labels, k, min(25.0, 100 / label_max)),  # azure's 25 suits 0..4
        "fidelity": fidelity(labels, ideal, label_min),
        "top1_relevance": labels[0] if labels else 0,
        "top3_max_relevance": max(labels[:3], default=0),
        "holes": holes,
        "holes_ratio": holes / len(ranking) if ranking else 0.0,
        "total_retrieved_documents": len(ranking),
        "total_ground_truth_documents": len(known),
    }


def ranked_labels(
    retrieval_ground_truth: Any, retrieved_documents: Any
) -> tuple[list[int], list[int]]:
    """(all labels, the labels of the retrieved documents in order of rank), for labels from 0.

    Raises InputError as `document_retrieval` does.
    """
    known, labels, _ = _row(retrieval_ground_truth, retrieved_documents, 0, 30)
    return list(known.values()), labels


def _row(
    graded: Any, results: Any, low: int, high: int
) -> tuple[dict[str, int], list[int], list[str]]:
    """Label by document, the labels by rank, the documents by rank."""
    if not 0 <= low < high:
        raise SetupError(f"labels go from 0 or more up, not from {low} to {high}")
    known = _labels(_entries("retrieval_ground_truth", graded), low, high)
    ranking = _ranking(_entries("retrieved_documents", results))
    if max(known.values(), default=0) <= low:
        raise _nothing_to_find()
    return known, [known.get(document, 0) for document in ranking], ranking


def _entries(name: str, value: Any) -> list[Mapping[str, Any]]:
    found = _parsed(value)
    if not isinstance(found, list | tuple) or not all(isinstance(x, Mapping) for x in found):
        raise _wrong(f"{name} must be a list of objects")
    if len(found) > LARGEST:
        raise _wrong(f"{name} has {len(found)} documents, more than {LARGEST}")
    return list(found)


def _labels(entries: Sequence[Mapping[str, Any]], low: int, high: int) -> dict[str, int]:
    found: dict[str, int] = {}
    for entry in entries:
        document = _id(entry, "retrieval_ground_truth")
        label = entry.get("query_relevance_label")
        if isinstance(label, bool) or not isinstance(label, int):
            raise _wrong(f"the label of document {document} is {label!r}, no whole number")
        if not low <= label <= high:
            raise _wrong(f"the label of document {document} is {label}, not {low}..{high}")
        if found.setdefault(document, label) != label:
            raise _wrong(f"document {document} has two labels, {found[document]} and {label}")
    return found


def _ranking(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """Ids by falling score, each once."""
    scored: list[tuple[str, float]] = []
    for entry in entries:
        document = _id(entry, "retrieved_documents")
        score = entry.get("relevance_score")
        if (
            isinstance(score, bool)
            or not isinstance(score, int | float)
            or not math.isfinite(score)
        ):
            raise _wrong(f"the score of document {document} is {score!r}, no number")
        scored.append((document, score))
    scored.sort(key=lambda pair: -pair[1])
    return list(dict.fromkeys(document for document, _ in scored))


def _id(entry: Mapping[str, Any], name: str) -> str:
    document = entry.get("document_id")
    if is_absent(document) or isinstance(document, bool | list | Mapping):
        raise _wrong(f"{name} has an entry without document_id")
    return _as_id(document)


# Ids alone.


def hit_rate(retrieved: Sequence[str], relevant: Sequence[str], k: int | None = None) -> float:
    """1 where one of the first k retrieved ids is relevant, else 0."""
    return float(any(_hits(retrieved, relevant, k)))


def mrr(retrieved: Sequence[str], relevant: Sequence[str], k: int | None = None) -> float:
    """1 / rank of the first relevant id among the first k, 0 where there is none: its mean over
    the rows is the mean reciprocal rank (Voorhees 1999)."""
    hits = _hits(retrieved, relevant, k)
    return next((1 / rank for rank, hit in enumerate(hits, 1) if hit), 0.0)


def recall_at_k(retrieved: Sequence[str], relevant: Sequence[str], k: int | None = None) -> float:
    """Share of the relevant ids that are among the first k; k is all that were retrieved."""
    return sum(_hits(retrieved, relevant, k)) / len(set(relevant))


def precision_at_k(
    retrieved: Sequence[str], relevant: Sequence[str], k: int | None = None
) -> float:
    """Share of the first k ranks that hold a relevant id. Ranks that are missing hold none, as
    in trec_eval; without k it is the share of all that were retrieved, 0 where nothing was."""
    depth = len(retrieved) if k is None else k
    return sum(_hits(retrieved, relevant, k)) / depth if depth else 0.0


def average_precision(
    retrieved: Sequence[str], relevant: Sequence[str], k: int | None = None
) -> float:
    """Mean over all relevant ids of the precision at their rank, 0 for one that is not found:
    its mean over the rows is MAP, as trec_eval has it."""
    found, gained = 0, []
    for rank, hit in enumerate(_hits(retrieved, relevant, k), 1):
        found += hit
        if hit:
            gained.append(found / rank)
    return math.fsum(gained) / len(set(relevant))


def _hits(retrieved: Sequence[str], relevant: Sequence[str], k: int | None) -> list[bool]:
    """For each of the first k ranks whether it holds a relevant id for the first time.

    Raises InputError where nothing is relevant.
    """
    if not relevant:
        raise InputError("no id is relevant: nothing to find", cause="nothing_to_find")
    left = set(relevant)
    hits = []
    for document in retrieved[:k]:
        hits.append(document in left)
        left.discard(document)
    return hits


def ids(name: str, value: Any) -> list[str]:
    """A list of ids from a list, or from a JSON list as text. 1, 1.0 and "1" are one id.

    Raises InputError for anything else.
    """
    found = _parsed(value)
    if isinstance(found, str | int) and not isinstance(found, bool):
        found = [found]
    if not isinstance(found, list | tuple) or any(
        is_absent(x) or isinstance(x, bool | list | Mapping) for x in found
    ):
        raise _wrong(f"{name} must be a list of ids")
    return [_as_id(item) for item in found]


def _as_id(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip()


def _parsed(value: Any) -> Any:
    """A JSON list that stands in a text, as in a CSV file, as a list."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def _wrong(message: str) -> InputError:
    return InputError(message, cause="wrong_input_type")

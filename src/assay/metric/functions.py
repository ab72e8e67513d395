"""The arithmetic of metrics: pure functions over numbers and lists.

These are the functions a `score:` expression may use. Lists of verdicts hold 1 and 0 (or
fractions); None in them means that a verdict does not count.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


class Undefined(ValueError):
    """A number that does not exist, such as a share of nothing."""


def ratio(part: float, whole: float) -> float:
    """part / whole. Raises Undefined for a whole of 0."""
    if whole == 0:
        raise Undefined("a share of nothing is no number")
    return part / whole


def mean(values: Iterable[float | None]) -> float:
    """Arithmetic mean of the values that are there. Raises Undefined where there are none."""
    present = _present(values)
    return ratio(math.fsum(present), len(present))


def wmean(values: Sequence[float], weights: Sequence[float]) -> float:
    """Weighted mean; weights need not add up to 1."""
    if len(values) != len(weights):
        raise Undefined(f"{len(values)} values, but {len(weights)} weights")
    total = math.fsum(v * w for v, w in zip(values, weights, strict=True))
    return ratio(total, math.fsum(weights))


def median(values: Iterable[float | None]) -> float:
    """The middle value, or the mean of the two in the middle."""
    present = sorted(_present(values))
    if not present:
        raise Undefined("the median of nothing is no number")
    half = len(present) // 2
    return present[half] if len(present) % 2 else (present[half - 1] + present[half]) / 2


def majority(values: Iterable[float | None]) -> float:
    """The most frequent value; the lower one of several."""
    present = sorted(_present(values))
    if not present:
        raise Undefined("nobody voted")
    return max(present, key=present.count)


def cosine(a: Sequence[float], b: Sequence[float]) -> float:
    """Cosine of two vectors, -1..1. Raises Undefined for a vector of zeros."""
    dot = math.fsum(x * y for x, y in zip(a, b, strict=True))
    return ratio(dot, math.sqrt(math.fsum(x * x for x in a) * math.fsum(y * y for y in b)))


def cosine_mean(one: Sequence[float], others: Sequence[Sequence[float]]) -> float:
    """Mean cosine of one vector with each of several."""
    return mean([cosine(one, other) for other in others])


def average_precision(verdicts: Sequence[float]) -> float:
    """Mean of precision@k over the ranks k that are relevant; 0 where none is.

    Over the retrieved relevant items, as RAG libraries use it, not over all relevant ones as
    TREC's MAP does.
    """
    relevant = [k for k, verdict in enumerate(verdicts, 1) if verdict]
    if not relevant:
        return 0.0
    return math.fsum(hits / k for hits, k in enumerate(relevant, 1)) / len(relevant)


def precision_at_k(verdicts: Sequence[float], k: int) -> float:
    """Share of relevant items among the first k; missing ranks are not relevant."""
    return ratio(math.fsum(verdicts[:k]), k)


def f_from(precision: float, recall: float, beta: float = 1.0) -> float:
    """F-beta of precision and recall; 0 where both are 0 (van Rijsbergen 1979)."""
    weight = beta * beta
    below = weight * precision + recall
    return (1 + weight) * precision * recall / below if below else 0.0


def fbeta(tp: float, fp: float, fn: float, beta: float = 1.0) -> float:
    """F-beta of counts; 0 where nothing is right. Raises Undefined where all three are 0."""
    if tp + fp + fn == 0:
        raise Undefined("no statement on either side")
    precision = tp / (tp + fp) if tp + fp else 0.0
    recall = tp / (tp + fn) if tp + fn else 0.0
    return f_from(precision, recall, beta)


def recall_sets(found: Iterable[str], wanted: Iterable[str], exact: bool = False) -> float:
    """Share of the wanted names that are found, each counted once.

    Names are compared without regard to case, width and surrounding space unless `exact`.
    """
    fold = (lambda text: text) if exact else normal
    targets = {fold(name) for name in wanted}
    return ratio(len(targets & {fold(name) for name in found}), len(targets))


def normal(text: str) -> str:
    """Text as it is compared: NFKC, no surrounding space, case folded."""
    return " ".join(unicodedata.normalize("NFKC", str(text)).casefold().split())


def word(text: Any) -> str:
    """The leading word of a verdict, to compare: `Yes, because ...` is `yes`."""
    found = normal(text).split()
    return found[0].strip(".,;:!\"'`*()[]") if found else ""


def count(values: Iterable[Any], wanted: Any = 1) -> int:
    """How many values are `wanted`."""
    return sum(1 for value in values if value == wanted)


def expectation(levels: Mapping[Any, float]) -> float:
    """Mean of a distribution over numeric levels, its probabilities normalised."""
    total = math.fsum(levels.values())
    return ratio(math.fsum(float(level) * p for level, p in levels.items()), total)


def rescale(value: float, low: float, high: float) -> float:
    """`value` on the scale low..high, as 0..1."""
    return ratio(value - low, high - low)


def clamp(value: float, low: float = 0.0, high: float = 1.0) -> float:
    """`value`, or the bound it passes."""
    return max(low, min(high, value))


def gate(value: float, is_open: Any) -> float:
    """`value` where the gate is open, else 0."""
    return value if is_open else 0.0


def flatten(lists: Iterable[Iterable[Any]]) -> list[Any]:
    """One list of the elements of several."""
    return [item for found in lists for item in found]


def total(values: Iterable[float | None]) -> float:
    """Sum of the values that are there."""
    return math.fsum(_present(values))


def _present(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


FUNCTIONS: Mapping[str, Any] = {
    function.__name__: function
    for function in (
        ratio,
        mean,
        wmean,
        median,
        majority,
        cosine,
        cosine_mean,
        average_precision,
        precision_at_k,
        f_from,
        fbeta,
        recall_sets,
        normal,
        word,
        count,
        expectation,
        rescale,
        clamp,
        gate,
        flatten,
    )
} | {"len": len, "min": min, "max": max, "sum": total, "abs": abs, "round": round}
"""What an expression may call, by name."""

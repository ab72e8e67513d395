"""The arithmetic of metrics: pure functions over numbers and lists.

These are the functions a `score:` expression may use. Lists of verdicts hold 1 and 0 (or
fractions); None in them means that a verdict does not count.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from assay.metric.segment import lines, sentences


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
    if len(a) != len(b):
        raise Undefined(f"vectors of {len(a)} and {len(b)} numbers have no cosine")
    one, other = math.hypot(*a), math.hypot(*b)
    if not one or not other:
        raise Undefined("a vector of zeros has no direction")
    dot = math.fsum((x / one) * (y / other) for x, y in zip(a, b, strict=True))
    return clamp(dot, -1.0, 1.0)  # what goes beyond is rounding


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
    """The leading word of a verdict, to compare: `Yes, because ...` is `yes`, None is `null`."""
    found = normal("null" if text is None else text).split()
    return found[0].strip(".,;:!\"'`*()[]{}“”«»。，！") if found else ""


def count(values: Iterable[Any], wanted: Any = 1) -> int:
    """How many values are `wanted`."""
    return sum(1 for value in values if value == wanted)


def expectation(levels: Mapping[Any, float], floor: float = 0.0) -> float:
    """Mean of a distribution over numeric levels, its probabilities normalised.

    floor: levels less probable than this are left out.
    """
    kept = {float(level): p for level, p in levels.items() if p >= floor and p > 0}
    if not kept:
        raise Undefined("no level has a probability")
    found = math.fsum(level * p for level, p in kept.items()) / math.fsum(kept.values())
    return clamp(found, min(kept), max(kept))  # what goes beyond is rounding


def frequencies(values: Iterable[Any]) -> dict[str, float]:
    """How often each value was given, as a share: a distribution made of samples."""
    found = [str(value) for value in values]
    return {value: found.count(value) / len(found) for value in sorted(set(found))}


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


def texts(values: Iterable[Any]) -> list[str]:
    """The texts among a judge's list that hold something. Raises Undefined for what is no text."""
    found = list(values)
    wrong = [value for value in found if not isinstance(value, str)]
    if wrong:
        raise Undefined(f"{str(wrong[0])[:60]!r} stands where a text was asked for")
    return [value.strip() for value in found if value.strip()]


def numbered(values: Iterable[str]) -> list[dict[str, Any]]:
    """Texts as a prompt shows them when the judge is to name some: [{index, text}, ...]."""
    return [{"index": index, "text": text} for index, text in enumerate(values, 1)]


def chosen(numbers: Iterable[Any], most: int) -> list[int]:
    """The different numbers 1..most that were named. Raises Undefined for any other."""
    found = set()
    for number in numbers:
        text = str(number).strip()
        if not text.isdecimal() or not 1 <= int(text) <= most:
            raise Undefined(f"{text[:20]!r} is none of the numbers 1 to {most}")
        found.add(int(text))
    return sorted(found)


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
        frequencies,
        rescale,
        clamp,
        gate,
        flatten,
        texts,
        numbered,
        chosen,
        sentences,
        lines,
    )
} | {"len": len, "min": min, "max": max, "sum": total, "abs": abs, "round": round}
"""What an expression may call, by name."""

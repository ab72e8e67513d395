"""What of a run can be shown in Foundry, metric by metric.

Foundry's code evaluators give one number from 0 to 1, higher is better. So each score is put on
that scale by its declared bounds, turned round where lower is better, and the threshold with it.
The score as it was measured travels beside it as a column.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from assay.metric.score import reason_of
from assay.prompty import Output
from assay.prompty.fields import as_number
from assay.run.record import Run

Kind = Literal["score", "verdict", "column"]

DIGITS = 6
"""Decimals of a score on the wire: a verdict is never closer to its threshold than this."""

_WORST_FIRST = ("error", "refused", "invalid", "not_applicable", "scored")


@dataclass(frozen=True)
class Metric:
    """One scored output as Foundry will have it.

    key: its word in rows and templates. name: what the portal shows. kind: `score` on its scale;
    `verdict`, 1 for pass and 0 for fail, where there is a threshold and no scale; `column`, no
    criterion at all. note: what is lost, for people.
    """

    key: str
    name: str
    evaluator: str
    output: Output
    kind: Kind
    low: float = 0.0
    high: float = 1.0
    note: str = ""

    @property
    def has_verdict(self) -> bool:
        return self.output.result(0) is not None

    @property
    def threshold(self) -> float:
        """The pass mark from 0 to 1. Without one of its own, every score passes."""
        if not self.has_verdict:
            return 0.0
        if self.kind == "verdict":
            return 1.0
        mark = self.output.threshold
        if mark is None:  # a boolean passes when it is what is wanted
            mark = 1.0 if self.output.direction == "increase" else 0.0
        return round(min(1.0, max(0.0, self._place(mark))), DIGITS)

    def norm(self, value: float, verdict: str | None) -> float | None:
        """A score from 0 to 1, on the side of the threshold its verdict says; None off scale."""
        if self.kind == "verdict":
            return 1.0 if verdict == "pass" else 0.0
        place = round(self._place(value), DIGITS)
        if not 0.0 <= place <= 1.0:
            return None
        mark = self.threshold
        if verdict == "pass" and place < mark:
            return mark
        if verdict == "fail" and place >= mark:
            return round(mark - 10.0**-DIGITS, DIGITS)
        return place

    def _place(self, value: float) -> float:
        place = (value - self.low) / (self.high - self.low)
        return 1.0 - place if self.output.direction == "decrease" else place

    @property
    def is_turned(self) -> bool:
        """Whether it is shown turned round, since lower is better."""
        return self.kind == "score" and self.output.direction == "decrease"

    def value(self, place: float) -> float:
        """A place from 0 to 1 on the metric's own scale; of a verdict it is the share passed."""
        return self.low + (self.high - self.low) * (1.0 - place if self.is_turned else place)

    def difference(self, places: float) -> float:
        """A difference of two places on the metric's own scale, in its own direction."""
        return (self.high - self.low) * (-places if self.is_turned else places)


@dataclass(frozen=True)
class Cell:
    """A metric's result for a row. norm: as it is sent; None with `why` where there is none."""

    norm: float | None
    verdict: str | None
    why: str | None
    columns: Mapping[str, Any]


def metrics_of(run: Run) -> list[Metric]:
    """Every scored output of the run, in its order."""
    found: list[Metric] = []
    names = _names(run)
    taken = {"row", "id", "run"}  # what a row tells of itself beside its metrics
    for evaluator, output in names:
        alone = sum(other == evaluator for other, _ in names) == 1
        name = evaluator if alone else f"{evaluator}.{output}"
        key = word(name, taken)
        declared = run.outputs[evaluator].get(output) or Output(output)
        kind, low, high, note = _scale(run, evaluator, declared)
        found.append(Metric(key, name, evaluator, declared, kind, low, high, note))
    return found


def word(name: str, taken: set[str]) -> str:
    """`name` with the letters templates allow, and not one of `taken`, to which it is added."""
    base = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_") or "column"
    chosen, count = base, 2
    while chosen in taken:
        chosen, count = f"{base}_{count}", count + 1
    taken.add(chosen)
    return chosen


def cell_of(metric: Metric, records: list[Mapping[str, Any] | None]) -> Cell:
    """The result of a row from its iterations: their mean and spread, or why there is none."""
    kept = [record for record in records if record is not None]
    scored = [r for r in kept if r["status"] == "scored" and _value(metric, r) is not None]
    values = [v for r in scored if (v := _value(metric, r)) is not None]
    if not values:
        return _missing(metric, kept, len(records))
    mean = math.fsum(values) / len(values)
    verdict = metric.output.result(mean)
    nearest = min(zip(values, scored, strict=True), key=lambda pair: abs(pair[0] - mean))[1]
    norm = metric.norm(mean, verdict) if metric.kind != "column" else None
    columns: dict[str, Any] = {
        "score": mean,
        "result": verdict,
        "reason": nearest.get("reason") or reason_of(nearest.get("outputs") or {}),
        "threshold": metric.output.threshold,
        "status": "completed",
    }
    if len(records) > 1:
        columns |= {"spread": _spread(values, mean), "values": values, "scored": len(values)}
    why = None
    if norm is None and metric.kind != "column":
        why = f"error: out_of_scale: {mean:g} is not within {metric.output.scale}"
    return Cell(norm, verdict, why, columns)


def _missing(metric: Metric, kept: list[Mapping[str, Any]], iterations: int) -> Cell:
    """No score: skipped where the metric does not apply, else an error, with its cause."""
    statuses = {record["status"] for record in kept}
    status = next((s for s in _WORST_FIRST if s in statuses), "error")
    record = next((r for r in kept if r["status"] == status), {})
    cause = record.get("cause") or ("no_value" if status == "scored" else "not_run")
    message = record.get("message") or "the run holds no score for this row"
    shown = "skipped" if status == "not_applicable" else "error"
    columns: dict[str, Any] = {
        "score": None,
        "result": None,
        "reason": message,
        "threshold": metric.output.threshold,
        "status": shown,
        "cause": f"{status}: {cause}",
    }
    if iterations > 1:
        columns |= {"spread": None, "values": [], "scored": 0}
    return Cell(None, None, f"{shown}: {status}: {cause}: {message}"[:500], columns)


def _names(run: Run) -> list[tuple[str, str]]:
    """(evaluator, output) as the summary has them: also those no file declared."""
    pairs = []
    for name in run.evaluators:
        declared = [o.name for o in run.outputs[name].values() if o.scored]
        start = f"{name}."
        others = [key.removeprefix(start) for key in run.metrics if key.startswith(start)]
        pairs += [(name, output) for output in declared or others]
    return pairs


def _scale(run: Run, evaluator: str, output: Output) -> tuple[Kind, float, float, str]:
    name = f"{evaluator}.{output.name}"
    if output.type == "boolean":
        return "score", 0.0, 1.0, ""
    levels = [number for v in output.levels if (number := as_number(v)) is not None]
    low = output.minimum if output.minimum is not None else min(levels, default=None)
    high = output.maximum if output.maximum is not None else max(levels, default=None)
    if low is not None and high is not None and low < high:
        return "score", low, high, ""
    if output.levels and not levels:
        return "column", 0.0, 1.0, f"{name} is a word, not a number: it is a column only"
    if _within_one(run, evaluator, output.name):
        return "score", 0.0, 1.0, f"{name} declares no scale; its values are taken as 0 to 1"
    if output.threshold is not None:
        return "verdict", 0.0, 1.0, f"{name} declares no scale: only pass and fail are compared"
    return "column", 0.0, 1.0, f"{name} declares no scale and no threshold: it is a column only"


def _within_one(run: Run, evaluator: str, output: str) -> bool:
    """Whether every value of an output that declares no bounds lies from 0 to 1."""
    values = [
        as_number((record.get("outputs") or {}).get(output))
        for _, records in run.records()
        for record in records
        if record is not None and record["evaluator"] == evaluator
    ]
    numbers = [value for value in values if value is not None]
    return bool(numbers) and all(0.0 <= value <= 1.0 for value in numbers)


def iterations_of(
    run: Run, records: list[dict[str, Any] | None]
) -> Iterator[tuple[str, list[Mapping[str, Any] | None]]]:
    """(evaluator, its records by iteration) of one row."""
    for name in run.evaluators:
        yield (
            name,
            [r for (owner, _), r in zip(run.keys, records, strict=True) if owner == name],
        )


def _value(metric: Metric, record: Mapping[str, Any]) -> float | None:
    return as_number((record.get("outputs") or {}).get(metric.output.name))


def _spread(values: list[float], mean: float) -> float | None:
    """The standard deviation of a row's iterations; None from one."""
    if len(values) < 2:
        return None
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))

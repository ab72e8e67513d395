"""What came back of a run, compared with what was sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from assay.azure.metrics import DIGITS, Metric
from assay.azure.payloads import VERDICT
from assay.azure.rows import OWN, Rows

Outcome = Literal["passed", "failed", "errored", "skipped"]

_SHOWN = 5
_CLOSE = 10.0**-DIGITS


def outcome_of(result: Mapping[str, Any]) -> Outcome:
    """What the portal counts a result as. One that says nothing is an error."""
    sample = result.get("sample")
    failure = sample.get("error") if isinstance(sample, Mapping) else None
    status, label = str(result.get("status") or "").lower(), result.get("label")
    if status == "error" or failure:
        return "errored"
    if status == "skipped" or label == "skipped":
        return "skipped"
    if result.get("passed") is False or label == "fail":
        return "failed"
    if result.get("passed") is True or label == "pass":
        return "passed"
    return "errored"


@dataclass
class Readback:
    """Compares items as they come, in any order.

    counts: criterion to outcome to rows. differences: the first few, for people.
    """

    rows: Rows
    metrics: list[Metric]
    criteria: list[dict[str, Any]]
    seen: set[int] = field(default_factory=set)
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    differing: int = 0
    differences: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._order = list(self.rows.expected)
        self._places = {metric.name: i for i, metric in enumerate(self.metrics)}

    @property
    def missing(self) -> int:
        """How many rows did not come back."""
        return len(self._order) - len(self.seen)

    def add(self, item: Mapping[str, Any]) -> None:
        """One output item."""
        row = self._row(item)
        if row is None or row in self.seen:
            return
        self.seen.add(row)
        results = {str(r.get("name")): r for r in item.get("results") or []}
        for criterion in self.criteria:
            name = criterion["name"]
            result = results.get(name)
            outcome = outcome_of(result) if result else "errored"
            counted = self.counts.setdefault(name, {})
            counted[outcome] = counted.get(outcome, 0) + 1
            wrong = self._wrong(row, criterion, result, outcome)
            if wrong:
                self.differing += 1
                if len(self.differences) < _SHOWN:
                    self.differences.append(f"row {row}, {name}: {wrong}")

    def _row(self, item: Mapping[str, Any]) -> int | None:
        """The row's number, which travels with it; else its place in the file."""
        own = (item.get("datasource_item") or {}).get(OWN)
        number = own.get("row") if isinstance(own, Mapping) else None
        if number is None:
            place = item.get("datasource_item_id")
            inside = isinstance(place, int) and 0 <= place < len(self._order)
            number = self._order[place] if inside else None  # type: ignore[index]
        return int(number) if number is not None and int(number) in self.rows.expected else None

    def _wrong(
        self,
        row: int,
        criterion: Mapping[str, Any],
        result: Mapping[str, Any] | None,
        outcome: Outcome,
    ) -> str | None:
        """How a result differs from what was sent, if it does."""
        name = str(criterion["name"])
        checks = criterion["type"] == "string_check"
        metric = name.removesuffix(VERDICT) if checks else name
        norm, verdict = self.rows.expected[row][self._places[metric]]
        if norm is None:
            came_back_scored = outcome in ("passed", "failed")
            return f"no score was sent, it came back as {outcome}" if came_back_scored else None
        if result is None:
            return "it did not come back"
        wanted = "failed" if verdict == "fail" else "passed"
        if outcome != wanted:
            return f"sent as {wanted}, it came back as {outcome}"
        score = result.get("score")
        if not checks and not _is_close(score, norm):
            return f"sent as {norm:g}, it came back as {score}"
        return None


def _is_close(score: Any, norm: float) -> bool:
    return isinstance(score, int | float) and abs(float(score) - norm) <= _CLOSE / 2

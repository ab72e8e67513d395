"""A scale that nobody declared, as the values, verdicts and thresholds of rows prove it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from assay.metric.flatkeys import Measured, Verdict, is_number

_OWN = ("result", "threshold")


@dataclass
class Observed:
    """Looks at one output, row by row; `declared` is what the rows leave possible.

    A verdict that no threshold explains is not guessed at: the output then has none, and
    `problem` says so.
    """

    thresholds: set[float] = field(default_factory=set)
    verdicts: int = 0
    is_boolean: bool = True
    is_whole: bool = True
    _up: bool = True
    _down: bool = True
    _one_passes: bool = True
    _zero_passes: bool = True

    def add(
        self, value: bool | int | float, verdict: Verdict | None, threshold: float | None
    ) -> None:
        """A row that has a score."""
        self.is_boolean &= isinstance(value, bool)
        self.is_whole &= float(value).is_integer()
        if threshold is not None:
            self.thresholds.add(threshold)
        if verdict is None:
            return
        self.verdicts += 1
        passed = verdict == "pass"
        self._up &= threshold is not None and (value >= threshold) == passed
        self._down &= threshold is not None and (value <= threshold) == passed
        self._one_passes &= value in (0, 1) and (value == 1) == passed
        self._zero_passes &= value in (0, 1) and (value == 0) == passed

    @property
    def declared(self) -> dict[str, Any]:
        """The output as a run's header has it. A direction is there where verdicts show one, or
        `neutral` where a verdict must not be made of the values."""
        direction, threshold = self._rule()
        found = {
            "type": "boolean" if self.is_boolean else "number",
            "threshold": threshold,
            "desirable_direction": direction,
        }
        return {key: value for key, value in found.items() if value is not None}

    @property
    def problem(self) -> str | None:
        """Why there is no pass rate although rows have verdicts; None where there is one."""
        if not self.verdicts or self._rule()[0] != "neutral":
            return None
        return "its verdicts do not follow one threshold, so it has no pass rate here"

    def _rule(self) -> tuple[str | None, float | None]:
        """(direction, threshold) that give every row its verdict."""
        mark = next(iter(self.thresholds)) if len(self.thresholds) == 1 else None
        if not self.verdicts:
            return "neutral" if self.is_boolean or self.thresholds else None, mark
        if mark is not None and self._up:
            return None if self._down else "increase", mark
        if mark is not None and self._down:
            return "decrease", mark
        if self._one_passes or self._zero_passes:  # whatever threshold is told beside them
            direction = "increase" if self._one_passes else "decrease"
            return direction, None if self.is_boolean else float(self._one_passes)
        return "neutral", mark


def own_scale(name: str, found: Measured) -> dict[str, Any]:
    """What a callable says of its verdict, as evidence of the row until `observe` reads it."""
    told = zip(_OWN, (found.verdict, found.threshold), strict=True)
    return {f"{name}_{side}": value for side, value in told if value is not None}


def observe(scales: dict[str, Observed], record: Mapping[str, Any]) -> None:
    """Add the score line of an evaluator that declares no outputs, output by output."""
    if record["status"] != "scored":
        return
    evidence = record.get("evidence") or {}
    for name, value in record["outputs"].items():
        if is_number(value):
            verdict, threshold = (evidence.get(f"{name}_{side}") for side in _OWN)
            scales.setdefault(name, Observed()).add(value, verdict, threshold)

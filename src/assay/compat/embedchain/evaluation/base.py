"""`embedchain.evaluation.base`: what a metric is there."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class RowScore:
    """What one row came to: a number, or None and the reason.

    status: `scored`, `not_applicable`, `invalid`, `refused` or `error`; cause: a short word
    for why there is none. evidence: the parts of the number.
    """

    score: float | None
    reason: str | None = None
    status: str = "scored"
    cause: str | None = None
    evidence: Mapping[str, Any] = field(default_factory=dict)


class BaseMetric(ABC):
    """Base of all metrics, also of one's own: `evaluate` takes a list of rows.

    In `assay.evaluate` and in `evaluate_rows` it is called with one row at a time.
    """

    def __init__(self, name: str = "base_metric") -> None:
        self.name = name

    @abstractmethod
    def evaluate(self, dataset: Sequence[Any]) -> float:
        """The metric of a data set."""
        raise NotImplementedError

    def evaluate_rows(self, dataset: Sequence[Any]) -> list[RowScore]:
        """The metric of every row, in the order of the data set."""
        return [self._row(row) for row in dataset]

    def _row(self, row: Any) -> RowScore:
        try:
            value = self.evaluate([row])
        except Exception as error:
            message = f"{type(error).__name__}: {error}"
            return RowScore(None, message, "error", "evaluator_failed")
        if isinstance(value, bool | int | float) and math.isfinite(value):
            return RowScore(float(value))
        return RowScore(None, f"{value!r} is not a number", "invalid", "not_a_number")

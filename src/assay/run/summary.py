"""Means with their counts, made from the journal alone.

An entry's value is the mean over its scored iterations; a run's mean is the mean of its
entries, so that iterations never count as independent rows.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from assay.metric.score import STATUSES
from assay.prompty.fields import as_number, read_outputs
from assay.run.spending import Spending
from assay.run.statistics import Moments

_WORST_FIRST = ("error", "refused", "invalid", "not_applicable", "scored")


@dataclass
class OutputTally:
    """One output of one evaluator over many rows."""

    entries: Moments = field(default_factory=Moments)
    passed: int = 0
    judged: int = 0
    within_squares: float = 0.0
    within_df: int = 0
    flipped: int = 0
    repeated: int = 0

    def add(self, values: list[float], results: list[str]) -> None:
        """A row's values, one a scored iteration, and their pass or fail."""
        mean = math.fsum(values) / len(values)
        self.entries.add(mean)
        if len(values) > 1:
            self.repeated += 1
            self.within_squares += math.fsum((value - mean) ** 2 for value in values)
            self.within_df += len(values) - 1
            self.flipped += len(set(results)) > 1
        if results:
            # A row passes when most of its iterations do; a tie is a fail.
            self.judged += 1
            self.passed += results.count("pass") * 2 > len(results)

    def as_dict(self) -> dict[str, Any]:
        scored = self.entries.n
        interval = self.entries.interval()
        found: dict[str, Any] = {
            "mean": self.entries.mean if scored else None,
            "sd": self.entries.sd,
            "ci95": list(interval) if interval else None,
            "pass_rate": self.passed / self.judged if self.judged else None,
        }
        if self.repeated:
            found["within_sd"] = math.sqrt(self.within_squares / self.within_df)
            found["flip_rate"] = self.flipped / self.repeated
        return found


class Tally:
    """Everything a summary says, fed row by row."""

    def __init__(self, evaluators: Mapping[str, Mapping[str, Any]], spending: Spending) -> None:
        self.spending = spending
        self._declared = {name: list(found["scored"]) for name, found in evaluators.items()}
        self._thresholds = {n: read_outputs(e.get("outputs")) for n, e in evaluators.items()}
        self._outputs: dict[str, dict[str, OutputTally]] = {name: {} for name in evaluators}
        self._statuses: dict[str, Counter[str]] = {name: Counter() for name in evaluators}
        self._causes: dict[str, Counter[str]] = {name: Counter() for name in evaluators}

    def add(self, records: Iterable[Mapping[str, Any] | None]) -> None:
        """All the scores of one row, None where one is not there yet."""
        by_evaluator: dict[str, list[Mapping[str, Any]]] = {}
        for record in records:
            if record is not None:
                by_evaluator.setdefault(record["evaluator"], []).append(record)
                self.spending.add(record["evaluator"], record.get("calls", ()))
        for name, found in by_evaluator.items():
            self._add(name, found)

    def as_dict(self) -> dict[str, Any]:
        """`metrics` by `<evaluator>.<output>`, and what the whole run has used."""
        metrics: dict[str, Any] = {}
        for name, outputs in self._outputs.items():
            counts = self._statuses[name]
            scored = self._declared[name] or list(outputs) or [name]
            for output in scored:
                found = outputs.get(output, OutputTally()).as_dict()
                metrics[f"{name}.{output}"] = {
                    **found,
                    "n": counts.total(),
                    **{status: counts[status] for status in STATUSES},
                    **({"causes": dict(self._causes[name])} if self._causes[name] else {}),
                }
        return {"metrics": metrics, **self.spending.as_dict()}

    def _add(self, name: str, found: list[Mapping[str, Any]]) -> None:
        scored = [record for record in found if record["status"] == "scored"]
        statuses = {record["status"] for record in found}
        status = "scored" if scored else next(s for s in _WORST_FIRST if s in statuses)
        self._statuses[name][status] += 1
        if not scored:
            cause = next(record["cause"] for record in found if record["status"] == status)
            self._causes[name][str(cause)] += 1
            return
        for output in self._declared[name] or _measured(scored):
            numbers = [as_number(record["outputs"].get(output)) for record in scored]
            values = [number for number in numbers if number is not None]
            results = [r for record in scored if (r := self._result(name, output, record))]
            if values:
                tally = self._outputs[name].setdefault(output, OutputTally())
                tally.add(values, results)

    def _result(self, name: str, output: str, record: Mapping[str, Any]) -> str | None:
        """Pass or fail by the threshold as it is now: a changed one asks nobody again."""
        declared = self._thresholds[name].get(output)
        return declared.result(record["outputs"].get(output)) if declared else None


def _measured(scored: list[Mapping[str, Any]]) -> list[str]:
    """Outputs of a metric that declares none: whatever is a number."""
    names = dict.fromkeys(name for record in scored for name in record["outputs"])
    return [n for n in names if any(as_number(r["outputs"].get(n)) is not None for r in scored)]


def label_of(metric: str) -> str:
    """`<evaluator>.<output>` for people: an output called like its evaluator is not said twice."""
    evaluator, _, output = metric.rpartition(".")
    return evaluator if output == evaluator.rpartition(".")[2] else metric

"""What one row came to under one metric, all its iterations taken together.

The rules are those of `assay.run.summary`, so that rows and means never disagree: a row is
scored when one of its iterations is, its value is the mean of those, and it passes when most
of them do.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.prompty import Output
from assay.prompty.fields import as_number
from assay.run.record import Run
from assay.run.summary import label_of

MISSING = "missing"
"""The status of a row that the run has not reached."""

STATES = ("scored", "not_applicable", "invalid", "refused", "error", MISSING)
"""All a row can be, in the order in which they are shown; its place is its code in the page."""

_WORST_FIRST = ("error", "refused", "invalid", "not_applicable")

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Metric:
    """One number of a run: an output of an evaluator. `key` is its name in the summary."""

    key: str
    evaluator: str
    output: Output

    @property
    def label(self) -> str:
        """The evaluator's name, and the output's where it says more."""
        return label_of(self.key)


@dataclass(frozen=True, slots=True)
class Entry:
    """value: the mean of the scored iterations, or the level where levels are words.
    verdicts: the value of each scored iteration. cause: why there is none."""

    status: str
    value: Any = None
    result: str | None = None
    cause: str | None = None
    verdicts: tuple[Any, ...] = ()


def metrics_of(run: Run, keys: Iterable[str]) -> list[Metric]:
    """The metrics behind the keys of a summary, in its order."""
    found = []
    for key in keys:
        evaluator = next(name for name in _longest_first(run) if key.startswith(f"{name}."))
        name = key[len(evaluator) + 1 :]
        declared = run.outputs[evaluator].get(name)
        found.append(Metric(key, evaluator, declared or Output(name, type="number")))
    return found


def entry_of(metric: Metric, records: Sequence[Record | None]) -> Entry:
    """A row's entry from the score lines of the metric's evaluator, one an iteration."""
    found = [record for record in records if record is not None]
    if not found:
        return Entry(MISSING)
    scored = [record for record in found if record["status"] == "scored"]
    if not scored:
        worst = min(found, key=lambda record: _WORST_FIRST.index(record["status"]))
        return Entry(worst["status"], cause=worst.get("cause"))
    name = metric.output.name
    verdicts = tuple(v for r in scored if (v := r["outputs"].get(name)) is not None)
    results = [r for value in verdicts if (r := metric.output.result(value))]
    passed = results.count("pass") * 2 > len(results)
    return Entry(
        "scored",
        value=_together(verdicts),
        result=("pass" if passed else "fail") if results else None,
        verdicts=verdicts,
    )


def _together(verdicts: Sequence[Any]) -> Any:
    if len(verdicts) < 2:
        return verdicts[0] if verdicts else None
    numbers = [number for value in verdicts if (number := as_number(value)) is not None]
    if numbers:
        return math.fsum(numbers) / len(numbers)
    return max(sorted(set(map(str, verdicts))), key=list(map(str, verdicts)).count)


def _longest_first(run: Run) -> list[str]:
    """Evaluator names, so that `a.b` is found before `a`."""
    return sorted(run.evaluators, key=len, reverse=True)


def by_evaluator(run: Run, records: Sequence[Record | None]) -> dict[str, list[Record | None]]:
    """A row's score lines under the name of their evaluator, in the order of iterations."""
    found: dict[str, list[Record | None]] = {name: [] for name in run.evaluators}
    for (name, _), record in zip(run.keys, records, strict=True):
        found[name].append(record)
    return found

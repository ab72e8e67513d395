"""Whether a run is good enough: `--fail-under`, `--min-coverage`, `--max-errors`."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from assay.errors import SetupError
from assay.metric.registry import load
from assay.run.record import Run

PASSED, FAILED, TOO_MANY_ERRORS = 0, 1, 3


@dataclass(frozen=True)
class Gate:
    """Lowest means by metric, and how many rows must have a score. Fails closed: a mean that
    is absent is too low, and a row without a score is not covered."""

    lowest: Mapping[str, float]
    min_coverage: float | None
    max_errors: float

    @classmethod
    def parse(cls, fail_under: list[str], min_coverage: float | None, max_errors: float) -> Gate:
        """From the command line. Raises SetupError for what is no METRIC=NUMBER."""
        lowest = {}
        for item in fail_under:
            name, _, value = item.partition("=")
            try:
                least = float(value)
            except ValueError:
                least = math.nan
            if not math.isfinite(least):  # no mean is below NaN: the gate would stand open
                raise SetupError(f"--fail-under {item!r} must be METRIC=NUMBER")
            lowest[name.strip()] = least
        for option, share in (("--min-coverage", min_coverage), ("--max-errors", max_errors)):
            if share is not None and not 0 <= share <= 1:
                raise SetupError(f"{option} is a share from 0 to 1, not {share:g}")
        if lowest and min_coverage is None:
            min_coverage = 1.0
        return cls(lowest, min_coverage, max_errors)

    def check(self, evaluators: Iterable[str]) -> None:
        """Raises SetupError for a metric that none of these evaluators gives: before any call."""
        known: dict[str, list[str]] = {}
        for source in evaluators if self.lowest else ():
            found = load(source)
            scored = [output.name for output in found.outputs.values() if output.scored]
            known[found.name] = [f"{found.name}.{name}" for name in scored]
        names = {name for key, found in known.items() for name in (key, *found)}
        undeclared = tuple(f"{key}." for key, found in known.items() if not found)
        for name in self.lowest:
            if name not in names and not name.startswith(undeclared):
                metrics = [entry for key, found in known.items() for entry in found or [key]]
                raise SetupError(f"--fail-under names {name!r}; metrics are {', '.join(metrics)}")

    def verdict(self, run: Run) -> int:
        """The exit code; every reason goes to stderr."""
        metrics = run.metrics
        failures = [
            line for name, least in self.lowest.items() for line in _low(metrics, name, least)
        ]
        if self.min_coverage is not None:
            failures += _uncovered(metrics, self.min_coverage)
        for line in failures:
            print(f"gate failed: {line}", file=sys.stderr)
        if failures:
            return FAILED
        return TOO_MANY_ERRORS if self._has_too_many_errors(metrics) else PASSED

    def _has_too_many_errors(self, metrics: Mapping[str, Any]) -> bool:
        for name, found in metrics.items():
            share = found["error"] / found["n"] if found["n"] else 0.0
            if share > self.max_errors:
                causes = ", ".join(f"{n} {cause}" for cause, n in found.get("causes", {}).items())
                print(
                    f"{name}: {found['error']} of {found['n']} rows failed ({causes})",
                    file=sys.stderr,
                )
                return True
        return False


def _low(metrics: Mapping[str, Any], name: str, least: float) -> list[str]:
    chosen = {key: found for key, found in metrics.items() if name in (key, key.rpartition(".")[0])}
    if not chosen:
        raise SetupError(f"--fail-under names {name!r}; metrics are {', '.join(metrics)}")
    lines = []
    for key, found in chosen.items():
        if found["mean"] is None:
            lines.append(f"{key} has no mean")
        elif found["mean"] < least:
            lines.append(f"{key} is {found['mean']:.4g}, below {least:g}")
    return lines


def _uncovered(metrics: Mapping[str, Any], least: float) -> list[str]:
    lines = []
    for key, found in metrics.items():
        coverage = found["scored"] / found["n"] if found["n"] else 0.0
        if coverage < least:
            lines.append(
                f"{key}: {found['scored']} of {found['n']} rows have a score "
                f"({coverage:.1%}, needed {least:.1%}; --min-coverage changes it)"
            )
    return lines

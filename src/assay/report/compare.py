"""Two runs or more on the same rows, each against the first."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay.errors import SetupError
from assay.prompty.fields import as_number
from assay.report import changes
from assay.report.entry import Entry, Metric, by_evaluator, entry_of
from assay.report.match import Matching, match
from assay.report.paired import Pairs, sign_test
from assay.report.survey import Survey
from assay.run.record import Run

Entries = list[list[Entry]]
"""One row: for every metric its entry in every run."""


@dataclass
class MetricComparison:
    """One metric in all runs. pairs: one for each run after the first; `problem`: why none."""

    metric: Metric
    outputs: list[Any]
    summaries: list[dict[str, Any]]
    pairs: list[Pairs] = field(default_factory=list)
    problem: str | None = None

    @property
    def span(self) -> float:
        """The length of the scale: what makes moves on different scales comparable."""
        low, high = self.metric.output.minimum, self.metric.output.maximum
        if low is not None and high is not None and high > low:
            return high - low
        numbers = [n for value in self.metric.output.levels if (n := as_number(value)) is not None]
        spread = max(numbers) - min(numbers) if numbers else 0.0
        return spread or max((s["sd"] or 0.0 for s in self.summaries), default=0.0) or 1.0


@dataclass(frozen=True, slots=True)
class Move:
    """A matched row. size: its largest move on any metric, as a share of the scale."""

    place: int
    entries: Entries
    size: float
    flipped: bool
    changed: bool


@dataclass
class Comparison:
    """What `assay compare` shows. `moves` are all matched rows, the biggest movers first."""

    runs: list[Run]
    matching: Matching
    metrics: list[MetricComparison]
    moves: list[Move]
    warnings: list[str]
    settings: list[changes.Setting]
    prompts: list[changes.PromptDiff]
    missing: list[str]

    def as_dict(self) -> dict[str, Any]:
        """For `--json`: everything but the rows that did not change."""
        return {
            "runs": [_run(run) for run in self.runs],
            "matched": len(self.matching.keys),
            "only_in": self.matching.only,
            "metrics": {m.metric.key: _metric(m) for m in self.metrics},
            "rows": [self._row(move) for move in self.moves if move.changed],
            "warnings": self.warnings,
            "settings": [changes.plain_setting(entry) for entry in self.settings],
            "prompts": [
                {"file": d.file, "run": d.run, "diff": "\n".join(d.lines)} for d in self.prompts
            ],
            "not_in_all": self.missing,
        }

    def _row(self, move: Move) -> dict[str, Any]:
        kind, value, _ = self.matching.keys[move.place]
        return {
            kind: value,
            "rows": self.rows_of(move.place),
            "size": round(move.size, 6),
            "flipped": move.flipped,
            "metrics": {
                m.metric.key: [
                    {"value": e.value, "status": e.status, "result": e.result} for e in found
                ]
                for m, found in zip(self.metrics, move.entries, strict=True)
            },
        }

    def rows_of(self, place: int) -> list[int]:
        """The row numbers of a matched row in every run."""
        key = self.matching.keys[place]
        return [places[key] for places in self.matching.places]


def compare(runs: Sequence[Run | str | Path]) -> Comparison:
    """Compare runs with the first of them, row by row.

    Raises SetupError where there is nothing to compare: fewer than two runs, no metric in
    common, no row in common.
    """
    opened = [run if isinstance(run, Run) else Run(run) for run in runs]
    if len(opened) < 2:
        raise SetupError("give at least two runs: the first is what the others are compared with")
    surveys = [Survey(run) for run in opened]
    metrics, missing = _metrics(opened, surveys)
    if not metrics:
        known = "; ".join(f"{r.name}: {', '.join(r.evaluators)}" for r in opened)
        raise SetupError(f"these runs have no metric in common ({known})")
    matching = match(opened)
    if not matching.keys:
        raise SetupError(
            "these runs have no row in common: rows are matched by `id`, else by their content; "
            "give the data an `id` column where the content changes"
        )
    moves = list(_moves(opened, matching, metrics))
    moves.sort(key=lambda move: (-move.size, not move.flipped, not move.changed, move.place))
    shared = list(dict.fromkeys(m.metric.evaluator for m in metrics))
    loud = [f"{m.metric.label} is not compared: {m.problem}." for m in metrics if m.problem]
    if matching.repeated_ids:
        loud.append(
            f"{matching.repeated_ids} ids stand for several rows; those rows are matched "
            "by their content."
        )
    return Comparison(
        opened,
        matching,
        metrics,
        moves,
        loud + changes.warnings(opened, shared),
        changes.settings(opened),
        changes.prompt_diffs(opened),
        missing,
    )


def _metrics(
    runs: Sequence[Run], surveys: Sequence[Survey]
) -> tuple[list[MetricComparison], list[str]]:
    """The metrics all runs have, and sentences about those that some have not."""
    by_key = [{metric.key: metric for metric in survey.metrics} for survey in surveys]
    found, missing = [], []
    for key in dict.fromkeys(key for entry in by_key for key in entry):
        absent = [run.name for run, entry in zip(runs, by_key, strict=True) if key not in entry]
        if absent:
            missing.append(f"{key} is not in {', '.join(absent)}")
            continue
        metric = by_key[0][key]
        outputs = [run.outputs[metric.evaluator].get(metric.output.name) for run in runs]
        problems = (changes.scale_difference(outputs[0], other) for other in outputs[1:])
        found.append(
            MetricComparison(
                metric,
                outputs,
                [survey.summary["metrics"][key] for survey in surveys],
                [Pairs() for _ in runs[1:]],
                next((problem for problem in problems if problem), None),
            )
        )
    return found, missing


def _moves(
    runs: Sequence[Run], matching: Matching, metrics: Sequence[MetricComparison]
) -> Iterator[Move]:
    """Every matched row; the pairs of each metric are filled on the way."""
    entries = [_entries(run, metrics) for run in runs]
    spans = [metric.span for metric in metrics]
    for place, key in enumerate(matching.keys):
        rows = [entries[i][places[key]] for i, places in enumerate(matching.places)]
        together = [[row[m] for row in rows] for m in range(len(metrics))]
        sizes = [0.0]
        flipped = changed = False
        for metric, span, found in zip(metrics, spans, together, strict=True):
            for pairs, other in zip(metric.pairs, found[1:], strict=True):
                changed |= (found[0].value, found[0].status) != (other.value, other.status)
                if metric.problem is None:
                    sizes.append(_pair(pairs, found[0], other) / span)
                    flipped |= {found[0].result, other.result} == {"pass", "fail"}
        yield Move(place, together, max(sizes), flipped, changed)


def _pair(pairs: Pairs, before: Entry, after: Entry) -> float:
    """Count a pair; how far it moved."""
    pairs.add_results(before.result, after.result)
    one, other = as_number(before.value), as_number(after.value)
    if one is None or other is None:
        return 0.0
    pairs.add(one, other)
    return abs(other - one)


def _entries(run: Run, metrics: Sequence[MetricComparison]) -> list[list[Entry]]:
    """Every row's entries, by the run's own thresholds. Equal entries are one object."""
    own = [
        Metric(
            m.metric.key,
            m.metric.evaluator,
            run.outputs[m.metric.evaluator].get(m.metric.output.name, m.metric.output),
        )
        for m in metrics
    ]
    known: dict[Entry, Entry] = {}
    found = []
    for _, records in run.records():
        grouped = by_evaluator(run, records)
        row = [entry_of(metric, grouped[metric.evaluator]) for metric in own]
        found.append([known.setdefault(entry, entry) for entry in row])
    return found


def _run(run: Run) -> dict[str, Any]:
    header = run.header
    return {
        "run": str(run.directory),
        "name": run.name,
        "status": header.get("status"),
        "started": header.get("started"),
        "judges": list(header.get("judges") or {}),
    }


def _metric(found: MetricComparison) -> dict[str, Any]:
    """Means of all rows, and what the matched ones say."""
    keys = ("mean", "ci95", "pass_rate", "n", "scored")
    return {
        "runs": [{key: summary[key] for key in keys} for summary in found.summaries],
        "problem": found.problem,
        "against_first": [] if found.problem else [pair_dict(pairs) for pairs in found.pairs],
    }


def pair_dict(pairs: Pairs) -> dict[str, Any]:
    """A pair's figures: the difference of means over rows scored in both runs, and who moved."""
    there = pairs.difference.n > 0
    interval = pairs.difference.interval()
    return {
        "n": pairs.difference.n,
        "first_mean": pairs.first.mean if there else None,
        "mean": pairs.other.mean if there else None,
        "difference": _clean(pairs.difference.mean) if there else None,
        "ci95": [_clean(end) for end in interval] if interval else None,
        "up": pairs.up,
        "down": pairs.down,
        "same": pairs.difference.n - pairs.up - pairs.down,
        "p_sign": sign_test(pairs.up, pairs.down),
        "to_pass": pairs.to_pass,
        "to_fail": pairs.to_fail,
        "p_flips": sign_test(pairs.to_pass, pairs.to_fail),
    }


def _clean(value: float) -> float:
    """Without the dust of floating point around nought."""
    return 0.0 if math.isclose(value, 0.0, abs_tol=1e-12) else value

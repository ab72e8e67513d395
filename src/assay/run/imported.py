"""Results that were made elsewhere, written as a run directory: everything that reads a run then
reads them too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from assay import __version__
from assay.errors import DataError
from assay.jsontext import digest
from assay.metric.flatkeys import Measured, is_number, to_score
from assay.metric.observed import Observed
from assay.metric.score import Score
from assay.prompty import Output
from assay.prompty.fields import read_outputs
from assay.run.data import Row
from assay.run.engine import row_line
from assay.run.header import now
from assay.run.journal import HEADER, ROWS, SCORES, Lines, write_json
from assay.run.record import Run, line_of

_ROUNDED = 0.0051
"""How far a share with two decimals may be from the one it was."""


@dataclass
class Metric:
    """One metric of results that were made elsewhere: what each row says of it, in order.

    alias: the evaluator it came from. output: its own name. nothing: what to say of a row
    without any word.
    """

    alias: str
    output: str
    rows: list[Measured]
    nothing: str


@dataclass(frozen=True)
class Results:
    """Results that were made elsewhere, in the order of their rows.

    header: what a run's header says of them. rows, targets: columns of the data, and those the
    application added. rates: alias to the share of passes that whoever made them tells.
    """

    name: str
    header: Mapping[str, Any]
    rows: Sequence[Mapping[str, Any]]
    targets: Sequence[Mapping[str, Any]]
    metrics: Sequence[Metric]
    rates: Mapping[str, Any] = field(default_factory=dict)

    def write(self, directory: Path) -> Run:
        """Write them as a run, with the scales that the rows prove. Raises DataError for values
        that no file of a run can hold."""
        named = evaluator_names(self.metrics)
        settled = {name: settle(name, metric) for name, metric in named.items()}
        entries = {name: found.entry for name, found in settled.items()}
        notes = [*self.header.get("notes", ()), *(s.note for s in settled.values() if s.note)]
        header = {"name": self.name, **self.header, "notes": notes}
        try:
            run = write_run(directory, header, entries, len(self.rows), self._lines(settled))
        except RecursionError:
            raise DataError(f"{self.name}: a value in it is nested too deeply") from None
        more = list(_differences(self.rates, named, run.metrics))
        if more:
            write_json(directory / HEADER, {**run.header, "notes": notes + more})
        return Run(directory)

    def _lines(
        self, settled: Mapping[str, Settled]
    ) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
        for index, (columns, target) in enumerate(zip(self.rows, self.targets, strict=True)):
            row = Row(index, columns)
            yield (
                row_line(row, target or None, None),
                [
                    line_of(
                        found.scores[index],
                        row=index,
                        iteration=0,
                        fingerprint=found.entry["fingerprint"],
                        row_hash=row.hash,
                        outputs=found.outputs,
                    )
                    for found in settled.values()
                ],
            )


def evaluator_names(metrics: Iterable[Metric]) -> dict[str, Metric]:
    """Each metric under its evaluator's name in the run: the alias, and where that gives several
    metrics `alias.metric`, so that each has statuses of its own."""
    metrics = list(metrics)
    counted = Counter(metric.alias for metric in metrics)
    found: dict[str, Metric] = {}
    for metric in metrics:
        name = metric.alias if counted[metric.alias] == 1 else f"{metric.alias}.{metric.output}"
        while name in found:  # the alias `a.b` beside `b` of the alias `a`
            name += "_2"
        found[name] = metric
    return found


@dataclass(frozen=True)
class Settled:
    """A metric ready to be written: its entry in the header, its outputs, its scores, and what
    people must know of them."""

    entry: Mapping[str, Any]
    outputs: Mapping[str, Output]
    scores: Sequence[Score]
    note: str | None


def settle(evaluator: str, metric: Metric) -> Settled:
    """The scores of a metric, and its scale as their verdicts and thresholds prove it."""
    output, rows = metric.output, metric.rows
    by_verdict = all(m.value is None for m in rows)
    scores = [
        to_score(evaluator, output, m, by_verdict=by_verdict, nothing=metric.nothing) for m in rows
    ]
    scale = Observed()
    for found, score in zip(rows, scores, strict=True):
        if score.status == "scored":
            scale.add(score.outputs[output], found.verdict, found.threshold)
    if scale.is_whole:  # a column with a gap turns 4 into 4.0
        scores = [_whole(score) for score in scores]
    models = {m.call.model for m in rows if m.call is not None}
    outputs = {output: scale.declared}
    entry = {
        "kind": "imported",
        "outputs": outputs,
        "scored": [output],
        "fingerprint": digest([evaluator, output]),
        "judge": models.pop() if len(models) == 1 else None,
        "columns": {},
        "aliases": {},
    }
    note = f"{evaluator}: {scale.problem}" if scale.problem else None
    return Settled(entry, read_outputs(outputs), scores, note)


def _whole(score: Score) -> Score:
    outputs = {n: int(v) if isinstance(v, float) else v for n, v in score.outputs.items()}
    return replace(score, outputs=outputs)


def _differences(
    rates: Mapping[str, Any], named: Mapping[str, Metric], ours: Mapping[str, Any]
) -> Iterator[str]:
    """Where a share of passes that is told is not what the rows give."""
    for alias, said in rates.items():
        of_alias = [f"{name}.{m.output}" for name, m in named.items() if m.alias == alias]
        found = [rate for key in of_alias if (rate := ours[key]["pass_rate"]) is not None]
        if is_number(said) and found and all(abs(rate - said) > _ROUNDED for rate in found):
            yield (
                f"{alias}: the file says that {said:.0%} pass, counting rows without a verdict as "
                f"fails; of those with one it is {' and '.join(f'{rate:.0%}' for rate in found)}"
            )


def write_run(
    directory: Path,
    header: Mapping[str, Any],
    evaluators: Mapping[str, Mapping[str, Any]],
    rows: int,
    lines: Iterable[tuple[Mapping[str, Any], Iterable[Mapping[str, Any]]]],
) -> Run:
    """A run directory with its summary. lines: a row's line and those of its scores."""
    judges = dict.fromkeys(entry["judge"] for entry in evaluators.values() if entry["judge"])
    whole = {
        "assay": __version__,
        "name": directory.name,
        "status": "finished",
        "started": now(),
        "data": {},
        "rows": rows,
        "iterations": 1,
        "reask": 0,
        "judges": {judge: {"judge": judge} for judge in judges},
        "target": None,
        "options": {},
        **header,
        "evaluators": evaluators,
    }
    with Lines(directory / ROWS) as rows_file, Lines(directory / SCORES) as scores_file:
        for row, scores in lines:
            rows_file.append(row)
            for score in scores:
                scores_file.append(score)
    write_json(directory / HEADER, whole)  # last: a directory without it is no run
    run = Run(directory)
    run.summarise()
    return run

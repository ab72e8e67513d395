"""One pass over a run: its summary and histograms, and which rows a page should show.

The summary is made from the journal each time and never written: a report may be asked for
while the run is going, and must not leave an old summary behind.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from assay.prompty import Output
from assay.prompty.fields import as_number
from assay.report.entry import Metric, Record, by_evaluator, entry_of, metrics_of
from assay.report.histogram import Histogram
from assay.run.record import Run
from assay.run.summary import Tally

GOOD, WORTH_A_LOOK, ABSENT = 0, 1, 2


class Survey:
    """What a page says of all rows, and `fates`: what each row came to."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.fates = bytearray()
        self.found = 0
        self.complete = 0
        self._declared = [
            Metric(f"{name}.{output}", name, run.outputs[name][output])
            for name, entry in run.evaluators.items()
            for output in entry["scored"]
            if output in run.outputs[name]
        ]
        self._histograms = {m.key: Histogram(m.output) for m in self._declared}
        tally = Tally(run.evaluators, run.spending())
        for _, records in run.records():
            tally.add(records)
            self._count(records)
        self.summary: dict[str, Any] = tally.as_dict()
        self.metrics = metrics_of(run, self.summary["metrics"])

    @property
    def rows(self) -> int:
        return len(self.fates)

    @property
    def rows_expected(self) -> int:
        """Rows a finished run holds."""
        return int(self.run.header.get("rows") or self.rows)

    @property
    def expected(self) -> int:
        """Scores a finished run holds."""
        return self.rows_expected * len(self.run.keys)

    def histogram(self, metric: Metric) -> Histogram:
        return self._histograms.get(metric.key) or Histogram(metric.output)

    def choose(self, most: int) -> Sequence[int]:
        """The rows to show where not all can be: those without a score or with a fail, which
        get up to four fifths of the room, then an even sample of the rest."""
        if self.rows <= most:
            return range(self.rows)
        # The weightiest first: a row without a score is rarer than a fail, and worth more.
        absent, looked = (self._with(fate) for fate in (ABSENT, WORTH_A_LOOK))
        good = self._with(GOOD)
        room = max(most * 4 // 5, most - len(good))
        chosen = _evenly(absent, min(len(absent), room))
        chosen += _evenly(looked, min(len(looked), room - len(chosen)))
        chosen += _evenly(good, most - len(chosen))
        return sorted(chosen)

    def _with(self, fate: int) -> list[int]:
        return [row for row, found in enumerate(self.fates) if found == fate]

    def _count(self, records: Sequence[Record | None]) -> None:
        fate, there = GOOD, 0
        by_name = by_evaluator(self.run, records)
        for name, found in by_name.items():
            for record in found:
                if record is None:
                    fate = ABSENT
                    continue
                there += 1
                if record["status"] == "scored":
                    self._count_values(name, record)
                else:
                    absent = record["status"] != "not_applicable"
                    fate = max(fate, ABSENT if absent else WORTH_A_LOOK)
        if fate == GOOD:
            fails = (entry_of(m, by_name[m.evaluator]).result == "fail" for m in self._declared)
            fate = WORTH_A_LOOK if any(fails) else GOOD
        self.found += there
        self.complete += there == len(records)
        self.fates.append(fate)

    def _count_values(self, name: str, record: Record) -> None:
        declared = self.run.evaluators[name]["scored"]
        for output, value in record["outputs"].items():
            key = f"{name}.{output}"
            if not declared and key not in self._histograms and as_number(value) is not None:
                self._histograms[key] = Histogram(Output(output, type="number"))
            if value is not None and key in self._histograms:
                self._histograms[key].add(value)


def _evenly(rows: list[int], count: int) -> list[int]:
    """`count` of `rows`, evenly spread."""
    if count >= len(rows):
        return rows
    return [rows[i * len(rows) // count] for i in range(max(count, 0))]


def chosen_records(
    run: Run, chosen: Sequence[int]
) -> Iterator[tuple[int, dict[str, Any], list[dict[str, Any] | None]]]:
    """(row number, row line, score lines) of the chosen rows, in input order."""
    wanted = chosen if isinstance(chosen, range) else frozenset(chosen)
    for number, (line, records) in enumerate(run.records()):
        if number in wanted:
            yield number, line, records

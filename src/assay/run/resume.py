"""What is left to do of a run, and what is kept of each row."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from assay.run.data import Row
from assay.run.engine import Kept
from assay.run.journal import ROWS, Index
from assay.run.plan import Plan, bind_plan
from assay.run.record import Run


def bind_as_before(plan: Plan, directory: Path | None) -> bool:
    """Bind to the columns the target added in the earlier part of the run, where there is one:
    it is not asked again to find out."""
    if directory is None:
        return False
    for _, (line,) in Index(directory / ROWS).read():
        if line is not None and line.get("target") is not None:
            bind_plan(plan, tuple(dict.fromkeys((*plan.survey.columns, *line["target"]))))
            return True
    return False


class Remaining:
    """Rows with what an earlier part of the run holds of them; finished rows are left out."""

    def __init__(self, plan: Plan, directory: Path) -> None:
        self.plan = plan
        self.run = Run(directory)
        self.scores = self.run.score_index()
        self.rows = self.run.row_index()
        self.fingerprints = {n: e.fingerprint for n, e in plan.evaluators.items()}
        self.done = self.scores.filled

    def __iter__(self) -> Iterator[tuple[Row, Kept]]:
        known, lines = self.scores.read(), self.rows.read()
        for row in self.plan.data.rows():
            scores = next(known, None)
            line = next(lines, None)
            kept = self._kept(row, scores[1] if scores else [], line[1][0] if line else None)
            if len(kept.scores) < len(self.run.keys):
                yield row, kept

    def _kept(
        self, row: Row, scores: list[dict[str, Any] | None], line: dict[str, Any] | None
    ) -> Kept:
        kept = Kept()
        if line is not None and line.get("hash") == row.hash:
            kept.row_written = "target_error" not in line
            kept.target = line.get("target")
        elif row.index in self.plan.target_rows:
            kept.target = self.plan.target_rows[row.index]
        redo = {"error"} if not self.plan.options.retry_failed else {"error", "invalid", "refused"}
        for score in scores:
            if score is None or score["status"] in redo:
                continue
            same_metric = score["fingerprint"] == self.fingerprints[score["evaluator"]]
            if same_metric and score["hash"] == row.hash:
                kept.scores.add((score["evaluator"], score["iteration"]))
        return kept

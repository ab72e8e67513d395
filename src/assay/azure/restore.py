"""A run that assay uploaded, made again from its rows: Foundry shows places from 0 to 1, and the
columns beside them hold the scores as they were measured."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from assay.azure.rows import OWN, TOLD
from assay.errors import PromptyError
from assay.jsontext import digest
from assay.metric.score import STATUSES, Score
from assay.prompty import Output
from assay.prompty.fields import read_outputs
from assay.run.imported import write_run
from assay.run.record import Run, line_of


@dataclass(frozen=True)
class Restored:
    """An uploaded run as it was: `told` is what `tell` wrote, `outputs` the declared scales."""

    told: Mapping[str, Any]
    header: Mapping[str, Any]
    rows: Sequence[Mapping[str, Any]]
    outputs: Mapping[str, Mapping[str, Output]]

    @property
    def name(self) -> str:
        return str(self.header["name"])

    def write(self, directory: Path) -> Run:
        """Write it as a run directory."""
        header = {**self.header, "iterations": int(self.told["iterations"])}
        kept = {"kind": "imported", "columns": {}, "aliases": {}}
        entries = {name: {**kept, **entry} for name, entry in self.told["evaluators"].items()}
        return write_run(directory, header, entries, len(self.rows), self._lines())

    def _lines(self) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
        for index, row in enumerate(self.rows):
            line = _row_line(index, row, self.told["columns"])
            scores = [
                line_of(
                    score,
                    row=index,
                    iteration=iteration,
                    fingerprint=str(entry.get("fingerprint")),
                    row_hash=line["hash"],
                    outputs=self.outputs[name],
                )
                for name, entry in self.told["evaluators"].items()
                for iteration, score in enumerate(self._scores(row, name))
            ]
            yield line, scores

    def _scores(self, row: Mapping[str, Any], evaluator: str) -> list[Score]:
        """The scores of a row by iteration; of iterations without a score nothing is known."""
        metrics = [
            (key, output) for key, owner, output in self.told["metrics"] if owner == evaluator
        ]
        if not metrics:
            return []
        key = metrics[0][0]
        values = {output: _values(row, key) for key, output in metrics}
        scored = min(len(found) for found in values.values())
        if not scored:
            status, cause = _why(row.get(f"{key}_cause"))
            message = str(row.get(f"{key}_reason") or "it was uploaded without a score")
            return [Score(evaluator, status, cause=cause, message=message)]  # type: ignore[arg-type]
        first = values[metrics[0][1]]
        mean = math.fsum(first) / len(first)
        nearest = min(range(scored), key=lambda i: abs(first[i] - mean))
        reason = row.get(f"{key}_reason")
        return [
            Score(
                evaluator,
                "scored",
                {name: self._value(evaluator, name, found[i]) for name, found in values.items()},
                reason=str(reason) if reason and i == nearest else None,
            )
            for i in range(scored)
        ]

    def _value(self, evaluator: str, output: str, value: float) -> Any:
        """A number in the type its output declares: they were sent as floats."""
        declared = self.outputs[evaluator].get(output)
        if declared is not None and declared.type == "boolean":
            return bool(value)
        whole = declared is not None and declared.type == "integer" and float(value).is_integer()
        return int(value) if whole else value


def restored(items: Sequence[Mapping[str, Any]], header: Mapping[str, Any]) -> Restored | None:
    """The run the items are of; None where assay did not upload it."""
    found = [item.get("datasource_item") for item in items]
    rows = [row for row in found if isinstance(row, dict) and isinstance(row.get(OWN), dict)]
    told = next((row[OWN][TOLD] for row in rows if TOLD in row[OWN]), None)
    if len(rows) < len(items) or not _is_told(told):
        return None
    try:
        outputs = {n: read_outputs(e.get("outputs")) for n, e in told["evaluators"].items()}
        rows.sort(key=lambda row: int(row[OWN]["row"]))
    except (PromptyError, KeyError, TypeError, ValueError):
        return None
    return Restored(told, header, rows, outputs)


def _is_told(told: Any) -> TypeGuard[dict[str, Any]]:
    """Whether it has the shape that `tell` gives it: anybody can upload such a column."""
    if not isinstance(told, dict) or not isinstance(told.get("iterations"), int):
        return False
    evaluators, metrics, columns = (told.get(k) for k in ("evaluators", "metrics", "columns"))
    if not (isinstance(evaluators, dict) and isinstance(metrics, list)):
        return False
    entries = evaluators.values()
    return (
        isinstance(columns, dict)
        and all(isinstance(e, dict) and isinstance(e.get("scored"), list) for e in entries)
        and all(isinstance(m, list) and len(m) == 3 and m[1] in evaluators for m in metrics)
    )


def _row_line(index: int, row: Mapping[str, Any], columns: Mapping[str, str]) -> dict[str, Any]:
    """The row with its columns under their own names. Without an id of its own, its id is the
    hash of what it was, by which runs are matched."""
    found = {str(old): row[new] for new, old in columns.items() if new in row}
    own = row[OWN].get("id")
    named = own is not None and str(found.get("id")) == str(own)
    hashed = digest(found) if named or own is None else str(own)
    return {
        "row": index,
        "id": hashed if own is None else str(own),
        "hash": hashed,
        "columns": found,
    }


def _values(row: Mapping[str, Any], key: str) -> list[float]:
    """The scores of the iterations of a row, one where there was one."""
    several = row.get(f"{key}_values")
    found = several if isinstance(several, list) else [row.get(f"{key}_score")]
    return [value for value in found if isinstance(value, int | float)]


def _why(cause: Any) -> tuple[str, str]:
    """(status, cause) of `status: cause`."""
    status, _, word = str(cause or "").partition(": ")
    return (status, word) if status in STATUSES[1:] and word else ("error", "not_uploaded")

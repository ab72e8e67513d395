"""The rows of a run as a file Foundry takes: one flat JSON object a line.

The columns of the data, each metric's results under the names the portals know (`m_score`,
`m_result`, `m_reason`, `m_threshold`, `m_status`), and in `assay` what the criteria read.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from assay.azure.metrics import Cell, Metric, cell_of, iterations_of, word
from assay.errors import RunError
from assay.jsontext import dumps
from assay.run.record import Run

OWN = "assay"
TOLD = "run"
"""The word under which the first row tells of the run, in its own column."""


@dataclass
class Rows:
    """The file, while the `with` block lasts, and what must come back of it.

    expected: row number to (norm, verdict) by metric, in order. version: the content's address,
    in the form datasets allow. columns: name in the run to name in Foundry.
    """

    file: Path
    version: str = ""
    count: int = 0
    size: int = 0
    missing: int = 0
    columns: dict[str, str] = field(default_factory=dict)
    expected: dict[int, tuple[tuple[float | None, str | None], ...]] = field(default_factory=dict)
    _folder: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    @property
    def complete(self) -> bool:
        """Whether every row has a score of every metric."""
        return not self.missing


def write_rows(run: Run, metrics: list[Metric]) -> Rows:
    """Write the file beside all others of this machine, to be gone with the `with` block."""
    folder = tempfile.TemporaryDirectory(prefix="assay-")
    found = Rows(Path(folder.name) / "rows.jsonl", _folder=folder)
    found.columns = _renamed(run, metrics)
    hashed = hashlib.sha256()
    with found.file.open("wb") as file:
        for line in _lines(run, metrics, found):
            data = dumps(line) + b"\n"
            file.write(data)
            hashed.update(data)
            found.count += 1
            found.size += len(data)
    found.version = f"sha256-{hashed.hexdigest()[:43]}"
    if not found.count:
        folder.cleanup()
        raise RunError(f"{run.directory} has no rows: there is nothing to upload")
    return found


def sample_of(run: Run, metrics: list[Metric], most: int) -> list[dict[str, Any]]:
    """The first lines, to be shown."""
    rows = Rows(Path(), columns=_renamed(run, metrics))
    return list(islice(_lines(run, metrics, rows), most))


def _lines(run: Run, metrics: list[Metric], rows: Rows) -> Iterator[dict[str, Any]]:
    for line, records in run.records():
        number = int(line["row"])
        by_evaluator = dict(iterations_of(run, records))
        cells = [cell_of(metric, by_evaluator[metric.evaluator]) for metric in metrics]
        data = _data(line)
        flat = {new: data.get(old) for old, new in rows.columns.items()}
        own: dict[str, Any] = {"row": number, "id": line.get("id")}
        if not rows.expected:
            own[TOLD] = tell(run, metrics, rows.columns)
        for metric, cell in zip(metrics, cells, strict=True):
            flat |= {f"{metric.key}_{name}": value for name, value in cell.columns.items()}
            if metric.kind != "column":
                own[metric.key] = _echoed(cell)
        rows.missing += any(
            c.norm is None and m.kind != "column" for m, c in zip(metrics, cells, strict=True)
        )
        rows.expected[number] = tuple((cell.norm, cell.verdict) for cell in cells)
        yield {**flat, OWN: own}


def tell(run: Run, metrics: Sequence[Metric], columns: Mapping[str, str]) -> dict[str, Any]:
    """What the rows alone do not say: scales, judges, metrics. Nothing that differs between runs
    of the same content, which share a dataset. columns: name in the run to name in Foundry."""
    kept = ("judge", "fingerprint", "outputs", "scored")
    return {
        "iterations": int(run.header.get("iterations", 1)),
        "evaluators": {
            name: {key: entry.get(key) for key in kept} for name, entry in run.evaluators.items()
        },
        "metrics": [[m.key, m.evaluator, m.output.name] for m in metrics],
        "columns": {new: old for old, new in columns.items()},
    }


def _echoed(cell: Cell) -> dict[str, Any]:
    """What the criteria read: a number and a verdict, or the reason why there is none."""
    if cell.norm is None:
        return {"error": cell.why}
    return {"norm": cell.norm, "verdict": cell.verdict or "none"}


def _data(line: Mapping[str, Any]) -> dict[str, Any]:
    """A row's own columns and what the target added, which counts where both have one."""
    return {**line.get("columns", {}), **(line.get("target") or {})}


def _renamed(run: Run, metrics: list[Metric]) -> dict[str, str]:
    """Every column of the run with a name that templates can say and no metric uses."""
    endings = (
        *("score", "result", "reason", "threshold", "status", "cause"),
        *("spread", "values", "scored"),
    )
    taken = {OWN, *(f"{metric.key}_{ending}" for metric in metrics for ending in endings)}
    columns: dict[str, None] = {}
    for line, _ in run.records():
        columns |= dict.fromkeys(_data(line))
    return {name: word(name, taken) for name in columns}

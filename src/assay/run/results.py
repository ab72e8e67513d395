"""The result file of azure-ai-evaluation's `evaluate()` as a run.

{"rows": [{"inputs.<column>", "outputs.<target column>", "outputs.<alias>.<key>"}], "metrics"},
with NaN where a row has nothing, or the rows alone, one a line, as a project keeps them. It
holds no error of any row: such a row is `error` with the cause `not_recorded`.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from assay import __version__
from assay.errors import DataError, RunError
from assay.judge.cache import cache_path
from assay.metric.flatkeys import is_measurement, measured, metric_fields
from assay.run.imported import Metric, Results
from assay.run.journal import HEADER, SUMMARY, write_json

USUAL_NAME = "evaluation_results.json"
"""What `evaluate(output_path=FOLDER)` calls its file."""

_MOST_BYTES = 1 << 29
_PER_TURN = "evaluation_per_turn"
_NOTHING = (
    "the file holds neither a score nor a reason: azure-ai-evaluation keeps no error of a row"
)


def results_file(path: Path) -> Path | None:
    """The result file that `path` is or holds; None for a run directory and for neither."""
    if path.is_file():
        return path
    inside = path / USUAL_NAME
    return inside if inside.is_file() and not (path / HEADER).exists() else None


def cached(file: Path) -> Path:
    """The run directory of a result file, made when the file is first read or has changed.

    It lies beside the cache of replies (`.assay`), for commands that only look at the file.
    Raises DataError for what is no result file.
    """
    data = _read(file)
    mark = hashlib.sha256(b"\0".join((__version__.encode(), str(file.resolve()).encode(), data)))
    folder = cache_path().parent / "imports"
    directory = folder / f"{_label(file)}-{mark.hexdigest()[:12]}"
    if (directory / HEADER).exists():
        return directory
    found = _parse(file, data)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=".new-", dir=folder))
    except OSError as error:
        raise RunError(f"{folder} cannot be made: {error.strerror}") from None
    try:
        summary = found.write(made).summary
        made.rename(directory)
        write_json(directory / SUMMARY, {**summary, "run": str(directory)})
    except OSError as error:
        if not (directory / HEADER).exists():  # or else another process was faster
            raise RunError(f"{directory} cannot be made: {error.strerror}") from None
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return directory


def read_results(file: Path) -> Results:
    """What a result file holds, ready to be written. Raises DataError for what is none."""
    return _parse(file, _read(file))


def _label(file: Path) -> str:
    name = file.resolve().parent.name if file.name == USUAL_NAME else file.stem
    return re.sub(r"[^\w.-]+", "-", name)[:60].strip("-.") or "results"


def _read(file: Path) -> bytes:
    try:
        if file.stat().st_size > _MOST_BYTES:
            raise DataError(f"{file} is larger than {_MOST_BYTES >> 20} MiB")
        return file.read_bytes()
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror}") from None


def _parse(file: Path, data: bytes) -> Results:
    rows, theirs = _rows(file, data)
    keys = list(dict.fromkeys(key for row in rows for key in row))
    own, added, told = _columns(rows, keys)
    metrics = _metrics(rows, told)
    if not metrics:
        raise DataError(f"{file} holds no scores: no column is called outputs.ALIAS.METRIC")
    changed = datetime.fromtimestamp(file.stat().st_mtime, UTC)
    return Results(
        name=_label(file),
        header={
            "started": changed.isoformat(timespec="seconds"),
            "data": {
                "name": file.name,
                "path": str(file),
                "sha256": hashlib.sha256(data).hexdigest(),
                "made_by": "azure-ai-evaluation",
            },
        },
        rows=[_inputs(row, own, index) for index, row in enumerate(rows)],
        targets=[_named(row, added) for row in rows],
        metrics=metrics,
        rates={alias: theirs.get(f"{alias}.binary_aggregate") for alias in told},
    )


def _rows(file: Path, data: bytes) -> tuple[list[Mapping[str, Any]], Mapping[str, Any]]:
    """Its rows, and what it says of all of them."""
    try:
        found = _documents(data)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{file} is no result file: it is not JSON: {str(error)[:200]}") from None
    rows: Any = found
    theirs: Any = None
    if len(found) == 1 and isinstance(found[0], dict) and "rows" in found[0]:
        rows, theirs = found[0]["rows"], found[0].get("metrics")
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise DataError(f'{file} is no result file of azure-ai-evaluation: it has no "rows"')
    return rows, theirs if isinstance(theirs, dict) else {}


def _documents(data: bytes) -> list[Any]:
    """One JSON document, or one a line."""
    try:
        return [json.loads(data)]
    except json.JSONDecodeError as error:
        if error.msg != "Extra data":
            raise
    return [json.loads(line) for line in data.splitlines() if line.strip()]


def _columns(
    rows: Sequence[Mapping[str, Any]], keys: Sequence[str]
) -> tuple[dict[str, str], dict[str, str], dict[str, list[str]]]:
    """(input to key, target column to key, alias to keys).

    What a column's own value holds is not taken again: objects are there a second time, a column
    for each of their leaves.
    """
    nested = {key for key in keys if any(isinstance(row.get(key), dict) for row in rows)}
    flat = [key for key in keys if not any(key.startswith(f"{other}.") for other in nested)]
    inputs = {key.removeprefix("inputs."): key for key in flat if key.startswith("inputs.")}
    added: dict[str, str] = {}
    told: dict[str, list[str]] = {}
    for key in flat:
        if key.startswith("outputs."):
            alias, name = _alias(key.removeprefix("outputs."))
            if alias:
                told.setdefault(alias, []).append(key)
            else:
                added[name] = key
    return inputs, added, told


def _alias(name: str) -> tuple[str, str]:
    """The alias, which may hold dots, and the key, which holds none; "" for a target's column."""
    head, between, _ = name.partition(f".{_PER_TURN}.")
    if between:
        return head, name[len(head) + 1 :]
    alias, _, key = name.rpartition(".")
    return alias, key


def _inputs(row: Mapping[str, Any], own: Mapping[str, str], index: int) -> dict[str, Any]:
    """The row as it was in the data: a column it did not have is NaN in the file."""
    found = _named(row, own)
    if found.get("line_number") == index:  # a run with a target adds it
        del found["line_number"]
    return found


def _named(row: Mapping[str, Any], keys: Mapping[str, str]) -> dict[str, Any]:
    return {n: row[key] for n, key in keys.items() if key in row and not _is_nan(row[key])}


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _metrics(rows: Sequence[Mapping[str, Any]], told: Mapping[str, list[str]]) -> list[Metric]:
    """Every metric of every alias. An alias with several is an evaluator for each of them, since
    a row may have a score of one and none of another."""
    found: list[Metric] = []
    for alias, columns in told.items():
        start = f"outputs.{alias}."
        keys = tuple(column.removeprefix(start) for column in columns)
        own = [{key: row.get(start + key) for key in keys} for row in rows]
        found += _measurements(own, alias, keys)
    return found


def _measurements(
    own: Sequence[Mapping[str, Any]], alias: str, keys: tuple[str, ...]
) -> list[Metric]:
    """The metrics of an alias; its texts and parts go with the first of them. Where nothing is a
    number, the first text stands for the metric: its rows say so."""
    turns = [key for key in keys if key.startswith(_PER_TURN)]
    fields = dict(metric_fields(tuple(key for key in keys if key not in turns)))
    fields.pop("row_missing", None)  # what a grader's padded rows are called
    every = {
        name: Metric(alias, name, [measured(row, sides, alias) for row in own], _NOTHING)
        for name, sides in fields.items()
    }
    found = [m for m in every.values() if is_measurement(m.rows)] or list(every.values())[:1]
    texts = [sides[""] for name, sides in fields.items() if every[name] not in found] + turns
    for metric in found[:1]:
        metric.rows = [
            replace(m, properties={**m.properties, **_present(row, texts)})
            for m, row in zip(metric.rows, own, strict=True)
        ]
    return found


def _present(row: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    return {key: row[key] for key in keys if row[key] is not None and not _is_nan(row[key])}

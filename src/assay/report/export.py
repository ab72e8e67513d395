"""A run's rows as files other programs read."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import IO

from assay.errors import RunError, SetupError
from assay.jsontext import dumps
from assay.report import junit, sheets
from assay.report.terminal import summary_markdown
from assay.run.record import Run

Writer = Callable[[Run, IO[bytes]], None]

BINARY = ("xlsx", "parquet")
"""Formats that no terminal shows: they go to a file."""


def export(run: Run, format: str, out: str | Path | IO[bytes]) -> None:
    """Write the rows (or, as `markdown`, the summary) of a run in one of FORMATS.

    Text that a spreadsheet would take for a formula gets an apostrophe in front in csv and
    xlsx. csv, jsonl, parquet and junit are written as the rows are read.
    Raises SetupError for an unknown format or where an extra is not installed, RunError where
    the file cannot be written.
    """
    write = FORMATS.get(format)
    if write is None:
        raise SetupError(f"unknown format {format!r}; formats are {', '.join(FORMATS)}")
    if not isinstance(out, str | Path):
        write(run, out)
        return
    path = Path(out)
    temporary = path.with_name(path.name + ".new")
    try:
        with temporary.open("wb") as file:
            write(run, file)
        temporary.replace(path)
    except OSError as error:
        raise RunError(f"{path} cannot be written: {error.strerror}") from None
    finally:
        temporary.unlink(missing_ok=True)


def columns_of(run: Run) -> list[str]:
    """Every column any row has, in the order they are met."""
    columns: dict[str, None] = {}
    for row in run.rows():
        columns.update(dict.fromkeys(row))
    return list(columns)


def _csv(run: Run, out: IO[bytes]) -> None:
    columns = columns_of(run)
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow([sheets.safe(column) for column in columns])
    for row in run.rows():
        writer.writerow([sheets.cell(row.get(column)) for column in columns])
        out.write(text.getvalue().encode("utf-8", "replace"))
        text.seek(0)
        text.truncate()
    out.write(text.getvalue().encode("utf-8", "replace"))


def _jsonl(run: Run, out: IO[bytes]) -> None:
    for row in run.rows():
        out.write(dumps(row) + b"\n")


def _xlsx(run: Run, out: IO[bytes]) -> None:
    sheets.write_xlsx(run, columns_of(run), out)


def _parquet(run: Run, out: IO[bytes]) -> None:
    sheets.write_parquet(run, out)


def _junit(run: Run, out: IO[bytes]) -> None:
    for part in junit.parts(run):
        out.write(part.encode("utf-8", "replace"))


def _markdown(run: Run, out: IO[bytes]) -> None:
    out.write(summary_markdown(run).encode("utf-8", "replace"))


FORMATS: dict[str, Writer] = {
    "csv": _csv,
    "xlsx": _xlsx,
    "parquet": _parquet,
    "jsonl": _jsonl,
    "junit": _junit,
    "markdown": _markdown,
}

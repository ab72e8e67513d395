"""Rows for spreadsheets and data frames: cells that are safe, columns that have one type."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import IO, Any

from assay.errors import SetupError
from assay.jsontext import dumps
from assay.report.survey import Survey
from assay.run.record import Run

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")

EXCEL_CELL = 32_767
EXCEL_ROWS = 1_048_576

_BATCH = 1000


def safe(text: str) -> str:
    """Text that no spreadsheet runs: an apostrophe stands before what looks like a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def cell(value: Any) -> Any:
    """A value as a cell: numbers stay numbers, lists and objects are JSON, None is empty."""
    if value is None or isinstance(value, bool | int | float):
        return value
    return safe(value if isinstance(value, str) else dumps(value).decode())


def write_xlsx(run: Run, columns: Sequence[str], out: IO[bytes]) -> None:
    """A workbook with the summary and the rows. Raises SetupError without openpyxl."""
    try:
        from openpyxl import Workbook
    except ImportError:
        raise SetupError('xlsx needs openpyxl: pip install "assay[frames]"') from None
    book = Workbook(write_only=True)
    summary = book.create_sheet("summary")
    heads = ("mean", "sd", "ci95", "pass_rate", "n", "scored", "not_applicable", "invalid",
             "refused", "error")  # fmt: skip
    summary.append(["metric", *heads])
    for key, found in Survey(run).summary["metrics"].items():
        summary.append([_excel(key), *(_excel(found[head]) for head in heads)])
    rows = book.create_sheet("rows")
    rows.append([_excel(column) for column in columns])
    for row in islice(run.rows(), EXCEL_ROWS - 1):
        rows.append([_excel(row.get(column)) for column in columns])
    book.save(out)


def _excel(value: Any) -> Any:
    """A cell within Excel's limits; what is cut says so."""
    found = cell(value)
    if isinstance(found, int) and not isinstance(found, bool) and abs(found) >= 2**53:
        return str(found)
    if not isinstance(found, str):
        return found
    found = _CONTROL.sub("\ufffd", found)
    if len(found) > EXCEL_CELL:
        note = f" … (cut; {len(found)} characters)"
        return found[: EXCEL_CELL - len(note)] + note
    return found


def write_parquet(run: Run, out: IO[bytes]) -> None:
    """Parquet, a thousand rows at a time. Raises SetupError without pyarrow."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise SetupError('parquet needs pyarrow: pip install "assay[frames]"') from None
    kinds = _kinds(run)
    types = {
        "bool": pyarrow.bool_(),
        "int": pyarrow.int64(),
        "float": pyarrow.float64(),
        "texts": pyarrow.list_(pyarrow.string()),
        "text": pyarrow.string(),
    }
    schema = pyarrow.schema([(name, types[kind]) for name, kind in kinds.items()])
    with pyarrow.parquet.ParquetWriter(out, schema) as writer:
        for batch in _batches(run):
            rows = [{n: _as(kind, row.get(n)) for n, kind in kinds.items()} for row in batch]
            writer.write_table(pyarrow.Table.from_pylist(rows, schema=schema))


def _batches(run: Run) -> Iterator[list[dict[str, Any]]]:
    rows = run.rows()
    while batch := list(islice(rows, _BATCH)):
        yield batch


def _kinds(run: Run) -> dict[str, str]:
    """One type a column: what all its values are, else text."""
    kinds: dict[str, str] = {}
    for row in run.rows():
        for name, value in row.items():
            kind = _kind(value)
            before = kinds.get(name, "")
            if kind == before or not kind:
                kinds.setdefault(name, "")
            elif not before:
                kinds[name] = kind
            else:
                kinds[name] = "float" if {kind, before} == {"int", "float"} else "text"
    return {name: kind or "text" for name, kind in kinds.items()}


def _kind(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int" if abs(value) < 2**53 else "text"
    if isinstance(value, float):
        return "float"
    texts = isinstance(value, list) and all(isinstance(item, str) for item in value)
    return "texts" if texts else "text"


def _as(kind: str, value: Any) -> Any:
    if value is None or kind in ("bool", "int", "texts"):
        return value
    if kind == "float":
        return float(value)
    return value if isinstance(value, str) else dumps(value).decode()

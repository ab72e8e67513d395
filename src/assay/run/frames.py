"""Tables as plain rows: Excel, Parquet, DataFrames."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from assay.errors import DataError, SetupError

FRAMES = {".xlsx", ".xls", ".parquet"}
"""Suffixes of files that need pandas or pyarrow (extra `frames`)."""


def read_frame(path: Path) -> list[dict[str, Any]]:
    """The rows of an Excel or Parquet file. Raises SetupError where the extra is not installed."""
    try:
        return _read_parquet(path) if path.suffix.lower() == ".parquet" else _read_excel(path)
    except ImportError as error:
        what = f"{path.suffix} files need {error.name or error}"
        raise SetupError(f'{what}: pip install "assay[frames]"') from None
    except DataError:
        raise
    except Exception as error:
        raise DataError(f"{path} cannot be read: {str(error)[:300]}") from None


def _read_parquet(path: Path) -> list[dict[str, Any]]:
    # Not by way of pandas: there an integer column with a gap turns into floats.
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(path)
    _check_names(table.column_names)
    return [{n: _plain(v) for n, v in record.items()} for record in table.to_pylist()]


def _read_excel(path: Path) -> list[dict[str, Any]]:
    import pandas

    return frame_records(pandas.read_excel(path, dtype=object, keep_default_na=False))


def frame_records(frame: Any) -> list[dict[str, Any]]:
    """A DataFrame's rows as plain values: no numpy, no NaN, no timestamps."""
    names = [str(name) for name in frame.columns]
    _check_names(names)
    columns = [[_plain(value) for value in frame.iloc[:, i]] for i in range(len(names))]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def _check_names(names: list[str]) -> None:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise DataError(f"the column `{twice}` is there twice")


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if value is None or isinstance(value, str | bool | int):
        return None if value == "" else value
    if isinstance(value, float):
        return None if math.isnan(value) else value
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    return value.isoformat() if hasattr(value, "isoformat") else value

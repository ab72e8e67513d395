"""Rows of a data set, streamed from where they are."""

from __future__ import annotations

import codecs
import csv
import hashlib
import io
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from assay.errors import DataError, SetupError
from assay.jsontext import digest
from assay.prompty.source import BOMS
from assay.run.frames import FRAMES, frame_records, read_frame


@dataclass(frozen=True)
class Row:
    """One record. `index` is its place in the data, from 0; `note` what was odd about it."""

    index: int
    columns: Mapping[str, Any]
    note: str | None = None

    @property
    def id(self) -> str:
        """The row's own `id` column, else a hash of its content."""
        own = self.columns.get("id")
        return str(own) if isinstance(own, str | int) and own != "" else self.hash

    @cached_property
    def hash(self) -> str:
        """Hash of the content, 16 hex digits."""
        return digest(self.columns)


@dataclass(frozen=True, slots=True)
class Survey:
    """What one pass over the data found: how many rows, and every column any row has."""

    rows: int
    columns: tuple[str, ...]


class Data:
    """A data set that can be read again and again, each time row by row.

    source: a path to JSONL, JSON, CSV, TSV, Excel or Parquet; a list of dicts; a DataFrame.
    encoding: of a text file that is neither UTF-8 nor UTF-16 with a byte order mark.
    limit: read only the first so many rows.
    """

    def __init__(self, source: Any, *, encoding: str | None = None, limit: int | None = None):
        if limit is not None and limit < 1:
            raise SetupError(f"the limit must be 1 or more, not {limit}")
        self.encoding = encoding
        self.limit = limit
        self.path: Path | None = None
        self._records: list[Any] | None = None
        if isinstance(source, str | Path):
            self.path = Path(source)
            _check_file(self.path, encoding)
            if self.path.suffix.lower() in FRAMES:
                self._records = read_frame(self.path)
        elif hasattr(source, "to_dict") and hasattr(source, "columns"):
            self._records = frame_records(source)
        elif isinstance(source, Iterable) and not isinstance(source, Mapping | bytes):
            self._records = list(source)
        else:
            raise SetupError(f"data must be a path, a list of dicts or a DataFrame, not {source!r}")

    @property
    def name(self) -> str:
        return self.path.name if self.path else "rows"

    def rows(self) -> Iterator[Row]:
        """The rows in order. Raises DataError that names the file and the line."""
        for index, (columns, note) in enumerate(islice(self._columns(), self.limit)):
            yield Row(index, columns, note)

    def survey(self) -> Survey:
        """One pass over everything: a broken line is found before anything is paid for."""
        columns: dict[str, None] = {}
        count = 0
        for row in self.rows():
            count += 1
            columns.update(dict.fromkeys(row.columns))
        if not count:
            raise DataError(f"{self.path or 'the data'} holds no rows")
        return Survey(count, tuple(columns))

    def describe(self) -> dict[str, Any]:
        """For a run's header: the file and the hash of its bytes."""
        found: dict[str, Any] = {"name": self.name}
        if self.path:
            with self.path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            found |= {"path": str(self.path), "sha256": digest}
        if self.encoding:
            found["encoding"] = self.encoding
        if self.limit is not None:
            found["limit"] = self.limit
        return found

    def _columns(self) -> Iterator[tuple[Mapping[str, Any], str | None]]:
        if self._records is not None:
            return _from_records(self._records)
        assert self.path is not None
        suffix = self.path.suffix.lower()
        if suffix in (".csv", ".tsv"):
            return _from_csv(self.path, self.encoding, "\t" if suffix == ".tsv" else ",")
        return _from_json_lines(self.path, self.encoding)


def _check_file(path: Path, encoding: str | None) -> None:
    if path.is_dir():
        raise DataError(f"{path} is a folder; give a data file (JSONL, CSV, Excel, Parquet)")
    try:
        with path.open("rb") as file:
            head = file.read(1024)
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}") from None
    if not head.strip():
        raise DataError(f"{path} is empty")
    may_hold_zeros = encoding or path.suffix.lower() in FRAMES
    if b"\0" in head and not may_hold_zeros and not head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError(f"{path} is a binary file, not rows of text")


def _lines(path: Path, encoding: str | None) -> Iterator[tuple[int, str]]:
    """(number, text) of each line; only \\n ends one. Text inside values stays as it is."""
    with path.open("rb") as file:
        found, start = _detect(file, encoding)
        if found.startswith("utf-16"):
            file.seek(start)
            text = io.TextIOWrapper(file, found, newline="\n")
            yield from enumerate(_decoded(text, path), 1)
            return
        for number, line in enumerate(file, 1):
            data = line[start:] if number == 1 else line
            try:
                yield number, data.decode(found)
            except UnicodeDecodeError as error:
                raise DataError(
                    f"{path}:{number}: byte 0x{data[error.start]:02x} at column "
                    f"{error.start + 1} is not {found.upper()}; pass the file's encoding with "
                    "--encoding (e.g. latin-1)"
                ) from None


def _decoded(text: io.TextIOWrapper, path: Path) -> Iterator[str]:
    try:
        yield from text
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not valid {error.encoding}: {error.reason}") from None


def _detect(file: BinaryIO, encoding: str | None) -> tuple[str, int]:
    head = file.read(4)
    file.seek(0)
    for bom, name in BOMS:
        if head.startswith(bom):
            return name, len(bom)
    try:
        return codecs.lookup(encoding or "utf-8").name, 0
    except LookupError:
        raise SetupError(f"unknown encoding {encoding!r}") from None


def _from_json_lines(
    path: Path, encoding: str | None
) -> Iterator[tuple[Mapping[str, Any], str | None]]:
    lines = _lines(path, encoding)
    parser = _Parser()
    is_first = True
    for number, line in lines:
        stripped = line.strip()
        if not stripped:
            continue
        if stripped[0] == "[" and is_first:
            rest = "".join(text for _, text in lines)
            yield from _from_records(_parse_array(parser, line + rest, path))
            return
        is_first = False
        yield parser.row(stripped, f"{path}:{number}")


def _parse_array(parser: _Parser, text: str, path: Path) -> list[Any]:
    value = parser.parse(text, str(path))
    if not isinstance(value, list):
        raise DataError(f"{path} must hold one JSON object a line, or a list of objects")
    return value


class _Parser:
    """JSON with the two things people get wrong: keys given twice, and NaN."""

    def __init__(self) -> None:
        self._odd: list[str] = []
        self._decoder = json.JSONDecoder(
            object_pairs_hook=self._object, parse_constant=self._constant
        )

    def row(self, line: str, where: str) -> tuple[Mapping[str, Any], str | None]:
        value = self.parse(line, where)
        if not isinstance(value, dict):
            raise DataError(f"{where}: a row must be a JSON object, not {type(value).__name__}")
        note = f"{self._odd[0]} is not JSON; read as null" if self._odd else None
        return value, note

    def parse(self, text: str, where: str) -> Any:
        self._odd.clear()
        try:
            return self._decoder.decode(text)
        except _TwiceError as error:
            raise DataError(f"{where}: the key `{error.key}` is given twice") from None
        except json.JSONDecodeError as error:
            raise DataError(
                f"{where}: not JSON: {error.msg} at column {error.colno}: "
                f"{text[max(0, error.pos - 20) : error.pos + 20]!r}"
            ) from None
        except (ValueError, RecursionError) as error:
            raise DataError(f"{where}: not JSON: {str(error)[:200]}") from None

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) != len(pairs):
            names = [name for name, _ in pairs]
            raise _TwiceError(next(name for name in names if names.count(name) > 1))
        return result

    def _constant(self, name: str) -> None:
        self._odd.append(name)


class _TwiceError(Exception):
    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(key)


def _from_csv(
    path: Path, encoding: str | None, delimiter: str
) -> Iterator[tuple[Mapping[str, Any], str | None]]:
    """Cells are text; an empty one is no value. The header names the columns."""
    csv.field_size_limit(2**31 - 1)
    reader = csv.reader((line for _, line in _lines(path, encoding)), delimiter=delimiter)
    try:
        header = next(reader)
        for name in header:
            if header.count(name) > 1:
                raise DataError(f"{path}:1: the column `{name}` is there twice")
        for cells in reader:
            if len(cells) > len(header):
                raise DataError(
                    f"{path}:{reader.line_num}: {len(cells)} cells, but the header names "
                    f"{len(header)} columns"
                )
            if any(cells):
                cells += [""] * (len(header) - len(cells))
                yield {n: c or None for n, c in zip(header, cells, strict=True)}, None
    except csv.Error as error:
        raise DataError(f"{path}:{reader.line_num}: not CSV: {error}") from None


def _from_records(records: Iterable[Any]) -> Iterator[tuple[Mapping[str, Any], str | None]]:
    for index, record in enumerate(records):
        if not isinstance(record, Mapping):
            raise DataError(f"row {index + 1} must be a dict, not {type(record).__name__}")
        columns, odd = {}, False
        for name, value in record.items():
            is_nan = isinstance(value, float) and math.isnan(value)
            odd = odd or is_nan
            columns[str(name)] = None if is_nan else value
        yield columns, "NaN read as null" if odd else None

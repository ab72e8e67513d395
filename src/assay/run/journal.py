"""The run directory on disk. The directory is the contract: everything else reads it.

    run.json       header: settings, versions, file hashes, column decisions, judges
    rows.jsonl     one line a row: its columns, and what the target added
    scores.jsonl   one line a row x evaluator x iteration, in the order they were finished
    summary.json   means with their counts, made from scores.jsonl

Both .jsonl files only grow. Where a key occurs twice, the later line counts.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from assay.errors import RunError
from assay.jsontext import dumps

HEADER, ROWS, SCORES, SUMMARY, LOCK = (
    "run.json",
    "rows.jsonl",
    "scores.jsonl",
    "summary.json",
    ".lock",
)


class Lines:
    """An append-only file of JSON lines. A line is written whole, or not at all."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        self._end = _drop_half_line(self._file)

    def append(self, record: Mapping[str, Any]) -> None:
        """Write one line. Raises RunError where the disk is full or gone; nothing half stays."""
        data = dumps(record) + b"\n"
        try:
            written = os.write(self._file, data)
            while written < len(data):
                written += os.write(self._file, data[written:])
        except OSError as error:
            os.ftruncate(self._file, self._end)
            raise RunError(
                f"{self.path} cannot be written: {error.strerror}; what it holds is complete, "
                "resume the run when there is room"
            ) from None
        self._end += len(data)

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _drop_half_line(file: int) -> int:
    """Cut what a killed process left behind the last newline; the length that remains."""
    end = os.fstat(file).st_size
    position = end
    while position > 0:
        start = max(0, position - 65_536)
        os.lseek(file, start, os.SEEK_SET)
        found = os.read(file, position - start).rfind(b"\n")
        if found >= 0:
            position = start + found + 1
            break
        position = start
    if position < end:
        os.ftruncate(file, position)
    return position


class Lock:
    """One writer a run directory. The lock goes with the process, however it ends."""

    def __init__(self, directory: Path) -> None:
        self._file = (directory / LOCK).open("a+")
        try:
            _lock(self._file.fileno())
        except OSError:
            self._file.close()
            raise RunError(f"{directory} is being written by another process") from None

    def release(self) -> None:
        self._file.close()


def _lock(file: int) -> None:
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    else:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file whole or not at all."""
    temporary = path.with_name(path.name + ".new")
    try:
        temporary.write_bytes(orjson.dumps(orjson.loads(dumps(value)), option=orjson.OPT_INDENT_2))
        temporary.replace(path)
    except OSError as error:
        raise RunError(f"{path} cannot be written: {error.strerror}") from None


def read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_bytes())
    except OSError:
        raise RunError(f"{path.parent} is no run directory: it has no {path.name}") from None
    except ValueError as error:
        raise RunError(f"{path} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise RunError(f"{path} holds no object")
    return value


_ROW = re.compile(rb'\{"row":(\d+),')
_SCORE = re.compile(rb'\{"row":(\d+),"evaluator":"((?:[^"\\]|\\.)*)","iteration":(\d+),')


class Index:
    """Where the latest line of every key starts, without holding any line.

    Rows of rows.jsonl have one key; scores one for each (evaluator, iteration) in `keys`.
    """

    def __init__(self, path: Path, keys: list[tuple[str, int]] | None = None) -> None:
        from array import array

        self.path = path
        self.keys = keys
        self._place = {key: i for i, key in enumerate(keys or [])}
        self._width = len(keys) if keys is not None else 1
        self._raw: dict[tuple[bytes, bytes], int] = {}
        self._offsets = array("q")
        self._scan()

    @property
    def rows(self) -> int:
        return len(self._offsets) // self._width if self._width else 0

    @property
    def filled(self) -> int:
        """How many keys have a line."""
        return sum(offset >= 0 for offset in self._offsets)

    def offsets(self, row: int) -> list[int]:
        """Offsets of a row's lines in the order of `keys`; -1 where there is none."""
        start = row * self._width
        return list(self._offsets[start : start + self._width])

    def read(self) -> Iterator[tuple[int, list[dict[str, Any] | None]]]:
        """(row, its latest lines in the order of `keys`) for every row, in input order."""
        if not self.rows:
            return
        with self.path.open("rb") as file:
            for row in range(self.rows):
                yield row, [_line_at(file, offset) for offset in self.offsets(row)]

    def _scan(self) -> None:
        if not self.path.exists():
            return
        offset = 0
        pattern = _ROW if self.keys is None else _SCORE
        with self.path.open("rb") as file:
            for line in file:
                match = pattern.match(line)
                if match and line.endswith(b"\n"):
                    self._note(match, offset)
                offset += len(line)

    def _note(self, match: re.Match[bytes], offset: int) -> None:
        place = 0
        if self.keys is not None:
            raw = match[2], match[3]
            if raw not in self._raw:
                name = json.loads(b'"' + match[2] + b'"')
                self._raw[raw] = self._place.get((name, int(match[3])), -1)
            place = self._raw[raw]
            if place < 0:
                return
        slot = int(match[1]) * self._width + place
        if slot >= len(self._offsets):
            missing = (int(match[1]) + 1) * self._width - len(self._offsets)
            self._offsets.extend([-1] * missing)
        self._offsets[slot] = offset


def _line_at(file: Any, offset: int) -> dict[str, Any] | None:
    if offset < 0:
        return None
    file.seek(offset)
    record: dict[str, Any] = orjson.loads(file.readline())
    return record

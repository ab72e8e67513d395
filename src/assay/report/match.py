"""Which row of one run is which row of another: by id, else by content, never by position."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from assay.run.record import Run

Key = tuple[str, str, int]
"""(`id` or `hash`, the value, how many rows before it have the same content)."""


@dataclass
class Matching:
    """keys: of the rows of the first run that every other run has, in its order.

    places: for each run key to row number. only: rows of each run that another has not.
    repeated_ids: ids that stand for several rows, which are matched by content instead.
    """

    keys: list[Key] = field(default_factory=list)
    places: list[dict[Key, int]] = field(default_factory=list)
    only: list[int] = field(default_factory=list)
    repeated_ids: int = 0


def match(runs: Sequence[Run]) -> Matching:
    """Match the rows of runs."""
    lines = [_names(run) for run in runs]
    repeated: set[str] = set()
    for names in lines:
        counted = Counter(name for name, _ in names if name is not None)
        repeated |= {name for name, count in counted.items() if count > 1}
    found = Matching(repeated_ids=len(repeated))
    shared_ids = _in_all([{name for name, _ in names if name} for names in lines]) - repeated
    found.places = [_places(names, shared_ids) for names in lines]
    shared = _in_all([set(places) for places in found.places])
    found.keys = [key for key in found.places[0] if key in shared]
    found.only = [len(names) - len(found.keys) for names in lines]
    return found


def _names(run: Run) -> list[tuple[str | None, str]]:
    """(own id, content hash) of every row."""
    found = []
    for row, (line,) in run.row_index().read():
        entry: dict[str, Any] = line or {}
        digest = str(entry.get("hash") or f"row {row} was not written")
        own = entry.get("id")
        found.append((None if own is None or own == digest else str(own), digest))
    return found


def _places(names: Sequence[tuple[str | None, str]], shared_ids: set[str]) -> dict[Key, int]:
    """Rows of equal content are told apart by their number: which is which makes no odds."""
    places: dict[Key, int] = {}
    seen: Counter[str] = Counter()
    for row, (name, digest) in enumerate(names):
        if name in shared_ids:
            places["id", str(name), 0] = row
        else:
            places["hash", digest, seen[digest]] = row
            seen[digest] += 1
    return places


def _in_all(sets: Sequence[set[Any]]) -> set[Any]:
    return set.intersection(*sets) if sets else set()

"""How often each value of a scale was given."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from dataclasses import dataclass
from typing import Any

from assay.prompty import Output
from assay.prompty.fields import as_number

MOST_LEVELS = 21
"""An integer scale of so many steps is shown step by step; a longer one in ranges."""

RANGES = 10


@dataclass(frozen=True, slots=True)
class Bin:
    """One bar: a level, or a range of numbers from `low` up to `high`."""

    label: str
    count: int
    text: str = ""
    low: float | None = None
    high: float | None = None
    result: str | None = None


class Histogram:
    """Counts on the declared scale; where none is declared, on the range that was met."""

    def __init__(self, output: Output) -> None:
        self.output = output
        self.levels = levels_of(output)
        self._counts: Counter[Any] = Counter()
        self._numbers = array("d")
        self._edges: list[float] | None = None

    def add(self, value: Any) -> None:
        """Count one verdict."""
        if self.levels is not None:
            self._counts[value] += 1
        elif (number := as_number(value)) is not None:
            self._numbers.append(number)

    @property
    def bins(self) -> list[Bin]:
        """The bars from low to high; none where nothing was met and nothing is declared."""
        if self.levels is not None:
            return [self._level(value) for value in self._places]
        edges = self._ranges
        counts = [0] * max(len(edges) - 1, 0)
        for number in self._numbers:
            counts[_range_of(edges, number)] += 1
        return [self._range(edges, place, count) for place, count in enumerate(counts)]

    def place(self, value: Any) -> int | None:
        """Which bar a value is counted in; asked once everything has been counted."""
        if self.levels is not None:
            return self._places.get(value)
        number = as_number(value)
        return None if number is None or not self._ranges else _range_of(self._ranges, number)

    @property
    def _places(self) -> dict[Any, int]:
        """Level to its place; what is on no list comes last."""
        levels = self.levels or ()
        others = sorted((v for v in self._counts if v not in levels), key=str)
        return {value: place for place, value in enumerate((*levels, *others))}

    @property
    def _ranges(self) -> list[float]:
        if self._edges is None or len(self._edges) < 2:
            self._edges = _edges(self.output, self._numbers)
        return self._edges

    def _level(self, value: Any) -> Bin:
        number = as_number(value)
        return Bin(
            label=_word(value),
            count=self._counts[value],
            text=self.output.levels.get(value) or "",
            low=number,
            high=number,
            result=self.output.result(value),
        )

    def _range(self, edges: list[float], place: int, count: int) -> Bin:
        low, high = edges[place], edges[place + 1]
        results = {self.output.result(low), self.output.result(high)}
        label = f"{low:g}" if low == high else f"{low:g} to {high:g}"
        return Bin(label, count, "", low, high, results.pop() if len(results) == 1 else None)


def levels_of(output: Output) -> tuple[Any, ...] | None:
    """The values a scale has, where they can be listed; numbers from low to high."""
    if output.levels:
        listed = list(output.levels)
        numeric = all(isinstance(value, int | float) for value in listed)
        return tuple(sorted(listed) if numeric else listed)
    if output.type == "boolean":
        return (False, True)
    low, high = output.minimum, output.maximum
    if output.type == "integer" and low is not None and high is not None:
        first, last = math.ceil(low), math.floor(high)
        if 0 <= last - first < MOST_LEVELS:
            return tuple(range(first, last + 1))
    return None


def _edges(output: Output, numbers: array[float]) -> list[float]:
    """Where ranges begin and end: the declared scale, or round numbers around what was met."""
    low, high = output.minimum, output.maximum
    if low is not None and high is not None and high > low:
        return [low + (high - low) * i / RANGES for i in range(RANGES + 1)]
    if not numbers:
        return []
    least, most = min(numbers), max(numbers)
    if least == most:
        return [least, most]
    step = _round_step((most - least) / RANGES)
    first = math.floor(least / step)
    count = math.floor(most / step) - first + 1
    return [round((first + i) * step, 12) for i in range(count + 1)]


def _round_step(step: float) -> float:
    """The next 1, 2 or 5 times a power of ten."""
    unit: float = 10.0 ** math.floor(math.log10(step))
    return next(unit * size for size in (1, 2, 5, 10) if unit * size >= step * 0.999)


def _range_of(edges: list[float], number: float) -> int:
    """The range a number is in; the last one holds its own end."""
    span = edges[-1] - edges[0]
    count = len(edges) - 1
    if span <= 0:
        return 0
    place = int((number - edges[0]) / span * count + 1e-9)
    return min(max(place, 0), count - 1)


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, int | float) else str(value)

"""Where the bars of a histogram stand. The page draws them; nothing here is markup."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.report.histogram import Bin

WIDTH, HEIGHT = 320.0, 138.0
_TOP, _BASE = 18.0, 100.0
_EDGE = 6.0


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar, with what it says."""

    x: float
    y: float
    width: float
    height: float
    center: float
    label: str
    count: int
    title: str
    tone: str


@dataclass(frozen=True, slots=True)
class Chart:
    """Bars, and below them the mean with its interval where the scale is one of numbers."""

    bars: list[Bar]
    base: float
    width: float = WIDTH
    height: float = HEIGHT
    mean: float | None = None
    low: float | None = None
    high: float | None = None


def chart_of(bins: Sequence[Bin], found: Mapping[str, Any]) -> Chart | None:
    """The chart of a metric; `found` is its entry in the summary. None without bars."""
    if not bins:
        return None
    most = max(max(entry.count for entry in bins), 1)
    total = max(sum(entry.count for entry in bins), 1)
    slot = (WIDTH - 2 * _EDGE) / len(bins)
    gap = min(slot * 0.22, 14.0)
    bars = []
    for place, entry in enumerate(bins):
        height = (_BASE - _TOP) * entry.count / most
        height = max(height, 1.5) if entry.count else 0.0
        bars.append(
            Bar(
                x=round(_EDGE + place * slot + gap / 2, 2),
                y=round(_BASE - height, 2),
                width=round(slot - gap, 2),
                height=round(height, 2),
                center=round(_EDGE + (place + 0.5) * slot, 2),
                label=_axis_label(bins, place),
                count=entry.count,
                title=_title(entry, total),
                tone=entry.result or "plain",
            )
        )
    interval = found.get("ci95") or (None, None)
    mean, low, high = (_position(bins, slot, v) for v in (found.get("mean"), *interval))
    return Chart(bars, _BASE, mean=mean, low=low, high=high)


def _title(entry: Bin, total: int) -> str:
    words = f"{entry.label}: {entry.count:,} ({entry.count / total:.0%})"
    return f"{words}. {entry.text}" if entry.text else words


def _axis_label(bins: Sequence[Bin], place: int) -> str:
    """Levels all have their name; of ranges only where they begin, as far as there is room."""
    entry = bins[place]
    if entry.low is None or entry.low == entry.high:
        most = 44 // len(bins) + 1
        return entry.label if len(entry.label) <= most else f"{entry.label[: most - 1]}…"
    return f"{entry.low:g}"


def _position(bins: Sequence[Bin], slot: float, value: float | None) -> float | None:
    """Where a number stands on the axis; it is kept inside the drawing."""
    if value is None or any(entry.low is None for entry in bins):
        return None
    lows = [entry.low for entry in bins if entry.low is not None]
    highs = [entry.high for entry in bins if entry.high is not None]
    if lows == highs:  # levels stand in the middle of their slot
        place = _between(lows, value) + 0.5
    else:
        span = highs[-1] - lows[0]
        place = (value - lows[0]) / span * len(bins) if span else 0.5
    return round(min(max(_EDGE + place * slot, 2.0), WIDTH - 2.0), 2)


def _between(levels: list[float], value: float) -> float:
    """The place of a value among levels that may be unevenly apart."""
    for place, (low, high) in enumerate(zip(levels, levels[1:], strict=False)):
        if value <= high:
            return place + (value - low) / (high - low)
    return float(len(levels) - 1)

"""Numbers, dates and states in the words people read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

NOTHING = "–"

STATE_WORDS = {
    "scored": "scored",
    "not_applicable": "not applicable",
    "invalid": "invalid",
    "refused": "refused",
    "error": "error",
    "missing": "not reached",
}

RUN_WORDS = {
    "finished": "finished",
    "interrupted": "interrupted",
    "budget": "budget used up",
    "going": "still going",
    "broken": "ended without a word",
}


def number(value: Any) -> str:
    """At most three decimals; a dash where there is none."""
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        if value and abs(value) < 0.0005:
            return f"{value:.2g}"
        return f"{value:,.3f}".rstrip("0").rstrip(".")
    return str(value)


def mean(value: float | None) -> str:
    """Always two decimals: means stand under one another."""
    return NOTHING if value is None else f"{value:,.2f}"


def signed(value: float | None) -> str:
    """With its sign; a true minus."""
    if value is None:
        return NOTHING
    text = f"{abs(value):.2f}"
    return text if float(text) == 0 else f"{'+' if value > 0 else '−'}{text}"


def interval(pair: Any) -> str:
    return NOTHING if not pair else f"{_minus(pair[0])} to {_minus(pair[1])}"


def percent(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.0%}"


def chance(value: float | None) -> str:
    """A p-value."""
    if value is None:
        return NOTHING
    return "below 0.001" if value < 0.001 else f"{value:.3f}"


def date(text: Any) -> str:
    """`2026-11-30T15:39:11+00:00` as `30 Nov 2026, 15:39 UTC`; anything else as it is."""
    try:
        found = datetime.fromisoformat(str(text))
    except ValueError:
        return str(text)
    zone = found.strftime("%Z")
    return f"{found.day} {found.strftime('%b %Y, %H:%M')} {zone}".strip()


def duration(start: Any, end: Any) -> str:
    """The time between two dates; "" where one is not known."""
    try:
        gone = datetime.fromisoformat(str(end)) - datetime.fromisoformat(str(start))
    except (ValueError, TypeError):
        return ""
    seconds = int(gone.total_seconds())
    hours, rest = divmod(max(seconds, 0), 3600)
    minutes, seconds = divmod(rest, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {seconds:02d} s" if minutes else f"{seconds} s"


def plain(value: Any) -> str:
    """A setting as text: JSON without its punctuation, where there is little of it."""
    if value is None or value == {} or value == []:
        return "none"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {plain(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(plain(item) for item in value)
    return str(value) if isinstance(value, str) else number(value)


def state(name: str) -> str:
    return STATE_WORDS.get(name, name)


def cause(name: Any) -> str:
    """A machine word as words."""
    return str(name).replace("_", " ")


def plural(count: int, one: str, many: str = "") -> str:
    """`1 row`, `2 rows`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def _minus(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


FILTERS: dict[str, Callable[..., str]] = {
    "number": number,
    "mean": mean,
    "signed": signed,
    "interval": interval,
    "percent": percent,
    "chance": chance,
    "date": date,
    "plain": plain,
    "state": state,
    "cause": cause,
    "plural": plural,
}

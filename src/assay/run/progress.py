"""What a person sees while a run is going. Talk goes to stderr."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from assay.judge.base import Judge
from assay.judge.limits import Limited
from assay.run.engine import Progress
from assay.run.spending import Spending

EVERY = 10.0
"""Seconds between plain lines when stderr is no terminal."""


class Silent:
    """Says nothing."""

    def start(self, scores: int, done: int, spending: Spending, judges: Sequence[Judge]) -> None:
        return None

    def score(self, line: Mapping[str, Any]) -> None:
        return None

    def note(self, text: str) -> None:
        return None

    def stop(self) -> None:
        return None


class Counting:
    """Keeps the figures that both kinds of progress show."""

    def __init__(self) -> None:
        self.total = self.done = self.fresh = 0
        self.statuses: Counter[str] = Counter()
        self.spending: Spending | None = None
        self.judges: Sequence[Judge] = ()
        self.started = time.monotonic()

    def start(self, scores: int, done: int, spending: Spending, judges: Sequence[Judge]) -> None:
        self.total, self.done = scores, done
        self.spending, self.judges = spending, judges
        self.started = time.monotonic()

    def score(self, line: Mapping[str, Any]) -> None:
        self.done += 1
        self.fresh += 1
        self.statuses[line["status"]] += 1

    @property
    def rate(self) -> float:
        """Scores a second since the start."""
        return self.fresh / max(time.monotonic() - self.started, 1e-9)

    def figures(self) -> str:
        """Rate, time left, tokens, and how many scores are missing and why."""
        left = (self.total - self.done) / self.rate if self.fresh else 0.0
        parts = [f"{self.rate:.0f}/s" if self.rate >= 10 else f"{self.rate:.1f}/s"]
        if left >= 1:
            parts.append(f"{_duration(left)} left")
        if self.spending and self.spending.usage.total_tokens:
            parts.append(f"{_short(self.spending.usage.total_tokens)} tokens")
            if self.spending.dollars:
                parts.append(f"${self.spending.dollars:.2f}")
        if left:
            parts += [judge.status() for judge in self.judges if isinstance(judge, Limited)]
        parts += [f"{n} {s}" for s, n in self.statuses.items() if s != "scored"]
        return ", ".join(parts)


class PlainProgress(Counting):
    """A line every ten seconds: for logs."""

    def __init__(self, out: TextIO | None = None) -> None:
        super().__init__()
        self.out = out or sys.stderr
        self._next = time.monotonic() + EVERY

    def score(self, line: Mapping[str, Any]) -> None:
        super().score(line)
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + EVERY
            self.note(f"{self.done}/{self.total} scores, {self.figures()}")

    def note(self, text: str) -> None:
        print(text, file=self.out, flush=True)

    def stop(self) -> None:
        self.note(f"{self.done}/{self.total} scores, {self.figures()}")


class BarProgress(Counting):
    """A bar on a terminal."""

    def __init__(self) -> None:
        super().__init__()
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as RichProgress

        self._bar = RichProgress(
            TextColumn("judging"),
            BarColumn(bar_width=28),
            MofNCompleteColumn(),
            TextColumn("{task.fields[figures]}"),
            console=Console(stderr=True),
            refresh_per_second=5,
        )
        self._task: Any = None

    def start(self, scores: int, done: int, spending: Spending, judges: Sequence[Judge]) -> None:
        super().start(scores, done, spending, judges)
        self._bar.start()
        self._task = self._bar.add_task("", total=scores, completed=done, figures="")
        self._shown = 0.0

    def score(self, line: Mapping[str, Any]) -> None:
        super().score(line)
        now = time.monotonic()
        if now - self._shown > 0.2:
            self._shown = now
            self._show()

    def note(self, text: str) -> None:
        self._bar.console.print(text, markup=False)

    def stop(self) -> None:
        self._show()
        self._bar.stop()

    def _show(self) -> None:
        if self._task is not None:
            self._bar.update(self._task, completed=self.done, figures=self.figures())


def default_progress() -> Progress:
    """A bar on a terminal, plain lines elsewhere."""
    return BarProgress() if sys.stderr.isatty() else PlainProgress()


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def _short(number: int) -> str:
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if number >= size:
            return f"{number / size:.1f}{unit}"
    return str(number)

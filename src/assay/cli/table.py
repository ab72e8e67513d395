"""The summary of a run as a table."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any, TextIO

from assay.metric.score import STATUSES
from assay.run.record import Run
from assay.run.summary import label_of

_HEADINGS = {"not_applicable": "n/a"}
_WIDE = 100
"""Columns from which a console has room for the bars of the levels."""


def print_summary(run: Run, out: TextIO) -> None:
    """Means with their counts, then where the run is. A dash is an absent number."""
    from rich.console import Console
    from rich.table import Table

    console = Console(file=out, highlight=False)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("metric", overflow="fold")
    bars = _bars(run, out) if console.width >= _WIDE else {}
    shown = [s for s in STATUSES if s == "scored" or any(m[s] for m in run.metrics.values())]
    for heading in ("mean", "95% interval", "sd", "pass", "rows"):
        table.add_column(heading, justify="right")
    for status in shown:
        table.add_column(_HEADINGS.get(status, status), justify="right")
    if any(bars.values()):
        table.add_column("levels", no_wrap=True)
    for evaluator, group in groupby(run.metrics.items(), lambda item: item[0].rpartition(".")[0]):
        metrics = list(group)
        if len(metrics) > 1:
            table.add_row(evaluator)
        for name, found in metrics:
            output = name.rpartition(".")[2]
            table.add_row(
                f"  {output}" if len(metrics) > 1 else label_of(name),
                _number(found["mean"]),
                _interval(found["ci95"]),
                _number(found["sd"]),
                "-" if found["pass_rate"] is None else f"{found['pass_rate']:.0%}",
                str(found["n"]),
                *(str(found[status]) for status in shown),
                *([bars[name]] if any(bars.values()) else []),
            )
    console.print(table)
    for name, found in run.metrics.items():
        for cause, count in found.get("causes", {}).items():
            console.print(f"{name}: {count} without a score: {cause}", markup=False)
    console.print(_used(run), markup=False)
    print(run.directory, file=out)


def _bars(run: Run, out: TextIO) -> dict[str, str]:
    """Metric to how often each level was given; digits where the console has no blocks."""
    from assay.report import terminal

    encoding = getattr(out, "encoding", None)
    bars: dict[str, str] = terminal.level_bars(run, blocks=terminal.speaks_unicode(encoding))
    return bars


def _used(run: Run) -> str:
    """Who judged, and what it took."""
    summary = run.summary
    parts = [f"judge {', '.join(run.header['judges']) or 'none'}", f"{summary['calls']} calls"]
    if summary["cached_calls"]:
        parts.append(f"{summary['cached_calls']} of them from the cache")
    if summary["tokens"]["total"]:
        parts.append(f"{summary['tokens']['total']:,} tokens")
    if summary["cost"]:
        parts.append(_dollars(summary["cost"]))
    if summary.get("no_price_for"):
        parts.append(f"no price known for {', '.join(summary['no_price_for'])}")
    return ", ".join(parts)


def print_estimate(found: Mapping[str, Any], out: TextIO) -> None:
    """What a run would take, a line a metric."""
    from rich.console import Console
    from rich.table import Table

    console = Console(file=out, highlight=False)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("metric", overflow="fold")
    for heading in ("calls", "prompt tokens", "reply tokens", "cost"):
        table.add_column(heading, justify="right")
    for name, entry in found["metrics"].items():
        table.add_row(
            name,
            f"{entry['calls']:,}",
            f"{entry['prompt_tokens']:,}",
            f"{entry['completion_tokens']:,}",
            _dollars(entry["cost"]),
        )
    console.print(table)
    for name, entry in found["metrics"].items():
        for cause, count in entry["not_asked"].items():
            console.print(f"{name}: {count} sampled rows would not be asked: {cause}", markup=False)
    console.print(
        f"{found['rows']:,} rows, {found['calls']:,} calls, about {found['tokens']:,} tokens, "
        f"{_dollars(found['cost'])}. No call was made. Prompt tokens are estimated without a "
        "tokenizer (within a quarter either way), reply tokens are assumed, prices are of "
        f"{found['prices_read']}.",
        markup=False,
    )


def _dollars(value: float | None) -> str:
    if value is None:
        return "no price known"
    return "under $0.01" if 0 < value < 0.01 else f"${value:,.2f}"


def _number(value: Any) -> str:
    return "-" if value is None else f"{value:.3f}"


def _interval(value: Any) -> str:
    return "-" if value is None else f"{value[0]:.3f} .. {value[1]:.3f}"

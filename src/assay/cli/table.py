"""The summary of a run as a table."""

from __future__ import annotations

from typing import Any, TextIO

from assay.metric.score import STATUSES
from assay.run.record import Run

_HEADINGS = {"not_applicable": "n/a"}


def print_summary(run: Run, out: TextIO) -> None:
    """Means with their counts, then where the run is. A dash is an absent number."""
    from rich.console import Console
    from rich.table import Table

    console = Console(file=out, highlight=False)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("metric", overflow="fold")
    shown = [s for s in STATUSES if s == "scored" or any(m[s] for m in run.metrics.values())]
    for heading in ("mean", "95% interval", "sd", "pass", "rows"):
        table.add_column(heading, justify="right")
    for status in shown:
        table.add_column(_HEADINGS.get(status, status), justify="right")
    for name, found in run.metrics.items():
        evaluator, _, output = name.partition(".")
        table.add_row(
            evaluator if evaluator == output else name,
            _number(found["mean"]),
            _interval(found["ci95"]),
            _number(found["sd"]),
            "-" if found["pass_rate"] is None else f"{found['pass_rate']:.0%}",
            str(found["n"]),
            *(str(found[status]) for status in shown),
        )
    console.print(table)
    for name, found in run.metrics.items():
        for cause, count in found.get("causes", {}).items():
            console.print(f"{name}: {count} without a score: {cause}", markup=False)
    judges = ", ".join(run.header["judges"]) or "none"
    console.print(f"judge {judges}, {run.summary['calls']} calls", markup=False)
    print(run.directory, file=out)


def _number(value: Any) -> str:
    return "-" if value is None else f"{value:.3f}"


def _interval(value: Any) -> str:
    return "-" if value is None else f"{value[0]:.3f} .. {value[1]:.3f}"

"""`assay compare`: runs side by side."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

_SHOWN = 12


def compare(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN RUN...", help="Run directories, baseline first.")
    ],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the HTML page.")] = None,
    json_: Annotated[bool, typer.Option("--json", help="Everything as JSON on stdout.")] = False,
    foundry: Annotated[
        bool, typer.Option("--foundry", help="Beside it the project's own test of uploaded runs.")
    ] = False,
    azure_ai_project: Annotated[
        str | None, typer.Option(help="Which project, for --foundry; see assay upload.")
    ] = None,
) -> None:
    """Compare runs with the first one, row by row: matched by id, else by content."""
    from assay import report
    from assay.cli.insights import compare_there, print_there
    from assay.cli.output import print_json

    found = report.compare(runs)
    there = compare_there(found, azure_ai_project) if foundry or azure_ai_project else None
    for warning in found.warnings:
        print(f"careful: {warning}", file=sys.stderr)
    if json_:
        print_json(found.as_dict() | ({"foundry": there} if there else {}))
    else:
        _print(found.as_dict(), sys.stdout)
        if there:
            print_there(there, sys.stdout)
    if out is not None:
        written = report.write_comparison(found, out)
        print(written, file=sys.stderr if json_ else sys.stdout)


def _print(found: dict[str, Any], out: TextIO) -> None:
    from rich.console import Console
    from rich.table import Table

    from assay.run.summary import label_of

    console = Console(file=out, highlight=False, markup=False)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("metric and run", overflow="fold")
    for head in ("mean", "difference", "95% interval", "n", "up/down", "flips", "p"):
        table.add_column(head, justify="right", no_wrap=True)
    names = [run["name"] for run in found["runs"]]
    for metric, entry in found["metrics"].items():
        table.add_row(label_of(metric))
        table.add_row(f"  {names[0]}", number(entry["runs"][0]["mean"]))
        for place, name in enumerate(names[1:]):
            mean = number(entry["runs"][place + 1]["mean"])
            if entry["problem"]:
                table.add_row(f"  {name}", mean, "not compared")
                continue
            pair = entry["against_first"][place]
            table.add_row(f"  {name}", mean, *_figures(pair))
    console.print(table)
    matched = [f"{found['matched']} rows matched"]
    matched += [f"{n} of {name} not" for name, n in zip(names, found["only_in"], strict=True) if n]
    console.print(", ".join(matched))
    _print_changes(console, found)


def _figures(pair: dict[str, Any]) -> list[str]:
    interval = pair["ci95"]
    return [
        change(pair["difference"]),
        "-" if interval is None else f"{interval[0]:+.2f} .. {interval[1]:+.2f}",
        str(pair["n"]),
        f"{pair['up']}/{pair['down']}",
        f"+{pair['to_pass']} -{pair['to_fail']}",
        chance(pair["p_sign"]),
    ]


def _print_changes(console: Any, found: dict[str, Any]) -> None:
    """The biggest movers, and what was set differently."""
    movers = [row for row in found["rows"] if row["size"] > 0][:_SHOWN]
    if movers:
        console.print("biggest movers:")
    for row in movers:
        moves = [
            f"{metric.rpartition('.')[0]} {' -> '.join(_value(e) for e in entries)}"
            for metric, entries in row["metrics"].items()
            if len({_value(entry) for entry in entries}) > 1
        ]
        console.print(f"  {row.get('id', row.get('hash'))}: {', '.join(moves)}")
    for setting in found["settings"]:
        console.print(f"{setting['name']}: {' -> '.join(setting['values'])}")
    for diff in found["prompts"]:
        console.print(f"{diff['file']} has changed")
    for sentence in found["not_in_all"]:
        console.print(sentence)


def change(value: float | None) -> str:
    """A difference, with its sign."""
    return "-" if value is None else f"{value:+.2f}"


def chance(value: float | None) -> str:
    """A p-value."""
    if value is None:
        return "-"
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def _value(entry: dict[str, Any]) -> str:
    if entry["status"] != "scored":
        return str(entry["status"])
    value = entry["value"]
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def number(value: float | None) -> str:
    """A mean."""
    return "-" if value is None else f"{value:.3f}"

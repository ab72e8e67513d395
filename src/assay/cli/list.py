"""`assay list`: what there is."""

from __future__ import annotations

from typing import Annotated, Any

import typer

_PIPED = 160
"""Columns where nobody looks: enough for a line a metric."""


def list_(
    what: Annotated[str, typer.Argument(metavar="[metrics]", help="What to list.")] = "metrics",
    json_: Annotated[bool, typer.Option("--json", help="As JSON on stdout.")] = False,
) -> None:
    """The metrics that can be named: what they take, what they give, on which scale."""
    from assay.cli.output import print_json
    from assay.errors import SetupError
    from assay.metric.registry import load, shipped

    if what != "metrics":
        raise SetupError(f"there are no {what!r} to list; say: assay list metrics")
    found = []
    for name in shipped():
        evaluator = load(name)
        scored = [output for output in evaluator.outputs.values() if output.scored]
        found.append(
            {
                "name": name,
                "inputs": list(evaluator.inputs),
                "scale": "; ".join(f"{o.name} {o.scale or o.type}" for o in scored),
                "threshold": scored[0].threshold if scored else None,
                "calls": getattr(evaluator, "calls", "1" if evaluator.needs_judge else "0"),
                "variant": getattr(evaluator, "variant", "assay"),
                "description": evaluator.description,
            }
        )
    if json_:
        print_json(found)
        return
    _print(found)


def _print(found: list[dict[str, Any]]) -> None:
    """A table by whose numbers they are; a pipe gets each metric on one line."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, markup=False)
    if not console.is_terminal:
        console.width = _PIPED
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("metric", "calls", "scale"):
        table.add_column(heading, no_wrap=True)
    table.add_column("takes")
    variants = {entry["variant"] for entry in found}
    for variant in sorted(variants, key=lambda name: (name != "assay", name)):
        table.add_row("assay's own:" if variant == "assay" else f"as {variant}:")
        for entry in found:
            if entry["variant"] == variant:
                calls = entry["calls"].replace(" per element of ", "/")
                takes = ", ".join(entry["inputs"])
                table.add_row(f"  {entry['name']}", calls, _short(entry["scale"]), takes)
    console.print(table)


def _short(scale: str) -> str:
    """The first output's scale, and how many outputs more there are."""
    first, *more = scale.split("; ")
    span = first.partition(" ")[2]
    return f"{span}, {len(more)} more" if more else span

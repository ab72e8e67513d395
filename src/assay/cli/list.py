"""`assay list`: what there is."""

from __future__ import annotations

from typing import Annotated

import typer


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
    width = max(len(entry["name"]) for entry in found)
    for entry in found:
        typer.echo(
            f"{entry['name']:<{width}}  {entry['variant']:<10} {entry['calls']} calls  "
            f"{', '.join(entry['inputs'])} -> {entry['scale']}"
        )

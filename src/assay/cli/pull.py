"""`assay pull`: evaluators of a Foundry project as files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from assay import sync
from assay.errors import SetupError


def pull(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Left out, all are listed.")
    ] = None,
    version: Annotated[str | None, typer.Option(help="Default: the highest.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The file; default NAME.prompty.")
    ] = None,
    azure_ai_project: Annotated[str | None, typer.Option(help="See assay upload.")] = None,
    json_: Annotated[bool, typer.Option("--json", help="The list as JSON on stdout.")] = False,
) -> None:
    """List the evaluators of a Foundry project, or fetch a prompt evaluator as a .prompty file."""
    from assay.azure import find_project
    from assay.azure.project import Foundry
    from assay.cli.output import print_json

    project = find_project(azure_ai_project)
    if not isinstance(project, Foundry):
        raise SetupError("the evaluator catalog is in Foundry projects alone: give an endpoint")
    from assay.azure import pull as pulling

    if name is None:
        found = sync.run(pulling.list_evaluators(project))
        if json_:
            print_json(found)
            return
        for item in found:
            print(f"{item['name']}\t{item['version']}\t{item['kind']}\t{item['display_name']}")
        return
    text = sync.run(pulling.fetch_evaluator(project, name, version))
    path = out or Path(f"{name}.prompty")
    if path.exists():
        raise SetupError(f"{path} is there already: give another with --out")
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise SetupError(f"{path} cannot be written: {error.strerror}") from None
    print(path)
    print("assay check says what to make better in it", file=sys.stderr)

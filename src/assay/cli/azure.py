"""`assay azure`: what has to do with Azure alone."""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated, Any

import typer

azure = typer.Typer(help="Look at what Azure gives.", no_args_is_help=True, rich_markup_mode=None)

_MARKS = {"ok": "ok", "todo": "TO DO", "unset": "not set"}


@azure.callback()
def _group() -> None:
    """Look at what Azure gives."""


@azure.command("doctor")
def doctor(
    judge: Annotated[
        str | None, typer.Option(help="azure:DEPLOYMENT to try; default: the one set up.")
    ] = None,
    azure_ai_project: Annotated[
        str | None, typer.Option(help="The project to try; default: the one set up.")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="A list of findings on stdout.")] = False,
) -> None:
    """Try endpoint, login, deployment, project, permissions, storage and portal, one by one.

    One call of a few tokens goes to the deployment. Exit 2 where something is to be done.
    """
    from assay import azure as project_azure
    from assay.cli.output import print_json

    async def look() -> list[dict[str, Any]]:
        found = []
        async for finding in project_azure.diagnose(judge, azure_ai_project):
            found.append(finding.as_dict())
            if not json_:
                print(f"{_MARKS[finding.state]:8}{finding.part}: {finding.said}")
                sys.stdout.flush()
        return found

    findings = asyncio.run(look())
    if json_:
        print_json(findings)
    sys.exit(2 if any(finding["state"] == "todo" for finding in findings) else 0)

"""`assay upload`: show a run in an Azure AI project."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from assay import sync
from assay.errors import AssayError


def upload(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run directory.")],
    azure_ai_project: Annotated[
        str | None,
        typer.Option(
            help="https://ACCOUNT.services.ai.azure.com/api/projects/PROJECT, or a hub project as "
            "SUBSCRIPTION/GROUP/PROJECT; else AZURE_AI_PROJECT_ENDPOINT or assay.toml."
        ),
    ] = None,
    deployment: Annotated[
        str | None, typer.Option(help="A deployment to name where Foundry wants one; unused.")
    ] = None,
    string_checks: Annotated[
        bool, typer.Option(help="Check pass and fail as words, too, where every row has a score.")
    ] = True,
    classic: Annotated[
        bool, typer.Option("--classic", help="The old portal's way, for an endpoint as well.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be sent; make no call.")
    ] = False,
    json_: Annotated[bool, typer.Option("--json", help="The result as JSON on stdout.")] = False,
) -> None:
    """Upload RUN, wait until the service has it, and compare what came back.

    It can be repeated: what is there is found, and no run is made twice.
    """
    from assay import azure
    from assay.cli.output import print_json

    project = azure.find_project(azure_ai_project)
    given: dict[str, Any] = {
        "deployment": deployment,
        "string_checks": string_checks,
        "classic": classic,
    }
    if dry_run:
        print_json(azure.preview_run(run, project, **given))
        return
    show_upload(sync.run(azure.log_run(run, project, **given, tell=tell)), json_)


def tell(text: str) -> None:
    """How an upload comes along."""
    print(text, file=sys.stderr)


def show_upload(found: dict[str, Any], as_json: bool) -> None:
    """The link on stdout, what the portal shows otherwise on stderr."""
    from assay.cli.output import print_json

    for note in found.get("notes") or []:
        tell(f"note: {note}")
    if as_json:
        print_json(found)
    elif found.get("url"):
        print(found["url"])
    else:
        tell("the run is in the project; the service gave no link")


def find_and_check(given: str | None) -> Any:
    """The project of a run that is to be uploaded, tried before the first judge call."""
    from assay import azure

    project = azure.find_project(given)
    sync.run(azure.check_project(project))
    return project


def upload_finished(run: Path, project: Any, code: int) -> int:
    """Upload a run that is shown already; the exit code of both. A failed gate counts first."""
    from assay import azure

    try:
        found = sync.run(azure.log_run(run, project, tell=tell))
    except AssayError as error:
        tell(f"assay: {error}")
        return code or error.exit_code
    for note in found["notes"]:
        tell(f"note: {note}")
    tell(f"in the project: {found['url'] or found['run_id']}")
    return code

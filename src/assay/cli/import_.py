"""`assay import`: results made elsewhere as a run directory."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay import sync
from assay.errors import SetupError

if TYPE_CHECKING:
    from assay.run.record import Run

FOUNDRY = "foundry:"


def import_(
    source: Annotated[
        str,
        typer.Argument(
            help="A result file of azure-ai-evaluation, or foundry:EVAL/RUN; foundry: lists the "
            "evals of the project, foundry:EVAL its runs."
        ),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The run directory; default: one in runs/.")
    ] = None,
    azure_ai_project: Annotated[str | None, typer.Option(help="See assay upload.")] = None,
    json_: Annotated[bool, typer.Option("--json", help="As JSON on stdout.")] = False,
) -> None:
    """Write results of azure-ai-evaluation, or a run of a Foundry project, as a run directory."""
    from assay.cli.output import print_json
    from assay.cli.table import print_summary

    if source.startswith(FOUNDRY):
        eval_id, _, run_id = source.removeprefix(FOUNDRY).partition("/")
        if not run_id:
            _list(eval_id, azure_ai_project, json_)
            return
        run = _from_foundry(eval_id, run_id, out, azure_ai_project)
    else:
        run = _from_file(Path(source), out)
    for note in run.header.get("notes") or ():
        print(f"note: {note}", file=sys.stderr)
    if json_:
        print_json(run.summary)
    print_summary(run, sys.stderr if json_ else sys.stdout)


def _from_file(source: Path, out: Path | None) -> Run:
    from assay.run.results import USUAL_NAME, read_results, results_file

    file = results_file(source)
    if file is None:
        raise SetupError(f"{source} is no result file, nor a folder with {USUAL_NAME}")
    found = read_results(file)
    return found.write(_directory(out, found.name))


def _from_foundry(eval_id: str, run_id: str, out: Path | None, project: str | None) -> Run:
    from assay.azure import runs

    found = sync.run(runs.fetch_run(_foundry(project), eval_id, run_id))
    return found.write(_directory(out, found.name))


def _list(eval_id: str, project: str | None, as_json: bool) -> None:
    from assay.azure import runs
    from assay.cli.output import print_json

    there = _foundry(project)
    listing = runs.list_runs(there, eval_id) if eval_id else runs.list_evals(there)
    found: list[dict[str, Any]] = sync.run(listing)
    if as_json:
        print_json(found)
        return
    for entry in found:
        print("\t".join(str(value) for value in entry.values() if value is not None))


def _foundry(given: str | None) -> Any:
    from assay.azure import find_project
    from assay.azure.project import Foundry

    project = find_project(given)
    if not isinstance(project, Foundry):
        raise SetupError("evals are in Foundry projects alone: give an endpoint")
    return project


def _directory(out: Path | None, name: str) -> Path:
    """The directory to write, which must not be there or be empty."""
    from assay.run.directory import make_directory

    if out is None:
        return make_directory(Path("runs"), name)
    try:
        out.mkdir(parents=True, exist_ok=True)
        if any(out.iterdir()):
            raise SetupError(f"{out} is not empty: give another with --out")
    except OSError as error:
        raise SetupError(f"{out} cannot be made: {error.strerror}") from None
    return out

"""`assay run`: score a data set."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.errors import SetupError

if TYPE_CHECKING:
    from assay.cli.gate import Gate
    from assay.run.record import Run


def run(
    items: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="EVALUATOR... DATA", help="Names or .prompty files, and last the data file."
        ),
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option(
            help="openai:MODEL, azure:DEPLOYMENT, project:MODEL, ollama:MODEL, baseline, ..."
        ),
    ] = None,
    base_url: Annotated[str | None, typer.Option(help="Any OpenAI-compatible server.")] = None,
    map_: Annotated[
        list[str] | None, typer.Option("--map", help="INPUT=COLUMN, or EVALUATOR.INPUT=COLUMN.")
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="A flow folder that answers each row first.")
    ] = None,
    target_model: Annotated[
        str | None, typer.Option(help="The model of the target; default: the judge.")
    ] = None,
    embedder: Annotated[
        str | None, typer.Option(help="For metrics that compare vectors; default: embedded.")
    ] = None,
    iterations: Annotated[int, typer.Option(help="Times each row is judged.")] = 1,
    limit: Annotated[int | None, typer.Option(help="Only the first rows.")] = None,
    encoding: Annotated[str | None, typer.Option(help="Of a data file that is no UTF-8.")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the run.")] = None,
    runs: Annotated[Path, typer.Option(help="Folder the run directory is made in.")] = Path("runs"),
    resume: Annotated[
        Path | None, typer.Option(help="Finish this run directory; nothing else is needed.")
    ] = None,
    retry_failed: Annotated[
        bool, typer.Option(help="With --resume: redo the rows that have no score.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check everything and estimate; make no call.")
    ] = False,
    budget: Annotated[
        float | None, typer.Option(help="Dollars after which the run stops, to be resumed.")
    ] = None,
    cache: Annotated[bool, typer.Option(help="Keep good replies and use them again.")] = True,
    reask: Annotated[
        int | None, typer.Option(help="Further tries for an invalid reply; 1 if not given.")
    ] = None,
    max_in_flight: Annotated[
        int | None, typer.Option("-j", "--jobs", help="Requests at once, at most; 64.")
    ] = None,
    fail_under: Annotated[
        list[str] | None, typer.Option(help="METRIC=MEAN: exit 1 where the mean is lower.")
    ] = None,
    min_coverage: Annotated[
        float | None,
        typer.Option(help="Share of rows that must have a score; 1 with --fail-under."),
    ] = None,
    max_errors: Annotated[
        float, typer.Option(help="Share of scores that may be errors before exit 3.")
    ] = 0.0,
    azure_ai_project: Annotated[
        str | None, typer.Option(help="Show the finished run there, too; see assay upload.")
    ] = None,
    upload: Annotated[
        bool,
        typer.Option("--upload", help="The same, to the project of assay.toml or environment."),
    ] = False,
    format_: Annotated[
        str, typer.Option("--format", help="table, or github: Markdown for a pull request.")
    ] = "table",
    json_: Annotated[bool, typer.Option("--json", help="The summary as JSON on stdout.")] = False,
) -> None:
    """Score every row of DATA with every EVALUATOR."""
    from assay.cli.gate import Gate
    from assay.cli.upload import find_and_check, upload_finished
    from assay.run.evaluate import evaluate

    if format_ not in ("table", "github"):
        raise SetupError(f"--format is table or github, not {format_!r}")
    gate = Gate.parse(fail_under or [], min_coverage, max_errors)
    given: dict[str, Any] = {
        "judge": judge,
        "base_url": base_url,
        "columns": _mapping(map_ or []) or None,
        "target": target,
        "target_model": target_model,
        "embedder": embedder,
        "iterations": iterations,
        "limit": limit,
        "encoding": encoding,
        "name": name,
        "runs": runs,
        "reask": reask,
        "max_in_flight": max_in_flight,
        "cache": cache,
        "budget": budget,
    }
    given = {name: value for name, value in given.items() if value is not None}
    sources: list[str] | dict[str, str]
    if resume is not None:
        data, sources, given = _resumed(resume, items or [], given, retry_failed)
        gate.check(sources.values())
    elif items is None or len(items) < 2:
        raise SetupError("give at least one EVALUATOR and a DATA file")
    else:
        *sources, data = items
        gate.check(sources)
    if dry_run:
        _dry_run(data, sources, given, json_)
        return
    project = find_and_check(azure_ai_project) if azure_ai_project or upload else None
    finished = evaluate(data, sources, **given)
    _show(finished, json_, format_)
    code = _exit_code(finished, gate)
    if project is not None and finished.header["status"] == "finished":
        code = upload_finished(finished.directory, project, code)
    sys.exit(code)


def _show(run: Run, as_json: bool, format_: str) -> None:
    from assay.cli.output import print_json
    from assay.cli.table import print_summary
    from assay.report import summary_markdown

    if as_json:
        print_json(run.summary)
    if format_ == "github":
        typer.echo(summary_markdown(run), err=as_json)
    else:
        print_summary(run, sys.stderr if as_json else sys.stdout)


def _exit_code(run: Run, gate: Gate) -> int:
    """The gate's verdict; a run that ended early says how to finish it."""
    status = run.header["status"]
    if status == "finished":
        return gate.verdict(run)
    why = "the budget is used up" if status == "budget" else "interrupted"
    print(f"{why}; finish it with: assay run --resume {run.directory}", file=sys.stderr)
    return 3 if status == "budget" else 130


def _dry_run(data: str, evaluators: Any, given: dict[str, Any], as_json: bool) -> None:
    import asyncio

    from assay.cli.output import print_json
    from assay.cli.table import print_estimate
    from assay.run.dryrun import dry_run
    from assay.run.plan import Options, prepare

    found = asyncio.run(dry_run(prepare(data, evaluators, Options(**given))))
    if as_json:
        print_json(found)
    print_estimate(found, sys.stderr if as_json else sys.stdout)


def _mapping(items: list[str]) -> dict[str, Any]:
    """`INPUT=COLUMN` for all evaluators, `EVALUATOR.INPUT=COLUMN` for one."""
    mapping: dict[str, Any] = {}
    for item in items:
        left, equals, column = item.partition("=")
        if not equals or not left.strip() or not column.strip():
            raise SetupError(f"--map {item!r} must be INPUT=COLUMN or EVALUATOR.INPUT=COLUMN")
        evaluator, dot, name = left.strip().rpartition(".")
        if dot:
            mapping.setdefault(evaluator, {})[name] = column.strip()
        else:
            mapping[name] = column.strip()
    return mapping


def _resumed(
    directory: Path, items: list[str], given: dict[str, Any], retry_failed: bool
) -> tuple[str, dict[str, str], dict[str, Any]]:
    """What a run directory was made with; options given now win."""
    from assay.run.journal import HEADER, read_json

    if items:
        raise SetupError("--resume takes evaluators and data from the run directory")
    header = read_json(directory / HEADER)
    data = header["data"].get("path")
    evaluators = {name: found.get("path") for name, found in header["evaluators"].items()}
    if not data or not all(evaluators.values()):
        raise SetupError(
            f"{directory} was made from Python objects; resume it with evaluate(..., resume=...)"
        )
    options = {**header.get("options", {}), **given}
    options |= {
        "iterations": header["iterations"],
        "reask": header["reask"],
        "limit": header["data"].get("limit"),
        "encoding": header["data"].get("encoding"),
        "resume": directory,
        "retry_failed": retry_failed,
    }
    return data, evaluators, options

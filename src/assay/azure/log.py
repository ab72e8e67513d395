"""Show a run in an Azure AI project: a step of its own, to be repeated as often as needed."""

from __future__ import annotations

import asyncio
import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from assay.azure import calls
from assay.azure.client import Client, Patience
from assay.azure.faults import UploadError
from assay.azure.outline import Outline, outline_of
from assay.azure.project import Foundry, Hub, Project
from assay.azure.readback import Readback
from assay.azure.state import State
from assay.run.journal import Lock
from assay.run.record import Run

Tell = Callable[[str], None]
_DONE = ("completed", "failed", "canceled", "cancelled")


def _silent(_: str) -> None:
    """Says nothing."""


async def log_run(
    directory: str | Path,
    project: Project,
    *,
    deployment: str | None = None,
    string_checks: bool = True,
    classic: bool = False,
    patience: Patience | None = None,
    tell: Tell = _silent,
) -> dict[str, Any]:
    """Upload a run directory, wait for the service, compare what came back.

    classic: the old portal's way, also for an endpoint; hub projects know no other.

    The same run is never made twice: a repeat goes on where the last one stopped. Raises
    UploadError that says how to repeat; the run directory is complete in any case.
    """
    run = Run(directory)
    try:
        if classic or isinstance(project, Hub):
            from assay.azure.classic import log_classic

            return await log_classic(run, project, patience or Patience(), tell)
        with outline_of(run, project, deployment=deployment, string_checks=string_checks) as found:
            return await _log_foundry(found, project, patience or Patience(), tell)
    except UploadError as error:
        again = f"assay upload {shlex.quote(str(directory))} --azure-ai-project"
        where = shlex.quote(project.label) + (" --classic" if classic else "")
        told = UploadError(
            f"{error}. Nothing is lost; repeat with: {again} {where}",
            status=error.status,
            step=error.step,
        )
        told.run = run
        raise told from None


async def _log_foundry(
    outline: Outline, project: Foundry, patience: Patience, tell: Tell
) -> dict[str, Any]:
    run, rows = outline.run, outline.rows
    lock = Lock(run.directory)
    try:
        state = State.read(run.directory, outline.key)
        tell(f"{rows.count} rows, {len(outline.metrics)} metrics, to {project.endpoint}")
        async with Client(project, patience) as client:
            state.note(project=project.endpoint, surface="foundry", notes=outline.notes)
            body, eval_id = await _prepare(client, outline, state)
            wanted = outline.run_body(state.entry["dataset"])
            made = await calls.find_run(client, eval_id, wanted, state.entry.get("run"))
            state.note(run=made["id"], status=made.get("status"))
            tell(f"run {made['id']} of eval {eval_id}: waiting for the service")
            made = await _wait(client, eval_id, made)
            state.note(status=made.get("status"))
            _check_status(made)
            read = await _read_back(client, eval_id, made, outline, body["testing_criteria"])
        _check_results(read)
        state.note(url=made.get("report_url"), counts=read.counts)
    finally:
        lock.release()
    return state.result(run.directory, rows.count)


async def _prepare(client: Client, outline: Outline, state: State) -> tuple[dict[str, Any], str]:
    """Evaluators, dataset and eval, each found or made; what is known is kept at once."""
    versions: dict[str, str] = dict(state.entry.get("evaluators") or {})
    for wanted in outline.evaluators:
        known = versions.get(wanted.name)
        versions[wanted.name] = await calls.evaluator_version(client, wanted, known)
        state.note(evaluators=versions)
    state.note(dataset=await calls.dataset(client, outline.dataset, outline.rows))
    body = outline.eval_body(versions)
    eval_id = await calls.find_eval(client, body, state.entry.get("eval"))
    state.note(eval=eval_id)
    return body, eval_id


async def _wait(client: Client, eval_id: str, made: dict[str, Any]) -> dict[str, Any]:
    """The run when it is over."""
    patience = client.patience
    pause, started = patience.poll, time.monotonic()
    step = calls.read_run(eval_id, str(made["id"]))
    while True:
        _, made = await client.call(step)
        if made.get("status") in _DONE:
            return made
        if time.monotonic() - started > patience.wait:
            raise UploadError(
                f"the run {made['id']} is {made.get('status')} after {patience.wait:g} s; the "
                "repeat looks at the same run again",
                step=step,
            )
        await asyncio.sleep(pause)
        pause = min(15.0, pause * 1.5)


def _check_status(made: dict[str, Any]) -> None:
    if made.get("status") != "completed":
        error = made.get("error") or {}
        said = ": ".join(str(error[k]) for k in ("code", "message") if error.get(k))
        raise UploadError(
            f"the service ended the run {made['id']} as {made.get('status')}"
            f"{f' ({said[:300]})' if said else ''}"
        )


async def _read_back(
    client: Client,
    eval_id: str,
    made: dict[str, Any],
    outline: Outline,
    criteria: list[dict[str, Any]],
) -> Readback:
    """All items; looked for again where some are not listed yet."""
    step = calls.read_items(eval_id, str(made["id"]))
    for attempt in range(client.patience.tries):
        read = Readback(outline.rows, outline.metrics, criteria)
        async for item in client.pages(step):
            read.add(item)
        if not read.missing:
            break
        if attempt < client.patience.tries - 1:
            await asyncio.sleep(client.patience.pause)
    return read


def _check_results(read: Readback) -> None:
    """A link is only given for a run that came back as it was sent."""
    if not read.missing and not read.differing:
        return
    total = read.rows.count
    parts = [f"{read.missing} of {total} rows did not come back"] if read.missing else []
    if read.differing:
        shown = "; ".join(read.differences)
        parts.append(f"{read.differing} results are not what was sent ({shown})")
    raise UploadError(f"the run in the project is not the run on disk: {', '.join(parts)}")

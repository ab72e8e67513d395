"""The old portal, through azure-ai-evaluation's public `evaluate`: for hub projects.

Each metric is an evaluator that hands its stored results out, one alias a metric, since pass
rates are made by alias. What Microsoft changes reaches people by upgrading that package.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from assay.azure.client import Patience
from assay.azure.evaluation import Uploaded, upload
from assay.azure.faults import UploadError
from assay.azure.hub import HubClient, hub_step, run_of
from assay.azure.metrics import Metric, cell_of, iterations_of, metrics_of, word
from assay.azure.payloads import tags_of
from assay.azure.project import Foundry, Hub, Project
from assay.azure.state import State
from assay.azure.step import Step
from assay.errors import SetupError
from assay.jsontext import digest, dumps
from assay.judge.project import identity
from assay.run.journal import Lock
from assay.run.record import Run

Results = dict[int, dict[str, Any]]

_TITLE = "uploading the run"
_INSTALL = 'pip install "assay[azure-classic]"'


class Stored:
    """An evaluator that asks nobody: it gives what a run holds of one metric, by row.

    Async, so that it needs no thread: a sync one can starve azure-ai-evaluation's own pool.
    """

    def __init__(self, metric: Metric, results: Results) -> None:
        self._results = results
        self._verdicts = [row[f"{metric.key}_result"] for row in results.values()]
        self._statuses = [row[f"{metric.key}_status"] for row in results.values()]
        # Where no row has a verdict, none is given: it would be shown as a pass rate of 0.
        self._left_out = set() if any(self._verdicts) else {f"{metric.key}_result"}

    async def __call__(self, *, assay_row: int, **kwargs: Any) -> dict[str, Any]:
        found = self._results[int(assay_row)]
        return {name: value for name, value in found.items() if name not in self._left_out}

    def __aggregate__(self, rows: list[Any]) -> dict[str, float]:
        """The pass rate of rows with a verdict, instead of one in which the others fail."""
        counts: dict[str, float] = {}
        verdicts = [verdict for verdict in self._verdicts if verdict is not None]
        if verdicts:
            counts["binary_aggregate"] = round(verdicts.count("pass") / len(verdicts), 4)
        names = {"completed": "scored", "skipped": "not_applicable", "error": "errors"}
        return counts | {
            name: float(self._statuses.count(status)) for status, name in names.items()
        }


def require_package() -> None:
    """Raises SetupError with the install line where azure-ai-evaluation is missing."""
    try:
        found = find_spec("azure.ai.evaluation")
    except ModuleNotFoundError:
        found = None
    if found is None:
        raise SetupError(f"the old portal needs azure-ai-evaluation: {_INSTALL}")


async def check_hub(project: Hub, patience: Patience | None = None) -> None:
    """Package, login, workspace and the permission to write runs, before anything is judged."""
    require_package()
    async with HubClient(project, patience) as client:
        await client.check()


async def log_classic(
    run: Run, project: Project, patience: Patience, tell: Callable[[str], None]
) -> dict[str, Any]:
    """Upload a run, and look whether the project has it as it was sent."""
    require_package()
    project = replace(project, credential=project.credential or identity())
    metrics = metrics_of(run)
    results, columns = results_of(run, metrics)
    key = digest([project.label, run.directory.resolve().name, run.header.get("started"), results])

    step = hub_step(_TITLE) if isinstance(project, Hub) else Step(_TITLE, "", "")

    def send() -> Uploaded:
        with tempfile.TemporaryDirectory(prefix="assay-") as folder:
            data = Path(folder) / "rows.jsonl"
            _write_rows(run, data, columns)
            stored = {metric.key: Stored(metric, results[metric.key]) for metric in metrics}
            tags = {**tags_of(run), "assay.upload": key}
            return upload(data, stored, project, run.name, tags, step)

    lock = Lock(run.directory)
    try:
        state = State.read(run.directory, key)
        if not state.entry.get("url"):
            tell(f"{run.header.get('rows')} rows, {len(metrics)} metrics, to {project.label}")
            state.note(project=project.label, surface="classic", notes=[])
            if isinstance(project, Hub):
                async with HubClient(project, patience) as client:
                    await _log_hub(client, send, key, state)
            else:
                await _log_endpoint(project, send, state)
    finally:
        lock.release()
    return state.result(run.directory, run.header.get("rows"))


async def _log_hub(client: HubClient, send: Callable[[], Uploaded], key: str, state: State) -> None:
    """The run of an upload: one that is there whole, else a new one, looked at before it counts.

    The package makes the link up by itself, and only logs most calls that fail.
    """
    known = state.entry.get("run")
    if known and not await client.lacks(known, state.entry["metrics"]):
        state.note(url=client.link(known))
        return
    found = await client.find(key)
    if found is not None:
        state.note(**found)
        return
    await client.disown(key)
    try:
        sent = await asyncio.to_thread(send)
    except UploadError:
        await client.disown(key)
        raise
    run_id = run_of(sent.url)
    # Kept before it is looked at: where that fails, a repeat looks at the same run.
    state.note(run=run_id, metrics=sent.metrics)
    lacks = await client.lacks(run_id, sent.metrics)
    if lacks:
        await client.disown(key)
        why, status = sent.why(hub_step(_TITLE))
        label = client.project.label
        raise UploadError(
            f"the run {run_id} is not complete in {label}: it lacks {'; '.join(lacks)}{why}",
            status=status,
        )
    state.note(url=sent.url)


async def _log_endpoint(project: Foundry, send: Callable[[], Uploaded], state: State) -> None:
    """The old way to an endpoint. The service gives the link, and fails aloud."""
    sent = await asyncio.to_thread(send)
    if not sent.url:
        raise UploadError(f"{project.label} gave no link for the run")
    state.note(url=sent.url, metrics=sent.metrics)


def preview_classic(run: Run, project: Project) -> dict[str, Any]:
    """What azure-ai-evaluation would be given."""
    metrics = metrics_of(run)
    results, columns = results_of(run, metrics)
    return {
        "project": project.label,
        "surface": "classic",
        "evaluation_name": run.name,
        "tags": tags_of(run),
        "columns": columns,
        "evaluators": {metric.key: list(results[metric.key].values())[:2] for metric in metrics},
    }


def results_of(run: Run, metrics: list[Metric]) -> tuple[dict[str, Results], dict[str, str]]:
    """Metric to row to its keys as azure-ai-evaluation's own evaluators name them; and the name
    of every column there."""
    found: dict[str, Results] = {metric.key: {} for metric in metrics}
    names: dict[str, None] = {}
    for line, records in run.records():
        names |= dict.fromkeys({**line.get("columns", {}), **(line.get("target") or {})})
        by_evaluator = dict(iterations_of(run, records))
        for metric in metrics:
            cell = cell_of(metric, by_evaluator[metric.evaluator]).columns
            found[metric.key][int(line["row"])] = {
                metric.key: cell["score"],
                **{f"{metric.key}_{name}": value for name, value in cell.items()},
            }
    taken = {"assay_row"}
    return found, {name: word(name, taken) for name in names}


def _write_rows(run: Run, path: Path, columns: Mapping[str, str]) -> None:
    with path.open("wb") as file:
        for line, _ in run.records():
            data = {**line.get("columns", {}), **(line.get("target") or {})}
            # A dict would be taken apart into columns of its own.
            plain = {
                new: dumps(value).decode() if isinstance(value, dict) else value
                for old, new in columns.items()
                for value in [data.get(old)]
            }
            file.write(dumps({**plain, "assay_row": line["row"]}) + b"\n")

"""The old portal, through azure-ai-evaluation's public `evaluate`: for hub projects.

Each metric is an evaluator that hands its stored results out, one alias a metric, since pass
rates are made by alias. What Microsoft changes reaches people by upgrading that package.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import tempfile
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from assay.azure.faults import UploadError
from assay.azure.hub import HubClient
from assay.azure.metrics import Metric, cell_of, iterations_of, metrics_of, word
from assay.azure.payloads import tags_of
from assay.azure.project import Foundry, Hub, Project
from assay.azure.state import State
from assay.errors import SetupError
from assay.jsontext import digest, dumps
from assay.judge.faults import redact
from assay.run.journal import Lock
from assay.run.record import Run

Results = dict[int, dict[str, Any]]

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


async def check_hub(project: Hub) -> None:
    """Package, login, workspace and the permission to write runs, before anything is judged."""
    require_package()
    async with HubClient(project) as client:
        await client.check()


async def log_classic(run: Run, project: Project, tell: Callable[[str], None]) -> dict[str, Any]:
    """Upload a run, and look whether the project has it as it was sent."""
    require_package()
    metrics = metrics_of(run)
    results, columns = results_of(run, metrics)
    key = digest([project.label, run.directory.resolve().name, run.header.get("started"), results])
    lock = Lock(run.directory)
    try:
        state = State.read(run.directory, key)
        if not state.entry.get("url"):
            tell(f"{run.header.get('rows')} rows, {len(metrics)} metrics, to {project.label}")
            sent = await _find(project, key)
            if sent is None:
                sent = await asyncio.to_thread(
                    _evaluate, run, project, metrics, results, columns, key
                )
                sent = await _confirmed(project, sent)
            state.note(project=project.label, surface="classic", notes=[], **sent)
    finally:
        lock.release()
    return {"run": str(run.directory), "rows": run.header.get("rows"), **state.entry}


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


def _evaluate(
    run: Run,
    project: Project,
    metrics: list[Metric],
    results: dict[str, Results],
    columns: dict[str, str],
    key: str,
) -> dict[str, Any]:
    """The one call to azure-ai-evaluation. What it prints is talk, so it goes to stderr."""
    credential = project.credential
    with tempfile.TemporaryDirectory(prefix="assay-") as folder:
        data = Path(folder) / "rows.jsonl"
        _write_rows(run, data, columns)
        mapping = {"column_mapping": {"assay_row": "${data.assay_row}"}}
        try:
            with contextlib.redirect_stdout(sys.stderr):
                from azure.ai.evaluation import evaluate

                found = evaluate(
                    data=str(data),
                    evaluators={m.key: Stored(m, results[m.key]) for m in metrics},
                    evaluator_config={"default": mapping},
                    evaluation_name=run.name,
                    azure_ai_project=project.as_dict()
                    if isinstance(project, Hub)
                    else project.endpoint,
                    tags={**tags_of(run), "assay.upload": key},
                    **({"credential": credential} if credential is not None else {}),
                )
        except Exception as error:
            raise _failure(error, project) from None
    return {"url": found.get("studio_url"), "metrics": dict(found.get("metrics") or {})}


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


def _failure(error: Exception, project: Project) -> UploadError:
    """From whatever the package raised: the status somewhere in its chain, and what to do."""
    status, cause = None, error
    seen: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in seen:
        seen.append(current)
        status = status or getattr(current, "status_code", None)
        current = current.__cause__ or current.__context__
    said = redact(str(cause).strip().split("\n")[0][:300], _secrets(project))
    what = {
        401: "log in again (az login)",
        403: 'the role "Azure AI Developer" on the project, and "Storage Blob Data Contributor" '
        "on its storage account where that takes no keys, give the permission",
        404: "check the subscription, the resource group and the name of the project",
    }.get(int(status or 0), "look at the message, and repeat it")
    http = f" answered HTTP {status}" if status else ""
    return UploadError(
        f"azure-ai-evaluation could not upload to {project.label}{http}: {said}; {what}",
        status=status,
    )


def _secrets(project: Project) -> list[str]:
    token = getattr(project.credential, "token", None)
    return [token] if isinstance(token, str) else []


async def _find(project: Project, key: str) -> dict[str, Any] | None:
    """A run of this upload that the hub has already: its answer may have been lost."""
    if not isinstance(project, Hub):
        return None
    async with HubClient(project) as client:
        return await client.find(key)


async def _confirmed(project: Project, sent: dict[str, Any]) -> dict[str, Any]:
    """The link, once the project has the run. Of a hub, the package makes it up by itself."""
    if isinstance(project, Foundry):
        if not sent["url"]:
            raise UploadError(f"{project.label} gave no link for the run")
        return sent
    async with HubClient(project) as client:
        await client.confirm(str(sent["url"] or ""), sent["metrics"])
    return sent

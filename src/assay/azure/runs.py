"""Runs of a Foundry project, read back as runs of assay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from assay.azure.calls import EVALS, LIST_EVALS, read_items, read_run
from assay.azure.client import Client, Patience
from assay.azure.project import Foundry
from assay.azure.restore import Restored, restored
from assay.azure.step import Step
from assay.errors import SetupError
from assay.metric.flatkeys import Measured, measured
from assay.run.imported import Metric, Results

_OVER = ("completed", "failed", "canceled", "cancelled")
_RECENT = 10  # pages of a list
_SIDES = ("score", "label", "passed", "reason", "threshold", "status", "properties", "sample")
_FIELDS = {side: side for side in _SIDES}
_MARKS = ("threshold", "pass_threshold")
_NOTHING = "the service gave no result for this row"


async def list_evals(project: Foundry, patience: Patience | None = None) -> list[dict[str, Any]]:
    """Id, name and date of the project's evals, the newest first."""
    async with Client(project, patience) as client:
        return [
            {"id": e.get("id"), "name": e.get("name"), "created": _date(e.get("created_at"))}
            async for e in client.pages(LIST_EVALS, most=_RECENT)
        ]


async def list_runs(
    project: Foundry, eval_id: str, patience: Patience | None = None
) -> list[dict[str, Any]]:
    """Id, name, status and date of an eval's runs, the newest first."""
    step = Step("listing the runs", "GET", f"{_eval_path(eval_id)}/runs")
    async with Client(project, patience) as client:
        return [
            {
                "id": r.get("id"),
                "name": r.get("name"),
                "status": r.get("status"),
                "created": _date(r.get("created_at")),
            }
            async for r in client.pages(step, most=_RECENT)
        ]


async def fetch_run(
    project: Foundry, eval_id: str, run_id: str, patience: Patience | None = None
) -> Results | Restored:
    """A run that is over, with all its rows; `write` makes a run directory of it.

    One that assay uploaded has the scores it was uploaded with, on their own scale. Raises
    SetupError for a run that is not over or holds no rows, UploadError where a call fails.
    """
    async with Client(project, patience) as client:
        _, found = await client.call(Step("reading the eval", "GET", _eval_path(eval_id)))
        _, made = await client.call(read_run(eval_id, run_id))
        if made.get("status") not in _OVER:
            raise SetupError(f"the run {run_id} is {made.get('status')}: import it when it is over")
        every = [item async for item in client.pages(read_items(eval_id, run_id))]
    items = _in_order([item for item in every if isinstance(item, dict)])
    if not items:
        raise SetupError(f"the run {run_id} holds no rows{_ending(made)}")
    marks = made.get("metadata")
    marks = marks if isinstance(marks, Mapping) else {}
    header: dict[str, Any] = {
        "name": str(made.get("name") or run_id),
        "started": str(marks.get("assay.started") or _date(made.get("created_at")) or ""),
        "data": {"name": str(found.get("name") or eval_id), "made_by": "Foundry"},
        "source": {
            "project": project.endpoint,
            "eval": eval_id,
            "run": run_id,
            "url": made.get("report_url"),
        },
        "notes": _notes(made, len(items)),
    }
    own = restored(items, header)
    if own is not None:
        return own
    return Results(
        name=header["name"],
        header=header,
        rows=[_row(item) for item in items],
        targets=[_target(item) for item in items],
        metrics=_metrics(_objects(found.get("testing_criteria")), items),
    )


def _eval_path(eval_id: str) -> str:
    return f"{EVALS}/{quote(eval_id, safe='')}"


def _in_order(items: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Each item once, in the order of the data: pages come in any."""
    once = {str(item.get("id") or number): item for number, item in enumerate(items)}
    return sorted(once.values(), key=_place)


def _place(item: Mapping[str, Any]) -> tuple[int, int, str]:
    place = item.get("datasource_item_id")
    text = str(place)
    return (0, int(text), "") if text.isascii() and text.isdigit() else (1, 0, text)


def _row(item: Mapping[str, Any]) -> dict[str, Any]:
    """The row's columns; inline rows are wrapped in `item`."""
    row = item.get("datasource_item")
    if isinstance(row, Mapping) and set(row) == {"item"} and isinstance(row["item"], Mapping):
        row = row["item"]
    return dict(row) if isinstance(row, Mapping) else {}


def _target(item: Mapping[str, Any]) -> dict[str, Any]:
    """What a target of the run answered."""
    sample = item.get("sample")
    return {"sample": sample} if isinstance(sample, Mapping) and sample.get("output") else {}


def _metrics(
    criteria: Sequence[Mapping[str, Any]], items: Sequence[Mapping[str, Any]]
) -> list[Metric]:
    """An alias for each criterion, and of each what the rows say, metric by metric."""
    names = {
        str(c[key]): str(c.get("name")) for c in criteria for key in ("id", "name") if key in c
    }
    marks = {str(c.get("name")): _mark(c) for c in criteria}
    by_item: list[dict[tuple[str, str], Mapping[str, Any]]] = []
    keys: dict[tuple[str, str], None] = {}
    for item in items:
        told = {}
        for result in _objects(item.get("results")):
            name = names.get(str(result.get("name")), str(result.get("name")))
            told[name, str(result.get("metric") or name)] = result
        by_item.append(told)
        keys |= dict.fromkeys(told)
    silent = {name for name in marks if not any(name == alias for alias, _ in keys)}
    keys |= {(name, name): None for name in marks if name in silent}
    return [
        Metric(
            alias,
            output,
            [
                _measured(told.get((alias, output)), item, alias, marks.get(alias))
                for told, item in zip(by_item, items, strict=True)
            ],
            _NOTHING,
        )
        for alias, output in keys
    ]


def _measured(
    result: Mapping[str, Any] | None, item: Mapping[str, Any], alias: str, mark: Any
) -> Measured:
    if result is None:
        sample = item.get("sample")
        broken = isinstance(sample, Mapping) and sample.get("error")
        return measured({"sample": sample} if broken else {}, _FIELDS, alias)
    if result.get("threshold") is None:
        result = {**result, "threshold": mark}
    return measured(result, _FIELDS, alias)


def _mark(criterion: Mapping[str, Any]) -> Any:
    settings = criterion.get("initialization_parameters")
    both = {**criterion, **(settings if isinstance(settings, Mapping) else {})}
    return next((both[name] for name in _MARKS if both.get(name) is not None), None)


def _notes(made: Mapping[str, Any], count: int) -> list[str]:
    notes = []
    if made.get("status") != "completed":
        notes.append(f"the service ended the run as {made.get('status')}{_ending(made)}")
    counts = made.get("result_counts")
    total = counts.get("total") if isinstance(counts, Mapping) else None
    if isinstance(total, int | float) and total != count:
        notes.append(f"the service counts {total:g} rows and gave {count}")
    return notes


def _ending(made: Mapping[str, Any]) -> str:
    error = made.get("error")
    error = error if isinstance(error, Mapping) else {}
    said = ": ".join(str(error[key]) for key in ("code", "message") if error.get(key))
    return f" ({said[:300]})" if said else ""


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _date(value: Any) -> str | None:
    """Seconds since 1970 as a date."""
    try:
        return datetime.fromtimestamp(value, UTC).isoformat(timespec="seconds")
    except (TypeError, ValueError, OverflowError, OSError):
        return None

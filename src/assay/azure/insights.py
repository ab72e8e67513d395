"""Foundry's own comparison of runs that are in a project: a paired test, made by the service.

It compares the scores as they were uploaded, from 0 to 1 and higher is better. They are given
here on the metric's scale and in its direction.
"""

from __future__ import annotations

import asyncio
import math
import re
import shlex
import time
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from email.utils import formatdate
from typing import Any
from urllib.parse import quote

from assay.azure.calls import V1
from assay.azure.client import Client, Patience
from assay.azure.faults import UploadError
from assay.azure.metrics import Metric
from assay.azure.payloads import VERDICT
from assay.azure.project import Foundry, Project
from assay.azure.step import Step
from assay.azure.uploaded import Uploaded, common_eval, find_uploaded
from assay.errors import SetupError
from assay.run.record import Run

EFFECTS = ("TooFewSamples", "Inconclusive", "Changed", "Improved", "Degraded")
"""The service's words for what a treatment did."""

_KIND = "EvaluationComparison"
_PATH = "/insights"
_PREVIEW = {"Foundry-Features": "Insights=V1Preview"}
_OVER = ("succeeded", "failed", "canceled")
_ABSENT = "the eval or one of its runs is no longer there: `assay upload` each run again"
_REJECTED = "the service did not take the request: comparisons are a preview there"
_LIST = Step("listing the comparisons", "GET", _PATH, absent=_ABSENT, rejected=_REJECTED)
_CREATE = Step("creating the comparison", "POST", _PATH, absent=_ABSENT, rejected=_REJECTED)


async def compare_uploaded(
    runs: Sequence[Run],
    project: Project,
    *,
    patience: Patience | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """What the service says of runs against the first of them, with means and differences on
    each metric's own scale. The same runs are compared there once: a repeat finds it.

    Raises SetupError where runs are not in the project, or not in one eval, and UploadError
    where a call fails.
    """
    if not isinstance(project, Foundry):
        raise SetupError("comparisons are made in Foundry projects alone: give an endpoint")
    uploaded = [find_uploaded(run, project) for run in runs]
    eval_id = common_eval(uploaded, project)
    ids = [one.ids[eval_id] for one in uploaded]
    if len(set(ids)) < len(ids):
        raise SetupError("two of these runs are one run in the project: compare different runs")
    try:
        async with Client(project, patience) as client:
            found = await _find_or_create(client, eval_id, ids, runs)
            tell(f"comparison {found.get('id')} of eval {eval_id}: waiting for the service")
            found = await _wait(client, found)
    except UploadError as error:
        again = " ".join(shlex.quote(str(run.directory)) for run in runs)
        again += f" --foundry --azure-ai-project {shlex.quote(project.endpoint)}"
        raise UploadError(
            f"{error}. Nothing is lost; repeat with: assay compare {again}",
            status=error.status,
            step=error.step,
        ) from None
    said = found.get("result")
    result = said if isinstance(said, dict) else {}
    comparisons, notes = _comparisons(_objects(result.get("comparisons")), uploaded, ids)
    return {
        "project": project.endpoint,
        "eval_id": eval_id,
        "insight_id": str(found.get("id")),
        "method": re.sub(r"[^\w .-]", "", str(result.get("method")))[:60],
        "comparisons": comparisons,
        "notes": notes,
    }


# The calls.


async def _find_or_create(
    client: Client, eval_id: str, ids: Sequence[str], runs: Sequence[Run]
) -> dict[str, Any]:
    """The comparison of these runs that the project has, where it did not end in vain, else a
    new one."""
    same = [found async for found in _listed(client, eval_id) if _is_same(found, eval_id, ids)]
    for found in same:
        if _state(found) not in ("failed", "canceled"):
            return found
    # The same id for the same try: should its answer get lost, the service knows the repeat.
    seed = "|".join([client.project.endpoint, eval_id, *ids, str(len(same))])
    once = {
        "Repeatability-Request-ID": str(uuid.uuid5(uuid.NAMESPACE_URL, seed)),
        "Repeatability-First-Sent": formatdate(usegmt=True),
    }
    name = f"assay: {', '.join(run.name for run in runs[1:])} against {runs[0].name}"
    asked = {
        "type": _KIND,
        "evalId": eval_id,
        "baselineRunId": ids[0],
        "treatmentRunIds": list(ids[1:]),
    }
    body = {"displayName": name[:128], "request": asked}
    _, made = await client.call(_CREATE, body, params=V1, headers={**_PREVIEW, **once})
    if not made.get("id"):
        raise UploadError(f"{_CREATE.title}: the answer holds no id", step=_CREATE)
    return made


async def _listed(client: Client, eval_id: str) -> AsyncIterator[dict[str, Any]]:
    """The comparisons of an eval, the newest first."""
    step: Step | None = _LIST
    params: Mapping[str, str] | None = {**V1, "type": _KIND, "evalId": eval_id}
    while step is not None:
        _, page = await client.call(step, params=params, headers=_PREVIEW)
        for found in _objects(page.get("value")):
            yield found
        link = page.get("nextLink")
        step = Step(_LIST.title, "GET", str(link)) if link else None
        params = None


def _is_same(found: Mapping[str, Any], eval_id: str, ids: Sequence[str]) -> bool:
    asked = found.get("request")
    return (
        isinstance(asked, Mapping)
        and asked.get("evalId") == eval_id
        and asked.get("baselineRunId") == ids[0]
        and sorted(map(str, asked.get("treatmentRunIds") or ())) == sorted(ids[1:])
    )


async def _wait(client: Client, found: dict[str, Any]) -> dict[str, Any]:
    """The comparison when it is there. Raises UploadError where it ends otherwise."""
    patience = client.patience
    pause, started = patience.poll, time.monotonic()
    path = f"{_PATH}/{quote(str(found['id']), safe='')}"
    step = Step("reading the comparison", "GET", path, absent=_ABSENT)
    while True:
        _, found = await client.call(step, params=V1, headers=_PREVIEW)
        if _state(found) in _OVER:
            break
        if time.monotonic() - started > patience.wait:
            raise UploadError(
                f"the comparison is not there after {patience.wait:g} s; the repeat looks at the "
                "same one again",
                step=step,
            )
        await asyncio.sleep(pause)
        pause = min(15.0, pause * 1.5)
    if _state(found) != "succeeded":
        raise UploadError(f"the service ended the comparison as {_state(found)}", step=step)
    return found


def _state(found: Mapping[str, Any]) -> str:
    return str(found.get("state") or "").lower()


# What it says.


def _comparisons(
    found: Sequence[Mapping[str, Any]], uploaded: Sequence[Uploaded], ids: Sequence[str]
) -> tuple[list[dict[str, Any]], list[str]]:
    """The comparisons criterion by criterion, and what is missing or cannot be read."""
    by_name = {str(one.get("testingCriteria")): one for one in found}
    first = uploaded[0]
    names = {name for m in first.metrics for name in (m.name, f"{m.name}{VERDICT}")}
    notes = [f"{name!r} is no metric of these runs" for name in by_name if name not in names]
    comparisons = []
    for metric in first.metrics:
        others = [m for one in uploaded[1:] for m in one.metrics if m.name == metric.name]
        if metric.name not in by_name:
            notes.append(f"the service gave no comparison of {metric.name}")
        elif any(_scale(other) != _scale(metric) for other in others):
            notes.append(f"{metric.name} is not compared: its scale is not the same in all runs")
        else:
            one = by_name[metric.name]
            comparisons.append(_comparison(metric.name, metric, one, uploaded, ids))
        checked = f"{metric.name}{VERDICT}"
        if checked in by_name:
            share = replace(metric, kind="verdict", low=0.0, high=1.0)
            comparisons.append(_comparison(checked, share, by_name[checked], uploaded, ids))
    return comparisons, notes


def _scale(metric: Metric) -> tuple[Any, ...]:
    return (metric.kind, metric.low, metric.high, metric.output.direction)


def _comparison(
    name: str,
    metric: Metric,
    found: Mapping[str, Any],
    uploaded: Sequence[Uploaded],
    ids: Sequence[str],
) -> dict[str, Any]:
    """One criterion. A run of which the service says nothing has no numbers."""
    compared = _objects(found.get("compareItems"))
    items = {str(item.get("treatmentRunId")): item for item in compared}
    treatments = []
    for one, run_id in zip(uploaded[1:], ids[1:], strict=True):
        item = items.get(run_id) or {}
        delta, effect = _number(item.get("deltaEstimate")), item.get("treatmentEffect")
        treatments.append(
            _run(metric, one, run_id, item.get("treatmentRunSummary"))
            | {
                "difference": None if delta is None else metric.difference(delta),
                "p": _number(item.get("pValue")),
                "effect": effect if effect in EFFECTS else None,
            }
        )
    return {
        "criterion": name,
        "metric": f"{metric.evaluator}.{metric.output.name}",
        "kind": metric.kind,
        "scale": [metric.low, metric.high],
        "baseline": _run(metric, uploaded[0], ids[0], found.get("baselineRunSummary")),
        "treatments": treatments,
    }


def _run(metric: Metric, one: Uploaded, run_id: str, summary: Any) -> dict[str, Any]:
    """Means and spread of a run on the metric's scale."""
    found = summary if isinstance(summary, Mapping) and summary.get("runId") == run_id else {}
    mean, sd = _number(found.get("average")), _number(found.get("standardDeviation"))
    return {
        "run": str(one.run.directory),
        "name": one.run.name,
        "run_id": run_id,
        "n": _number(found.get("sampleCount")),
        "mean": None if mean is None else metric.value(mean),
        "sd": None if sd is None else abs(metric.difference(sd)),
    }


def _objects(value: Any) -> list[dict[str, Any]]:
    """The objects of a list the service gave; none where it is something else."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _number(value: Any) -> float | None:
    """A number the service gave; None for anything else, infinite ones too."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number and math.isfinite(value) else None

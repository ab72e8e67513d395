"""The bodies that are sent: evaluators, the eval with its criteria, the run with its tags."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from assay import __version__
from assay.azure.metrics import Metric
from assay.azure.rows import OWN, Rows
from assay.jsontext import digest
from assay.run.record import Run

_VALUE = 512  # the longest value of metadata
VERDICT = " verdict"
"""What the name of a string check ends with."""

_CODE = '''import json


def grade(sample: dict, item: dict) -> float:
    """Gives back the score that assay measured; it judges nothing itself."""
    found = item.get("assay") or {}
    if isinstance(found, str):
        found = json.loads(found)
    found = found.get("KEY") or {}
    value = found.get("norm")
    if isinstance(value, (int, float)):
        return float(value)
    raise ValueError(found.get("error") or "no score was uploaded for this row")
'''


@dataclass(frozen=True)
class EvaluatorBody:
    """An echo evaluator: its name in the catalog, what is sent, and what identifies it."""

    name: str
    body: Mapping[str, Any]
    fingerprint: str


def evaluator_body(metric: Metric) -> EvaluatorBody:
    """A code evaluator that gives back the scores of one metric."""
    slug = re.sub(r"[^a-z0-9]+", "-", metric.name.lower()).strip("-") or "metric"
    definition = _definition(metric)
    fingerprint = digest(definition, 32)
    # Two names may give one slug, and two creations of one name at once overwrite each other.
    name = f"assay-{slug[:100]}-{digest(metric.name, 6)}"
    body = {
        "evaluator_type": "custom",
        "categories": ["quality"],
        "display_name": f"{metric.name} (assay)",
        "description": _description(metric),
        "supported_evaluation_levels": ["turn"],
        "metadata": {"assay.fingerprint": fingerprint, "assay.version": __version__},
        "definition": definition,
    }
    return EvaluatorBody(name, body, fingerprint)


def _definition(metric: Metric) -> dict[str, Any]:
    """The code and what it declares, in the words of the catalog."""
    return {
        "type": "code",
        "code_text": _CODE.replace("KEY", metric.key),
        "init_parameters": {
            "type": "object",
            "required": ["deployment_name", "pass_threshold"],
            "properties": {
                "deployment_name": {"type": "string"},
                "pass_threshold": {"type": "number"},
            },
        },
        "data_schema": {
            "type": "object",
            "required": ["item"],
            "properties": {"item": {"type": "object"}},
        },
        "metrics": {
            "result": {
                "type": "boolean" if metric.kind == "verdict" else "continuous",
                "desirable_direction": "increase",
                "min_value": 0.0,
                "max_value": 1.0,
                "is_primary": True,
            }
        },
    }


def _description(metric: Metric) -> str:
    output = metric.output
    if metric.kind == "verdict":
        how = "1 is pass, 0 is fail"
    else:
        turned = ", turned round: lower is better" if output.direction == "decrease" else ""
        how = f"{metric.low:g} to {metric.high:g} shown as 0 to 1{turned}"
    return f"Scores measured by assay, {how}. {output.description}".strip()[:_VALUE]


def criteria_of(
    metrics: list[Metric], versions: Mapping[str, str], deployment: str, *, string_checks: bool
) -> list[dict[str, Any]]:
    """An echo evaluator for each metric, and a string check for each verdict if asked for.

    A string check knows pass and fail only. It would call a row without a score a fail, so it
    is only asked for where every row has one.
    """
    criteria: list[dict[str, Any]] = []
    for metric in metrics:
        if metric.kind == "column":
            continue
        name = evaluator_body(metric).name
        criteria.append(
            {
                "type": "azure_ai_evaluator",
                "name": metric.name,
                "evaluator_name": name,
                "evaluator_version": versions[name],
                "initialization_parameters": {
                    "deployment_name": deployment,
                    "pass_threshold": metric.threshold,
                },
                "data_mapping": {OWN: f"{{{{item.{OWN}}}}}"},
            }
        )
        if string_checks and metric.has_verdict:
            criteria.append(
                {
                    "type": "string_check",
                    "name": f"{metric.name}{VERDICT}",
                    "input": f"{{{{item.{OWN}.{metric.key}.verdict}}}}",
                    "reference": "pass",
                    "operation": "eq",
                }
            )
    return criteria


def eval_body(metrics: list[Metric], criteria: list[dict[str, Any]], rows: Rows) -> dict[str, Any]:
    """The eval that runs with the same criteria share, so that they can be compared."""
    cell: dict[str, Any] = {"type": "object"}
    own = {m.key: cell for m in metrics if m.kind != "column"}
    schema = {
        "type": "object",
        "properties": {
            **{name: {} for name in sorted(rows.columns.values())},
            OWN: {"type": "object", "properties": own},
        },
        "required": [OWN],
    }
    names = ", ".join(metric.name for metric in metrics)
    return {
        "name": f"assay: {names}"[:_VALUE],
        "metadata": {"assay.criteria": criteria_mark(criteria, schema)},
        "data_source_config": {
            "type": "custom",
            "item_schema": schema,
            "include_sample_schema": False,
        },
        "testing_criteria": criteria,
    }


def criteria_mark(criteria: list[dict[str, Any]], schema: Mapping[str, Any]) -> str:
    """Equal for evals whose runs can be compared. The deployment is never asked: left out."""
    return digest([plain_criterion(item) for item in criteria] + [dict(schema)], 32)


def plain_criterion(item: Mapping[str, Any]) -> list[Any]:
    """What of a criterion decides a result, in one form: services turn 1 into 1.0."""
    settings = item.get("initialization_parameters") or {}
    mark = settings.get("pass_threshold")
    return [
        item.get("type"),
        item.get("name"),
        item.get("evaluator_name") or None,
        str(item.get("evaluator_version") or ""),
        None if mark is None else float(mark),
        item.get("input") if isinstance(item.get("input"), str) else None,
        item.get("reference") or None,
        item.get("operation") or None,
        dict(item.get("data_mapping") or {}),
    ]


def run_body(run: Run, file_id: str, key: str) -> dict[str, Any]:
    """A run of the eval over the uploaded rows."""
    return {
        "name": run.name,
        "metadata": {**tags_of(run), "assay.upload": key},
        "data_source": {"type": "jsonl", "source": {"type": "file_id", "id": file_id}},
    }


def tags_of(run: Run) -> dict[str, str]:
    """What the run's numbers depend on: prompts, judges, data, version; never a secret."""
    header = run.header
    prompts = [
        f"{name}={str(found.get('sha256') or found.get('fingerprint') or '?')[:12]}"
        for name, found in run.evaluators.items()
    ]
    judges = dict.fromkeys(found.get("judge") or "none" for found in run.evaluators.values())
    found = {
        "assay.version": str(header.get("assay", __version__)),
        "assay.run": run.directory.resolve().name,
        "assay.prompts": _joined(prompts),
        "assay.judge": _joined(list(judges)),
        "assay.rows": str(header.get("rows")),
        "assay.iterations": str(header.get("iterations", 1)),
        "assay.started": str(header.get("started", "")),
        "assay.status": str(header.get("status", "")),
    }
    return {name: value[:_VALUE] for name, value in found.items() if value}


def _joined(parts: list[str]) -> str:
    """As many as fit; then how many are left, and a hash of all."""
    text = " ".join(parts)
    if len(text) <= _VALUE:
        return text
    kept: list[str] = []
    while parts[len(kept) :] and len(" ".join([*kept, parts[len(kept)]])) <= _VALUE - 60:
        kept.append(parts[len(kept)])
    return f"{' '.join(kept)} and {len(parts) - len(kept)} more, all {digest(parts, 12)}"


def deployment_of(run: Run, given: str | None) -> str:
    """A deployment's name, which code evaluators must be given though they ask none."""
    if given:
        return given
    for found in run.evaluators.values():
        kind, _, name = str(found.get("judge") or "").partition(":")
        if kind == "azure" and name:
            return name
    return "none"

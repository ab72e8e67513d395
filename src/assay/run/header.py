"""The header of a run: everything its numbers depend on, and no secret."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from assay import __version__
from assay.metric.evaluator import Evaluator
from assay.metric.observed import Observed, observe
from assay.run.journal import HEADER, SCORES, Index, read_json
from assay.run.plan import Plan


def make_header(plan: Plan, directory: Path) -> dict[str, Any]:
    """What run.json says before the first call."""
    options = plan.options
    evaluators = {}
    for name, found in plan.evaluators.items():
        judge = plan.judges[name]
        evaluators[name] = {
            **describe_evaluator(found),
            "judge": judge.name if judge else None,
            "columns": dict(plan.bindings[name].columns),
            "aliases": dict(plan.bindings[name].aliases),
        }
    earlier = read_json(directory / HEADER) if options.resume is not None else {}
    return {
        "assay": __version__,
        "python": platform.python_version(),
        "name": options.name or earlier.get("name") or directory.name,
        "status": "running",
        "started": earlier.get("started") or now(),
        "data": plan.data.describe(),
        "rows": plan.survey.rows,
        "iterations": options.iterations,
        "reask": options.reask,
        "evaluators": evaluators,
        "judges": plan.describe_judges(),
        "target": plan.target.describe() if plan.target else None,
        "options": options.describe(),
    }


def describe_evaluator(evaluator: Evaluator) -> dict[str, Any]:
    """An evaluator for a header: where it comes from, its scale, what it was."""
    return {
        **evaluator.describe(),
        "scored": [output.name for output in evaluator.outputs.values() if output.scored],
        "fingerprint": evaluator.fingerprint,
    }


def settle_scales(header: dict[str, Any], directory: Path) -> None:
    """Declare for evaluators that declare nothing what their rows' own verdicts and thresholds
    prove, as those of azure-ai-evaluation tell them with each row."""
    scales: dict[str, dict[str, Observed]] = {
        name: {} for name, entry in header["evaluators"].items() if not entry.get("outputs")
    }
    keys = [(name, i) for name in scales for i in range(header["iterations"])]
    for _, records in Index(directory / SCORES, keys).read() if keys else ():
        for record in records:
            if record is not None:
                observe(scales[record["evaluator"]], record)
    for name, found in scales.items():
        if any(scale.verdicts or scale.thresholds for scale in found.values()):
            entry = header["evaluators"][name]
            entry["outputs"] = {output: scale.declared for output, scale in found.items()}
            entry["scored"] = list(found)


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")

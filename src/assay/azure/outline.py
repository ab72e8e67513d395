"""What is sent of a run, known before anything is sent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.azure.metrics import Metric, metrics_of
from assay.azure.payloads import (
    EvaluatorBody,
    criteria_of,
    deployment_of,
    eval_body,
    evaluator_body,
    run_body,
)
from assay.azure.project import Foundry, Hub, Project
from assay.azure.rows import Rows, sample_of, write_rows
from assay.errors import RunError
from assay.jsontext import digest
from assay.run.record import Run


@dataclass(frozen=True)
class Outline:
    """An upload as it is meant to be.

    string_checks: whether verdicts are checked as words, too. deployment: the name that code
    evaluators must be given. key: equal for repeats of this upload and for nothing else.
    """

    run: Run
    project: Foundry
    metrics: list[Metric]
    rows: Rows
    string_checks: bool
    deployment: str
    notes: list[str]

    @property
    def evaluators(self) -> list[EvaluatorBody]:
        """An echo evaluator for each metric that has a criterion."""
        return [evaluator_body(metric) for metric in self.metrics if metric.kind != "column"]

    @property
    def dataset(self) -> str:
        """The dataset's name in the project."""
        slug = re.sub(r"[^A-Za-z0-9-]+", "-", self.run.name).strip("-")[:100] or "run"
        return f"assay-{slug}"

    @property
    def key(self) -> str:
        scales = [
            [metric.name, metric.threshold, evaluator_body(metric).fingerprint]
            for metric in self.metrics
        ]
        name, started = self.run.directory.resolve().name, self.run.header.get("started")
        parts = [self.project.endpoint, name, started, self.rows.version, scales]
        return digest([*parts, self.string_checks], 32)

    def eval_body(self, versions: Mapping[str, str]) -> dict[str, Any]:
        """The eval, with evaluator name to version."""
        criteria = criteria_of(
            self.metrics, versions, self.deployment, string_checks=self.string_checks
        )
        return eval_body(self.metrics, criteria, self.rows)

    def run_body(self, file_id: str) -> dict[str, Any]:
        """The run over the uploaded rows."""
        return run_body(self.run, file_id, self.key)


@contextmanager
def outline_of(
    run: Run, project: Foundry, *, deployment: str | None, string_checks: bool
) -> Iterator[Outline]:
    """The outline of an upload; its file of rows lasts as long as the `with` block.

    Raises RunError where the run holds nothing that can be shown.
    """
    metrics = metrics_of(run)
    if all(metric.kind == "column" for metric in metrics):
        why = "; ".join(metric.note for metric in metrics if metric.note) or "it has no metrics"
        raise RunError(f"{run.directory} holds nothing that Foundry can show as a score: {why}")
    with write_rows(run, metrics) as rows:
        yield Outline(
            run,
            project,
            metrics,
            rows,
            # To a string check, a row without a score would be a fail.
            string_checks and not rows.missing,
            deployment_of(run, deployment),
            _notes(metrics, rows, string_checks),
        )


def preview_run(
    directory: str | Path,
    project: Project,
    *,
    deployment: str | None = None,
    string_checks: bool = True,
    classic: bool = False,
) -> dict[str, Any]:
    """Every payload of an upload, without any call. Versions and ids come from the service."""
    run = Run(directory)
    if classic or isinstance(project, Hub):
        from assay.azure.classic import preview_classic

        return preview_classic(run, project)
    with outline_of(run, project, deployment=deployment, string_checks=string_checks) as found:
        versions = {body.name: "<version>" for body in found.evaluators}
        return {
            "project": project.endpoint,
            "surface": "foundry",
            "evaluators": [{"name": body.name, **body.body} for body in found.evaluators],
            "dataset": {
                "name": found.dataset,
                "version": found.rows.version,
                "rows": found.rows.count,
                "bytes": found.rows.size,
                "first": sample_of(run, found.metrics, 2),
            },
            "eval": found.eval_body(versions),
            "run": found.run_body("<dataset id>"),
            "notes": found.notes,
        }


def _notes(metrics: list[Metric], rows: Rows, string_checks: bool) -> list[str]:
    """What the portal will not show as it is here."""
    notes = [metric.note for metric in metrics if metric.note]
    unmarked = [m.name for m in metrics if m.kind == "score" and not m.has_verdict]
    if unmarked:
        notes.append(f"no threshold: every score of {', '.join(unmarked)} will be shown as a pass")
    if rows.missing:
        left_out = ", and the string checks are left out" if string_checks else ""
        notes.append(
            f"{rows.missing} of {rows.count} rows lack a score: they arrive as errors with "
            f"their cause, never as fails{left_out}"
        )
    renamed = [f"{old} as {new}" for old, new in rows.columns.items() if old != new]
    if renamed:
        notes.append(f"columns are renamed: {', '.join(renamed)}")
    return notes

"""Runs as they are in a project: under which ids, and in which eval together."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace

from assay.azure.metrics import Metric
from assay.azure.outline import outline_of
from assay.azure.project import Foundry
from assay.azure.state import State
from assay.errors import SetupError
from assay.run.record import Run


@dataclass(frozen=True)
class Uploaded:
    """A run as it is in the project. ids: eval to run. plain: the run without string checks;
    mark: equal for runs that share an eval where string checks are left out."""

    run: Run
    metrics: list[Metric]
    columns: set[str]
    ids: dict[str, str]
    plain: bool
    mark: str


def find_uploaded(run: Run, project: Foundry) -> Uploaded:
    """What the project has of a run as it is on disk now, with string checks and without."""
    with outline_of(run, project, deployment=None, string_checks=True) as outline:
        plain = replace(outline, string_checks=False)
        keys = dict.fromkeys((outline.key, plain.key))
        entries = {key: State.read(run.directory, key).entry for key in keys}
        there = {key: e for key, e in entries.items() if e.get("status") == "completed"}
        body = plain.eval_body({body.name: body.fingerprint for body in plain.evaluators})
        return Uploaded(
            run,
            [metric for metric in outline.metrics if metric.kind != "column"],
            set(outline.rows.columns.values()),
            {str(e["eval"]): str(e["run"]) for e in there.values() if "counts" in e},
            "counts" in there.get(plain.key, {}),
            str(body["metadata"]["assay.criteria"]),
        )


def common_eval(uploaded: Sequence[Uploaded], project: Foundry) -> str:
    """The eval all runs are in. Raises SetupError with the commands that bring them there."""
    absent = [one for one in uploaded if not one.ids]
    if absent:
        names = ", ".join(str(one.run.directory) for one in absent)
        raise SetupError(
            f"not in {project.endpoint} as on disk: {names}; {_commands(absent, project)}"
        )
    first = uploaded[0]
    for eval_id in first.ids:
        if all(eval_id in one.ids for one in uploaded):
            return eval_id
    for other in uploaded[1:]:
        if other.mark != first.mark:
            raise SetupError(
                f"{first.run.directory} and {other.run.directory} cannot be in one eval, since "
                f"{_difference(first, other)}; without --foundry they are compared here"
            )
    again = [one for one in uploaded if not one.plain] or uploaded
    raise SetupError(
        "these runs are in different evals, since some have string checks; bring them into one: "
        f"{_commands(again, project, ' --no-string-checks')}"
    )


def _commands(uploaded: Sequence[Uploaded], project: Foundry, option: str = "") -> str:
    option += f" --azure-ai-project {shlex.quote(project.endpoint)}"
    names = (shlex.quote(str(one.run.directory)) for one in uploaded)
    return " && ".join(f"assay upload {name}{option}" for name in names)


def _difference(first: Uploaded, other: Uploaded) -> str:
    """Why two runs are graded by different criteria."""
    metrics = {m.name for m in first.metrics} ^ {m.name for m in other.metrics}
    if metrics:
        return f"{', '.join(sorted(metrics))} is not in both"
    columns = first.columns ^ other.columns
    if columns:
        return f"their data differ in columns: {', '.join(sorted(columns))}"
    return "their scales or thresholds differ"

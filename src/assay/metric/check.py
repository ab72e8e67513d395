"""What is wrong with a metric.yaml, and what in it will surprise somebody later."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from assay.errors import PromptyError
from assay.metric.expressions import Expression, divisors
from assay.metric.levels import levels_of
from assay.metric.metricfile import load_metric, places
from assay.metric.multistep import MetricEvaluator
from assay.metric.promptstep import PromptStep
from assay.metric.steps import EmbedStep, MapStep, Step, StopStep, ValueStep
from assay.prompty.check.codes import CODES

Found = tuple[int, int, str, str, str]
"""Line, column, severity, code, message."""


def check_metric_file(path: str | Path) -> list[Found]:
    """Everything worth knowing about a metric.yaml, in the order of its lines. What is wrong
    with a prompt is found where the prompt is checked, but for what makes it unusable."""
    path = Path(path)
    try:
        evaluator = load_metric(path)
    except PromptyError as error:
        elsewhere = error.path is not None and Path(error.path).resolve() != path.resolve()
        message = str(error) if elsewhere else error.message
        line, column = (1, 1) if elsewhere else (error.line or 1, error.column or 1)
        return [(line, column, "error", "metric", message)]
    found = [
        (*places(evaluator.text, *where), CODES[code].severity, code, message)
        for code, message, where in _findings(evaluator)
    ]
    return sorted(found)


def _findings(evaluator: MetricEvaluator) -> Iterator[tuple[str, str, tuple[object, ...]]]:
    (output,) = evaluator.outputs.values()
    where: tuple[object, ...] = ("outputs", output.name)
    if output.threshold is None:
        message = f"output `{output.name}` has no threshold: no row passes or fails"
        yield "metric-no-threshold", message, where
    if output.minimum is None or output.maximum is None:
        message = f"output `{output.name}` has no minimum and maximum: any number would count"
        yield "metric-no-scale", message, where
    steps = evaluator.steps
    explained = evaluator.reason.names if evaluator.reason else frozenset()
    used = evaluator.result.names | explained | {n for step in steps for n in step.names}
    for name in evaluator.inputs:
        if name not in used:
            message = f"input `{name}` is used by no step"
            yield "metric-unused-input", message, ("inputs", name)
    for number, step in enumerate(steps):
        where = ("steps", number, step.name)
        if not isinstance(step, StopStep) and step.name not in used:
            message = f"step `{step.name}` is used by no other step and not by the score"
            yield "metric-unused-step", message, where
        if isinstance(step, PromptStep) and step.distribution:
            long = [
                v for v in levels_of(step.prompty.outputs[step.distribution]) if len(str(v)) > 1
            ]
            if long:
                message = (
                    f"step `{step.name}`: level {long[0]} is more than one token to some models, "
                    "which then give no score; levels of one digit are safe"
                )
                yield "metric-long-level", message, (*where, "distribution")
        if isinstance(step, ValueStep):
            yield from _unguarded(step.source, steps[:number], where)
    yield from _unguarded(evaluator.result, steps, ("score",))


def _unguarded(
    expression: Expression, before: tuple[Step, ...], where: tuple[object, ...]
) -> Iterator[tuple[str, str, tuple[object, ...]]]:
    """Lists by whose length an expression divides, and no stop asks about them."""
    asked = {name for step in before if isinstance(step, StopStep) for name in step.names}
    for names in divisors(expression):
        if names and not asked & _sources(names, before):
            listed = ", ".join(sorted(names))
            message = f"nothing is said for an empty {listed}: add a stop, or rows have no score"
            yield "metric-no-policy", message, where


def _sources(names: frozenset[str], before: tuple[Step, ...]) -> set[str]:
    """The names, and those their length comes from."""
    found = set(names)
    for step in reversed(before):
        if step.name not in found:
            continue
        if isinstance(step, MapStep | ValueStep | EmbedStep):
            found |= step.source.names
        elif isinstance(step, PromptStep):
            lists = [step.each, step.align[1] if step.align else None]
            found |= {name for one in lists if one is not None for name in one.names}
    return found

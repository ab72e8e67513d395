"""What the class in a flow folder stands on: a metric with a model configuration of azure's.

`assay export METRIC --flex` writes such folders.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from assay.compat.model_config import judge_of
from assay.errors import SetupError
from assay.metric import registry
from assay.metric.evaluator import PromptEvaluator
from assay.metric.multistep import MetricEvaluator
from assay.prompty import Output


def load(
    metric: str | Path, model_config: Any = None, threshold: float | None = None
) -> PromptEvaluator | MetricEvaluator:
    """A .prompty file or a folder with a metric.yaml, judged by the model of `model_config`.

    model_config: as `assay.compat.model_config.judge_of` takes it; not needed where the metric
    asks no model. threshold: of the headline output, instead of the file's own.
    Raises SetupError for a configuration that is incomplete, PromptyError for a file that
    cannot be used.
    """
    found: PromptEvaluator | MetricEvaluator = registry.load(metric)
    if found.needs_judge:
        found = replace(found, judge=judge_of(model_config))
    if threshold is None:
        return found
    outputs = _with_threshold(found, float(threshold))
    if isinstance(found, PromptEvaluator):
        return replace(found, prompty=replace(found.prompty, outputs=outputs))
    return replace(found, outputs=outputs)


def _with_threshold(
    found: PromptEvaluator | MetricEvaluator, threshold: float
) -> Mapping[str, Output]:
    scored = [output for output in found.outputs.values() if output.scored]
    if not scored:
        raise SetupError(f"{found.name} declares no scored output that could have a threshold")
    headline = next((output for output in scored if output.is_primary), scored[0])
    return {**found.outputs, headline.name: replace(headline, threshold=threshold)}

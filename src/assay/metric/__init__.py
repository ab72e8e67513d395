"""Metrics: what turns a row into a score. Called, as `@assay.metric(...)`, it declares one."""

import sys
from types import ModuleType
from typing import Any

from assay.metric.evaluator import Evaluator, PromptEvaluator
from assay.metric.function import FunctionEvaluator
from assay.metric.registry import load
from assay.metric.score import STATUSES, Call, Score, flat

__all__ = [
    "STATUSES",
    "Call",
    "Evaluator",
    "FunctionEvaluator",
    "PromptEvaluator",
    "Score",
    "flat",
    "load",
]


class _Package(ModuleType):
    """This package, which is also the decorator: `assay.metric` can only be one thing."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from assay.metric.custom import metric

        return metric(*args, **kwargs)


sys.modules[__name__].__class__ = _Package

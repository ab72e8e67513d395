"""Metrics: what turns a row into a score."""

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

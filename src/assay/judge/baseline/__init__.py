"""The embedded baseline judge: no key, no network, no language model."""

from assay.judge.baseline.judge import NOTE, BaselineJudge, metric_of
from assay.judge.baseline.measures import METRICS, PASS_QUALITY, Measure, measure, quality
from assay.judge.baseline.vectors import EMBEDDER, embed_texts

__all__ = [
    "EMBEDDER",
    "METRICS",
    "NOTE",
    "PASS_QUALITY",
    "BaselineJudge",
    "Measure",
    "embed_texts",
    "measure",
    "metric_of",
    "quality",
]

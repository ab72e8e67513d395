"""The evaluators of azure-ai-evaluation 1.18 by their names: same arguments, inputs and keys.

    from assay.compat.azure import GroundednessEvaluator   # was azure.ai.evaluation

A score is a number on its scale, or None with a reason: never NaN. Each of them is also an
evaluator of `assay.evaluate`.
"""

from __future__ import annotations

from assay.compat.documents import DocumentRetrievalEvaluator
from assay.compat.judged import (
    CoherenceEvaluator,
    F1ScoreEvaluator,
    FluencyEvaluator,
    GroundednessEvaluator,
    RelevanceEvaluator,
    ResponseCompletenessEvaluator,
    RetrievalEvaluator,
    SimilarityEvaluator,
)
from assay.compat.qa import QAEvaluator

__all__ = [
    "CoherenceEvaluator",
    "DocumentRetrievalEvaluator",
    "F1ScoreEvaluator",
    "FluencyEvaluator",
    "GroundednessEvaluator",
    "QAEvaluator",
    "RelevanceEvaluator",
    "ResponseCompletenessEvaluator",
    "RetrievalEvaluator",
    "SimilarityEvaluator",
]

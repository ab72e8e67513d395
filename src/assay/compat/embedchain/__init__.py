"""The metrics of Embedchain by their names, at the paths its documentation and its code use.

    from assay.compat.embedchain.evaluation.metrics import Groundedness   # was embedchain....

`evaluate(dataset)` returns the mean as before; `evaluate_rows(dataset)` what every row came to.
"""

from assay.compat.embedchain.config.evaluation.base import (
    AnswerRelevanceConfig,
    ContextRelevanceConfig,
    GroundednessConfig,
)
from assay.compat.embedchain.evaluation.base import BaseMetric, RowScore
from assay.compat.embedchain.evaluation.metrics import (
    AnswerRelevance,
    ContextRelevance,
    Groundedness,
)
from assay.compat.embedchain.utils.evaluation import EvalData, EvalMetric

__all__ = [
    "AnswerRelevance",
    "AnswerRelevanceConfig",
    "BaseMetric",
    "ContextRelevance",
    "ContextRelevanceConfig",
    "EvalData",
    "EvalMetric",
    "Groundedness",
    "GroundednessConfig",
    "RowScore",
]

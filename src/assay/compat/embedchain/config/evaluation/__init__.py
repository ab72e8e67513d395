"""`embedchain.config.evaluation`."""

from assay.compat.embedchain.config.evaluation.base import (
    AnswerRelevanceConfig,
    ContextRelevanceConfig,
    GroundednessConfig,
)

__all__ = ["AnswerRelevanceConfig", "ContextRelevanceConfig", "GroundednessConfig"]

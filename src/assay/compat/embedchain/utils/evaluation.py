"""`embedchain.utils.evaluation`: the row, and the names of the metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum


class EvalMetric(Enum):
    CONTEXT_RELEVANCY = "context_relevancy"
    ANSWER_RELEVANCY = "answer_relevancy"
    GROUNDEDNESS = "groundedness"


@dataclass(frozen=True, kw_only=True)
class EvalData:
    """One row of a data set. The metrics do not use `ground_truth`."""

    question: str
    contexts: Sequence[str]
    answer: str
    ground_truth: str | None = None

"""`embedchain.evaluation.metrics`: its three metrics, by assay's `embedchain.*` metric files."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from assay import sync
from assay.compat.embedchain.config.evaluation.base import (
    AnswerRelevanceConfig,
    ContextRelevanceConfig,
    GroundednessConfig,
)
from assay.compat.embedchain.evaluation.base import BaseMetric, RowScore
from assay.compat.embedchain.prompts import several_questions, with_prompt
from assay.compat.embedchain.utils.evaluation import EvalMetric
from assay.compat.model_config import embedder_of, openai_judge
from assay.errors import AssayError
from assay.metric.custom import Row
from assay.metric.multistep import MetricEvaluator
from assay.metric.registry import load
from assay.run.engine import score_row

__all__ = ["AnswerRelevance", "BaseMetric", "ContextRelevance", "Groundedness"]

_COLUMNS = {"query": "question", "response": "answer", "context": "contexts"}
_EVALUATOR = {
    "inputs",
    "outputs",
    "judge",
    "embedder",
    "needs_judge",
    "fingerprint",
    "describe",
    "check",
    "score",
    "renamed",
}


class _Metric(BaseMetric):
    """One of the three. `evaluator` is the metric of assay behind it; an object of it can be
    given to `assay.evaluate` as it is."""

    evaluator: MetricEvaluator

    def __getattr__(self, name: str) -> Any:
        if name in _EVALUATOR:
            return getattr(self.evaluator, name)
        raise AttributeError(f"{type(self).__name__} has no {name!r}")

    def evaluate(self, dataset: Sequence[Any]) -> float:
        """The mean over the rows that have a score; how many have none is logged.

        Raises AssayError with the causes where no row has one: 0 would be a lie, NaN no help.
        """
        rows = self.evaluate_rows(dataset)
        found = [row.score for row in rows if row.score is not None]
        absent = Counter(f"{row.status} ({row.cause})" for row in rows if row.score is None)
        causes = ", ".join(f"{count} {cause}" for cause, count in absent.items())
        if not found:
            example = next((f": {row.reason}" for row in rows if row.reason), "")
            raise AssayError(
                f"{self.name}: none of {len(rows)} rows has a score; {causes or 'no rows'}{example}"
            )
        if absent:
            logging.getLogger("assay").warning(
                "%s: the mean is of %d rows of %d; %s", self.name, len(found), len(rows), causes
            )
        return sum(found) / len(found)

    def evaluate_rows(self, dataset: Sequence[Any]) -> list[RowScore]:
        """What every row came to, in the order of the data set."""
        return sync.run(self._rows([_values(row) for row in dataset]))

    async def _rows(self, rows: list[dict[str, Any]]) -> list[RowScore]:
        output = next(iter(self.evaluator.outputs))
        scores = await asyncio.gather(
            *(score_row(self.evaluator, row, self.evaluator.judge) for row in rows)
        )
        return [
            RowScore(
                score.outputs.get(output),
                score.reason if score.status == "scored" else score.message,
                score.status,
                score.cause,
                score.evidence,
            )
            for score in scores
        ]


class ContextRelevance(_Metric):
    """Sentences of the context that the question needs / sentences of the context."""

    def __init__(self, config: ContextRelevanceConfig | None = None) -> None:
        super().__init__(EvalMetric.CONTEXT_RELEVANCY.value)
        self.config = config or ContextRelevanceConfig()
        found = with_prompt(_shipped(self.name), "copied", self.config.prompt)
        judge = openai_judge(self.config.model, self.config.api_key)
        self.evaluator = replace(found, judge=judge)


class AnswerRelevance(_Metric):
    """Mean cosine of the question with questions generated from the answer."""

    def __init__(self, config: AnswerRelevanceConfig | None = None) -> None:
        super().__init__(EvalMetric.ANSWER_RELEVANCY.value)
        self.config = config or AnswerRelevanceConfig()
        count = self.config.num_gen_questions
        found = _shipped(self.name)
        if self.config.prompt is not None:
            found = with_prompt(found, "asked", self.config.prompt, number=count)
        elif count != 1:
            found = several_questions(found, "asked", count)
        self.evaluator = replace(
            found,
            judge=openai_judge(self.config.model, self.config.api_key),
            embedder=embedder_of(self.config.embedder, self.config.api_key),
        )


class Groundedness(_Metric):
    """Claims of the answer that follow from the contexts / claims of the answer."""

    def __init__(self, config: GroundednessConfig | None = None) -> None:
        super().__init__(EvalMetric.GROUNDEDNESS.value)
        self.config = config or GroundednessConfig()
        found = with_prompt(_shipped(self.name), "answer", self.config.answer_claims_prompt)
        found = with_prompt(found, "judged", self.config.claims_inference_prompt)
        judge = openai_judge(self.config.model, self.config.api_key)
        self.evaluator = replace(found, judge=judge)


def _shipped(name: str) -> MetricEvaluator:
    found: MetricEvaluator = load(f"embedchain.{name}").renamed(name)
    return found


def _values(row: Any) -> dict[str, Any]:
    """The columns of a row that is an EvalData, or a dict with any of the usual names."""
    if isinstance(row, Mapping):
        row = Row(row)
    found = {column: getattr(row, name, None) for column, name in _COLUMNS.items()}
    return {
        column: list(value) if column == "context" and isinstance(value, tuple) else value
        for column, value in found.items()
    }

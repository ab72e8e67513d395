"""Azure's composite of six evaluators."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from assay.compat.judged import (
    CoherenceEvaluator,
    F1ScoreEvaluator,
    FluencyEvaluator,
    GroundednessEvaluator,
    Judged,
    RelevanceEvaluator,
    SimilarityEvaluator,
)
from assay.compat.keys import AzureEvaluator, known
from assay.compat.model_config import judge_of
from assay.errors import InputError, JudgeError
from assay.judge.base import Judge
from assay.metric.evaluator import Doors
from assay.metric.score import STATUSES, Score
from assay.prompty import Input, Output


class QAEvaluator(Doors):
    """query, response, context, ground_truth to the keys of groundedness, relevance, coherence,
    fluency, similarity and f1_score. One that fails leaves the others as they are.

    In `assay.evaluate` pass its parts, `[*QAEvaluator(...)]`: each is counted by itself then.
    Passed whole, a row has a score only where all six have.
    """

    name = "qa"
    needs_judge = True

    def __init__(
        self,
        model_config: Any,
        *,
        groundedness_threshold: float = 3,
        relevance_threshold: float = 3,
        coherence_threshold: float = 3,
        fluency_threshold: float = 3,
        similarity_threshold: float = 3,
        f1_score_threshold: float = 0.5,
        credential: Any = None,
        is_reasoning_model: bool = False,
    ) -> None:
        judge = judge_of(model_config, credential)  # one connection for all
        judged: list[tuple[type[Judged], float]] = [
            (GroundednessEvaluator, groundedness_threshold),
            (RelevanceEvaluator, relevance_threshold),
            (CoherenceEvaluator, coherence_threshold),
            (FluencyEvaluator, fluency_threshold),
            (SimilarityEvaluator, similarity_threshold),
        ]
        self.evaluators: tuple[AzureEvaluator, ...] = (
            *(
                kind(judge, threshold=threshold, is_reasoning_model=is_reasoning_model)
                for kind, threshold in judged
            ),
            F1ScoreEvaluator(threshold=f1_score_threshold),
        )
        self.judge = judge

    def __iter__(self) -> Iterator[AzureEvaluator]:
        return iter(self.evaluators)

    @cached_property
    def inputs(self) -> Mapping[str, Input]:  # type: ignore[override]
        return {
            name: item for one in reversed(self.evaluators) for name, item in one.inputs.items()
        }

    @cached_property
    def outputs(self) -> Mapping[str, Output]:  # type: ignore[override]
        return {one.headline.name: one.headline for one in self.evaluators}

    @property
    def fingerprint(self) -> str:
        return "-".join(one.fingerprint[:8] for one in self.evaluators)

    def describe(self) -> dict[str, Any]:
        found = [one.describe() for one in self.evaluators]
        outputs = {name: o for part in found for name, o in part["outputs"].items()}
        kept = {name: outputs[name] for name in self.outputs}
        return {"kind": "function", "function": "assay.compat.azure.QAEvaluator", "outputs": kept}

    def check(self, judge: Judge | None) -> None:
        for one in self.evaluators:
            one.check(judge)

    async def acall(self, **kwargs: Any) -> dict[str, Any]:
        values = known(self.inputs, kwargs, self.name)
        scores = await self._scores(values)
        found: dict[str, Any] = {}
        for one, score in zip(self.evaluators, scores, strict=True):
            found |= one.keys(score, values)
        return found

    async def score(
        self, values: Mapping[str, Any], judge: Judge | None = None, *, reask: int = 1
    ) -> Score:
        scores = await self._scores(values, judge, reask)
        calls = tuple(call for score in scores for call in score.calls)
        absent = [score for score in scores if score.status != "scored"]
        parts = {s.evaluator: s.outputs.get(s.evaluator, s.message) for s in scores}
        if absent:
            worst = max(absent, key=lambda score: STATUSES.index(score.status))
            message = "; ".join(f"{score.evaluator}: {score.message}" for score in absent)
            evidence = {"parts": parts}
            return replace(
                worst, evaluator=self.name, message=message, calls=calls, evidence=evidence
            )
        outputs = {name: score.outputs[name] for score in scores for name in score.outputs}
        kept = {name: outputs[name] for name in self.outputs}
        return Score(self.name, "scored", outputs=kept, calls=calls)

    async def _scores(
        self, values: Mapping[str, Any], judge: Judge | None = None, reask: int = 1
    ) -> list[Score]:
        async def one_score(one: AzureEvaluator) -> Score:
            known = {name: values[name] for name in one.inputs if name in values}
            try:
                return await one.score(known, judge, reask=reask)
            except (JudgeError, InputError) as error:
                return Score(one.name, "error", cause=error.cause, message=str(error))

        return list(await asyncio.gather(*(one_score(one) for one in self.evaluators)))

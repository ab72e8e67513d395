"""Azure's evaluators that are one question to a judge, and its F1."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from assay.compat.keys import AzureEvaluator
from assay.compat.model_config import for_reasoning, judge_of
from assay.errors import SetupError
from assay.metric.builtin import builtin
from assay.metric.evaluator import PromptEvaluator
from assay.metric.registry import folders
from assay.prompty import load


class Judged(AzureEvaluator):
    """One of the six prompts, with a model configuration of azure's."""

    _file: ClassVar[str]

    def __init__(
        self,
        model_config: Any,
        *,
        threshold: float | None = 3,
        credential: Any = None,
        is_reasoning_model: bool = False,
    ) -> None:
        prompty = load(_path(self._file))
        if is_reasoning_model:
            prompty = for_reasoning(prompty)
        outputs = {
            name: replace(output, threshold=threshold) if output.scored else output
            for name, output in prompty.outputs.items()
        }
        judge = judge_of(model_config, credential)
        super().__init__(PromptEvaluator(replace(prompty, outputs=outputs), judge))


def _path(name: str) -> Path:
    """The file that ships with assay: a file of the working folder may have another scale."""
    own = Path(__file__).parent / "prompts"
    for folder in (own, *(place for place in folders() if place.is_absolute())):
        if (folder / f"{name}.prompty").is_file():
            return folder / f"{name}.prompty"
    raise SetupError(f"{name}.prompty is missing from this installation of assay")


class SimilarityEvaluator(Judged):
    """query, response, ground_truth to `similarity`, 1 to 5."""

    _file = "similarity"


class GroundednessEvaluator(Judged):
    """response, context, query? (or conversation) to `groundedness`, 1 to 5."""

    _file = "groundedness"


class RelevanceEvaluator(Judged):
    """query, response (or conversation) to `relevance`, 1 to 5."""

    _file = "relevance"


class CoherenceEvaluator(Judged):
    """query, response (or conversation) to `coherence`, 1 to 5."""

    _file = "coherence"


class FluencyEvaluator(Judged):
    """response (or conversation) to `fluency`, 1 to 5."""

    _file = "fluency"


class RetrievalEvaluator(Judged):
    """query, context (or conversation) to `retrieval`, 1 to 5."""

    _file = "retrieval"


class ResponseCompletenessEvaluator(Judged):
    """response, ground_truth to `response_completeness`, 1 to 5."""

    _file = "response_completeness"


class F1ScoreEvaluator(AzureEvaluator):
    """response, ground_truth to `f1_score`, 0 to 1. No judge."""

    def __init__(self, *, threshold: float = 0.5) -> None:
        inner = builtin("f1_score")
        assert inner is not None
        output = replace(inner.outputs["f1_score"], threshold=threshold)
        super().__init__(replace(inner, outputs={"f1_score": output}))

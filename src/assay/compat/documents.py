"""Azure's evaluator of retrieval by graded labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from assay.compat.keys import AzureEvaluator, keys_of
from assay.errors import SetupError
from assay.metric import retrieval
from assay.metric.builtin import builtin, document_retrieval_outputs
from assay.metric.score import Score

_VERDICT = ("result", "passed", "threshold")


class DocumentRetrievalEvaluator(AzureEvaluator):
    """retrieval_ground_truth, retrieved_documents to `document_retrieval`, which is ndcg@3; all
    other numbers with their verdicts are in `document_retrieval_properties`. No judge.

    The thresholds of the top labels are the middle of the scale, and the totals have none:
    azure's defaults of 50 cannot be reached. Raises SetupError for one that cannot.
    """

    def __init__(
        self,
        *,
        ground_truth_label_min: int = 0,
        ground_truth_label_max: int = 4,
        ndcg_threshold: float | None = 0.5,
        xdcg_threshold: float | None = 50.0,
        fidelity_threshold: float | None = 0.5,
        top1_relevance_threshold: float | None = None,
        top3_max_relevance_threshold: float | None = None,
        total_retrieved_documents_threshold: int | None = None,
        total_ground_truth_documents_threshold: int | None = None,
    ) -> None:
        if not 0 <= ground_truth_label_min < ground_truth_label_max:
            raise SetupError("ground_truth_label_min must be 0 or more and below the maximum")
        thresholds = {
            "ndcg@3": ndcg_threshold,
            "xdcg@3": xdcg_threshold,
            "fidelity": fidelity_threshold,
            "top1_relevance": top1_relevance_threshold,
            "top3_max_relevance": top3_max_relevance_threshold,
            "total_retrieved_documents": total_retrieved_documents_threshold,
            "total_ground_truth_documents": total_ground_truth_documents_threshold,
        }
        given = {name: value for name, value in thresholds.items() if value is not None}
        outputs = {o.name: o for o in document_retrieval_outputs(ground_truth_label_max, **given)}
        for output in outputs.values():
            if output.maximum is not None and (output.threshold or 0) > output.maximum:
                raise SetupError(
                    f"the {output.name} threshold {output.threshold} cannot be reached: the "
                    f"scale is {output.scale}"
                )
        inner = builtin("document_retrieval")
        assert inner is not None
        function = _retrieval(ground_truth_label_min, ground_truth_label_max)
        super().__init__(replace(inner, function=function, outputs=outputs))

    def keys(self, score: Score, values: Mapping[str, Any]) -> dict[str, Any]:
        properties: dict[str, Any] = dict(score.outputs)
        for name, output in self.outputs.items():
            found = keys_of(output, score, None)
            properties |= {f"{name}_{key}": found[f"{name}_{key}"] for key in _VERDICT}
            properties[f"{name}_higher_is_better"] = output.direction != "decrease"
        headline = replace(self.headline, name="document_retrieval")
        value = {k: v for k, v in score.outputs.items() if k == self.headline.name}
        whole = replace(score, outputs={"document_retrieval": next(iter(value.values()), None)})
        return keys_of(headline, whole, properties)


def _retrieval(low: int, high: int) -> Callable[..., Any]:
    def score(retrieval_ground_truth: Any, retrieved_documents: Any) -> dict[str, float]:
        return retrieval.document_retrieval(
            retrieval_ground_truth, retrieved_documents, label_min=low, label_max=high
        )

    return score

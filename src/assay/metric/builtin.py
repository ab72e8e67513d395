"""Metrics that are Python: from a name to an evaluator.

`bleu`, `f1`, `rouge`, ... compare texts; `document_retrieval`, `mrr`, `recall@5`, ... document
ids. No judge, no call. A metric of ranked ids takes `@K` for the first K ranks.
"""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable, Iterable
from typing import Any

from assay.metric import retrieval, text
from assay.metric.function import FunctionEvaluator
from assay.prompty import Input, Output

_RANKED = re.compile(r"(\w+?)(?:@|_at_)(\d{1,4})")


def names() -> list[str]:
    """Every name that `builtin` knows; the ranked ones also with `@K`."""
    return [*_TEXT, *_ROUGE, "document_retrieval", *_IDS, "ndcg", "ndcg_linear"]


def builtin(name: str) -> FunctionEvaluator | None:
    """The metric of that name; None where there is none."""
    if name in _TEXT:
        return _text_metric(name)
    if name in _ROUGE:
        return _rouge_metric(name)
    if name == "document_retrieval":
        return _document_retrieval()
    ranked = _RANKED.fullmatch(name)
    stem, k = (ranked[1], int(ranked[2])) if ranked else (name, None)
    if ranked and stem in ("recall", "precision"):
        stem += "_at_k"
    if k == 0:
        return None
    if stem in _IDS:
        return _id_metric(name, stem, k)
    if stem in ("ndcg", "ndcg_linear"):
        return _ndcg_metric(name, "exp" if stem == "ndcg" else "linear", k)
    return None


def output(name: str, **given: Any) -> Output:
    """An output of 0..1 that passes from .5 on, but for what is given."""
    scale: dict[str, Any] = {"type": "number", "minimum": 0, "maximum": 1, "threshold": 0.5}
    return Output(name, **{**scale, **given})


# Texts.

_PAIR = {
    "response": Input("response", type="string", description="The answer to be scored."),
    "ground_truth": Input("ground_truth", description="The right answer, or a list of them."),
}

_TEXT: dict[str, tuple[Callable[[str, list[str]], float], str]] = {
    "exact_match": (
        text.exact_match,
        "1 where the response is the ground truth, as SQuAD compares.",
    ),
    "f1": (text.f1, "Words shared by response and ground truth, as SQuAD counts them."),
    "f1_score": (text.f1, "f1 under the name azure-ai-evaluation gives it."),
    "bleu": (text.bleu, "BLEU of one text, by sacrebleu."),
    "gleu": (text.gleu, "Google's GLEU, by nltk."),
    "chrf": (text.chrf, "chrF2: character n-grams, by sacrebleu."),
    "meteor": (text.meteor, "METEOR with exact and stem matches, by nltk."),
    "meteor_wordnet": (
        lambda response, references: text.meteor(response, references, synonyms=True),
        "METEOR with WordNet's synonyms, where its data is installed.",
    ),
}

_ROUGE = {
    "rouge": "ROUGE-L F1, with ROUGE-1 and ROUGE-2 beside it.",
    "rouge1": "ROUGE-1: words shared.",
    "rouge2": "ROUGE-2: pairs of words shared.",
    "rougeL": "ROUGE-L: the longest common sequence of words.",
}


def _text_metric(name: str) -> FunctionEvaluator:
    compute, description = _TEXT[name]

    def score(response: str, ground_truth: Any) -> float:
        return compute(response, text.texts(ground_truth))

    scale = {"type": "integer"} if name == "exact_match" else {}
    return _evaluator(
        score,
        name,
        [output(name, is_primary=True, **scale)],
        _PAIR.values(),
        description,
        variant="azure" if name == "f1_score" else "assay",
        preflight=text.PACKAGES.get(name),
    )


def _rouge_metric(name: str) -> FunctionEvaluator:
    types = text.ROUGE_TYPES if name == "rouge" else (name,)
    headline = "rougeL" if name == "rouge" else name

    def score(response: str, ground_truth: Any) -> dict[str, float]:
        found = text.rouge(response, text.texts(ground_truth))
        result = {name: found[headline][2]}
        for kind in types:
            result |= zip(_rouge_keys(name, kind), found[kind], strict=True)
        return result

    keys = [key for kind in types for key in _rouge_keys(name, kind)]
    outputs = [output(name, is_primary=True), *map(output, keys)]
    return _evaluator(score, name, outputs, _PAIR.values(), _ROUGE[name])


def _rouge_keys(name: str, kind: str) -> list[str]:
    return [f"{kind}_{part}" for part in ("precision", "recall", "f1")]


# Graded labels.

_GRADED = {
    "retrieval_ground_truth": Input(
        "retrieval_ground_truth",
        description="[{document_id, query_relevance_label}, ...]: all documents with a label.",
    ),
    "retrieved_documents": Input(
        "retrieved_documents",
        description="[{document_id, relevance_score}, ...]: what was found, in any order.",
    ),
}


def document_retrieval_outputs(label_max: int = 4, **thresholds: float) -> list[Output]:
    """The outputs of `document_retrieval`: azure's names and thresholds, but for those of the
    top labels, which azure has at 50 where the labels end at 4: here the middle of the scale.
    thresholds: other ones, by output."""
    top = {"type": "integer", "maximum": label_max, "threshold": label_max / 2}
    count = {"type": "integer", "maximum": None, "threshold": None, "direction": "neutral"}
    lower = {"threshold": 0, "direction": "decrease"}
    given: dict[str, dict[str, Any]] = {
        "ndcg@3": {"is_primary": True},
        "xdcg@3": {"maximum": 100, "threshold": 50},
        "fidelity": {},
        "top1_relevance": top,
        "top3_max_relevance": top,
        "holes": {"type": "integer", "maximum": None, **lower},
        "holes_ratio": lower,
        "total_retrieved_documents": count,
        "total_ground_truth_documents": count,
    }
    for name, threshold in thresholds.items():
        rising = {"direction": "increase"} if name.startswith("total_") else {}
        given[name] = {**given[name], **rising, "threshold": threshold}
    return [output(name, **scale) for name, scale in given.items()]


def _document_retrieval() -> FunctionEvaluator:
    def score(retrieval_ground_truth: Any, retrieved_documents: Any) -> dict[str, float]:
        return retrieval.document_retrieval(retrieval_ground_truth, retrieved_documents)

    return _evaluator(
        score,
        "document_retrieval",
        document_retrieval_outputs(),
        _GRADED.values(),
        "Ranking by graded labels: ndcg, xdcg, fidelity, holes, as azure's evaluator has them.",
        variant="azure",
        may_be_empty={"retrieved_documents"},
    )


def _ndcg_metric(name: str, gain: retrieval.Gain, k: int | None) -> FunctionEvaluator:
    def score(retrieval_ground_truth: Any, retrieved_documents: Any) -> float:
        known, labels = retrieval.ranked_labels(retrieval_ground_truth, retrieved_documents)
        return retrieval.ndcg(labels, known, k, gain)

    how = "gain 2**label - 1" if gain == "exp" else "gain = label, as trec_eval"
    return _evaluator(
        score,
        name,
        [output(name, is_primary=True)],
        _GRADED.values(),
        f"Normalised discounted cumulative gain, {how}.",
        variant="assay" if gain == "exp" else "trec_eval",
        may_be_empty={"retrieved_documents"},
    )


# Ids alone.

_ID_LISTS = {
    "retrieved_context_ids": Input(
        "retrieved_context_ids", description="Ids of what was retrieved, best first."
    ),
    "reference_context_ids": Input(
        "reference_context_ids", description="Ids of all that should have been retrieved."
    ),
}

_IDS: dict[str, tuple[Callable[..., float], str]] = {
    "hit_rate": (retrieval.hit_rate, "1 where any relevant document was retrieved."),
    "mrr": (retrieval.mrr, "1 / rank of the first relevant document."),
    "map": (retrieval.average_precision, "Average precision over all relevant documents."),
    "recall_at_k": (retrieval.recall_at_k, "Share of the relevant documents that were retrieved."),
    "precision_at_k": (retrieval.precision_at_k, "Share of the ranks with a relevant document."),
}


def _id_metric(name: str, stem: str, k: int | None) -> FunctionEvaluator:
    compute, description = _IDS[stem]

    def score(retrieved_context_ids: Any, reference_context_ids: Any) -> float:
        return compute(
            retrieval.ids("retrieved_context_ids", retrieved_context_ids),
            retrieval.ids("reference_context_ids", reference_context_ids),
            k,
        )

    return _evaluator(
        score,
        name,
        [output(name, is_primary=True)],
        _ID_LISTS.values(),
        description,
        may_be_empty={"retrieved_context_ids"},
    )


def _evaluator(
    function: Callable[..., Any],
    name: str,
    outputs: Iterable[Output],
    inputs: Iterable[Input],
    description: str,
    *,
    variant: str = "assay",
    may_be_empty: Iterable[str] = (),
    preflight: Callable[[], Any] | None = None,
) -> FunctionEvaluator:
    module = text if "response" in inspect.signature(function).parameters else retrieval
    return FunctionEvaluator(
        function,
        name,
        outputs={item.name: item for item in outputs},
        declared={item.name: item for item in inputs},
        may_be_empty=frozenset(may_be_empty),
        description=description,
        variant=variant,
        source=name,
        revision=hashlib.sha256(inspect.getsource(module).encode()).hexdigest()[:16],
        preflight=preflight,
        quick=True,
    )

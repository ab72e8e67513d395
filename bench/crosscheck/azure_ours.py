"""What `assay.compat.azure` makes of the cases that azure_side.py gave to azure-ai-evaluation.

Its section of docs/crosscheck.md is written by `bench.crosscheck.ours`.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from tests.support.server import JudgeServer, Response

from assay.compat import azure
from assay.compat.judged import Judged
from assay.errors import AssayError

HERE = Path(__file__).parent
VERSION = "azure-ai-evaluation 1.18.10"
CASES: dict[str, Any] = json.loads((HERE / "azure_cases.json").read_text("utf-8"))

EVALUATORS: dict[str, type[Judged]] = {
    "Similarity": azure.SimilarityEvaluator,
    "Groundedness": azure.GroundednessEvaluator,
    "Relevance": azure.RelevanceEvaluator,
    "Coherence": azure.CoherenceEvaluator,
    "Fluency": azure.FluencyEvaluator,
    "Retrieval": azure.RetrievalEvaluator,
    "ResponseCompleteness": azure.ResponseCompletenessEvaluator,
}


def library() -> dict[str, Any]:
    """What azure-ai-evaluation made of them."""
    found: dict[str, Any] = json.loads((HERE / "azure.json").read_text("utf-8"))
    return found


@cache
def ours() -> dict[str, Any]:
    """The same of ours."""
    with JudgeServer() as server:
        replies = {
            name: {case: _judged(server, name, reply) for case, reply in CASES["replies"].items()}
            for name in EVALUATORS
        }
    return {
        "replies": replies,
        "f1_score": {name: _f1(*pair) for name, pair in CASES["f1_score"].items()},
        "document_retrieval": {
            name: _retrieval(*case) for name, case in CASES["document_retrieval"].items()
        },
    }


def _judged(server: JudgeServer, name: str, case: dict[str, Any]) -> dict[str, Any]:
    config = {
        "azure_endpoint": server.azure,
        "azure_deployment": "gpt-4",
        "api_key": "k",
        "api_version": "2024-10-21",
    }
    evaluator = EVALUATORS[name](config)
    row = {key: text for key, text in CASES["row"].items() if key in evaluator.inputs}
    if case.get("empty"):
        row["response" if "response" in row else "context"] = ""
    metric = evaluator.headline.name
    wire = {key: value for key, value in case.items() if key != "empty"}
    if wire.get("content"):
        wire["content"] = wire["content"].replace('"score"', f'"{metric}"')  # as our prompt asks
    server.reply = Response(**wire)
    before = server.count
    try:
        found = evaluator(**row)
    except AssayError as error:
        return {"raises": f"{type(error).__name__}: {error.cause}", "calls": server.count - before}
    kept = {
        key: found[f"{metric}_{key}"] for key in ("score", "result", "passed", "status", "reason")
    }
    return {**kept, "calls": server.count - before}


def _f1(response: str, truth: str) -> Any:
    return azure.F1ScoreEvaluator()(response=response, ground_truth=truth)["f1_score"]


def _retrieval(labels: list[Any], documents: list[Any], top: int = 4) -> Any:
    evaluator = azure.DocumentRetrievalEvaluator(ground_truth_label_max=top)
    try:
        found = evaluator(
            retrieval_ground_truth=[
                {"document_id": name, "query_relevance_label": label} for name, label in labels
            ],
            retrieved_documents=[
                {"document_id": name, "relevance_score": score} for name, score in documents
            ],
        )
    except AssayError as error:
        return f"{type(error).__name__}: {error.cause}"
    if found["document_retrieval_score"] is None:
        return f"{found['document_retrieval_status']}: {found['document_retrieval_reason']}"
    numbers = found["document_retrieval_properties"]
    return {name: numbers[name] for name in evaluator.outputs}

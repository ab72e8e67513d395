# mypy: ignore-errors
"""What azure-ai-evaluation makes of its cases. In an environment of its own, from the repository:

pip install azure-ai-evaluation==1.18.10
PYTHONPATH=. python bench/crosscheck/azure_side.py > bench/crosscheck/azure.json

The judge is the scripted server of the tests, on loopback.
"""

import contextlib
import json
import logging
import math
import os
import sys
import warnings
from pathlib import Path

os.environ["AI_EVALS_DISABLE_EXPERIMENTAL_WARNING"] = "true"
warnings.simplefilter("ignore")

from azure.ai import evaluation  # noqa: E402
from tests.support.server import JudgeServer, Response  # noqa: E402

CASES = json.loads(Path(__file__).with_name("azure_cases.json").read_text("utf-8"))
INPUTS = {
    "Similarity": ("query", "response", "ground_truth"),
    "Groundedness": ("query", "response", "context"),
    "Relevance": ("query", "response"),
    "Coherence": ("query", "response"),
    "Fluency": ("response",),
    "Retrieval": ("query", "context"),
    "ResponseCompleteness": ("ground_truth", "response"),
}
METRICS = {"ResponseCompleteness": "response_completeness"}
logging.disable(logging.CRITICAL)


def plain(value):
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def keys(metric, found):
    names = ("score", "result", "passed", "status", "reason")
    return {name: plain(found[f"{metric}_{name}"]) for name in names}


def model(server):
    return {
        "azure_endpoint": server.azure,
        "azure_deployment": "gpt-4",
        "api_key": "k",
        "api_version": "2024-10-21",
    }


def judged(server, name, case):
    row = {key: CASES["row"][key] for key in INPUTS[name]}
    if case.get("empty"):
        row["response" if "response" in row else "context"] = ""
    wire = {key: value for key, value in case.items() if key != "empty"}
    server.reply = Response(**wire)
    before = server.count
    metric = METRICS.get(name, name.lower())
    try:
        found = keys(metric, getattr(evaluation, f"{name}Evaluator")(model(server))(**row))
    except Exception as error:
        found = {"raises": type(error).__name__}
    return {**found, "calls": server.count - before}


def conversation(server, turns):
    def reply(request):
        score = turns[0] if "question 0" in request.text else turns[1]
        if score == "prose":
            return "I would give it a 4."
        if score == "skipped":
            return json.dumps({"reason": "r", "score": None, "status": "skipped"})
        return json.dumps({"reason": "r", "score": score, "status": "completed"})

    messages = []
    for number, turn in enumerate(turns):
        messages.append({"role": "user", "content": f"question {number}"})
        if turn != "unanswered":
            messages.append({"role": "assistant", "content": f"answer {number}"})
    server.reply = reply
    try:
        found = evaluation.CoherenceEvaluator(model(server))(conversation={"messages": messages})
    except Exception as error:
        return {"raises": type(error).__name__}
    per_turn = found.get("evaluation_per_turn")
    return {
        "score": plain(found["coherence"]),
        "turns": per_turn and [plain(score) for score in per_turn["coherence_score"]],
    }


def shape(server):
    """The keys of the results, and of their properties."""
    server.reply = Response(**CASES["replies"]["clean JSON, 4"])
    found = {}
    for name, inputs in INPUTS.items():
        row = {key: CASES["row"][key] for key in inputs}
        found[name] = getattr(evaluation, f"{name}Evaluator")(model(server))(**row)
    found["F1Score"] = evaluation.F1ScoreEvaluator()(response="a b", ground_truth="b")
    return {
        name: sorted(result)
        + [
            f"{key}/{inner}"
            for key, value in result.items()
            if isinstance(value, dict)
            for inner in sorted(value)
        ]
        for name, result in found.items()
    }


def f1(pair):
    response, truth = pair
    try:
        found = evaluation.F1ScoreEvaluator()(response=response, ground_truth=truth)
        return plain(found["f1_score"])
    except Exception as error:
        return type(error).__name__


def retrieval(case):
    labels, documents, *top = case
    options = {"ground_truth_label_max": top[0]} if top else {}
    try:
        found = evaluation.DocumentRetrievalEvaluator(**options)(
            retrieval_ground_truth=[
                {"document_id": name, "query_relevance_label": label} for name, label in labels
            ],
            retrieved_documents=[
                {"document_id": name, "relevance_score": score} for name, score in documents
            ],
        )
    except Exception as error:
        return type(error).__name__
    numbers = found.get("document_retrieval_properties") or found
    skip = ("_result", "_threshold", "_passed", "_higher_is_better")
    return {k: plain(v) for k, v in numbers.items() if not k.endswith(skip)}


def main():
    with JudgeServer() as server:
        return {
            "replies": {
                name: {
                    case: judged(server, name, reply) for case, reply in CASES["replies"].items()
                }
                for name in INPUTS
            },
            "conversation": {
                name: conversation(server, turns) for name, turns in CASES["conversation"].items()
            },
            "keys": shape(server),
            "f1_score": {name: f1(case) for name, case in CASES["f1_score"].items()},
            "document_retrieval": {
                name: retrieval(case) for name, case in CASES["document_retrieval"].items()
            },
        }


with contextlib.redirect_stdout(sys.stderr):
    result = main()
print(json.dumps(result, indent=1))

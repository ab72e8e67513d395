"""What `assay.compat.azure` makes of the cases that azure_side.py gave to azure-ai-evaluation.

Its section of docs/crosscheck.md is written by `bench.crosscheck.ours`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from tests.support.server import JudgeServer, Request, Response

from assay.compat import azure
from assay.compat.judged import Judged
from assay.errors import InputError, JudgeError

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

WHY = {
    "score 3.5": "our prompts ask for a whole number",
    "score in words": "the row is lost in azure; ours asks again, then has no score and says why",
    "score as 4 of 5": "as above",
    "score true": "azure takes it for 1; to ours true is no number",
    "fenced JSON": "azure loses the row; ours reads it",
    "a sentence, then JSON": "as above",
    "bare number": "NaN or an exception in azure; ours asks again",
    "prose": "azure loses the row; ours asks again",
    "score 10": "azure never looks at the scale of 1 to 5",
    "score 0": "as above",
    "score missing": "ours asks again; NaN is never a score, and no score is no fail",
    "score null": "as above",
    "score NaN": "as above; NaN is not JSON",
    "status skipped, score 5": "ours takes a score that was given; azure drops it",
    "empty input, judge gives 5": "ours has nothing to judge and does not ask",
    "empty input, judge skips": "the same where azure asks; ours needs no call",
    "empty reply": "azure loses the row; ours asks again",
    "refusal": "azure loses the row, and the text of the refusal; ours has it in the reason",
    "reply filtered": "azure loses the row; ours names the filter in the reason",
    "prompt filtered": "as above",
    "cut off": "azure loses the row; ours asks again with more room",
    "conversation/4, then no score": "one NaN makes azure's mean NaN; ours is the mean of the "
    "turns that have a score, and counts them in `m_properties`",
    "conversation/4, then skipped": "azure drops the mean with one skipped turn",
    "conversation/4, then prose": "azure loses the whole conversation",
    "conversation/4, then a question without an answer": "the number is the same; with one turn "
    "azure leaves `evaluation_per_turn` out",
    "f1_score/typographic quotes": "azure knows the punctuation of ASCII only",
    "f1_score/sharp s": "azure lowers case; ours folds it, and \u00df is ss",
    "f1_score/without spaces": "to azure a text without spaces is one word",
    "f1_score/only articles": "nothing is left to azure, which is 0 even for equal texts",
    "f1_score/response empty": "an empty text is not applicable",
    "f1_score/truth empty": "as above",
    "document_retrieval/no labels": "azure loses the row",
    "document_retrieval/all labels 0": "where there is nothing to find, 0 would blame the search",
    "document_retrieval/a document twice": "azure counts it twice in the total",
    "document_retrieval/a label twice": "in azure the last one counts, and the total has both",
    "document_retrieval/a scale to 12": "azure's xdcg is above 100: its denominator knows only a "
    "scale to 4",
    "document_retrieval/a scale to 12, not all found": "as above; and azure's fidelity sorts the "
    "labels as text, 10 before 2, so that they get each other's weights",
    "document_retrieval/label above the scale": "an error of the row in both",
}
"""Why ours is another than azure's, by the reply or by kind/case."""


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
        talks = {name: _conversation(server, t) for name, t in CASES["conversation"].items()}
        keys = _keys(server)
    return {
        "replies": replies,
        "conversation": talks,
        "keys": keys,
        "f1_score": {name: _f1(*pair) for name, pair in CASES["f1_score"].items()},
        "document_retrieval": {
            name: _retrieval(*case) for name, case in CASES["document_retrieval"].items()
        },
    }


def _model(server: JudgeServer) -> dict[str, str]:
    return {
        "azure_endpoint": server.azure,
        "azure_deployment": "gpt-4",
        "api_key": "k",
        "api_version": "2024-10-21",
    }


def _judged(server: JudgeServer, name: str, case: dict[str, Any]) -> dict[str, Any]:
    evaluator = EVALUATORS[name](_model(server))
    metric = evaluator.headline.name
    row = {key: text for key, text in CASES["row"].items() if key in evaluator.inputs}
    if case.get("empty"):
        row["response" if "response" in row else "context"] = ""
    server.reply = _response(case, metric)
    before = server.count
    try:
        found = evaluator(**row)
    except (InputError, JudgeError) as error:
        return {"raises": f"{type(error).__name__}: {error.cause}", "calls": server.count - before}
    kept = ("score", "result", "passed", "status", "reason")
    return {**{key: found[f"{metric}_{key}"] for key in kept}, "calls": server.count - before}


def _response(case: dict[str, Any], metric: str) -> Response:
    """The reply, with the score under the name our prompt asks for."""
    wire = {key: value for key, value in case.items() if key != "empty"}
    if wire.get("content"):
        wire["content"] = wire["content"].replace('"score"', f'"{metric}"')
    return Response(**wire)


def _conversation(server: JudgeServer, turns: list[Any]) -> dict[str, Any]:
    def reply(request: Request) -> str:
        score = turns[0] if "question 0" in request.text else turns[1]
        if score == "prose":
            return "I would give it a 4."
        if score == "skipped":
            return json.dumps({"reason": "r", "coherence": None, "status": "skipped"})
        return json.dumps({"reason": "r", "coherence": score, "status": "completed"})

    messages = []
    for number, turn in enumerate(turns):
        messages.append({"role": "user", "content": f"question {number}"})
        if turn != "unanswered":
            messages.append({"role": "assistant", "content": f"answer {number}"})
    server.reply = reply
    found = azure.CoherenceEvaluator(_model(server))(conversation={"messages": messages})
    per_turn = found["evaluation_per_turn"]["coherence_score"]
    return {"score": found["coherence"], "turns": per_turn}


def _keys(server: JudgeServer) -> dict[str, list[str]]:
    """The keys of the results, and of their properties."""
    results = {}
    for name, kind in EVALUATORS.items():
        evaluator = kind(_model(server))
        server.reply = _response(CASES["replies"]["clean JSON, 4"], evaluator.headline.name)
        row = {key: text for key, text in CASES["row"].items() if key in evaluator.inputs}
        results[name] = evaluator(**row)
    results["F1Score"] = azure.F1ScoreEvaluator()(response="a b", ground_truth="b")
    return {
        name: sorted(result)
        + [
            f"{key}/{inner}"
            for key, value in result.items()
            if isinstance(value, dict)
            for inner in sorted(value)
        ]
        for name, result in results.items()
    }


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
    except (InputError, JudgeError) as error:
        return f"{type(error).__name__}: {error.cause}"
    if found["document_retrieval_score"] is None:
        return f"{found['document_retrieval_status']}: {found['document_retrieval_reason']}"
    numbers = found["document_retrieval_properties"]
    return {name: numbers[name] for name in evaluator.outputs}


# The section of the document.

INTRO = f"""
## {VERSION}

The same replies of a scripted server on loopback, to the real evaluators and to those of
`assay.compat.azure`, all with the default threshold of 3 and named here without `Evaluator`:
{", ".join(EVALUATORS)}.
Our prompts ask for the score by the name of the metric, azure's for `score`; the
replies differ in that word alone. An exception by its name: in azure's `evaluate()` such a row is
NaN without a word. The calls are given where they are not one. The keys of the results, and of
their properties, are the same. Cases: `azure_cases.json`; recorded by `azure_side.py`.
"""


def section() -> str:
    """What docs/crosscheck.md says about azure."""
    lines = [INTRO, "| the judge said | evaluators | azure | ours | why ours differs |"]
    lines.append("|---|---|---|---|---|")
    for case, names, theirs, own in rows():
        who = "all" if len(names) == len(EVALUATORS) else ", ".join(names)
        why = "" if same(theirs, own) else WHY[case]
        lines.append(f"| {case} | {who} | {_shown(theirs)} | {_shown(own)} | {why} |")
    heads = {
        "conversation": "Turns of a conversation, to CoherenceEvaluator:",
        "f1_score": "F1ScoreEvaluator:",
        "document_retrieval": "DocumentRetrievalEvaluator, ndcg@3 / xdcg@3 / fidelity / top 1 / "
        "best of top 3 / holes / their share / documents / labels:",
    }
    for kind, head in heads.items():
        lines.append(f"\n{head}\n\n| case | azure | ours | why ours differs |\n|---|---|---|---|")
        for case, theirs in library()[kind].items():
            why = WHY.get(f"{kind}/{case}", "")
            lines.append(f"| {case} | {_value(theirs)} | {_value(ours()[kind][case])} | {why} |")
    return "\n".join(lines) + "\n"


def rows() -> Iterator[tuple[str, list[str], dict[str, Any], dict[str, Any]]]:
    """A reply, the evaluators with the same outcome, and the outcome of azure's and of ours."""
    theirs, own = library()["replies"], ours()["replies"]
    for case in CASES["replies"]:
        groups: dict[str, list[str]] = {}
        for name in EVALUATORS:
            groups.setdefault(_shown(theirs[name][case]) + _shown(own[name][case]), []).append(name)
        for names in groups.values():
            yield case, names, theirs[names[0]][case], own[names[0]][case]


def same(theirs: dict[str, Any], own: dict[str, Any]) -> bool:
    """Whether both have the same outcome, but for the words of the reason."""
    return {**theirs, "reason": ""} == {**own, "reason": ""}


def _shown(found: dict[str, Any]) -> str:
    calls = "" if found["calls"] == 1 else f", {found['calls'] or 'no'} calls"
    if "raises" in found:
        return f"{found['raises']}{calls}"
    if found["status"] == "completed" and found["result"] != "unknown":
        return f"{found['score']:g} {found['result']}{calls}"
    return f"{_value(found['score'])}: {found['result']}, {found['status']}{calls}"


def _value(value: Any) -> str:
    if isinstance(value, dict):
        if "turns" in value:
            turns = value["turns"] or []
            return f"{_value(value['score'])} of {', '.join(map(_value, turns)) or 'one turn'}"
        return " / ".join(_value(entry) for entry in value.values())
    if value is None:
        return "none"
    return f"{value:.12g}" if isinstance(value, (int, float)) else str(value)

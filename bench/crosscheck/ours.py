"""What assay makes of the cases, beside what the libraries made of them.

python -m bench.crosscheck.ours > docs/crosscheck.md

The libraries' numbers are in *.json, each written by its *_side.py in an environment of its own.
azure's cases and ours beside them are in azure_ours.py.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.crosscheck.azure_ours import section

import assay
from assay.metric.multistep import MetricEvaluator

HERE = Path(__file__).parent
EVALUATORS = HERE.parents[1] / "evaluators"
VERSIONS = {"ragas": "0.4.3", "deepeval": "4.3.1", "embedchain": "0.1.128"}

Case = dict[str, Any]
Setup = tuple[str, dict[str, Any], list[Any]]
"""A metric, a row, and what the judge replies, one after the other."""

CONTEXT = ["The baths were built in 1931. They are by the lake.",
           "Day tickets are 7 euros. Children pay 4 euros."]  # fmt: skip
ROW = {"query": "q", "response": "r", "ground_truth": "One. Two.", "context": CONTEXT}

WHY = {
    "ragas.faithfulness/a verdict is missing": "ragas divides by the verdicts that came back",
    "ragas.faithfulness/a verdict is 2": "to ragas any whole number but 0 is a yes; ours knows "
    "yes, no and unknown only",
    "ragas.faithfulness/no claims": "no number in ragas either, but NaN there",
    **dict.fromkeys(
        (f"ragas.context_precision/{case}" for case in ("1 0 1", "0 1 1", "0 0 1")),
        "ragas adds 1e-10 below the line",
    ),
    "ragas.context_precision/1 1 1": "ragas adds 1e-10 below the line, and never gives 1",
    "ragas.context_recall/a verdict is missing": "ragas divides by the sentences that came back",
    "ragas.context_recall/a verdict is 2": "as above; in ragas' newer collections this is 1.5",
    "ragas.answer_correctness/0 0 0, nothing sorted": "ours asks about each claim: that none is "
    "sorted cannot happen, and no claims on both sides is no number",
    "ragas.answer_correctness/no statement on either side": "ragas calls two empty answers right",
    "ragas.context_entity_recall/a a b, found a": "ragas counts the repeated name twice below the "
    "line",
    "ragas.context_entity_recall/A, found a": "ours does not care about case",
    "ragas.context_entity_recall/a b, found a b": "ragas adds 1e-8 below the line",
    "ragas.context_entity_recall/none wanted": "a share of nothing is no number",
    "deepeval.faithfulness/yes borderline no": "what the context does not mention passes in "
    "deepeval; ours asks for support",
    "deepeval.faithfulness/all borderline": "as above",
    "deepeval.faithfulness/yes, because / maybe": "deepeval drops the verdict it cannot read; ours "
    "asks for it again, then gives no score",
    "deepeval.faithfulness/no claims": "deepeval calls it perfect",
    "deepeval.contextual_precision/maybe no yes": "deepeval drops the verdict, which moves the "
    "ranks; ours gives no score",
    "deepeval.contextual_precision/two verdicts for three passages": "deepeval's verdicts carry no "
    "index; ours asks about each passage by itself, so that none can be missing",
    "deepeval.contextual_recall/yes borderline": "deepeval drops the verdict",
    "deepeval.contextual_recall/none": "deepeval has 0 where the judge said nothing",
    "deepeval.contextual_relevancy/nothing stated": "ours cuts the statements itself, so that the "
    "judge cannot leave all out",
    "embedchain.groundedness/a verdict is missing": "embedchain counts it as 0",
    "embedchain.groundedness/a verdict too many": "embedchain goes above 1; ours does not use an "
    "index that no claim has",
    "embedchain.groundedness/a verdict is -1": "one NaN makes embedchain's whole mean NaN; ours "
    "counts unknown as unsupported",
    "embedchain.groundedness/a blank line": "embedchain drops the row from the mean",
    "embedchain.groundedness/no claims": "embedchain divides by zero",
    "embedchain.context_relevancy/six of four": "embedchain goes above 1; our judge names numbers",
    "embedchain.context_relevancy/not in the context": "embedchain counts sentences that are not "
    "there; our judge names numbers, and one that does not exist is no score",
}
"""Why ours, or the variant, is another number than the library's."""


CANNOT_BE = {"deepeval.contextual_precision/two verdicts for three passages"}
"""Cases that our own metric does not meet."""


def library_numbers() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for library in VERSIONS:
        found |= json.loads((HERE / f"{library}.json").read_text("utf-8"))
    return found


def table() -> Iterator[tuple[str, str, Any, Any, Any]]:
    """Metric, case, and the number of the library, of our variant and of our own metric."""
    cases: dict[str, dict[str, Case]] = json.loads((HERE / "cases.json").read_text("utf-8"))
    library = library_numbers()
    for metric, values in library.items():
        for name, value in values.items():
            case = cases.get(metric, cases.get(metric.removeprefix("ragas."), {}))[name]
            has_own = metric in OWN and f"{metric}/{name}" not in CANNOT_BE
            own = OWN[metric](case) if has_own else None
            yield metric, name, value, score(*VARIANTS[metric](case)), own and score(*own)


class Same:
    """An embedder to which all texts are alike."""

    name = "same"

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [[1.0, 0.0] for _ in texts]

    def describe(self) -> dict[str, Any]:
        return {"embedder": self.name}

    async def close(self) -> None:
        return None


def score(name: str, row: dict[str, Any], replies: list[Any]) -> float | str:
    """The number, or the status and its cause."""
    evaluator = assay.load(EVALUATORS / name)
    assert isinstance(evaluator, MetricEvaluator)
    left = [reply if isinstance(reply, str) else json.dumps(reply) for reply in replies]
    judge = assay.ScriptedJudge(lambda _: left.pop(0) if len(left) > 1 else left[0])
    found = asyncio.run(evaluator.with_embedder(Same()).score(row, judge))
    if found.status != "scored":
        return f"{found.status}: {found.cause}"
    if name == "ragas.answer_correctness":  # the library was asked for its factual part
        return float(found.evidence["parts"]["f1"])
    return float(next(iter(found.outputs.values())))


# What the judge says, in the words of each metric.


def claims(count: int) -> dict[str, Any]:
    return {"claims": [f"s{n}" for n in range(count)]}


def plain(key: str, kind: str, values: Sequence[Any]) -> dict[str, Any]:
    return {key: [{"statement": "s", "reason": "r", kind: value} for value in values]}


def indexed(values: Sequence[Any]) -> dict[str, Any]:
    words = {1: "yes", 0: "no", "1": "yes", "0": "no", "-1": "unknown", "borderline": "unknown"}
    found = [words.get(value, value) for value in values]
    return {
        "verdicts": [
            {"index": index, "reason": "r", "verdict": "unknown" if word == "idk" else word}
            for index, word in enumerate(found, 1)
        ]
    }


def correctness(case: Case | None) -> Setup:
    if case is None:
        return "answer_correctness", ROW, [claims(0), claims(0)]
    given, wanted = case["tp"] + case["fp"], case["tp"] + case["fn"]
    right = indexed([1] * case["tp"] + [0] * case["fp"])
    covered = indexed([1] * case["tp"] + [0] * case["fn"])
    return "answer_correctness", ROW, [claims(wanted), claims(given), right, covered]


def ragas_correctness(case: Case | None) -> Setup:
    if case is None:
        return "ragas.answer_correctness", ROW, [claims(0), claims(0)]
    found = {
        key: [{"statement": key, "reason": "r"}] * case[key.lower()] for key in ("TP", "FP", "FN")
    }
    return "ragas.answer_correctness", ROW, [claims(1), claims(1), found]


def precision(name: str, case: Case) -> Setup:
    row = {**ROW, "context": [f"p{n}" for n in range(len(case["verdicts"]))]}
    words = indexed(case["verdicts"])["verdicts"]
    # One that cannot be read is asked for again.
    again = [word for word in words for _ in range(2 if word["verdict"] == "maybe" else 1)]
    return name, row, again


def entity_recall(name: str, case: Case) -> Setup:
    return name, ROW, [{"entities": case["wanted"]}, {"entities": case["found"]}]


def relevancy(case: Case) -> Setup:
    passages = ["Aa. " * len(words) for words in case["passages"]]
    row = {**ROW, "context": [text or "..." for text in passages]}
    return "contextual_relevancy", row, [indexed(w) for w in case["passages"]]


def needed(case: Case) -> Setup:
    sentences = [s for passage in CONTEXT for s in passage.split(". ")]
    picked = [s for s in case["picked"].split(". ") if s]
    numbers = [
        next((n for n, t in enumerate(sentences, 1) if t.strip(".") == s.strip(".")), 9)
        for s in picked
    ]
    return "context_relevancy", ROW, [{"needed": numbers}]


def faithful(case: Case) -> Setup:
    return "faithfulness", ROW, [claims(case["claims"]), indexed(case["verdicts"])]


def recall(case: Case) -> Setup:
    return "context_recall", ROW, [indexed(case["verdicts"])]


def deepeval(name: str, *before: str) -> Callable[[Case], Setup]:
    def setup(case: Case) -> Setup:
        first = {"truths": {"truths": ["t"]}, "claims": claims(case.get("claims", 0))}
        replies = [plain("verdicts", "verdict", case["verdicts"])]
        return f"deepeval.{name}", ROW, [first[key] for key in before] + replies

    return setup


VARIANTS: dict[str, Callable[[Any], Setup]] = {
    "ragas.faithfulness": lambda case: (
        "ragas.faithfulness",
        ROW,
        [claims(case["claims"]), plain("statements", "verdict", case["verdicts"])],
    ),
    "ragas.context_precision": lambda case: precision("ragas.context_precision", case),
    "ragas.context_recall": lambda case: (
        "ragas.context_recall",
        ROW,
        [plain("classifications", "attributed", case["verdicts"])],
    ),
    "ragas.answer_correctness": ragas_correctness,
    "ragas.context_entity_recall": lambda case: entity_recall("ragas.context_entity_recall", case),
    "deepeval.faithfulness": deepeval("faithfulness", "truths", "claims"),
    "deepeval.answer_relevancy": deepeval("answer_relevancy", "claims"),
    "deepeval.contextual_precision": deepeval("contextual_precision"),
    "deepeval.contextual_recall": deepeval("contextual_recall"),
    "deepeval.contextual_relevancy": lambda case: (
        "deepeval.contextual_relevancy",
        ROW,
        [plain("verdicts", "verdict", words) for words in case["passages"]],
    ),
    "embedchain.groundedness": lambda case: (
        "embedchain.groundedness",
        ROW,
        ["\n".join(claims(case["claims"])["claims"]) or "NONE", "\n".join(case["verdicts"])],
    ),
    "embedchain.context_relevancy": lambda case: (
        "embedchain.context_relevancy",
        ROW,
        [case["picked"]],
    ),
}

OWN: dict[str, Callable[[Any], Setup]] = {
    "ragas.faithfulness": faithful,
    "ragas.context_precision": lambda case: precision("context_precision", case),
    "ragas.context_recall": recall,
    "ragas.answer_correctness": correctness,
    "ragas.context_entity_recall": lambda case: entity_recall("context_entity_recall", case),
    "deepeval.faithfulness": faithful,
    "deepeval.contextual_precision": lambda case: precision("context_precision", case),
    "deepeval.contextual_recall": recall,
    "deepeval.contextual_relevancy": relevancy,
    "embedchain.groundedness": faithful,
    "embedchain.context_relevancy": needed,
}


# The document.

INTRO = f"""# Cross-checks: the libraries, our variants, and ours

The same decisions of a judge, given to the real libraries
({", ".join(f"{name} {version}" for name, version in VERSIONS.items())}) with a scripted model, to
the variant of the library's name here, and to our own metric of that kind. Written by
`python -m bench.crosscheck.ours > docs/crosscheck.md`; the cases are in `bench/crosscheck/`, and a
test compares every variant with the library's recorded number.

A variant gives the library's number, or none where the library has NaN, infinity, a number outside
its range, or no row. Our own metric differs where the last column says why. For
`answer_correctness` the factual part is compared, without the cosine. `status: cause` is what a
score says that has no number. azure-ai-evaluation has a section of its own, the last one.
"""


def document() -> str:
    lines = [INTRO]
    last = None
    for metric, name, library, variant, own in table():
        if metric != last:
            lines.append(f"\n## {metric}\n")
            lines.append("| the judge said | library | variant | ours | why ours differs |")
            lines.append("|---|---|---|---|---|")
            last = metric
        why = WHY.get(f"{metric}/{name}", "")
        shown = " | ".join(_shown(value) for value in (library, variant, own))
        lines.append(f"| {name.replace('|', '/')} | {shown} | {why} |")
    return "\n".join(lines) + "\n" + section()


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.12g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    print(document(), end="")

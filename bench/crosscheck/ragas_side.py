# mypy: ignore-errors
"""What ragas makes of the cases. In an environment of its own:

pip install ragas==0.4.3 'langchain-community<0.4'; python ragas_side.py > ragas.json
"""

import asyncio
import json
import math
import warnings
from pathlib import Path

warnings.simplefilter("ignore")

from langchain_core.outputs import Generation, LLMResult  # noqa: E402
from ragas import SingleTurnSample  # noqa: E402
from ragas.llms.base import BaseRagasLLM  # noqa: E402
from ragas.metrics import (  # noqa: E402
    AnswerCorrectness,
    ContextEntityRecall,
    ContextRecall,
    Faithfulness,
    LLMContextPrecisionWithReference,
)

CASES = json.loads(Path(__file__).with_name("cases.json").read_text())


class Scripted(BaseRagasLLM):
    """Replies one after the other."""

    def __init__(self, replies):
        super().__init__()
        self.left = list(replies)

    def generate_text(self, *args, **kwargs):
        reply = json.dumps(self.left.pop(0))
        return LLMResult(generations=[[Generation(text=reply)]])

    async def agenerate_text(self, *args, **kwargs):
        return self.generate_text()

    def is_finished(self, response):
        return True


def entry(kind, n, verdict):
    return {"statement": f"s{n}", "reason": "r", kind: verdict}


def replies(metric, case):
    if metric == "faithfulness":
        found = [entry("verdict", n, v) for n, v in enumerate(case["verdicts"])]
        return [{"statements": [f"s{n}" for n in range(case["claims"])]}, {"statements": found}]
    if metric == "context_precision":
        return [{"reason": "r", "verdict": v} for v in case["verdicts"]]
    if metric == "context_recall":
        found = [entry("attributed", n, v) for n, v in enumerate(case["verdicts"])]
        return [{"classifications": found}]
    if metric == "context_entity_recall":
        return [{"entities": case["wanted"]}, {"entities": case["found"]}]
    if case is None:
        return [{"statements": []}, {"statements": []}]
    sides = {"TP": "tp", "FP": "fp", "FN": "fn"}
    found = {k: [{"statement": k, "reason": "r"}] * case[c] for k, c in sides.items()}
    return [{"statements": ["a"]}, {"statements": ["b"]}, found]


METRICS = {
    "faithfulness": Faithfulness,
    "context_precision": LLMContextPrecisionWithReference,
    "context_recall": ContextRecall,
    "answer_correctness": lambda llm: AnswerCorrectness(llm=llm, weights=[1.0, 0.0]),
    "context_entity_recall": ContextEntityRecall,
}


async def score(metric, case):
    contexts = ["c"] * (len(case["verdicts"]) if metric == "context_precision" else 2)
    sample = SingleTurnSample(
        user_input="q", response="a", reference="r", retrieved_contexts=contexts
    )
    try:
        value = await METRICS[metric](llm=Scripted(replies(metric, case))).single_turn_ascore(
            sample
        )
    except Exception as error:
        return f"{type(error).__name__}"
    return "NaN" if math.isnan(value) else float(value)


async def main():
    found = {
        f"ragas.{metric}": {name: await score(metric, case) for name, case in CASES[metric].items()}
        for metric in METRICS
    }
    print(json.dumps(found, indent=1))


asyncio.run(main())

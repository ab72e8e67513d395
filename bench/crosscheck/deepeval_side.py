# mypy: ignore-errors
"""What deepeval makes of the cases. In an environment of its own:

pip install deepeval==4.3.1; python deepeval_side.py > deepeval.json
"""

import json
import os
from pathlib import Path

os.environ["DEEPEVAL_TELEMETRY_OPT_OUT"] = "YES"

from deepeval import metrics  # noqa: E402
from deepeval.models import DeepEvalBaseLLM  # noqa: E402
from deepeval.test_case import LLMTestCase  # noqa: E402

CASES = json.loads(Path(__file__).with_name("cases.json").read_text())


class Scripted(DeepEvalBaseLLM):
    """Replies one after the other."""

    def __init__(self, replies):
        self.left = list(replies)
        super().__init__("scripted")

    def load_model(self):
        return self

    def generate(self, prompt, *args, **kwargs):
        return json.dumps(self.left.pop(0))

    async def a_generate(self, prompt, *args, **kwargs):
        return self.generate(prompt)

    def get_model_name(self):
        return "scripted"


def verdicts(words):
    return {"verdicts": [{"statement": "s", "verdict": word, "reason": "r"} for word in words]}


def replies(metric, case):
    if metric == "faithfulness":
        claims = [f"s{n}" for n in range(case["claims"])]
        return [{"truths": ["t"]}, {"claims": claims}, verdicts(case["verdicts"])]
    if metric == "answer_relevancy":
        statements = [f"s{n}" for n in range(case["claims"])]
        return [{"statements": statements}, verdicts(case["verdicts"])]
    if metric == "contextual_relevancy":
        return [verdicts(words) for words in case["passages"]]
    return [verdicts(case["verdicts"])]


METRICS = {
    "faithfulness": metrics.FaithfulnessMetric,
    "answer_relevancy": metrics.AnswerRelevancyMetric,
    "contextual_precision": metrics.ContextualPrecisionMetric,
    "contextual_recall": metrics.ContextualRecallMetric,
    "contextual_relevancy": metrics.ContextualRelevancyMetric,
}


def score(metric, case):
    count = 2 if metric == "contextual_relevancy" else 3
    row = LLMTestCase(
        input="q", actual_output="a", expected_output="e", retrieval_context=["c"] * count
    )
    found = METRICS[metric](
        model=Scripted(replies(metric, case)), async_mode=False, include_reason=False
    )
    try:
        return float(found.measure(row, _show_indicator=False))
    except Exception as error:
        return f"{type(error).__name__}"


print(
    json.dumps(
        {
            f"deepeval.{metric}": {
                name: score(metric, case) for name, case in CASES[f"deepeval.{metric}"].items()
            }
            for metric in METRICS
        },
        indent=1,
    )
)

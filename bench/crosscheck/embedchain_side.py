# mypy: ignore-errors
"""What embedchain makes of the cases. In an environment of its own:

pip install embedchain==0.1.128 pysbd; python embedchain_side.py > embedchain.json
"""

import json
import logging
import math
from pathlib import Path
from types import SimpleNamespace

from embedchain.config.evaluation.base import ContextRelevanceConfig, GroundednessConfig
from embedchain.evaluation.metrics import ContextRelevance, Groundedness
from embedchain.utils.evaluation import EvalData

CASES = json.loads(Path(__file__).with_name("cases.json").read_text())
CONTEXT = ["The baths were built in 1931. They are by the lake.",
           "Day tickets are 7 euros. Children pay 4 euros."]  # fmt: skip
logging.disable(logging.CRITICAL)


class Scripted:
    """A client that replies one after the other."""

    def __init__(self, replies):
        self.left = list(replies)
        self.chat = self.completions = self

    def create(self, **kwargs):
        message = SimpleNamespace(content=self.left.pop(0))
        return SimpleNamespace(choices=[SimpleNamespace(message=message)])


def score(name, case):
    row = EvalData(question="q", contexts=CONTEXT, answer="a")
    if name == "groundedness":
        metric = Groundedness(GroundednessConfig(api_key="none"))
        claims = "\n".join(f"s{n}" for n in range(case["claims"]))
        metric.client = Scripted([claims, "\n".join(case["verdicts"])])
    else:
        metric = ContextRelevance(ContextRelevanceConfig(api_key="none"))
        metric.client = Scripted([case["picked"]])
    try:
        value = float(metric._compute_score(row))
    except Exception as error:
        return f"{type(error).__name__}"
    return value if math.isfinite(value) else str(value)


names = ("groundedness", "context_relevancy")
found = {
    f"embedchain.{name}": {k: score(name, case) for k, case in CASES[f"embedchain.{name}"].items()}
    for name in names
}
print(json.dumps(found, indent=1))

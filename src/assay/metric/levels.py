"""A probability for every level of an output, from the log-probabilities of the judge's tokens."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from assay.metric.ask import Answer
from assay.metric.functions import normal
from assay.metric.work import Stop
from assay.prompty.fields import Output

SETTINGS: Mapping[str, Any] = {"logprobs": True, "top_logprobs": 20}
"""What a judge is asked for. 20 is the most that OpenAI and Azure give."""


def distribution(answer: Answer, output: Output) -> dict[str, Any]:
    """Probability of each level, read at the last token that is the score.

    `mass` is the share of probability that levels have there: what the model would have said
    that is no level is left out, and said. Raises Stop where there are no log-probabilities or
    the score is not one token: nothing stands in for them.
    """
    value = answer.outputs[output.name]
    levels = {str(level) for level in levels_of(output)}
    token = next((t for t in reversed(answer.logprobs) if _text(t) == str(value)), None)
    if token is None:
        why = (
            f"no single token of the reply is {value}"
            if answer.logprobs
            else "the judge gave no log-probabilities"
        )
        raise Stop("invalid", "no_logprobs", f"{output.name}: {why}; use a metric that samples")
    found: dict[str, float] = {}
    for candidate in token.get("top_logprobs") or [token]:
        level = _text(candidate)
        if level in levels:
            found[level] = found.get(level, 0.0) + math.exp(candidate["logprob"])
    mass = math.fsum(found.values())
    if mass <= 0:
        raise Stop("invalid", "no_logprobs", f"no level of {output.name} has a probability")
    return {"method": "expectation", "levels": found, "mass": min(mass, 1.0), "value": value}


def levels_of(output: Output) -> list[Any]:
    """The values of an output, listed or between its bounds; none where it has no bounds."""
    if output.levels:
        return list(output.levels)
    if output.type != "integer" or output.minimum is None or output.maximum is None:
        return []
    return list(range(int(output.minimum), int(output.maximum) + 1))


def _text(token: Mapping[str, Any]) -> str:
    """A token as it is compared: a digit of full width is that digit."""
    return normal(token["token"])

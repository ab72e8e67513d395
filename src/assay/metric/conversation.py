"""Metrics that judge a whole conversation, told from those that judge a turn."""

from __future__ import annotations

from collections.abc import Mapping

from assay.metric.columns import FAMILIES
from assay.prompty import Input

_CONVERSATION = ("messages", "conversation")
_OF_A_TURN = {*FAMILIES["query"], *FAMILIES["response"]}


def conversation_input(inputs: Mapping[str, Input]) -> Input | None:
    """The input that takes a whole conversation: called messages or conversation, or a thread.

    Beside a required query or response, a thread is what was said before.
    """
    judges_turns = any(item.required and item.name in _OF_A_TURN for item in inputs.values())
    for item in inputs.values():
        if item.name in _CONVERSATION or (item.type == "thread" and not judges_turns):
            return item
    return None

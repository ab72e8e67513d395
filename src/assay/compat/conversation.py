"""A conversation as azure-ai-evaluation takes it: cut into turns, scored turn by turn."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from assay.errors import InputError
from assay.metric.score import Score
from assay.prompty import Output


def turns_of(conversation: Any) -> list[dict[str, Any]]:
    """`{"messages": [{role, content, context?}, ...], "context"?}` as query, response, context.

    Each answer of the assistant goes with what the user said since the one before. What the
    user said last, without an answer, is no turn. The context is the answer's own, else the
    question's, else the conversation's.
    Raises InputError for another shape, or where no question has an answer.
    """
    if isinstance(conversation, Mapping):
        messages, shared = conversation.get("messages"), conversation.get("context")
    else:
        messages, shared = conversation, None
    if not isinstance(messages, Sequence) or isinstance(messages, str):
        raise InputError("a conversation is {'messages': [...]}", cause="wrong_input_type")
    turns: list[dict[str, Any]] = []
    asked: list[str] = []
    context = shared
    for message in messages:
        if not isinstance(message, Mapping) or "role" not in message:
            raise InputError("a message has a role and a content", cause="wrong_input_type")
        content = _content(message.get("content"))
        if message["role"] == "user":
            asked.append(content)
            context = message.get("context") or context
        elif message["role"] == "assistant" and asked:
            turn = {"query": "\n".join(asked), "response": content}
            own = _context(message.get("context") or context)
            turns.append({**turn, "context": own} if own else turn)
            asked, context = [], shared
    if not turns:
        raise InputError("no question in the conversation has an answer", cause="empty_input")
    return turns


def _content(content: Any) -> str:
    if isinstance(content, list):
        parts = [part.get("text", "") for part in content if isinstance(part, Mapping)]
        return "\n".join(str(part) for part in parts if part)
    return "" if content is None else str(content)


def _context(context: Any) -> list[str]:
    """Passages from a text, a list of texts, or `{"citations": [{"content": ...}]}`."""
    if isinstance(context, Mapping):
        context = context.get("citations", context.get("content"))
    entries = context if isinstance(context, list) else [context]
    found = [entry.get("content") if isinstance(entry, Mapping) else entry for entry in entries]
    return [str(entry) for entry in found if entry]


def mean_score(name: str, output: Output, scores: Sequence[Score]) -> Score:
    """One score of several turns: the mean of those that have one, and the reason of the
    lowest. Where none has, the last turn's status and why."""
    found = [(i, s) for i, s in enumerate(scores, 1) if s.status == "scored"]
    calls = tuple(call for score in scores for call in score.calls)
    if not found:
        last = scores[-1]
        return Score(name, last.status, cause=last.cause, message=last.message, calls=calls)
    values = [float(score.outputs[output.name]) for _, score in found]
    worst = min if output.direction != "decrease" else max
    turn, lowest = worst(found, key=lambda pair: float(pair[1].outputs[output.name]))
    reason = f"turn {turn}: {lowest.reason}" if lowest.reason and len(scores) > 1 else lowest.reason
    return Score(
        name,
        "scored",
        outputs={output.name: math.fsum(values) / len(values)},
        reason=reason,
        calls=calls,
        evidence={"turns": len(scores), "turns_scored": len(found)},
    )

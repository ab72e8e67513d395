"""What a request gives a metric: its row, what a target answered, or a whole conversation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from assay.errors import InputError
from assay.metric.columns import bind_columns
from assay.metric.conversation import conversation_input
from assay.metric.evaluator import Evaluator
from assay.metric.inputs import is_absent


def values_of(evaluator: Evaluator, body: Any) -> dict[str, Any]:
    """The metric's inputs from a request's body, under their own or another known name.

    At level `turn` the answer is what the target gave (`data.sample`) where the row has none.
    At level `conversation` the input for it gets `data.item.messages`, whole: an endpoint
    gives one score, and how those of several turns become one is not ours to choose.
    Raises InputError for a body of another shape, and for a metric of the other level.
    """
    data = body.get("data") if isinstance(body, Mapping) else None
    item = data.get("item") if isinstance(data, Mapping) else None
    if not isinstance(data, Mapping) or not isinstance(item, Mapping):
        raise InputError("the body has no object at data.item")
    level = body.get("evaluation_level") or "turn"
    if level == "conversation":
        return _of_conversation(evaluator, item)
    if level != "turn":
        raise InputError(f"evaluation_level is turn or conversation, not {str(level)[:40]!r}")
    return _of_turn(evaluator, item, data.get("sample"))


def _of_turn(evaluator: Evaluator, item: Mapping[str, Any], sample: Any) -> dict[str, Any]:
    found = _named(evaluator, item)
    for name, value in _named(evaluator, _answered(sample)).items():
        if is_absent(found.get(name)):
            found[name] = value
    taking = conversation_input(evaluator.inputs)
    if taking is not None and taking.required and taking.name not in found:
        raise InputError(
            f"{evaluator.name} judges conversations: it needs evaluation_level conversation and a "
            "list at data.item.messages"
        )
    return found


def _of_conversation(evaluator: Evaluator, item: Mapping[str, Any]) -> dict[str, Any]:
    taking = conversation_input(evaluator.inputs)
    if taking is None:
        raise InputError(
            f"{evaluator.name} judges turns, not conversations: it takes "
            f"{', '.join(evaluator.inputs)}, at evaluation_level turn"
        )
    given = item.get(taking.name, item.get("messages"))
    messages = given.get("messages") if isinstance(given, Mapping) else given
    if not isinstance(messages, list):
        raise InputError("a conversation needs a list at data.item.messages")
    if taking.type in ("thread", "array"):
        given = messages
    elif taking.type == "object" and given is messages:
        given = {"messages": messages}
    return _named(evaluator, item) | {taking.name: given}


def _answered(sample: Any) -> dict[str, Any]:
    """What a target answered, as a row. The rest of a sample is about the call, not the answer."""
    if not isinstance(sample, Mapping):
        return {}
    given = (sample.get(name) for name in ("response", "output_text"))
    answer = next((text for text in given if text is not None), None)
    return {} if answer is None else {"response": answer}


def _named(evaluator: Evaluator, row: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs a row has, by the rules that hold for data sets."""
    optional = {name: replace(item, required=False) for name, item in evaluator.inputs.items()}
    return bind_columns(evaluator.name, optional, row).values(row)

"""One prompt, one judge, one answer that fits what the file declares, or why there is none."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from assay.errors import JudgeError, JudgeRefusal
from assay.jsontext import digest
from assay.judge.base import SHA, Judge, Message, Reply, is_decider, remembers
from assay.metric.score import Call, Status
from assay.prompty import Prompty
from assay.prompty.reply import Reading

LARGER = 4
"""How many times the limit a truncated reply gets when it is asked for once more."""

_SHOWN_SHA = 16


@dataclass(frozen=True, slots=True)
class Answer:
    """The outcome of asking: outputs where the status is `scored`, and every call it took."""

    status: Status
    outputs: Mapping[str, Any] = field(default_factory=dict)
    cause: str | None = None
    message: str | None = None
    calls: tuple[Call, ...] = ()
    logprobs: tuple[Mapping[str, Any], ...] = ()


async def ask(
    prompty: Prompty,
    values: Mapping[str, Any],
    judge: Judge,
    *,
    reask: int = 1,
    settings: Mapping[str, Any] | None = None,
) -> Answer:
    """Render, ask, read. An invalid reply is asked again up to `reask` times, with the reason;
    a truncated one gets a larger limit instead. settings: beside the file's own parameters.

    Raises RenderError for values the template cannot print, JudgeError where no first answer
    could be had.
    """
    if is_decider(judge):
        reply = await judge.decide(prompty, values)
        return _answer(prompty, reply, prompty.parameters, [_call(prompty, reply, "")])
    messages: list[Message] = prompty.render(values)
    settings = {**prompty.parameters, **(settings or {})}
    calls: list[Call] = []
    answer: Answer | None = None
    while True:
        try:
            reply = await judge.complete(messages, **settings)
        except JudgeRefusal as error:
            return Answer("refused", {}, error.cause, str(error), tuple(calls))
        except JudgeError as error:
            if answer is None:
                raise
            return replace(answer, message=f"{answer.message}; asked again, but {error}")
        note = answer.message if answer else None
        sha = digest(messages, SHA)
        calls.append(_call(prompty, reply, sha[:_SHOWN_SHA], note))
        answer = _answer(prompty, reply, settings, calls)
        if answer.status in ("scored", "not_applicable") and remembers(judge):
            judge.remember(sha, settings, reply)
        if answer.status != "invalid" or len(calls) > reask:
            return answer
        if answer.cause != "truncated":
            messages = [*messages, *repair(reply, answer.message)]
        elif not _enlarge(settings):
            return answer


def messages_sha(messages: Sequence[Message]) -> str:
    """Hash of messages as they are sent, 16 hex digits."""
    return digest(messages, _SHOWN_SHA)


def _answer(
    prompty: Prompty, reply: Reply, settings: Mapping[str, Any], calls: Sequence[Call]
) -> Answer:
    done = tuple(calls)
    if reply.refusal:
        return Answer("refused", {}, "refusal", f"the judge declined: {reply.refusal}", done)
    if reply.finish_reason == "content_filter":
        message = "the content filter stopped the answer"
        return Answer("refused", {}, "content_filter", message, done)
    text = reply.text
    if reply.tool_calls:
        name = reply.tool_calls[0]["name"]
        if len(reply.tool_calls) > 1 or name not in _tool_names(settings):
            asked = ", ".join(call["name"] for call in reply.tool_calls)
            message = f"the model answered with tool calls the file does not ask for: {asked}"
            return Answer("invalid", {}, "tool_call", message, done)
        text = reply.tool_calls[0]["arguments"]
    reading = prompty.read(text)
    if reply.finish_reason == "length" and not _is_whole(text, reading):
        message = _truncated(reply, prompty.parameters, settings)
        return Answer("invalid", {}, "truncated", message, done)
    status: Status = "scored" if reading.status == "scored" else "invalid"
    if reading.status == "not_applicable":
        status = "not_applicable"
    outputs, cause = reading.outputs, reading.cause
    return Answer(status, outputs, cause, reading.message, done, reply.logprobs)


def _is_whole(text: str, reading: Reading) -> bool:
    """Whether a reply that met its limit had said all: only a closed JSON object shows that."""
    return reading.status == "scored" and text.rstrip().endswith(("}", "```"))


def _truncated(reply: Reply, declared: Mapping[str, Any], sent: Mapping[str, Any]) -> str:
    name = "max_completion_tokens" if "max_completion_tokens" in declared else "max_tokens"
    limit = declared.get(name)
    spent = reply.usage.reasoning_tokens
    thought = f", {spent} tokens of it spent on reasoning" if spent else ""
    present = f"is {limit}" if limit else "is not set in the file"
    tried = f" ({sent[name]} was too little as well)" if sent.get(name) != limit else ""
    return f"the reply was cut off at its limit{thought}: raise {name}, which {present}{tried}"


def _enlarge(settings: dict[str, Any]) -> bool:
    for name in ("max_tokens", "max_completion_tokens"):
        if isinstance(settings.get(name), int):
            settings[name] *= LARGER
            return True
    return False


def repair(reply: Reply, why: str | None) -> list[Message]:
    """What is said after an invalid reply: the reply itself, and why it cannot be used."""
    text = reply.text or "\n".join(call["arguments"] for call in reply.tool_calls)
    return [
        {"role": "assistant", "content": text},
        {
            "role": "user",
            "content": f"That reply cannot be used: {why}. Answer again, in exactly the form "
            "that was asked for, and with nothing else.",
        },
    ]


def _tool_names(settings: Mapping[str, Any]) -> set[str]:
    tools = settings.get("tools")
    names = set()
    for tool in tools if isinstance(tools, list) else ():
        function = tool.get("function", tool) if isinstance(tool, Mapping) else {}
        names.add(str(function.get("name")))
    return names


def _call(prompty: Prompty, reply: Reply, sha: str, note: str | None = None) -> Call:
    text = reply.text
    if not text and reply.tool_calls:
        text = json.dumps(list(reply.tool_calls), ensure_ascii=False)
    return Call(
        prompt=prompty.file_name,
        reply=text,
        usage=reply.usage,
        latency=round(reply.latency, 4),
        attempts=reply.attempts,
        finish_reason=reply.finish_reason,
        model=reply.model,
        messages_sha=sha,
        note=note,
        cached=reply.cached,
    )

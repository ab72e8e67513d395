"""Judges through an Azure AI project: one JSON POST to its Responses API.

Models that are connected to a project are reached in no other way. Messages and settings are
the chat wire's own words, here as there; they are put into this wire's words when they are sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.errors import JudgeError
from assay.jsontext import loads
from assay.judge.base import Message, Reply, Usage
from assay.judge.credential import Credential
from assay.judge.faults import fault, rejected_parameter
from assay.judge.model import ModelJudge, limits_of

WORDS = {
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
    "response_format": "text.format",
    "verbosity": "text.verbosity",
    "reasoning_effort": "reasoning.effort",
}
"""Settings that have another name here; with a dot: within an object."""

NO_PLACE = frozenset(
    {
        *("seed", "n", "stop", "logprobs", "top_logprobs", "logit_bias"),
        *("presence_penalty", "frequency_penalty", "prediction", "modalities", "audio"),
    }
)
"""Settings that have no counterpart here: not sent, and the run's header says so."""

_ENDINGS = {"max_output_tokens": "length", "content_filter": "content_filter"}
"""Why a reply is incomplete, in the chat wire's words."""


@dataclass(eq=False)
class ResponsesJudge(ModelJudge):
    """A model behind the Responses API. Use `project()` to make one."""

    async def complete(self, messages: Sequence[Message], **settings: Any) -> Reply:
        """One request. A parameter the model rejects by name is left out and remembered."""
        asked = {"store": False, **settings}
        for name in NO_PLACE & asked.keys():
            self.learnt.setdefault(name, None)
        if any("name" in message for message in messages):
            self.learnt.setdefault("name of a message", None)
        for _ in range(8):
            sent = self._translate(asked)
            status, headers, body, latency = await self.post(_request(messages, sent))
            if status == 200:
                return self._reply(body, headers, latency)
            rejected = rejected_parameter(status, body)
            if rejected is None or not self._learn(_setting(rejected[0], sent), sent):
                raise fault(status, headers, body, self.where, self.credential.secrets)
        raise JudgeError(f"{self.where} rejects every parameter", cause="bad_request")

    def _reply(self, body: bytes, headers: Mapping[str, str], latency: float) -> Reply:
        try:
            data = loads(body)
            if data.get("error"):
                raise fault(200, headers, body, self.where, self.credential.secrets)
            said = [item for item in _of(data["output"], "message") if _is_answer(item)]
            parts = [part for item in said for part in item["content"]]
            calls = tuple(
                {"name": str(call["name"]), "arguments": str(call["arguments"])}
                for call in _of(data["output"], "function_call")
            )
            return Reply(
                text="".join(part["text"] for part in _of(parts, "output_text")),
                usage=_usage(data.get("usage") or {}),
                finish_reason=_finish_reason(data, bool(calls)),
                latency=latency,
                model=data.get("model"),
                refusal="".join(part["refusal"] for part in _of(parts, "refusal")) or None,
                tool_calls=calls,
                limits=limits_of(headers),
            )
        except (ValueError, LookupError, TypeError, AttributeError):
            raise self._no_reply(body, headers, "complete response") from None


def project(
    model: str, *, endpoint: str, credential: Credential, timeout: float = 120.0
) -> ResponsesJudge:
    """A model of the Azure AI project at `endpoint`: a deployment, or `connection/deployment`."""
    url = f"{endpoint}/openai/v1/responses"
    return ResponsesJudge(f"project:{model}", url, model, credential, timeout)


# To the wire.


def _request(messages: Sequence[Message], settings: Mapping[str, Any]) -> dict[str, Any]:
    body: dict[str, Any] = {"input": [item for message in messages for item in _items(message)]}
    for name, value in settings.items():
        outer, _, inner = WORDS.get(name, name).partition(".")
        if name in _SHAPES:
            value = _SHAPES[name](value)
        body[outer] = {**body.get(outer, {}), inner: value} if inner else value
    return body


def _setting(parameter: str, sent: Mapping[str, Any]) -> str:
    """The setting that was sent as this parameter, or as a part of it."""
    for name in sent:
        word = WORDS.get(name, name)
        if parameter == word or f"{parameter}.".startswith(f"{word}."):
            return name
    return next((name for name in sent if WORDS.get(name, name).startswith(f"{parameter}.")), "")


def _items(message: Message) -> Iterator[dict[str, Any]]:
    """A message, the calls in it, or what a call gave: each is an item of its own."""
    role, content, calls = message["role"], message.get("content"), message.get("tool_calls")
    if role == "tool":
        call = message.get("tool_call_id")
        yield {"type": "function_call_output", "call_id": call, "output": _content(role, content)}
        return
    if content or not calls:
        yield {"type": "message", "role": role, "content": _content(role, content)}
    for call in calls or ():
        function = call.get("function") if isinstance(call, Mapping) else None
        if not isinstance(function, Mapping):
            raise JudgeError(
                "the tool_calls of a message are not in the form id, type, function",
                cause="bad_request",
            )
        yield {
            "type": "function_call",
            "call_id": call.get("id"),
            "name": function.get("name"),
            "arguments": function.get("arguments") or "",
        }


def _content(role: str, content: Any) -> Any:
    if not isinstance(content, list):
        return "" if content is None else content
    return [_part(role, part) for part in content]


def _part(role: str, part: Any) -> Any:
    """A part of a message. What is no text or image of the chat wire stays as it is."""
    kind = part.get("type") if isinstance(part, Mapping) else None
    if kind == "text":
        return {**part, "type": "output_text" if role == "assistant" else "input_text"}
    if kind == "image_url" and isinstance(part.get("image_url"), Mapping):
        image = part["image_url"]
        detail = image.get("detail") or "auto"
        return {"type": "input_image", "image_url": image.get("url"), "detail": detail}
    return part


def _format(value: Any) -> Any:
    """A schema stands beside its `type` here, not one level below."""
    if isinstance(value, Mapping) and isinstance(value.get("json_schema"), Mapping):
        return {"type": value.get("type"), **value["json_schema"]}
    return value


def _tool(value: Any) -> Any:
    """A function stands beside its `type`; one that says nothing of `strict` stays as it was
    there, where that means no."""
    if isinstance(value, Mapping) and isinstance(value.get("function"), Mapping):
        return {"type": value.get("type"), "strict": False, **value["function"]}
    return value


def _tools(value: Any) -> Any:
    return [_tool(tool) for tool in value] if isinstance(value, list) else value


def _tool_choice(value: Any) -> Any:
    if isinstance(value, Mapping) and isinstance(value.get("function"), Mapping):
        return {"type": value.get("type"), **value["function"]}
    return value


_SHAPES = {"response_format": _format, "tools": _tools, "tool_choice": _tool_choice}


# From the wire.


def _of(items: Sequence[Mapping[str, Any]], kind: str) -> list[Mapping[str, Any]]:
    return [item for item in items if item["type"] == kind]


def _is_answer(item: Mapping[str, Any]) -> bool:
    """Some models say what they are about to do before they answer."""
    return item.get("phase") != "commentary"


def _finish_reason(data: Mapping[str, Any], has_calls: bool) -> str:
    """In the chat wire's words. Raises LookupError for a response that is not over."""
    status = data["status"]
    if status == "incomplete":
        return _ENDINGS[data["incomplete_details"]["reason"]]
    return {"completed": "tool_calls" if has_calls else "stop"}[status]


def _usage(usage: Mapping[str, Any]) -> Usage:
    prompt = usage.get("input_tokens_details") or {}
    completion = usage.get("output_tokens_details") or {}
    return Usage(
        prompt_tokens=usage.get("input_tokens") or 0,
        completion_tokens=usage.get("output_tokens") or 0,
        reasoning_tokens=completion.get("reasoning_tokens") or 0,
        cached_tokens=prompt.get("cached_tokens") or 0,
    )

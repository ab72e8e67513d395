"""The Responses API as a service speaks it: what it takes, and what it answers.

`tests.support.server.JudgeServer` answers with it under `/openai/v1/responses` of a project.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]

PARAMETERS = {
    *("model", "input", "store", "temperature", "top_p", "max_output_tokens", "text", "reasoning"),
    *("tools", "tool_choice", "parallel_tool_calls", "metadata", "user", "instructions", "include"),
    *("truncation", "service_tier", "top_logprobs", "stream", "previous_response_id"),
}
_ITEMS = {
    "message": {"type", "role", "content"},
    "function_call": {"type", "call_id", "name", "arguments"},
    "function_call_output": {"type", "call_id", "output"},
}
_PARTS = {
    "input_text": {"type", "text"},
    "output_text": {"type", "text"},
    "input_image": {"type", "image_url", "detail"},
}
_FORMATS = {
    "text": {"type"},
    "json_object": {"type"},
    "json_schema": {"type", "name", "schema", "strict", "description"},
}
_ROLES = ("system", "developer", "user", "assistant")


def unknown(body: Json) -> str | None:
    """The first parameter the service does not know, by its path; None where all is well."""
    return next(_unknown(body), None)


def _unknown(body: Json) -> Iterator[str]:
    yield from (name for name in body if name not in PARAMETERS)
    if not isinstance(body.get("model"), str):
        yield "model"
    items = body.get("input")
    for index, item in enumerate(items if isinstance(items, list) else []):
        here = f"input[{index}]"
        kind = item.get("type", "message")
        if kind not in _ITEMS or item.keys() - _ITEMS[kind]:
            yield f"{here}.{next(iter(item.keys() - _ITEMS.get(kind, set())), 'type')}"
        if kind == "message" and item.get("role") not in _ROLES:
            yield f"{here}.role"
        content = item.get("content")
        for part in content if isinstance(content, list) else []:
            spoken = "input_text" if item.get("role") == "assistant" else "output_text"
            known = _PARTS.get(part.get("type"))
            if known is None or part.keys() - known or part["type"] == spoken:
                yield f"{here}.content"
    format_ = body.get("text", {}).get("format", {"type": "text"})
    if format_.keys() - _FORMATS.get(format_.get("type"), set()):
        yield "text.format"
    for index, tool in enumerate(body.get("tools", [])):
        if tool.keys() - {"type", "name", "description", "parameters", "strict"}:
            yield f"tools[{index}]"


def response(
    text: str | None,
    *,
    finish_reason: str | None = "stop",
    refusal: str | None = None,
    tool_calls: list[Json] | None = None,
    usage: tuple[int, int] | None = (50, 12),
    model: str = "mock-judge",
    id: str = "resp-0",
) -> Json:
    """A whole response, from what a chat completion of the same meaning would hold."""
    reasons = {"length": "max_output_tokens", "content_filter": "content_filter"}
    reason = reasons.get(finish_reason or "")
    status = "incomplete" if reason else "completed"
    content: list[Json] = []
    if text is not None:
        content.append({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
    if refusal is not None:
        content.append({"type": "refusal", "refusal": refusal})
    output: list[Json] = [{"type": "reasoning", "id": "rs-0", "summary": []}]
    if content:
        message = {"type": "message", "id": "msg-0", "role": "assistant", "status": status}
        output.append({**message, "content": content})
    for call in tool_calls or []:
        named = {"call_id": call["id"], "status": "completed", **call["function"]}
        output.append({"type": "function_call", "id": f"fc-{call['id']}", **named})
    body: Json = {
        "id": id,
        "object": "response",
        "created_at": 1,
        "status": status,
        "error": None,
        "incomplete_details": {"reason": reason} if reason else None,
        "instructions": None,
        "metadata": {},
        "model": model,
        "output": output,
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
    }
    if usage is not None:
        prompt, answer = usage
        body["usage"] = {
            "input_tokens": prompt,
            "output_tokens": answer,
            "total_tokens": prompt + answer,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        }
    return body


def failed(code: str, message: str) -> Json:
    """A response that failed: its status is HTTP 200."""
    body = response(None)
    body |= {"status": "failed", "error": {"code": code, "message": message}, "output": []}
    return body


def text_of(body: Json) -> str:
    """Every text of a request's input, a line each."""
    found: list[str] = []
    for item in body.get("input", []):
        content = item.get("content", item.get("output", ""))
        parts = content if isinstance(content, list) else [{"text": content}]
        found += [part["text"] for part in parts if part.get("text")]
    return "\n".join(found)

"""The OpenAI wire: one JSON POST to `chat/completions`, for OpenAI, Azure OpenAI and the many
servers that speak the same (Ollama, vLLM, llama.cpp, gateways).

One attempt a call. Waiting, retrying and sharing limits is the business of `assay.judge.limits`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

from assay.errors import JudgeError, SetupError
from assay.jsontext import loads
from assay.judge.base import Message, Reply, Usage
from assay.judge.credential import Credential
from assay.judge.faults import fault, rejected_parameter
from assay.judge.model import ModelJudge, limits_of


@dataclass(eq=False)
class OpenAIJudge(ModelJudge):
    """A chat model behind the OpenAI wire. Use `openai()` or `azure()` to make one."""

    RENAMED = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}

    async def complete(self, messages: Sequence[Message], **settings: Any) -> Reply:
        """One request. A parameter the model rejects by name is translated and remembered."""
        for _ in range(8):
            sent = self._translate(settings)
            status, headers, body, latency = await self.post({"messages": messages, **sent})
            if status == 200:
                return self._reply(body, headers, latency)
            rejected = rejected_parameter(status, body)
            if rejected is None or not self._learn(rejected[0], sent):
                raise fault(status, headers, body, self.where, self.credential.secrets)
        raise JudgeError(f"{self.where} rejects every parameter", cause="bad_request")

    def _reply(self, body: bytes, headers: Mapping[str, str], latency: float) -> Reply:
        try:
            data = loads(body)
            choice = data["choices"][0]
            message = choice["message"]
            text = message.get("content") or ""
            if not isinstance(text, str):
                text = "".join(part.get("text") or "" for part in text)
            return Reply(
                text=text,
                usage=_usage(data.get("usage") or {}),
                finish_reason=choice.get("finish_reason"),
                latency=latency,
                model=data.get("model"),
                refusal=message.get("refusal"),
                tool_calls=tuple(_tool_call(call) for call in message.get("tool_calls") or ()),
                logprobs=tuple((choice.get("logprobs") or {}).get("content") or ()),
                limits=limits_of(headers),
            )
        except (ValueError, LookupError, TypeError, AttributeError):
            raise self._no_reply(body, headers, "chat completion") from None


def openai(
    model: str,
    *,
    credential: Credential,
    base_url: str = "https://api.openai.com/v1",
    name: str | None = None,
    timeout: float = 120.0,
) -> OpenAIJudge:
    """A model at an OpenAI-compatible `base_url` (the part before `/chat/completions`)."""
    url = _checked(base_url).rstrip("/")
    if not url.endswith("/chat/completions"):
        url += "/chat/completions"
    return OpenAIJudge(name or f"openai:{model}", url, model, credential, timeout)


def azure(
    deployment: str,
    *,
    endpoint: str,
    credential: Credential,
    api_version: str | None = None,
    timeout: float = 120.0,
) -> OpenAIJudge:
    """An Azure OpenAI deployment.

    With `api_version` the deployment's own address is used, without one the v1 API, which
    needs none.
    """
    root = _checked(endpoint).rstrip("/").removesuffix("/openai/v1").removesuffix("/openai")
    name = f"azure:{deployment}"
    if api_version:
        url = (
            f"{root}/openai/deployments/{quote(deployment, safe='')}/chat/completions"
            f"?api-version={quote(api_version, safe='')}"
        )
        return OpenAIJudge(name, url, None, credential, timeout)
    url = f"{root}/openai/v1/chat/completions"
    return OpenAIJudge(name, url, deployment, credential, timeout)


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        raise SetupError(f"{url!r} is no web address") from None
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise SetupError(f"{url!r} is no web address: it must start with https://")
    if parts.username or parts.password:
        raise SetupError("an endpoint must not hold a user name or password")
    return url


def _usage(usage: Mapping[str, Any]) -> Usage:
    completion = usage.get("completion_tokens_details") or {}
    prompt = usage.get("prompt_tokens_details") or {}
    return Usage(
        prompt_tokens=usage.get("prompt_tokens") or 0,
        completion_tokens=usage.get("completion_tokens") or 0,
        reasoning_tokens=completion.get("reasoning_tokens") or 0,
        cached_tokens=prompt.get("cached_tokens") or 0,
    )


def _tool_call(call: Mapping[str, Any]) -> dict[str, str]:
    function = call.get("function") or {}
    return {"name": str(function.get("name")), "arguments": str(function.get("arguments") or "")}

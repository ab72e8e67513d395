"""The OpenAI wire: one JSON POST to `chat/completions`, for OpenAI, Azure OpenAI and the many
servers that speak the same (Ollama, vLLM, llama.cpp, gateways).

One attempt a call. Waiting, retrying and sharing limits is the business of `assay.judge.limits`.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit
from weakref import WeakKeyDictionary

from assay.errors import JudgeError, SetupError
from assay.jsontext import dumps
from assay.judge.base import Message, Reply, Usage
from assay.judge.credential import Credential
from assay.judge.faults import fault, redact, rejected_parameter, retry_after

if TYPE_CHECKING:
    import aiohttp

RENAMED = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
"""Parameters that have another name on other models. Any other rejected one is left out."""


@dataclass(eq=False)
class OpenAIJudge:
    """A chat model behind the OpenAI wire. Use `openai()` or `azure()` to make one.

    url: the full address requests go to. model: sent in the body; None where the address
    holds it. timeout: seconds for one attempt.
    """

    name: str
    url: str
    model: str | None
    credential: Credential = field(repr=False)
    timeout: float = 120.0
    learnt: dict[str, str | None] = field(default_factory=dict)
    _sessions: WeakKeyDictionary[asyncio.AbstractEventLoop, aiohttp.ClientSession] = field(
        default_factory=WeakKeyDictionary, repr=False
    )

    async def complete(self, messages: Sequence[Message], **settings: Any) -> Reply:
        """One request. A parameter the model rejects by name is translated and remembered."""
        for _ in range(8):
            sent = self._translate(settings)
            status, headers, body, latency = await self._post(messages, sent)
            if status == 200:
                return self._reply(body, headers, latency)
            rejected = rejected_parameter(status, body)
            if rejected is None or not self._learn(rejected[0], sent):
                raise fault(status, headers, body, self._where, self.credential.secrets)
        raise JudgeError(f"{self._where} rejects every parameter", cause="bad_request")

    def describe(self) -> dict[str, Any]:
        changed = {
            name: f"sent as {other}" if other else "not sent" for name, other in self.learnt.items()
        }
        return {
            "judge": self.name,
            "url": self.url.partition("?")[0],
            "model": self.model,
            "rejected_parameters": changed,
        }

    async def close(self) -> None:
        session = self._sessions.pop(asyncio.get_running_loop(), None)
        if session is not None:
            await session.close()

    @property
    def _where(self) -> str:
        return f"{self.name} at {urlsplit(self.url).netloc}"

    def _translate(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        sent: dict[str, Any] = {}
        for name, value in settings.items():
            wire_name = self.learnt.get(name, name)
            if wire_name is not None:
                sent[wire_name] = value
        return sent

    def _learn(self, rejected: str, sent: Mapping[str, Any]) -> bool:
        """Remember how to go on without `rejected`; False where it was not ours to change."""
        if rejected not in sent:
            return False
        original = next((n for n, other in self.learnt.items() if other == rejected), rejected)
        if self.learnt.get(original, original) != rejected:
            return True  # learnt by another task while this request was under way
        other = RENAMED.get(rejected)
        tried = original in self.learnt
        self.learnt[original] = None if tried or other is None or other in sent else other
        return True

    async def _post(
        self, messages: Sequence[Message], sent: Mapping[str, Any]
    ) -> tuple[int, Mapping[str, str], bytes, float]:
        import aiohttp

        body: dict[str, Any] = {"messages": messages, **sent}
        if self.model is not None:
            body["model"] = self.model
        session = self._session()
        headers = await self.credential.headers()
        started = time.perf_counter()
        try:
            async with session.post(
                self.url, data=dumps(body), headers=headers, allow_redirects=False
            ) as answer:
                data = await answer.read()
        except TimeoutError:
            raise JudgeError(
                f"{self._where} did not answer within {self.timeout:g} s",
                cause="timeout",
                retryable=True,
            ) from None
        except (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError):
            raise SetupError(f"{self.url!r} is no web address") from None
        except aiohttp.ClientConnectorDNSError as error:
            raise JudgeError(
                f"{self._where} has no address: {error.os_error.strerror or error}",
                cause="connection",
                retryable=True,
            ) from None
        except (aiohttp.ClientError, OSError) as error:
            raise JudgeError(
                f"the connection to {self._where} failed: {error or type(error).__name__}",
                cause="connection",
                retryable=True,
            ) from None
        return answer.status, answer.headers, data, time.perf_counter() - started

    def _session(self) -> aiohttp.ClientSession:
        """One session an event loop: building a TLS context costs more than 50 calls."""
        loop = asyncio.get_running_loop()
        session = self._sessions.get(loop)
        if session is None or session.closed:
            import aiohttp

            from assay import __version__

            session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=300),
                timeout=aiohttp.ClientTimeout(total=self.timeout),
                headers={"Content-Type": "application/json", "User-Agent": f"assay/{__version__}"},
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=not _is_loopback(self.url),
            )
            self._sessions[loop] = session
        return session

    def _reply(self, body: bytes, headers: Mapping[str, str], latency: float) -> Reply:
        try:
            data = json.loads(body)
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
                limits=_limits(headers),
            )
        except (ValueError, LookupError, TypeError, AttributeError):
            start = redact(body[:80].decode("utf-8", "replace"), self.credential.secrets)
            raise JudgeError(
                f"{self._where} answered 200 with no chat completion: {start!r}",
                cause="bad_response",
                retryable=True,
                retry_after=retry_after(headers),
            ) from None


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


def _is_loopback(url: str) -> bool:
    return (urlsplit(url).hostname or "") in ("127.0.0.1", "localhost", "::1")


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


def _limits(headers: Mapping[str, str]) -> dict[str, str] | None:
    found = {
        key.lower().removeprefix("x-ratelimit-"): value
        for key, value in headers.items()
        if key.lower().startswith("x-ratelimit-")
    }
    return found or None

"""A scripted judge on loopback: real sockets, the OpenAI and Azure wires, every request recorded.

with JudgeServer(reply=scripted([error(429, "slow down"), '{"score": 4}'])) as server:
    ...  # point a client at server.url (OpenAI) or server.azure (Azure)
assert [request.attempt for request in server.requests] == [0, 1]
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import math
import re
import socket
import struct
import threading
import time
import weakref
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from tests.support import responses
from tests.support.tls import Tls

Json = dict[str, Any]

_HOST = "127.0.0.1"
_MODEL = "mock-judge"
_MAX_BODY = 64 * 2**20
_ROUTE = re.compile(
    r"/(?:v1|openai/v1|openai/deployments/(?P<deployment>[^/]+))"
    r"/(?P<kind>chat/completions|embeddings)"
    r"|/api/projects/(?P<project>[^/]+)/openai/v1/(?P<wire>responses)"
)


@dataclass(frozen=True)
class Request:
    """One request as it arrived."""

    body: Json  # {} when the body was not a JSON object
    headers: dict[str, str]  # names in lower case
    path: str
    query: dict[str, str]
    attempt: int  # how many earlier requests carried the same messages (or input)
    number: int  # 0-based order of arrival
    at: float  # time.monotonic() at arrival
    limited: bool = False  # turned away by the server's own rate limit

    @property
    def text(self) -> str:
        """Every message's text (or every embedding input), a line each."""
        found: list[str] = []
        for message in self.body.get("messages", []):
            content = message.get("content")
            if isinstance(content, str):
                found.append(content)
            elif isinstance(content, list):
                found += [part["text"] for part in content if "text" in part]
        if self.path.endswith("/responses"):
            return responses.text_of(self.body)
        return "\n".join(found + [str(item) for item in _inputs(self.body)])


@dataclass(frozen=True)
class Response:
    """What to answer, or how to fail.

    The body sent is `body` if given, else an OpenAI error (status >= 400), else a completion built
    from `content`, `finish_reason`, `refusal`, `tool_calls` and `usage` (None leaves usage out).
    """

    status: int = 200
    body: Json | str | bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0
    content: str | None = None
    finish_reason: str | None = "stop"
    refusal: str | None = None
    tool_calls: list[Json] | None = None
    usage: tuple[int, int] | None = (50, 12)
    disconnect: bool = False  # close the socket without a reply
    truncate: bool = False  # send half of the body, then close
    stall: bool = False  # never answer, until the client goes away or the server stops

    def encode(self, number: int = 0, model: str = _MODEL, wire: str | None = None) -> bytes:
        """The body's bytes; `wire` is "responses" for that API."""
        body = self.body
        if body is None and self.status >= 400:
            body = error(self.status, self.content or HTTPStatus(self.status).phrase).body
        elif body is None:
            make, kind = (responses.response, "resp") if wire else (completion, "chatcmpl")
            body = make(
                self.content,
                finish_reason=self.finish_reason,
                refusal=self.refusal,
                tool_calls=self.tool_calls,
                usage=self.usage,
                model=model,
                id=f"{kind}-{number}",
            )
        if isinstance(body, bytes):
            return body
        return (body if isinstance(body, str) else json.dumps(body)).encode()


Answer = Response | str | Json
Reply = Answer | Callable[[Request], Answer]


def completion(
    text: str | None,
    *,
    finish_reason: str | None = "stop",
    refusal: str | None = None,
    tool_calls: list[Json] | None = None,
    usage: tuple[int, int] | None = (50, 12),
    model: str = _MODEL,
    id: str = "chatcmpl-0",
) -> Json:
    """A chat.completion body; a dict, so a test can bend it before it is sent."""
    message: Json = {"role": "assistant", "content": text, "refusal": refusal}
    if tool_calls is not None:
        message["tool_calls"] = tool_calls
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish_reason}
    body: Json = {"id": id, "object": "chat.completion", "created": 1, "model": model}
    body["choices"] = [choice]
    if usage is not None:
        prompt, answer = usage
        body["usage"] = {
            "prompt_tokens": prompt,
            "completion_tokens": answer,
            "total_tokens": prompt + answer,
        }
    return body


def error(
    status: int,
    message: str,
    code: str | None = None,
    param: str | None = None,
    headers: dict[str, str] | None = None,
) -> Response:
    """A failure in the OpenAI error shape."""
    kind = "server_error" if status >= 500 else "invalid_request_error"
    kind = "requests" if status == 429 else kind
    body = {"error": {"message": message, "type": kind, "param": param, "code": code}}
    return Response(status=status, body=body, headers=headers or {})


def scripted(replies: Sequence[Reply]) -> Callable[[Request], Answer]:
    """Answers in order of arrival; the last one repeats."""
    if not replies:
        raise ValueError("scripted() needs at least one reply")
    left = deque(replies)

    def reply(request: Request) -> Answer:
        return _resolve(left.popleft() if len(left) > 1 else left[0], request)

    return reply


class JudgeServer:
    """The server, in a thread of its own; leave the `with` block and it is gone.

    `reply` (and `embed`, for embeddings: by default vectors made from the words of the input) is
    an answer or a function of the request; a str is a completion with that content, a dict the
    whole body. It runs on the server's loop, so it must not block; if it raises, the client gets
    a 400 and the error surfaces when the `with` block ends. `reply`, `embed`, `latency` (seconds
    added to each answer) and `limit` (n requests per so many seconds) may be set while it runs.
    With `tls` it is behind a certificate, as a project is.
    """

    def __init__(
        self,
        reply: Reply = "ok",
        *,
        latency: float = 0.0,
        limit: tuple[int, float] | None = None,
        embed: Reply | None = None,
        tls: Tls | None = None,
    ) -> None:
        self.reply = reply
        self.embed = embed
        self.tls = tls
        self.latency = latency
        self.limit = limit
        self.port = 0
        self.errors: list[Exception] = []
        self._changed = threading.Condition()
        self._requests: list[Request] = []
        self._attempts: Counter[str] = Counter()
        self._in_flight = 0
        self._max_in_flight = 0
        self._window: deque[float] = deque()  # when the last `limit` requests were let in
        self._reserved: socket.socket | None = None  # keeps the port ours while stopped
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._halt: asyncio.Event | None = None

    # Life.

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
        if failure is None and self.errors:
            raise self.errors[0]

    def start(self) -> Self:
        """Listen: on a free port the first time, on that same port ever after."""
        if self._thread is not None:
            raise RuntimeError("the server is already running")
        listener = self._reserved or _bind(self.port)
        self._reserved = None
        self.port = listener.getsockname()[1]
        listener.listen(1024)
        ready = threading.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve(listener, ready)), name="judge", daemon=True
        )
        self._thread.start()
        if not ready.wait(10):
            raise RuntimeError("the server did not start")
        return self

    def stop(self) -> None:
        """Die: drop every connection and refuse new ones. The port stays ours until close()."""
        self._shut()
        if self._reserved is None:
            self._reserved = _bind(self.port)

    def close(self) -> None:
        """Stop for good and let go of the port."""
        self._shut()
        if self._reserved is not None:
            self._reserved.close()
            self._reserved = None

    def _shut(self) -> None:
        if self._thread is None:
            return
        assert self._loop is not None
        assert self._halt is not None
        self._loop.call_soon_threadsafe(self._halt.set)
        self._thread.join(10)
        if self._thread.is_alive():
            raise RuntimeError("the server did not stop")
        self._thread = None

    async def _serve(self, listener: socket.socket, ready: threading.Event) -> None:
        self._loop, self._halt = asyncio.get_running_loop(), asyncio.Event()
        self._open: weakref.WeakSet[asyncio.WriteTransport] = weakref.WeakSet()
        app = web.Application(client_max_size=_MAX_BODY)
        app.router.add_post("/{path:.*}", self._handle)
        runner = web.AppRunner(  # which dies at once, whatever is in flight
            app, access_log=None, handler_cancellation=True, shutdown_timeout=0.001
        )
        await runner.setup()
        context = self.tls.context() if self.tls else None
        site = web.SockSite(runner, listener, ssl_context=context)
        await site.start()
        ready.set()
        await self._halt.wait()
        await site.stop()
        await runner.cleanup()
        for transport in self._open:  # a client that went away says no goodbye to TLS
            transport.abort()
        await asyncio.sleep(0)

    # What it saw.

    @property
    def url(self) -> str:
        """The OpenAI base URL."""
        return f"http://{_HOST}:{self.port}/v1"

    @property
    def azure(self) -> str:
        """The Azure endpoint."""
        return f"http://{_HOST}:{self.port}"

    @property
    def project(self) -> str:
        """The endpoint of an Azure AI project, for a server with `tls`."""
        return f"https://{_HOST}:{self.port}/api/projects/p"

    @property
    def requests(self) -> list[Request]:
        """Every request so far, in order of arrival (a copy)."""
        with self._changed:
            return list(self._requests)

    @property
    def count(self) -> int:
        """How many requests arrived."""
        with self._changed:
            return len(self._requests)

    @property
    def in_flight(self) -> int:
        """How many requests are being answered now."""
        with self._changed:
            return self._in_flight

    @property
    def max_in_flight(self) -> int:
        """The most that were ever answered at once."""
        with self._changed:
            return self._max_in_flight

    def wait_for(self, n: int, timeout: float = 10.0) -> list[Request]:
        """Block until n requests arrived in all; TimeoutError if they do not."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self._requests) >= n, timeout):
                raise TimeoutError(f"{len(self._requests)} of {n} requests after {timeout} s")
            return list(self._requests)

    def wait_idle(self, timeout: float = 10.0) -> None:
        """Block until no request is in flight; TimeoutError if some still are."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._in_flight == 0, timeout):
                raise TimeoutError(f"{self._in_flight} requests in flight after {timeout} s")

    # One request.

    async def _handle(self, http: web.Request) -> web.StreamResponse:
        if http.transport is not None:
            self._open.add(http.transport)
        raw = await http.read()
        transport = http.transport
        if not isinstance(transport, asyncio.Transport):
            raise ConnectionResetError("the client left")
        refusal, quota = self._admit()
        request = self._arrive(http, raw, limited=refusal is not None)
        try:
            response = refusal or self._choose(request)
            return await self._send(http, transport, request, response, quota)
        finally:
            with self._changed:
                self._in_flight -= 1
                self._changed.notify_all()

    def _arrive(self, http: web.Request, raw: bytes, limited: bool) -> Request:
        try:
            body = json.loads(raw)
        except ValueError:
            body = None
        body = body if isinstance(body, dict) else {}
        key = json.dumps(body.get("messages", body.get("input")), sort_keys=True)
        with self._changed:
            request = Request(
                body=body,
                headers={name.lower(): value for name, value in http.headers.items()},
                path=http.path,
                query=dict(http.query),
                attempt=self._attempts[key],
                number=len(self._requests),
                at=time.monotonic(),
                limited=limited,
            )
            self._attempts[key] += 1
            self._requests.append(request)
            self._in_flight += 1
            self._max_in_flight = max(self._max_in_flight, self._in_flight)
            self._changed.notify_all()
        return request

    def _admit(self) -> tuple[Response | None, dict[str, str]]:
        """The refusal, if over the limit, and the quota headers."""
        if self.limit is None:
            return None, {}
        most, per = self.limit
        now, window = time.monotonic(), self._window
        while window and window[0] <= now - per:
            window.popleft()
        over = len(window) >= most
        if not over:
            window.append(now)
        left = max(0, most - len(window))
        reset = _span(window[-1] + per - now if window else per)
        quota = {}
        for unit, scale in (("requests", 1), ("tokens", 1000)):
            quota[f"x-ratelimit-limit-{unit}"] = str(most * scale)
            quota[f"x-ratelimit-remaining-{unit}"] = str(left * scale)
            quota[f"x-ratelimit-reset-{unit}"] = reset
        if not over:
            return None, quota
        wait = window[0] + per - now if window else per
        retry = {"Retry-After": str(math.ceil(wait)), "retry-after-ms": str(math.ceil(wait * 1000))}
        return error(429, "Rate limit reached", "rate_limit_exceeded", headers=retry), quota

    def _choose(self, request: Request) -> Response:
        route = _ROUTE.fullmatch(request.path)
        if route is None:
            return error(404, f"Unknown URL: {request.path}", "unknown_url")
        if route["deployment"] and "api-version" not in request.query:
            return error(404, "Resource not found", "404")
        if not request.body:
            return error(400, "The body is not a JSON object", "invalid_json")
        if route["wire"]:
            if not request.headers.get("authorization", "").startswith("Bearer "):
                return error(401, "Access denied", "401")
            name = responses.unknown(request.body)
            if name is not None:
                return error(400, f"Unknown parameter: '{name}'.", "unknown_parameter", name)
        embeds = route["kind"] == "embeddings"
        try:
            reply = (self.embed or _embeddings) if embeds else self.reply
            answer = _resolve(reply, request)
        except Exception as failure:
            self.errors.append(failure)
            return error(400, f"the test's reply raised {failure!r}", "reply_raised")
        if isinstance(answer, str):
            return Response(content=answer)
        return answer if isinstance(answer, Response) else Response(body=answer)

    async def _send(
        self,
        http: web.Request,
        transport: asyncio.Transport,
        request: Request,
        response: Response,
        quota: dict[str, str],
    ) -> web.StreamResponse:
        if self.latency + response.delay > 0:
            await asyncio.sleep(self.latency + response.delay)
        if response.stall:
            await asyncio.Event().wait()  # cancelled with the connection
        if response.disconnect:
            transport.abort()
            return web.Response()
        route = _ROUTE.fullmatch(request.path)
        model = request.body.get("model") or (route and route["deployment"]) or _MODEL
        body = response.encode(request.number, model, route and route["wire"])
        headers = {"Content-Type": "application/json", "x-request-id": f"req-{request.number}"}
        headers |= quota
        for name, value in response.headers.items():
            headers = {k: v for k, v in headers.items() if k.lower() != name.lower()}
            headers[name] = value
        if not response.truncate:
            return web.Response(status=response.status, body=body, headers=headers)
        half = web.StreamResponse(status=response.status, headers=headers)
        half.content_length = len(body)
        await half.prepare(http)
        await half.write(body[: len(body) // 2])
        transport.close()
        return half


def _bind(port: int) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((_HOST, port))
    except OSError:
        sock.close()
        raise
    return sock


def _resolve(reply: Reply, request: Request) -> Answer:
    return reply(request) if callable(reply) else reply


def _span(seconds: float) -> str:
    """A duration as the x-ratelimit-reset headers write it: 120ms, 1s, 6m0s."""
    ms = max(1, math.ceil(seconds * 1000))
    if ms < 1000:
        return f"{ms}ms"
    minutes, rest = divmod(ms, 60_000)
    return (f"{minutes}m" if minutes else "") + f"{rest / 1000:g}s"


def _inputs(body: Json) -> list[Any]:
    """The texts (or token lists) of an embeddings request."""
    given = body.get("input", [])
    if isinstance(given, str) or (given and isinstance(given[0], int)):
        return [given]
    return list(given)


def _embeddings(request: Request) -> Json:
    """Unit vectors summed from one hash a word: equal texts agree, shared words bring closer."""
    size = request.body.get("dimensions") or 16
    data: list[Json] = []
    for index, text in enumerate(_inputs(request.body)):
        total = [0.0] * size
        for word in str(text).lower().split():
            digest = hashlib.shake_128(word.encode()).digest(size)
            total = [a + b - 127.5 for a, b in zip(total, digest, strict=True)]
        norm = math.hypot(*total) or 1.0
        vector: list[float] | str = [value / norm for value in total]
        if request.body.get("encoding_format") == "base64":
            vector = base64.b64encode(struct.pack(f"<{size}f", *vector)).decode()
        data.append({"object": "embedding", "index": index, "embedding": vector})
    tokens = len(request.text.split())
    return {
        "object": "list",
        "data": data,
        "model": request.body.get("model") or _MODEL,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }

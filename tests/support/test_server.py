"""The test server and the benchmark server do what they say, seen from plain clients."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.server import (
    JudgeServer,
    Reply,
    Request,
    Response,
    completion,
    error,
    scripted,
)

BENCH = Path(__file__).parents[2] / "bench" / "mock_server.py"
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def ask(text: str = "hi", **more: Any) -> dict[str, Any]:
    """A chat request's body."""
    return {"model": "m", "messages": [{"role": "user", "content": text}], **more}


def post(url: str, body: Any, headers: dict[str, str] | None = None) -> tuple[int, Any, Any]:
    """The status, headers and JSON body (or text) of a POST."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(url, data, headers or {}, method="POST")
    try:
        with OPENER.open(request, timeout=10) as reply:
            status, head, raw = reply.status, reply.headers, reply.read()
    except urllib.error.HTTPError as failure:
        with failure:
            status, head, raw = failure.code, failure.headers, failure.read()
    try:
        return status, head, json.loads(raw)
    except ValueError:
        return status, head, raw.decode()


def chat(server: JudgeServer, text: str = "hi", **more: Any) -> tuple[int, Any, Any]:
    """POST a chat request to the server's OpenAI URL."""
    return post(server.url + "/chat/completions", ask(text, **more))


def content(body: Any) -> Any:
    """The assistant's message."""
    return body["choices"][0]["message"]["content"]


class TestWire:
    def test_a_constant_is_a_completion(self) -> None:
        with JudgeServer("fine") as server:
            status, headers, body = chat(server)
        assert (status, content(body), body["model"]) == (200, "fine", "m")
        assert body["object"] == "chat.completion"
        assert body["choices"][0]["finish_reason"] == "stop"
        assert body["usage"] == {"prompt_tokens": 50, "completion_tokens": 12, "total_tokens": 62}
        assert headers["x-request-id"] == "req-0"

    def test_azure_paths(self) -> None:
        with JudgeServer("fine") as server:
            url = server.azure + "/openai/deployments/gpt/chat/completions"
            body: dict[str, Any] = {"messages": []}
            assert post(url, body)[0] == 404
            status, _, answer = post(url + "?api-version=2024-10-21", body)
            assert (status, answer["model"]) == (200, "gpt")
            assert post(server.azure + "/openai/v1/chat/completions", body)[0] == 200
            assert server.requests[1].query == {"api-version": "2024-10-21"}
            assert server.requests[1].path == "/openai/deployments/gpt/chat/completions"

    def test_other_calls_are_errors_in_the_openai_shape(self) -> None:
        with JudgeServer() as server:
            status, _, body = post(server.url + "/nowhere", {})
            assert (status, body["error"]["code"]) == (404, "unknown_url")
            assert post(server.url + "/chat/completions", b"{")[0] == 400
            with pytest.raises(urllib.error.HTTPError, match="405") as failure:
                OPENER.open(server.url + "/chat/completions")
            failure.value.close()

    def test_embeddings(self) -> None:
        with JudgeServer() as server:

            def vectors(texts: Any, **more: Any) -> list[Any]:
                body = {"model": "e", "input": texts, **more}
                _, _, answer = post(server.url + "/embeddings", body)
                assert [item["index"] for item in answer["data"]] == [*range(len(answer["data"]))]
                return [item["embedding"] for item in answer["data"]]

            one, two, far = vectors(["a red cat", "a red dog", "xyzzy"])
            assert vectors("a red cat") == [one]
            assert len(one) == 16
            assert sum(x * x for x in one) == pytest.approx(1)
            assert sum(x * y for x, y in zip(one, two, strict=True)) > 0.3
            assert one != far
            assert len(vectors("a", dimensions=5)[0]) == 5
            assert isinstance(vectors("a", encoding_format="base64")[0], str)
            assert len(vectors([[1, 2], [3]])) == 2
            assert server.requests[0].text == "a red cat\na red dog\nxyzzy"
            server.embed = error(429, "slow")
            assert post(server.url + "/embeddings", {"input": "a"})[0] == 429

    def test_a_large_body(self) -> None:
        with JudgeServer(lambda request: str(len(request.text))) as server:
            assert content(chat(server, "x" * 20_000_000)[2]) == "20000000"


class TestScript:
    def test_a_function_sees_the_request(self) -> None:
        def reply(request: Request) -> str:
            return f"{request.number} {request.attempt} {request.text}"

        with JudgeServer(reply) as server:
            texts = [content(chat(server, text)[2]) for text in ("a", "b", "a")]
        assert texts == ["0 0 a", "1 0 b", "2 1 a"]

    def test_the_record(self) -> None:
        with JudgeServer() as server:
            parts = [{"type": "text", "text": "two"}, {"type": "image_url", "image_url": {}}]
            messages = [{"role": "system", "content": "one"}, {"role": "user", "content": parts}]
            post(server.url + "/chat/completions", {"messages": messages}, {"API-Key": "k"})
            (request,) = server.requests
        assert request.text == "one\ntwo"
        assert request.headers["api-key"] == "k"
        assert request.body == {"messages": messages}
        assert (request.path, request.query) == ("/v1/chat/completions", {})
        assert request.at <= time.monotonic()

    def test_scripted_repeats_the_last(self) -> None:
        replies: list[Reply] = [error(500, "oops"), {"odd": 1}, lambda r: r.text.upper(), "end"]
        with JudgeServer(scripted(replies)) as server:
            assert chat(server)[0] == 500
            assert chat(server)[2] == {"odd": 1}
            assert [content(chat(server)[2]) for _ in range(3)] == ["HI", "end", "end"]
        with pytest.raises(ValueError, match="at least one"):
            scripted([])

    def test_response_fields(self) -> None:
        call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        with JudgeServer() as server:
            server.reply = Response(refusal="no", tool_calls=[call], finish_reason="length")
            body = chat(server)[2]
            (choice,) = body["choices"]
            assert choice["finish_reason"] == "length"
            assert choice["message"]["content"] is None
            assert choice["message"]["refusal"] == "no"
            assert choice["message"]["tool_calls"] == [call]
            server.reply = Response(content="x", usage=None, headers={"X-Request-ID": "mine"})
            _, headers, body = chat(server)
            assert "usage" not in body
            assert headers.get_all("x-request-id") == ["mine"]
            server.reply = Response(
                body="<html>", status=502, headers={"content-type": "text/html"}
            )
            status, headers, body = chat(server)
            assert (status, body, headers["Content-Type"]) == (502, "<html>", "text/html")
            server.reply = Response(body=b"")
            assert chat(server)[2] == ""
            server.reply = Response(status=503)
            assert chat(server)[2]["error"]["message"] == "Service Unavailable"

    def test_constructors(self) -> None:
        body = completion("x", usage=(1, 2), finish_reason="content_filter")
        assert body["usage"]["total_tokens"] == 3
        made = error(400, "bad", "content_filter", "prompt", {"a": "b"})
        assert (made.status, made.headers) == (400, {"a": "b"})
        assert made.body == {
            "error": {
                "message": "bad",
                "type": "invalid_request_error",
                "param": "prompt",
                "code": "content_filter",
            }
        }

    def test_a_reply_that_raises_surfaces(self) -> None:
        def reply(request: Request) -> str:
            raise LookupError("in the test's own code")

        with pytest.raises(LookupError, match="own code"), JudgeServer(reply) as server:
            assert chat(server)[0] == 400


class TestFaults:
    def test_disconnect(self) -> None:
        with JudgeServer(scripted([Response(disconnect=True), "ok"])) as server:
            with pytest.raises(http.client.RemoteDisconnected):
                chat(server)
            assert chat(server)[0] == 200

            async def client() -> None:
                async with (
                    aiohttp.ClientSession() as session,
                    session.post(server.url + "/chat/completions", json=ask()),
                ):
                    pass

            server.reply = Response(disconnect=True)
            with pytest.raises(aiohttp.ServerDisconnectedError):
                asyncio.run(client())

    def test_truncate(self) -> None:
        whole = Response(content="ok").encode(0, "m")
        with JudgeServer(Response(content="ok", truncate=True)) as server:
            with pytest.raises(http.client.IncompleteRead) as failure:
                chat(server)
            assert failure.value.partial == whole[: len(whole) // 2]

            async def client() -> None:
                async with (
                    aiohttp.ClientSession() as session,
                    session.post(server.url + "/chat/completions", json=ask()) as reply,
                ):
                    assert reply.status == 200
                    await reply.read()

            with pytest.raises(aiohttp.ClientPayloadError):
                asyncio.run(client())

    def test_stall_until_the_client_goes_away(self) -> None:
        async def client() -> None:
            timeout = aiohttp.ClientTimeout(total=0.2)
            async with aiohttp.ClientSession(timeout=timeout) as session:
                await session.post(server.url + "/chat/completions", json=ask())

        with JudgeServer(Response(stall=True)) as server:
            with pytest.raises(TimeoutError):
                asyncio.run(client())
            server.wait_idle()
            assert (server.count, server.max_in_flight) == (1, 1)

    def test_closing_is_prompt_with_stalled_and_slow_requests(self) -> None:
        outcomes: list[str] = []

        def client(text: str) -> None:
            try:
                chat(server, text)
            except (http.client.HTTPException, OSError) as failure:
                outcomes.append(type(failure).__name__)

        def reply(request: Request) -> Response:
            return Response(stall=True) if request.text == "stall" else Response(delay=60)

        texts = ["stall", "slow"] * 5
        threads = [threading.Thread(target=client, args=(text,)) for text in texts]
        with JudgeServer(reply) as server:
            for thread in threads:
                thread.start()
            server.wait_for(10)
            started = time.monotonic()
        assert time.monotonic() - started < 2
        for thread in threads:
            thread.join(5)
        assert len(outcomes) == 10
        assert server.in_flight == 0

    def test_latency_and_delay_add_up(self) -> None:
        with JudgeServer(Response(content="x", delay=0.1), latency=0.1) as server:
            started = time.monotonic()
            chat(server)
            assert 0.2 <= time.monotonic() - started < 2


class TestLife:
    def test_stop_and_start_on_the_same_port(self) -> None:
        with JudgeServer() as server:
            url = server.url
            chat(server)
            for _ in range(3):
                server.stop()
                server.stop()
                with pytest.raises(urllib.error.URLError, match="refused"):
                    chat(server)
                server.start()
                assert server.url == url
                assert chat(server)[0] == 200
            assert server.count == 4
            with pytest.raises(RuntimeError, match="already"):
                server.start()

    def test_stopping_drops_idle_and_busy_connections(self) -> None:
        async def client() -> None:
            async with aiohttp.ClientSession() as session:
                url = server.url + "/chat/completions"
                async with session.post(url, json=ask()) as reply:
                    await reply.read()  # and the connection is kept alive
                server.reply = Response(stall=True)
                busy = asyncio.ensure_future(session.post(url, json=ask()))
                await asyncio.to_thread(server.wait_for, 2)
                await asyncio.to_thread(server.stop)
                with pytest.raises(aiohttp.ClientConnectionError):
                    await busy
                with pytest.raises(aiohttp.ClientConnectorError):
                    await session.post(url, json=ask())
                server.reply = "back"
                server.start()
                async with session.post(url, json=ask()) as reply:
                    assert content(await reply.json()) == "back"

        with JudgeServer() as server:
            asyncio.run(client())

    def test_the_port_is_free_after_close(self) -> None:
        with JudgeServer() as server:
            server.stop()
        with socket.create_server(("127.0.0.1", server.port)):
            pass
        server.close()

    def test_no_thread_is_left(self) -> None:
        before = threading.active_count()
        for _ in range(5):
            with JudgeServer() as server:
                chat(server)
        assert threading.active_count() == before

    def test_counts_in_flight(self) -> None:
        async def client() -> None:
            async with aiohttp.ClientSession() as session:

                async def one(number: int) -> None:
                    body = ask(str(number))
                    async with session.post(server.url + "/chat/completions", json=body) as reply:
                        assert reply.status == 200

                await asyncio.gather(*(one(number) for number in range(50)))

        with JudgeServer(latency=0.3) as server:
            asyncio.run(client())
            server.wait_idle()
            assert (server.count, server.max_in_flight, server.in_flight) == (50, 50, 0)
            assert [request.number for request in server.requests] == [*range(50)]

    def test_wait_for(self) -> None:
        with JudgeServer() as server:
            with pytest.raises(TimeoutError, match="0 of 1"):
                server.wait_for(1, timeout=0.01)
            with ThreadPoolExecutor() as pool:
                pool.submit(chat, server)
                assert len(server.wait_for(1)) == 1
            server.reply = Response(stall=True)
            with ThreadPoolExecutor() as pool:
                pool.submit(chat, server)
                server.wait_for(2)
                with pytest.raises(TimeoutError, match="in flight"):
                    server.wait_idle(timeout=0.01)
                server.stop()


class TestLimit:
    def test_over_the_limit(self) -> None:
        with JudgeServer(limit=(2, 0.5)) as server:
            replies = [chat(server) for _ in range(3)]
            assert [status for status, _, _ in replies] == [200, 200, 429]
            first, last = replies[0][1], replies[2][1]
            assert first["x-ratelimit-limit-requests"] == "2"
            assert first["x-ratelimit-remaining-requests"] == "1"
            assert first["x-ratelimit-reset-requests"].endswith("ms")
            assert first["Retry-After"] is None
            assert last["x-ratelimit-remaining-requests"] == "0"
            assert last["x-ratelimit-remaining-tokens"] == "0"
            assert last["x-ratelimit-limit-tokens"] == "2000"
            assert last["Retry-After"] == "1"
            assert replies[2][2]["error"]["code"] == "rate_limit_exceeded"
            assert [request.limited for request in server.requests] == [False, False, True]
            time.sleep(int(last["retry-after-ms"]) / 1000)
            assert chat(server)[0] == 200

    @pytest.mark.parametrize(("per", "span"), [(1, "1s"), (90, "1m30s"), (360, "6m0s")])
    def test_reset_times(self, per: float, span: str) -> None:
        with JudgeServer(limit=(0, per)) as server:
            status, headers, _ = chat(server)
        assert (status, headers["x-ratelimit-reset-requests"]) == (429, span)


@contextmanager
def bench(*options: str) -> Iterator[str]:
    """The benchmark server's base URL."""
    command = [sys.executable, str(BENCH), "--port", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            word, port = process.stdout.readline().split()
            assert word == "PORT"
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            assert process.wait(5) == 0


def stats(url: str) -> dict[str, float]:
    """GET /stats."""
    with OPENER.open(url + "/stats") as reply:
        found: dict[str, float] = json.load(reply)
    return found


class TestBench:
    def test_answers_after_the_latency(self) -> None:
        async def client(url: str) -> None:
            async with aiohttp.ClientSession() as session:

                async def one(number: int) -> None:
                    path = ("/v1", "/openai/deployments/d")[number % 2] + "/chat/completions?a=b"
                    async with session.post(url + path, json=ask(f"rid-{number:06}")) as reply:
                        assert content(await reply.json()) == "hello"

                await asyncio.gather(*(one(number) for number in range(50)))

        with bench("--latency-ms", "300", "--answer", "hello") as url:
            started = time.monotonic()
            asyncio.run(client(url))
            assert time.monotonic() - started >= 0.3
            seen = stats(url)
            assert (seen["requests"], seen["ok"], seen["inflight"]) == (50, 50, 0)
            assert seen["max_inflight"] == 50
            assert 10 < seen["mean_inflight"] <= 50
            assert started <= seen["first"] <= seen["last"] <= time.monotonic()
            assert seen["server_cpu_s"] > 0
            post(url + "/reset", {})
            assert stats(url)["requests"] == stats(url)["first"] == 0
            assert post(url + "/nowhere", {})[0] == 404

    def test_faults_are_the_same_each_time_and_at_the_rates_asked(self) -> None:
        answer = '{"similarity": 2}'
        rates = [f"--rate-{name}=0.2" for name in ("429", "5xx", "disconnect", "malformed")]

        def outcomes(url: str) -> dict[str, str]:
            found = {}
            for number in range(300):
                row = f"rid-{number % 100:06}"
                try:
                    status, headers, body = post(url + "/v1/chat/completions", ask(row))
                except http.client.RemoteDisconnected:
                    found[f"{row}:{number // 100}"] = "disconnects"
                    continue
                if status == 429:
                    assert headers["Retry-After"] == "7"
                good = status == 200 and content(body) == answer
                bad = {429: "n429", 503: "n5xx", 200: "malformed"}[status]
                found[f"{row}:{number // 100}"] = "ok" if good else bad
            return found

        with bench("--latency-ms=0", f"--answer={answer}", "--retry-after=7", *rates) as url:
            first = outcomes(url)
            seen = stats(url)
            post(url + "/reset", {})
            assert outcomes(url) == first
        for name in ("ok", "n429", "n5xx", "disconnects", "malformed"):
            assert [*first.values()].count(name) == seen[name]
            assert 30 <= seen[name] <= 90
        assert any(first[f"rid-{n:06}:0"] != first[f"rid-{n:06}:1"] for n in range(100))

    def test_a_disconnect_closes_a_kept_alive_connection(self) -> None:
        async def client(url: str) -> None:
            timeout = aiohttp.ClientTimeout(total=10)
            async with aiohttp.ClientSession(timeout=timeout) as session:
                await session.post(url + "/v1/chat/completions", json=ask())

        with bench("--latency-ms=0", "--rate-disconnect=1") as url:
            with pytest.raises(aiohttp.ServerDisconnectedError):
                asyncio.run(client(url))
            assert stats(url)["disconnects"] >= 1

    def test_pipelined_and_split_input(self) -> None:
        def request(text: str, extra: str = "") -> bytes:
            body = json.dumps(ask(text)).encode()
            head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n{extra}"
            return f"{head}CONTENT-LENGTH: {len(body)}\r\n\r\n".encode() + body

        with bench("--latency-ms=5") as url:
            port = int(url.rpartition(":")[2])
            with socket.create_connection(("127.0.0.1", port), timeout=10) as sock:
                sock.sendall(request("a") * 3)
                for byte in request("b", "Connection: close\r\n"):
                    sock.sendall(bytes([byte]))
                raw = b""
                while chunk := sock.recv(65536):
                    raw += chunk
            assert raw.count(b"HTTP/1.1 200 OK") == 4
            assert stats(url)["max_inflight"] == 1

    def test_body_sizes(self) -> None:
        with bench("--latency-ms=0", "--rate-429=0.5") as url:
            most = 20 * 2**20
            body = b"x" * (most - 10) + b"rid-000001"
            assert post(url + "/v1/chat/completions", body)[0] in (200, 429)
            port = int(url.rpartition(":")[2])
            with socket.create_connection(("127.0.0.1", port), timeout=10) as sock:
                head = f"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: {most + 1}\r\n\r\n"
                sock.sendall(head.encode())
                assert b" 413 " in sock.recv(65536)

    def test_a_client_that_leaves(self) -> None:
        async def client(url: str) -> None:
            timeout = aiohttp.ClientTimeout(total=0.2)
            async with aiohttp.ClientSession(timeout=timeout) as session:
                await session.post(url + "/v1/chat/completions", json=ask())

        with bench("--latency-ms=60000") as url:
            with pytest.raises(TimeoutError):
                asyncio.run(client(url))
            for _ in range(100):
                seen = stats(url)
                if seen["abandoned"]:
                    break
                time.sleep(0.02)
            assert (seen["requests"], seen["abandoned"], seen["inflight"]) == (1, 1, 0)

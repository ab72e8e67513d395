#!/usr/bin/env python3
"""A fast judge on loopback for benchmarks: one process, raw asyncio.Protocol, uvloop if installed.

Answers POST .../chat/completions on any OpenAI or Azure path after a fixed latency. Faults are a
function of (row id, attempt), the row id being the first `rid-NNNNNN` in the request's body, so
every client meets the same faults whatever its order or concurrency. GET /stats, POST /reset.
Prints `PORT n` first.
"""

import argparse
import asyncio
import hashlib
import json
import re
import signal
import time
import zlib
from collections import Counter
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

MAX_BODY = 20 * 2**20
ROW = re.compile(rb"rid-\d{6}")
LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d+)[ \t]*\r\n")
FAULTS = ("n429", "n5xx", "disconnects", "malformed")


class Stats:
    """Counts since the last reset; a request keeps the object it arrived under."""

    def __init__(self) -> None:
        self.counts = dict.fromkeys(("requests", "ok", *FAULTS, "abandoned"), 0)
        self.attempts: Counter[bytes] = Counter()
        self.inflight = self.max_inflight = 0
        self.first = self.last = self.area = 0.0  # area: requests in flight, summed over time
        self.cpu = time.process_time()

    def move(self, step: int, what: str) -> None:
        """A request arrived (+1), or ended as `what` (-1)."""
        now = time.monotonic()
        self.first = self.first or now
        self.area += self.inflight * (now - self.last)
        self.last = now
        self.counts[what] += 1
        self.inflight += step
        self.max_inflight = max(self.max_inflight, self.inflight)

    def report(self) -> dict[str, float]:
        """The body of GET /stats."""
        return {
            **self.counts,
            "inflight": self.inflight,
            "max_inflight": self.max_inflight,
            "mean_inflight": self.area / ((self.last - self.first) or 1),
            "first": self.first,
            "last": self.last,
            "server_cpu_s": time.process_time() - self.cpu,
        }


def http(status: str, body: Any, extra: str = "") -> bytes:
    """A whole response."""
    payload = json.dumps(body).encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{extra}"
    return f"{head}Content-Length: {len(payload)}\r\n\r\n".encode() + payload


def completion(text: str) -> bytes:
    """A whole chat.completion response."""
    message = {"role": "assistant", "content": text, "refusal": None}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": 512, "completion_tokens": 12, "total_tokens": 524}
    body = {"id": "chatcmpl-mock", "object": "chat.completion", "created": 1, "model": "mock-judge"}
    return http("200 OK", body | {"choices": [choice], "usage": usage})


def failure(status: str, kind: str = "invalid_request_error", extra: str = "") -> bytes:
    """A whole error response."""
    error = {"message": status[4:], "type": kind, "param": None, "code": None}
    return http(status, {"error": error}, extra)


class Judge:
    """What the connections share: the settings, the ready-made answers, the counts."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.latency: float = args.latency_ms / 1000
        rates = (args.rate_429, args.rate_5xx, args.rate_disconnect, args.rate_malformed)
        self.faults = tuple(zip(FAULTS, rates, strict=True)) if any(rates) else ()
        self.stats = Stats()
        retry = f"Retry-After: {args.retry_after}\r\n"
        self.answers = {
            "ok": completion(args.answer),
            "n429": failure("429 Too Many Requests", "requests", retry),
            "n5xx": failure("503 Service Unavailable", "server_error"),
            "disconnects": b"",
            "malformed": completion(args.answer[: len(args.answer) // 2]),
        }

    def outcome(self, body: memoryview) -> str:
        """What happens to the next attempt of this row (of this body, if it names none)."""
        if not self.faults:
            return "ok"
        found = ROW.search(body)
        row = found[0] if found else b"%08x" % zlib.crc32(body)
        self.stats.attempts[row] += 1
        key = b"%s:%d" % (row, self.stats.attempts[row])
        digest = hashlib.blake2b(key, digest_size=8).digest()
        point = int.from_bytes(digest) / 2**64
        for fault, rate in self.faults:
            if (point := point - rate) < 0:
                return fault
        return "ok"


class Connection(asyncio.Protocol):
    """One client: requests in order, one at a time; what is pipelined waits in the buffer."""

    def __init__(self, judge: Judge, loop: asyncio.AbstractEventLoop) -> None:
        self.judge, self.loop = judge, loop
        self.buffer = bytearray()
        self.head = b""  # of the request being read, once complete; in lower case
        self.size = 0  # of its body
        self.pending: tuple[asyncio.TimerHandle, Stats] | None = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        self.advance()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.pending is not None:
            self.pending[0].cancel()
            self.pending[1].move(-1, "abandoned")

    def advance(self) -> None:
        """Answer the requests that are complete, until one has to wait."""
        while self.pending is None and not self.transport.is_closing():
            if not self.head and not self.read_head():
                return
            end = len(self.head) + self.size
            if len(self.buffer) < end:
                return
            head, self.head = self.head, b""
            with memoryview(self.buffer) as view, view[len(head) : end] as body:
                self.answer(head, body)
            del self.buffer[:end]

    def read_head(self) -> bool:
        """Take in the head, if it is complete."""
        if (end := self.buffer.find(b"\r\n\r\n") + 4) >= 4:
            head = bytes(self.buffer[:end]).lower()
            self.size = int(length[1]) if (length := LENGTH.search(head)) else 0
            if self.size > MAX_BODY or b"\r\ntransfer-encoding:" in head:
                self.send(failure("413 Content Too Large or of unknown length"), close=True)
            else:
                self.head = head
        return bool(self.head)

    def answer(self, head: bytes, body: memoryview) -> None:
        """Answer at once, or start the wait for a completion."""
        judge, close = self.judge, b"\r\nconnection: close\r\n" in head
        method, path = head.partition(b"?")[0].split(b" ", 2)[:2]
        if method == b"post" and path.endswith(b"/chat/completions"):
            judge.stats.move(1, "requests")
            timer = self.loop.call_later(judge.latency, self.finish, judge.outcome(body), close)
            self.pending = timer, judge.stats
        elif (method, path) in ((b"get", b"/stats"), (b"post", b"/reset")):
            self.send(http("200 OK", judge.stats.report()), close)
            if method == b"post":
                judge.stats = Stats()
        else:
            self.send(failure("404 Not Found"), close)

    def finish(self, outcome: str, close: bool) -> None:
        """The wait is over: answer, and go on with what came in meanwhile."""
        assert self.pending is not None  # or the timer would be cancelled
        self.pending[1].move(-1, outcome)
        self.pending = None
        self.send(self.judge.answers[outcome], close or outcome == "disconnects")
        self.advance()

    def send(self, data: bytes, close: bool) -> None:
        self.transport.write(data)
        if close:
            self.transport.close()


async def serve(args: argparse.Namespace) -> None:
    """Listen until SIGTERM or SIGINT."""
    loop, judge, done = asyncio.get_running_loop(), Judge(args), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, done.set)
    connect = partial(Connection, judge, loop)
    server = await loop.create_server(connect, "127.0.0.1", args.port, backlog=4096)
    print("PORT", server.sockets[0].getsockname()[1], flush=True)
    await done.wait()


def main() -> None:
    """Read the options and serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 picks a free one")
    parser.add_argument("--answer", default='{"reason": "ok", "similarity": 2}')
    parser.add_argument("--retry-after", default="1", help="seconds, as sent with a 429")
    parser.add_argument("--latency-ms", type=float, default=200)
    for name in ("429", "5xx", "disconnect", "malformed"):
        parser.add_argument(f"--rate-{name}", type=float, default=0, help="share of attempts")
    fast = import_module("uvloop").new_event_loop if find_spec("uvloop") else None
    with asyncio.Runner(loop_factory=fast) as runner:
        runner.run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()

"""Limits shared by everything that asks one judge: in flight, per minute, retries, a circuit.

Nobody has to tune them. The first request goes alone, so that a wrong key or a parameter the
model does not take costs one request; but for a second at most, so that a slow model costs no
more than that. Then the number in flight follows the server: halved on a 429, raised again with
every success. A call that waits holds no slot.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from assay.errors import JudgeError, Stopped
from assay.judge.base import Judge, Message, Reply

FATAL_IN_A_ROW = 5
"""Fatal errors in a row after which nothing more is asked."""

ALONE = 1.0
"""Seconds the first request goes alone, at most. A refusal needs no model, and is faster."""

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(eq=False)
class Limited:
    """A judge that waits its turn and tries again.

    max_in_flight: requests under way at once, at most.
    tries: attempts a call, the first included; longest: seconds that the attempts and the
    waits of one call may take together.
    """

    judge: Judge
    max_in_flight: int = 64
    tries: int = 8
    longest: float = 900.0
    gate: Gate = field(init=False)
    retried: int = 0
    _stop: asyncio.Event = field(default_factory=asyncio.Event)
    _heard: bool = False  # the server has answered something that was no fatal error
    _fatal: JudgeError | None = None
    _fatal_count: int = 0

    def __post_init__(self) -> None:
        self.gate = Gate(self.max_in_flight)

    @property
    def name(self) -> str:
        return self.judge.name

    async def complete(self, messages: Sequence[Message], **settings: Any) -> Reply:
        return await self._with_retries(lambda: self.judge.complete(messages, **settings))

    def describe(self) -> dict[str, Any]:
        return {**self.judge.describe(), "max_in_flight": self.max_in_flight}

    async def close(self) -> None:
        await self.judge.close()

    def stop(self) -> None:
        """Start no further request: waiting calls raise Stopped, those under way go on."""
        self._stop.set()

    def status(self) -> str:
        """How many requests are under way, of how many the server lets us have."""
        return f"{self.gate.in_flight}/{int(self.gate.allowed)} in flight"

    async def _sleep(self, wait: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stop.wait(), wait)

    async def _with_retries(self, ask: Callable[[], Any]) -> Reply:
        give_up = _now() + self.longest
        attempt = 0
        while True:
            attempt += 1
            try:
                reply = await self._attempt(ask)
            except JudgeError as error:
                error.attempts = attempt if error.attempts else attempt - 1
                wait = self._pause(error, attempt)
                if wait is None or _now() + wait > give_up:
                    raise
                self.retried += 1
                await self._sleep(wait)
            else:
                return reply if attempt == 1 else replace(reply, attempts=attempt)

    async def _attempt(self, ask: Callable[[], Any]) -> Reply:
        await self.gate.enter()
        slowed: bool | None = None
        limits: Mapping[str, str] | None = None
        tokens = 0
        try:
            if self._stop.is_set():
                raise Stopped("not asked: the run is stopping")
            if self._fatal is not None:
                raise self._stopped(self._fatal)
            reply: Reply = await ask()
            slowed, limits, tokens = False, reply.limits, reply.usage.total_tokens
            self._fatal_count = 0
            return reply
        except JudgeError as error:
            if error.cause == "rate_limited":
                slowed = True
            elif not error.retryable and not error.fatal:
                slowed = False  # the server hears us; this one request was wrong
            self._count_fatal(error)
            self._heard = self._heard or (error.status is not None and not error.fatal)
            raise
        finally:
            self.gate.leave(slowed, limits, tokens)

    def _pause(self, error: JudgeError, attempt: int) -> float | None:
        """Seconds to wait before the next try; None to give up."""
        if not error.retryable or attempt >= self.tries:
            return None
        backoff = min(30.0, 0.5 * 2.0 ** (attempt - 1)) * random.uniform(0.5, 1.0)
        return backoff if error.retry_after is None else error.retry_after

    def _count_fatal(self, error: JudgeError) -> None:
        if not error.fatal or error is self._fatal:
            return
        self._fatal_count += 1
        heard = self.gate.proven or self._heard
        if not heard or self._fatal_count >= FATAL_IN_A_ROW:
            self._fatal = error

    def _stopped(self, error: JudgeError) -> JudgeError:
        stopped = JudgeError(
            f"not asked, since the judge keeps failing: {error}",
            cause=error.cause,
            status=error.status,
        )
        stopped.attempts = 0
        return stopped


@dataclass(eq=False)
class Gate:
    """Lets a changing number of requests through at once, in the order they came."""

    most: int
    allowed: float = 1.0
    in_flight: int = 0
    proven: bool = False
    _waiting: deque[asyncio.Future[None]] = field(default_factory=deque)
    _closed_until: float = 0.0
    _slowed_at: float = 0.0
    _timer: asyncio.TimerHandle | None = None
    _opening: asyncio.TimerHandle | None = None

    async def enter(self) -> None:
        """Wait for a free place, then take it."""
        if self._is_free() and not self._waiting:
            self._take()
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        self._let_in()
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self.in_flight -= 1
                self._let_in()
            raise

    def leave(
        self, slowed: bool | None, limits: Mapping[str, str] | None = None, tokens: int = 0
    ) -> None:
        """Give the place back. `slowed`: whether the server said it was too much, None for
        neither; `limits`: what it said about the rest of its minute; `tokens`: what this
        request took, so the next one will."""
        self.in_flight -= 1
        if self._opening is not None:
            self._opening.cancel()
            self._opening = None
        if slowed:
            self._slow_down()
        elif slowed is False:
            if not self.proven:
                self.proven, self.allowed = True, float(self.most)
            self.allowed = min(float(self.most), self.allowed + 1.0 / self.allowed)
        if limits:
            self._read(limits, {"requests": 1, "tokens": max(1, tokens)})
        self._let_in()

    def _take(self) -> None:
        self.in_flight += 1
        if not self.proven and not self._slowed_at and self.in_flight == 1:
            self._opening = asyncio.get_running_loop().call_later(ALONE, self._open)

    def _open(self) -> None:
        """Let the others follow: the first request was not refused, it is being worked on."""
        self._opening = None
        self.allowed = float(self.most)
        self._let_in()

    def _slow_down(self) -> None:
        now = _now()
        if now - self._slowed_at >= 1.0:  # one burst of 429s is one signal
            self._slowed_at = now
            self.allowed = max(1.0, self.allowed / 2)

    def _read(self, limits: Mapping[str, str], needs: Mapping[str, int]) -> None:
        """Close the gate until the minute turns where too little is left for a request."""
        for kind, need in needs.items():
            remaining = limits.get(f"remaining-{kind}")
            reset = seconds(limits.get(f"reset-{kind}", ""))
            if remaining is not None and reset and _is_less(remaining, need):
                self._closed_until = max(self._closed_until, _now() + min(reset, 60.0))

    def _is_free(self) -> bool:
        return self.in_flight < int(self.allowed) and _now() >= self._closed_until

    def _let_in(self) -> None:
        while self._waiting and self._is_free():
            future = self._waiting.popleft()
            if not future.done():
                self._take()
                future.set_result(None)
        wait = self._closed_until - _now()
        if self._waiting and wait > 0 and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(wait, self._reopen)

    def _reopen(self) -> None:
        self._timer = None
        self._let_in()


def _now() -> float:
    return asyncio.get_running_loop().time()


def seconds(text: str) -> float:
    """A reset time as servers write it: `1s`, `6m0s`, `120ms`, or plain seconds; 0 if unclear."""
    found = _DURATION.findall(text)
    if found:
        return sum(float(number) * _SECONDS[unit] for number, unit in found)
    try:
        return max(0.0, float(text))
    except ValueError:
        return 0.0


def _is_less(remaining: str, need: int) -> bool:
    try:
        return float(remaining) < need
    except ValueError:
        return False

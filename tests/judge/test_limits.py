"""Retries, limits and the circuit: waits on a clock that jumps, requests against a real server."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from assay.errors import JudgeError, JudgeRefusal, Stopped
from assay.judge.base import Judge, Message, Reply, Usage
from assay.judge.credential import Key
from assay.judge.limits import ALONE, FATAL_IN_A_ROW, Gate, Limited, seconds
from assay.judge.wire import openai
from tests.support import clock
from tests.support.server import Answer, JudgeServer, Request, Response, error, scripted
from tests.support.server import Reply as Served

Outcome = Reply | JudgeError
OK = Reply("ok")


@dataclass
class Model:
    """A judge of this test's own: answers by a script, each after `takes` seconds."""

    script: Callable[[str, int], Outcome] = lambda text, attempt: OK
    takes: float = 0.9
    name: str = "model"
    starts: list[tuple[str, float]] = field(default_factory=list)
    in_flight: int = 0
    most: int = 0

    async def complete(self, messages: Sequence[Message], **settings: Any) -> Reply:
        text = messages[0]["content"]
        attempt = sum(1 for asked, _ in self.starts if asked == text)
        self.starts.append((text, clock.now()))
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        try:
            await asyncio.sleep(self.takes)
        finally:
            self.in_flight -= 1
        outcome = self.script(text, attempt)
        if isinstance(outcome, JudgeError):
            raise outcome
        return outcome

    def describe(self) -> dict[str, Any]:
        return {"judge": self.name}

    async def close(self) -> None:
        return None

    def waits(self, text: str) -> list[float]:
        """Seconds between the end of each attempt and the start of the next one."""
        at = [start for asked, start in self.starts if asked == text]
        return [round(b - a - self.takes, 6) for a, b in zip(at, at[1:], strict=False)]


def ask(limited: Limited, *texts: str) -> list[Any]:
    """The outcomes of asking all texts at once, on a clock that jumps."""

    async def work() -> list[Any]:
        calls = (limited.complete([{"role": "user", "content": text}]) for text in texts)
        return await asyncio.gather(*calls, return_exceptions=True)

    return clock.run(work())


def rate_limited(after: float | None = None) -> JudgeError:
    return JudgeError("slow", cause="rate_limited", retryable=True, retry_after=after, status=429)


def broken(status: int | None = 503) -> JudgeError:
    return JudgeError("oops", cause="server_error", retryable=True, status=status)


def fatal() -> JudgeError:
    return JudgeError("bad key", cause="authentication", fatal=True, status=401)


def first_then_ok(*outcomes: Outcome) -> Callable[[str, int], Outcome]:
    return lambda text, attempt: outcomes[attempt] if attempt < len(outcomes) else OK


# Trying again.


@pytest.mark.parametrize("after", [0.0, 0.3, 2.0, 120.0])
def test_a_wait_the_server_asks_for_is_kept_exactly(after: float) -> None:
    model = Model(first_then_ok(rate_limited(after), rate_limited(after)))
    (reply,) = ask(Limited(model), "q")
    assert model.waits("q") == [after, after]
    assert reply == Reply("ok", attempts=3)


def test_without_one_waits_double_from_half_a_second_to_thirty() -> None:
    model = Model(lambda text, attempt: broken())
    (failure,) = ask(Limited(model, tries=9), "q")
    assert isinstance(failure, JudgeError)
    assert failure.attempts == 9
    for wait, ceiling in zip(model.waits("q"), [0.5, 1, 2, 4, 8, 16, 30, 30], strict=True):
        assert ceiling / 2 <= wait <= ceiling


def test_a_wait_beyond_the_longest_is_not_begun() -> None:
    model = Model(lambda text, attempt: rate_limited(3600))
    (failure,) = ask(Limited(model, longest=900), "q")
    assert failure.cause == "rate_limited"
    assert len(model.starts) == 1


def test_all_tries_of_a_call_stay_within_the_longest() -> None:
    model = Model(lambda text, attempt: rate_limited(60))
    (failure,) = ask(Limited(model, longest=200, tries=100), "q")
    first, last = model.starts[0][1], model.starts[-1][1]
    assert last - first <= 200
    assert failure.attempts == len(model.starts) == 4  # at 0, 61, 122 and 183 seconds


@pytest.mark.parametrize(
    "failure",
    [
        JudgeError("used up", cause="quota", fatal=True, status=429),
        JudgeError("bad", cause="bad_request", status=400),
        JudgeError("long", cause="context_length", status=400),
        JudgeRefusal("no", cause="content_filter", status=400),
    ],
    ids=lambda failure: failure.cause,
)
def test_what_would_fail_again_is_not_tried_again(failure: JudgeError) -> None:
    model = Model(lambda text, attempt: failure)
    (found,) = ask(Limited(model), "q")
    assert found is failure
    assert found.attempts == 1
    assert len(model.starts) == 1


def test_retries_are_counted() -> None:
    limited = Limited(Model(first_then_ok(broken(), broken())))
    ask(limited, "a", "b")
    assert limited.retried == 4


# In flight.


def test_the_first_request_goes_alone_then_all_that_may() -> None:
    model = Model()
    ask(Limited(model, max_in_flight=5), *"abcdefghijk")
    start = model.starts[0][1]
    assert [round(at - start) for _, at in model.starts] == [0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2]
    assert [text for text, _ in model.starts] == list("abcdefghijk")
    assert model.most == 5


def test_a_slow_model_keeps_the_others_waiting_for_a_second() -> None:
    model = Model(takes=20.0)
    ask(Limited(model, max_in_flight=3), *"abcd")
    start = model.starts[0][1]
    assert [at - start for _, at in model.starts] == [0.0, ALONE, ALONE, 20.0]


def test_after_a_429_nothing_is_opened_by_waiting() -> None:
    gate = Gate(8)

    async def work() -> None:
        await gate.enter()
        gate.leave(True)
        await gate.enter()
        await asyncio.sleep(10 * ALONE)

    clock.run(work())
    assert gate.allowed == 1.0


def test_a_first_failure_that_proves_nothing_keeps_the_rest_waiting() -> None:
    model = Model(lambda text, attempt: broken(None) if text == "a" and attempt < 2 else OK)
    ask(Limited(model, max_in_flight=10), "a", "b", "c", "d")
    texts = [text for text, _ in model.starts]
    assert texts[:2] == ["a", "b"]
    at = dict(model.starts[:2])
    assert at["b"] >= at["a"] + model.takes


def test_an_answer_about_one_request_shows_that_the_judge_hears() -> None:
    wrong = JudgeError("bad", cause="bad_request", status=400)
    model = Model(lambda text, attempt: wrong if text == "a" else OK)
    ask(Limited(model, max_in_flight=3), *"abcd")
    start = model.starts[0][1]
    assert [round(at - start) for _, at in model.starts] == [0, 1, 1, 1]


def test_a_waiting_call_holds_no_slot() -> None:
    model = Model(lambda text, attempt: rate_limited(60) if text == "b" and attempt == 0 else OK)
    ask(Limited(model, max_in_flight=1), "a", "b", "c", "d")
    assert [text for text, _ in model.starts] == ["a", "b", "c", "d", "b"]
    assert model.waits("b") == [60.0]


def test_a_429_halves_what_is_in_flight_and_successes_raise_it_again() -> None:
    gate = Gate(16)

    async def work() -> list[float]:
        seen = []
        for slowed in (False, True, None, *[False] * 9):
            await gate.enter()
            await asyncio.sleep(2)
            gate.leave(slowed)
            seen.append(gate.allowed)
        return seen

    seen = clock.run(work())
    assert seen[:3] == [16.0, 8.0, 8.0]
    assert seen[3] == 8.125
    assert seen[3:] == sorted(seen[3:])
    assert 8.9 < seen[-1] <= 9.1  # one more in flight for about as many successes as are allowed


def test_a_burst_of_429s_is_one_signal() -> None:
    gate = Gate(16)

    async def work() -> None:
        await gate.enter()
        gate.leave(False)
        for _ in range(6):
            await gate.enter()
        for _ in range(6):
            gate.leave(True)

    clock.run(work())
    assert gate.allowed == 8.0


def test_the_gate_never_closes_for_good() -> None:
    gate = Gate(4)

    async def work() -> None:
        for _ in range(20):
            await gate.enter()
            await asyncio.sleep(2)
            gate.leave(True)

    clock.run(work())
    assert gate.allowed == 1.0


def test_after_a_429_fewer_go_at_once() -> None:
    model = Model(lambda text, attempt: rate_limited(5) if text == "b" and attempt == 0 else OK)
    ask(Limited(model, max_in_flight=8), *"abcdefghijklmnopq")
    start = model.starts[0][1]
    began = Counter(round(at - start) for _, at in model.starts)
    # b's 429 halves 8 to 4; then c to i each add one over what is allowed: 5.5 in the end.
    assert [began[second] for second in range(3)] == [1, 8, 5]


def test_a_cancelled_call_gives_its_place_back() -> None:
    gate = Gate(1)

    async def work() -> int:
        await gate.enter()
        waiting = [asyncio.ensure_future(gate.enter()) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        gate.leave(False)  # hands the place to the second, which is cancelled before it runs
        waiting[1].cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        return gate.in_flight

    assert clock.run(work()) == 1  # the third has it


# What the server says about its minute.


@pytest.mark.parametrize(
    ("limits", "wait"),
    [
        ({"remaining-requests": "0", "reset-requests": "12s"}, 12.0),
        ({"remaining-tokens": "0", "reset-tokens": "1m3s"}, 60.0),
        ({"remaining-requests": "0", "reset-requests": "500ms"}, 0.5),
        ({"remaining-requests": "1", "reset-requests": "12s"}, 0.0),
        ({"remaining-tokens": "799", "reset-tokens": "12s"}, 12.0),  # a request takes 800
        ({"remaining-tokens": "800", "reset-tokens": "12s"}, 0.0),
        ({"remaining-requests": "0"}, 0.0),
        ({"remaining-requests": "many", "reset-requests": "12s"}, 0.0),
        ({}, 0.0),
    ],
)
def test_no_request_left_closes_the_gate_until_the_reset(
    limits: dict[str, str], wait: float
) -> None:
    first = Reply("ok", limits=limits, usage=Usage(prompt_tokens=700, completion_tokens=100))
    model = Model(lambda text, attempt: first if text == "a" else OK)
    ask(Limited(model), "a", "b", "c")
    start = model.starts[0][1]
    assert [round(at - start - model.takes, 6) for _, at in model.starts[1:]] == [wait, wait]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1s", 1.0),
        ("6m0s", 360.0),
        ("120ms", 0.12),
        ("1h2m3s", 3723.0),
        ("1.5s", 1.5),
        ("7", 7.0),
        ("0", 0.0),
        ("", 0.0),
        ("soon", 0.0),
        ("-3", 0.0),
    ],
)
def test_reset_times_as_servers_write_them(text: str, value: float) -> None:
    assert seconds(text) == pytest.approx(value)


# The circuit.


def test_a_fatal_first_request_stops_all_others() -> None:
    model = Model(lambda text, attempt: fatal())
    outcomes = ask(Limited(model), *"abcdefgh")
    assert len(model.starts) == 1
    assert [outcome.cause for outcome in outcomes] == ["authentication"] * 8
    assert [outcome.attempts for outcome in outcomes] == [1] + [0] * 7
    assert "not asked" in str(outcomes[1])
    assert "bad key" in str(outcomes[1])


def test_later_the_circuit_opens_after_five_in_a_row() -> None:
    model = Model(lambda text, attempt: OK if text == "a" else fatal())
    limited = Limited(model, max_in_flight=1)
    ask(limited, *"abcdefghijk")
    assert len(model.starts) == 1 + FATAL_IN_A_ROW == 6


def test_a_success_in_between_keeps_it_closed() -> None:
    model = Model(lambda text, attempt: OK if text in "ae" else fatal())
    ask(Limited(model, max_in_flight=1), *"abcdefghi")
    assert len(model.starts) == 9


# Stopping.


def test_stopping_starts_nothing_more_and_ends_the_waits() -> None:
    model = Model(lambda text, attempt: rate_limited(600) if text == "b" else OK)
    limited = Limited(model, max_in_flight=2)

    async def work() -> tuple[list[Any], float]:
        calls = [
            asyncio.ensure_future(limited.complete([{"role": "user", "content": text}]))
            for text in "abcd"
        ]
        await asyncio.sleep(2.5)  # a is done, b waits for its minutes, c is done, d is under way
        limited.stop()
        return await asyncio.gather(*calls, return_exceptions=True), clock.now()

    before = 1000.0
    outcomes, after = clock.run(work())
    assert [type(outcome) for outcome in outcomes] == [Reply, Stopped, Reply, Reply]
    assert after - before < 10
    assert len(model.starts) == 4


# On a real server.


def served(server: JudgeServer, *texts: str, **limits: Any) -> list[Any]:
    judge = Limited(openai("m", credential=Key("key-0123456789"), base_url=server.url), **limits)

    async def work() -> list[Any]:
        try:
            calls = (judge.complete([{"role": "user", "content": text}]) for text in texts)
            return await asyncio.gather(*calls, return_exceptions=True)
        finally:
            await judge.close()

    return asyncio.run(work())


SOON = {"retry-after-ms": "1"}


@pytest.mark.parametrize(
    "first",
    [
        error(429, "slow", headers=SOON),
        error(429, "slow", headers={"Retry-After": "0"}),
        error(429, "slow", headers={"Retry-After": "Tue, 14 Nov 2023 22:13:20 GMT"}),
        error(503, "oops", headers=SOON),
        error(500, "oops", headers=SOON),
        Response(body="{", headers=SOON),
    ],
)
def test_a_passing_failure_is_tried_again(server: JudgeServer, first: Served) -> None:
    server.reply = scripted([first, "fine"])
    (reply,) = served(server, "q")
    assert (reply.text, reply.attempts) == ("fine", 2)
    assert [request.attempt for request in server.requests] == [0, 1]


@pytest.mark.parametrize("first", [Response(disconnect=True), Response(truncate=True)])
def test_a_broken_connection_is_tried_again(
    server: JudgeServer, first: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("random.uniform", lambda low, high: 0.0)  # no wait
    server.reply = scripted([first, first, "fine"])
    (reply,) = served(server, "q")
    assert (reply.text, reply.attempts) == ("fine", 3)


def test_a_failure_that_stays_is_given_up(server: JudgeServer) -> None:
    server.reply = error(503, "oops", headers=SOON)
    (failure,) = served(server, "q", tries=3)
    assert (failure.cause, failure.attempts) == ("server_error", 3)
    assert server.count == 3


def test_a_used_up_quota_is_asked_once(server: JudgeServer) -> None:
    server.reply = error(429, "used up", "insufficient_quota", headers=SOON)
    failures = served(server, "a", "b", "c")
    assert [failure.cause for failure in failures] == ["quota"] * 3
    assert server.count == 1


def test_never_more_in_flight_than_allowed(server: JudgeServer) -> None:
    server.latency = 0.002
    outcomes = served(server, *(f"q{n}" for n in range(60)), max_in_flight=7)
    assert all(isinstance(outcome, Reply) for outcome in outcomes)
    assert server.max_in_flight <= 7
    assert server.requests[0].number == 0
    assert server.count == 60


def test_every_answer_reaches_its_own_caller(server: JudgeServer) -> None:
    def echo(request: Request) -> Answer:
        if request.number % 5 == 3:
            return error(429, "slow", headers=SOON)
        return request.text

    server.reply = echo
    texts = [f"q{n}" for n in range(40)]
    assert [outcome.text for outcome in served(server, *texts)] == texts


def test_it_is_a_judge_that_names_and_describes_the_one_inside() -> None:
    limited: Judge = Limited(Model(name="m"), max_in_flight=3)
    assert limited.name == "m"
    assert limited.describe() == {"judge": "m", "max_in_flight": 3}

"""What a bad day of the judge, the network or the disk costs: time, and never a row."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.errors import JudgeError, SetupError
from assay.judge.base import Message, Reply
from assay.judge.resolve import resolve
from assay.run.progress import Silent
from tests.support import runs
from tests.support.server import JudgeServer, Request, Response, error

SOON = {"retry-after-ms": "20"}
STATUSES = ("scored", "not_applicable", "invalid", "refused", "error")


def evaluate(count: int, metric: Path, server: JudgeServer, **options: Any) -> assay.Run:
    options = {"judge": "openai:test", "base_url": server.url, "cache": False, **options}
    return assay.evaluate(runs.rows(count), metric, progress=Silent(), **options)


def statuses(run: assay.Run, count: int) -> list[str]:
    """The rows' statuses in input order, each row there exactly once."""
    assert Counter(line["row"] for line in runs.journal(run.directory)) == dict.fromkeys(
        range(count), 1
    )
    found = [row["outputs.on_topic.status"] for row in run.rows()]
    assert len(found) == count
    assert set(found) <= set(STATUSES)
    counts = run.metrics["on_topic.score"]
    assert counts["n"] == count == sum(counts[status] for status in STATUSES)
    return found


class Weather:
    """A server's reply that fails in its own way for some rows, at their first attempt.

    `good` counts the replies that were sent whole, by row: one that is repeated was lost.
    """

    def __init__(self, fault: Callable[[int], Response | None]) -> None:
        self.fault = fault
        self.good: Counter[int] = Counter()

    def __call__(self, request: Request) -> Response | str:
        number = runs.asked(request)
        if request.attempt == 0 and (response := self.fault(number)) is not None:
            return response
        self.good[number] += 1
        return runs.judged(request)


def storm(number: int) -> Response | None:
    """Of 100 rows: ten 429, five 500 and 503, three disconnects, two bodies cut in half."""
    match number % 20:
        case 3 | 13:
            return error(429, "slow down", "rate_limit_exceeded", headers=SOON)
        case 5:
            return error(503 if number % 40 == 5 else 500, "busy", headers=SOON)
        case 7 if number < 60:
            return Response(disconnect=True)
        case 9 if number < 40:
            return Response(content=runs.reply_for(number), truncate=True)
    return None


def test_a_storm_costs_no_row_and_repeats_no_answer(metric: Path, server: JudgeServer) -> None:
    weather = server.reply = Weather(storm)
    run = evaluate(100, metric, server)
    assert statuses(run, 100) == ["scored"] * 100
    assert [row["outputs.on_topic.score"] for row in run.rows()] == [
        runs.score_for(n) for n in range(100)
    ]
    assert weather.good == dict.fromkeys(range(100), 1)
    assert server.count == 100 + 10 + 5 + 3 + 2
    attempts = {line["row"]: line["calls"][0]["attempts"] for line in runs.journal(run.directory)}
    assert Counter(attempts.values()) == {1: 80, 2: 20}
    assert all(attempts[number] == 2 for number in (3, 5, 7, 9))


def test_a_body_that_is_no_completion_is_asked_for_again(metric: Path, server: JudgeServer) -> None:
    bodies: list[Any] = [b'{"choices": [', b"<html>busy</html>", b"", {"choices": []}, {}]

    def fault(number: int) -> Response | None:
        return Response(body=bodies[number], headers=SOON) if number < len(bodies) else None

    weather = server.reply = Weather(fault)
    run = evaluate(8, metric, server)
    assert statuses(run, 8) == ["scored"] * 8
    assert weather.good == dict.fromkeys(range(8), 1)


def test_an_invalid_reply_is_asked_for_once_more_and_then_it_is_invalid(
    metric: Path, server: JudgeServer
) -> None:
    def reply(request: Request) -> str:
        number = runs.asked(request)
        first = len(request.body["messages"]) == 2
        return "no idea" if number == 2 or (number == 1 and first) else runs.judged(request)

    server.reply = reply
    run = evaluate(4, metric, server)
    assert statuses(run, 4) == ["scored", "scored", "invalid", "scored"]
    lines = {line["row"]: line for line in runs.journal(run.directory)}
    assert [len(lines[number]["calls"]) for number in range(4)] == [1, 2, 2, 1]
    assert lines[2]["cause"] == "unparseable"
    assert [call["reply"] for call in lines[2]["calls"]] == ["no idea", "no idea"]
    again = [request for request in server.requests if len(request.body["messages"]) > 2]
    assert {request.body["messages"][2]["content"] for request in again} == {"no idea"}
    assert server.count == 6


def test_a_server_that_stalls_costs_its_timeout_and_no_row(
    metric: Path, server: JudgeServer
) -> None:
    weather = server.reply = Weather(lambda n: Response(stall=True) if n % 5 == 2 else None)
    run = evaluate(20, metric, server, timeout=0.3)
    assert statuses(run, 20) == ["scored"] * 20
    assert weather.good == dict.fromkeys(range(20), 1)
    assert server.count == 24


def test_a_row_that_never_ends_is_an_error_of_that_row(metric: Path, server: JudgeServer) -> None:
    def reply(request: Request) -> Any:
        return Response(stall=True) if runs.asked(request) == 1 else runs.judged(request)

    server.reply = reply
    run = evaluate(4, metric, server, row_timeout=0.5)
    assert statuses(run, 4) == ["scored", "error", "scored", "scored"]
    found = list(run.rows())[1]
    assert found["outputs.on_topic.cause"] == "timeout"
    assert found["outputs.on_topic.score_reason"] == "not done within 0.5 s"


@pytest.mark.parametrize(
    ("response", "status", "cause"),
    [
        (error(400, "no such thing", "invalid_value"), "error", "bad_request"),
        (error(400, "too long", "context_length_exceeded"), "error", "context_length"),
        (error(400, "filtered", "content_filter"), "refused", "content_filter"),
        (Response(content=None, refusal="no"), "refused", "refusal"),
        (Response(content="", finish_reason="content_filter"), "refused", "content_filter"),
        (Response(content='{"reason": "cut', finish_reason="length"), "invalid", "truncated"),
        (Response(content=""), "invalid", "empty"),
        (Response(content='{"reason": "r", "score": 9}'), "invalid", "out_of_scale"),
        (Response(content='{"reason": "r", "score": 4.5}'), "invalid", "wrong_type"),
    ],
)
def test_what_trying_again_cannot_mend_is_asked_once(
    metric: Path, server: JudgeServer, response: Response, status: str, cause: str
) -> None:
    def reply(request: Request) -> Any:
        return response if runs.asked(request) == 1 else runs.judged(request)

    server.reply = reply
    run = evaluate(3, metric, server, reask=0)
    assert statuses(run, 3) == ["scored", status, "scored"]
    assert list(run.rows())[1]["outputs.on_topic.cause"] == cause
    assert run.metrics["on_topic.score"]["mean"] == 2  # of rows 0 and 2
    assert server.count == 3


class Watched:
    """A judge that tells when its server could not be reached."""

    def __init__(self, url: str) -> None:
        self.judge = resolve("openai:test", base_url=url)
        self.unreachable = threading.Event()

    @property
    def name(self) -> str:
        return self.judge.name

    async def complete(self, messages: Sequence[Message], **settings: Any) -> Reply:
        try:
            return await self.judge.complete(messages, **settings)
        except JudgeError as failure:
            if failure.cause == "connection" and "Connect call failed" in str(failure):
                self.unreachable.set()
            raise

    def describe(self) -> dict[str, Any]:
        return self.judge.describe()

    async def close(self) -> None:
        await self.judge.close()


def test_a_server_that_dies_and_comes_back_costs_no_row(metric: Path, server: JudgeServer) -> None:
    weather = server.reply = Weather(lambda number: None)
    server.latency = 0.02
    judge = Watched(server.url)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(evaluate, 60, metric, server, judge=judge, max_in_flight=8)
        server.wait_for(20, 60)
        server.stop()
        assert judge.unreachable.wait(20)
        server.start()
        run = running.result(60)
    assert statuses(run, 60) == ["scored"] * 60
    assert run.metrics["on_topic.score"]["mean"] == pytest.approx(runs.mean_of(range(60)))
    # Only the answers that were under way when it died were made twice.
    assert sum(weather.good.values()) <= 60 + 8


def test_an_address_where_nobody_listens(metric: Path, server: JudgeServer) -> None:
    server.stop()
    with pytest.raises(SetupError, match=rf"127.0.0.1:{server.port} cannot be reached"):
        evaluate(3, metric, server, judge=resolve("openai:test", base_url=server.url))
    assert not Path("runs").exists()


# --- a full disk ---------------------------------------------------------------------------------

_SMALL_DISK = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
from assay.cli import main
main()
"""


def test_a_full_disk_stops_the_run_and_what_is_written_can_be_finished(
    tmp_path: Path, metric: Path, server: JudgeServer
) -> None:
    count = 200
    data = runs.write_lines(tmp_path / "data.jsonl", runs.rows(count))
    given = [metric, data, "--judge", "openai:test", "--base-url", server.url, "--no-cache"]
    done = subprocess.run(
        [sys.executable, "-c", _SMALL_DISK, "run", *map(str, given), "-j", "8"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    directory = runs.only_run(tmp_path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1] == (
        f"assay: {directory.relative_to(tmp_path)}/scores.jsonl cannot be written: File too "
        "large; what it holds is complete, resume the run when there is room"
    )
    finished = {line["row"] for line in runs.journal(directory)}
    assert 0 < len(finished) < count
    server.wait_idle()

    options = {"judge": "openai:test", "base_url": server.url, "cache": False}
    run = assay.evaluate(data, metric, progress=Silent(), resume=directory, **options)
    assert statuses(run, count) == ["scored"] * count
    calls = Counter(map(runs.asked, server.requests))
    assert {calls[row] for row in finished} == {1}
    assert server.count <= count + 16

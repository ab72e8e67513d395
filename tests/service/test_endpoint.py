"""`assay serve`: Foundry's endpoint contract over real sockets."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

import assay
from assay.errors import SetupError
from assay.service.endpoint import BUDGET, Endpoint, check_bind, make_endpoint
from tests.service.running import Running, request
from tests.support import runs
from tests.support.server import JudgeServer, Response

KEY = "a-key-that-nobody-must-see"


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with JudgeServer(runs.judged) as running:
        yield running


@pytest.fixture
def start(tmp_path: Path, server: JudgeServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.chdir(tmp_path)
    opened: list[Running] = []

    def make(*names: str, key: str | None = None, budget: float | None = None) -> Running:
        files = [runs.write_metric(tmp_path, name) for name in names or ("on_topic",)]
        made = make_endpoint(files, judge="openai:test", base_url=server.url, key=key)
        if budget is not None:
            made = Endpoint(made.served, made.key, budget=budget)
        opened.append(Running(made))
        return opened[-1]

    yield make
    for running in opened:
        running.stop()


def test_a_row_is_scored(start: Any) -> None:
    status, answer = start().post(body=request(question="q3", answer="a"))
    assert status == 200
    properties = answer.pop("properties")
    assert answer == {
        "schema_version": "0.0.1",
        "score": 4,
        "reason": "because of 3",
        "status": "Completed",
        "threshold": 3.0,
        "passed": True,
    }
    assert properties["metric"] == "on_topic"
    assert properties["outputs"] == {"reason": "because of 3", "score": 4}
    assert properties["prompt_tokens"] == 50


def test_a_row_that_fails_and_another_name_of_an_input(start: Any) -> None:
    _, answer = start().post(body=request(query="q0", response="a"))
    assert (answer["score"], answer["passed"], answer["status"]) == (1, False, "Completed")


def test_a_row_without_an_input_is_skipped(start: Any, server: JudgeServer) -> None:
    status, answer = start().post(body=request(question="q0"))
    assert status == 200
    assert (answer["status"], answer["score"], answer["passed"]) == ("Skipped", None, None)
    assert "answer" in answer["reason"]
    assert server.count == 0


def test_a_reply_that_cannot_be_read_is_an_error(start: Any, server: JudgeServer) -> None:
    server.reply = "no idea"
    status, answer = start().post(body=request(question="q0", answer="a"))
    assert status == 200
    assert answer["status"] == "Error"
    assert answer["error"]["code"] == "unparseable"
    assert "score" not in answer


def test_a_judge_that_is_too_slow(start: Any, server: JudgeServer) -> None:
    server.reply = Response(stall=True)
    _, answer = start(budget=0.2).post(body=request(question="q0", answer="a"))
    assert (answer["status"], answer["error"]["code"]) == ("Error", "timeout")


def test_what_is_spent_before_counts() -> None:
    async def endless(question: str) -> float:
        await asyncio.Event().wait()
        return 1.0

    body = request(question="q0")
    status, answer = asyncio.run(make_endpoint([endless]).answer(None, None, body, spent=BUDGET))
    assert status == 200
    assert answer["error"] == {"code": "timeout", "message": "not done within 0 s"}


def test_two_metrics_are_two_addresses(start: Any) -> None:
    running = start("on_topic", "other")
    assert running.post("/other", request(question="q1", answer="a"))[1]["score"] == 2
    assert running.post("/on_topic/score", request(question="q1", answer="a"))[1]["score"] == 2
    body = request(question="q1", answer="a")
    assert running.post("/", body)[1]["properties"]["metric"] == "on_topic"
    assert running.post("/none", body)[0] == 404
    assert running.post("/other/none", body)[0] == 404
    assert running.post("/", {**body, "evaluator_name": "none"})[0] == 404


@pytest.mark.parametrize("given", [None, "", "wrong", KEY[:-1], "schlüssel"])
def test_without_the_key_nothing_is_asked(
    start: Any, server: JudgeServer, given: str | None
) -> None:
    headers = {} if given is None else {"api-key": given}
    status, answer = start(key=KEY).post(body=request(question="q0", answer="a"), headers=headers)
    assert (status, answer["status"], answer["error"]["code"]) == (401, "Error", "unauthorized")
    assert KEY not in json.dumps(answer)
    assert server.count == 0


def test_with_the_key(start: Any) -> None:
    status, answer = start(key=KEY).post(
        body=request(question="q0", answer="a"), headers={"api-key": KEY}
    )
    assert (status, answer["status"]) == (200, "Completed")


def test_a_header_that_is_no_text(start: Any) -> None:
    running = start(key=KEY)
    connection = http.client.HTTPConnection(running.url.removeprefix("http://"), timeout=10)
    headers = {"Content-Type": "application/json", "api-key": "\xff"}  # sent as that one byte
    connection.request("POST", "/", b"{}", headers)
    assert connection.getresponse().status == 401
    connection.close()


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ({"data": b"{", "headers": {"Content-Type": "application/json"}}, 400),
        ({"json": []}, 400),
        ({"json": {"data": {}}}, 400),
        ({"json": {"data": {"item": "text"}}}, 400),
        ({"json": {**request(question="q", answer="a"), "evaluation_level": "trace"}}, 400),
        ({"data": b"[" * 100_000, "headers": {"Content-Type": "application/json"}}, 400),
        ({"data": json.dumps(request(question="q", answer="a"))}, 415),
    ],
)
def test_what_is_no_request(
    start: Any, server: JudgeServer, sent: dict[str, Any], status: int
) -> None:
    kwargs = {"json": None, **sent} if "data" in sent else sent
    found, answer = start().post(**kwargs)
    assert (found, answer["status"]) == (status, "Error")
    assert server.count == 0


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_loopback_needs_no_guard(host: str) -> None:
    check_bind(host, guarded=False)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.4", "example.test"])
def test_any_other_address_needs_one(host: str) -> None:
    check_bind(host, guarded=True)
    with pytest.raises(SetupError, match="set ASSAY_SERVE_KEY .* or --audience"):
        check_bind(host, guarded=False)


def test_the_key_is_not_shown() -> None:
    assert KEY not in repr(Endpoint({}, KEY))


def test_two_metrics_of_one_name(tmp_path: Path) -> None:
    judge = assay.ScriptedJudge("x")
    file = runs.write_metric(tmp_path)
    with pytest.raises(SetupError, match="two metrics are called 'on_topic'"):
        make_endpoint([file, file], judge=judge)


def test_the_command_refuses_an_open_door(tmp_path: Path) -> None:
    file = runs.write_metric(tmp_path)
    done = runs.command("serve", file, "--judge", "baseline", "--host", "0.0.0.0", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "set ASSAY_SERVE_KEY" in done.stderr


def test_the_command_serves(tmp_path: Path, server: JudgeServer) -> None:
    file = runs.write_metric(tmp_path)
    arguments = ("--judge", "openai:test", "--base-url", server.url, "--port", "0")
    with runs.start("serve", file, *arguments, cwd=tmp_path) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert url.endswith("/on_topic")

        async def send() -> Any:
            body = request(question="q4", answer="a")
            async with (
                aiohttp.ClientSession() as session,
                session.post(url, json=body) as answer,
            ):
                return await answer.json()

        assert asyncio.run(send())["score"] == 5
        process.send_signal(2)
        _, said = process.communicate(timeout=20)
    assert "no key is asked for: loopback only" in said
    assert "ended" in said

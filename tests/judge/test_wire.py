"""The OpenAI wire, against a real server on loopback: what is sent, what comes back, what fails."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any

import pytest

from assay.errors import JudgeError, JudgeRefusal, SetupError
from assay.judge.base import Judge, Reply, Usage
from assay.judge.credential import AZURE_SCOPE, Entra, Key, NoCredential
from assay.judge.faults import fault, redact, retry_after
from assay.judge.limits import Limited
from assay.judge.wire import OpenAIJudge, azure, openai
from tests.support.server import Answer, JudgeServer, Request, Response, completion, error, scripted

KEY = "sk-test-0123456789abcdef"
HI = [{"role": "user", "content": "hi"}]


def ask(judge: Judge, times: int = 1, **settings: Any) -> list[Reply | BaseException]:
    """The outcomes of asking so many times at once."""

    async def work() -> list[Reply | BaseException]:
        try:
            calls = (judge.complete(HI, **settings) for _ in range(times))
            return await asyncio.gather(*calls, return_exceptions=True)
        finally:
            await judge.close()

    return asyncio.run(work())


def reply(judge: Judge, **settings: Any) -> Reply:
    (outcome,) = ask(judge, **settings)
    assert isinstance(outcome, Reply), outcome
    return outcome


def failure(judge: Judge, **settings: Any) -> JudgeError:
    (outcome,) = ask(judge, **settings)
    assert isinstance(outcome, JudgeError), outcome
    return outcome


def openai_at(server: JudgeServer, **more: Any) -> OpenAIJudge:
    return openai("gpt-x", credential=Key(KEY), base_url=server.url, **more)


# What is sent.


def test_an_openai_request(server: JudgeServer) -> None:
    reply(openai_at(server), temperature=0, seed=7)
    (request,) = server.requests
    assert request.path == "/v1/chat/completions"
    assert request.query == {}
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["content-type"] == "application/json"
    assert request.body == {"model": "gpt-x", "messages": HI, "temperature": 0, "seed": 7}


def test_an_azure_request_with_an_api_version(server: JudgeServer) -> None:
    judge = azure(
        "my judge", endpoint=server.azure + "/", credential=Key(KEY, bearer=False),
        api_version="2024-06-01",
    )  # fmt: skip
    reply(judge, temperature=0)
    (request,) = server.requests
    assert request.path == "/openai/deployments/my judge/chat/completions"
    assert request.query == {"api-version": "2024-06-01"}
    assert request.headers["api-key"] == KEY
    assert "authorization" not in request.headers
    assert request.body == {"messages": HI, "temperature": 0}


@pytest.mark.parametrize("tail", ["", "/", "/openai", "/openai/v1", "/openai/v1/"])
def test_an_azure_request_to_the_v1_api(server: JudgeServer, tail: str) -> None:
    judge = azure("dep", endpoint=server.azure + tail, credential=Key(KEY, bearer=False))
    reply(judge)
    (request,) = server.requests
    assert request.path == "/openai/v1/chat/completions"
    assert request.query == {}
    assert request.headers["api-key"] == KEY
    assert request.body == {"model": "dep", "messages": HI}


@pytest.mark.parametrize("tail", ["", "/", "/chat/completions"])
def test_a_compatible_server_without_a_key(server: JudgeServer, tail: str) -> None:
    judge = openai("llama", credential=NoCredential(), base_url=server.url + tail)
    assert reply(judge).text == "ok"
    (request,) = server.requests
    assert request.path == "/v1/chat/completions"
    assert "authorization" not in request.headers


def test_any_text_goes_out_whole(server: JudgeServer) -> None:
    words = 'hé 質問 🙂 \u2028 \x00 \\ " \ud800'
    judge = openai_at(server)

    async def work() -> None:
        try:
            await judge.complete([{"role": "user", "content": words}])
        finally:
            await judge.close()

    asyncio.run(work())
    assert server.requests[0].text == words.replace("\ud800", "?")


# What comes back.


def test_every_field_of_a_reply(server: JudgeServer) -> None:
    body = completion("four", usage=(50, 12), model="gpt-x-2024")
    body["usage"]["completion_tokens_details"] = {"reasoning_tokens": 8}
    body["usage"]["prompt_tokens_details"] = {"cached_tokens": 30}
    headers = {"x-ratelimit-remaining-requests": "3", "X-RateLimit-Reset-Requests": "1s"}
    server.reply = Response(body=body, headers=headers)
    found = reply(openai_at(server))
    assert found == Reply(
        text="four",
        usage=Usage(50, 12, reasoning_tokens=8, cached_tokens=30),
        finish_reason="stop",
        latency=found.latency,
        model="gpt-x-2024",
    )
    assert found.latency > 0
    assert found.usage.total_tokens == 62
    assert found.limits == {"remaining-requests": "3", "reset-requests": "1s"}


def test_a_reply_without_usage_or_content(server: JudgeServer) -> None:
    server.reply = Response(content=None, usage=None, finish_reason="length")
    found = reply(openai_at(server))
    assert (found.text, found.usage, found.finish_reason) == ("", Usage(), "length")


def test_content_in_parts(server: JudgeServer) -> None:
    body = completion(None)
    body["choices"][0]["message"]["content"] = [
        {"type": "text", "text": "fo"},
        {"type": "text", "text": "ur"},
    ]
    server.reply = body
    assert reply(openai_at(server)).text == "four"


def test_a_refusal_of_the_model(server: JudgeServer) -> None:
    server.reply = Response(content=None, refusal="I can't help with that.")
    found = reply(openai_at(server))
    assert (found.text, found.refusal) == ("", "I can't help with that.")


def test_tool_calls(server: JudgeServer) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "mark", "arguments": '{"s": 4}'}}
    server.reply = Response(content=None, finish_reason="tool_calls", tool_calls=[call, call])
    assert reply(openai_at(server)).tool_calls == ({"name": "mark", "arguments": '{"s": 4}'},) * 2


@pytest.mark.parametrize(
    "body",
    [
        "",
        "<html>gateway</html>",
        "[]",
        "null",
        "{}",
        '{"choices": []}',
        '{"choices": [{}]}',
        '{"choices": [{"message": null}]}',
        '{"choices": [{"message": {"content": 7}}]}',
        '{"error": {"message": "late"}}',
        b'{"choices": [{"message": {"content": "\xff"}}]}',
    ],
)
def test_a_200_that_holds_no_answer_may_be_tried_again(
    server: JudgeServer, body: str | bytes
) -> None:
    server.reply = Response(body=body)
    found = failure(openai_at(server))
    assert (found.cause, found.retryable, found.fatal) == ("bad_response", True, False)


# What fails.

CATEGORIES = {
    "content_filter_result": {"violence": {"filtered": True}, "hate": {"filtered": False}}
}
QUOTA = "insufficient_quota"


@pytest.mark.parametrize(
    ("answer", "cause", "retryable", "fatal"),
    [
        (error(401, "bad key", "invalid_api_key"), "authentication", False, True),
        (error(403, "no role"), "authentication", False, True),
        (error(404, "no such", "DeploymentNotFound"), "not_found", False, True),
        (error(400, "wrong"), "bad_request", False, False),
        (error(422, "wrong"), "bad_request", False, False),
        (error(400, "long", "context_length_exceeded"), "context_length", False, False),
        (Response(status=413, body="too large"), "context_length", False, False),
        (error(429, "slow down", "rate_limit_exceeded"), "rate_limited", True, False),
        (error(429, "used up", QUOTA), "quota", False, True),
        (error(408, "late"), "timeout", True, False),
        (error(409, "conflict"), "server_error", True, False),
        (error(500, "oops"), "server_error", True, False),
        (error(502, "oops"), "server_error", True, False),
        (error(503, "oops"), "server_error", True, False),
        (error(529, "overloaded"), "server_error", True, False),
        (Response(status=503, body="<html>"), "server_error", True, False),
        (Response(status=301, headers={"Location": "http://evil.example/"}),
         "bad_request", False, False),
        (Response(disconnect=True), "connection", True, False),
        (Response(truncate=True), "connection", True, False),
    ],
)  # fmt: skip
def test_what_every_failure_means(
    server: JudgeServer, answer: Response, cause: str, retryable: bool, fatal: bool
) -> None:
    server.reply = answer
    found = failure(openai_at(server))
    assert (found.cause, found.retryable, found.fatal) == (cause, retryable, fatal)
    assert found.status == (answer.status if answer.status != 200 else None)
    assert f"127.0.0.1:{server.port}" in str(found) or cause == "context_length"
    assert server.count == 1


def test_the_services_own_words_are_kept(server: JudgeServer) -> None:
    server.reply = error(400, "'n' must be at least 1")
    assert "'n' must be at least 1" in str(failure(openai_at(server)))
    server.reply = error(400, "w" * 10_000)
    assert len(str(failure(openai_at(server)))) < 500


def test_a_content_filter_is_a_refusal_that_names_the_category(server: JudgeServer) -> None:
    server.reply = Response(
        status=400,
        body={"error": {"code": "content_filter", "message": "no", "innererror": CATEGORIES}},
    )
    found = failure(openai_at(server))
    assert isinstance(found, JudgeRefusal)
    assert found.cause == "content_filter"
    assert "(violence)" in str(found)


def test_a_server_that_does_not_answer_in_time(server: JudgeServer) -> None:
    server.reply = Response(stall=True)
    found = failure(openai_at(server, timeout=0.05))
    assert (found.cause, found.retryable) == ("timeout", True)
    assert "0.05 s" in str(found)


def test_a_server_that_is_not_there(server: JudgeServer) -> None:
    server.stop()
    found = failure(openai_at(server))
    assert (found.cause, found.retryable) == ("connection", True)


@pytest.mark.parametrize(
    "url", ["", "api.openai.com/v1", "ftp://x", "https://", "https://[x", "https://u:p@host/v1"]
)
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(SetupError):
        openai("m", credential=NoCredential(), base_url=url)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-1"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after-ms": "300"}, 0.3),
        ({"retry-after-ms": "300", "retry-after": "2"}, 0.3),
        ({"retry-after-ms": "x", "retry-after": "2"}, 2.0),
        ({"retry-after": "Tue, 14 Nov 2023 22:13:50 GMT"}, 30.0),
        ({"retry-after": "Tue, 14 Nov 2023 22:00:00 GMT"}, 0.0),
    ],
)
def test_when_to_come_back(
    headers: dict[str, str], seconds: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time", lambda: 1_700_000_000.0)  # 14 Nov 2023 22:13:20 GMT
    assert retry_after(headers) == seconds
    assert fault(503, headers, b"", "x").retry_after == seconds


# Secrets.


def parts_of(secret: str) -> list[str]:
    return [secret[i : i + 8] for i in range(len(secret) - 7)]


def leaks(text: str, secret: str = KEY) -> bool:
    return any(part in text for part in parts_of(secret))


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500, 200])
@pytest.mark.parametrize("said", [KEY, f"key {KEY[:12]}***", f"ends in {KEY[-9:]}", f"{KEY}{KEY}"])
def test_a_key_the_server_repeats_is_in_no_message(
    server: JudgeServer, status: int, said: str
) -> None:
    server.reply = Response(status=status, body=f'{{"error": {{"message": "bad {said}"}}}}')
    found = failure(openai_at(server))
    assert not leaks(str(found))
    assert not leaks(repr(found))
    assert server.count == 1


@pytest.mark.parametrize("status", [401, 403])
def test_nothing_a_server_says_about_credentials_is_passed_on(
    server: JudgeServer, status: int
) -> None:
    server.reply = error(status, "bad key sk-t****cdef")
    found = str(failure(openai_at(server)))
    assert "sk-t" not in found
    assert "cdef" not in found


def test_a_key_is_in_no_description(server: JudgeServer) -> None:
    judge = Limited(openai_at(server))
    for credential in (Key(KEY), Key(KEY, bearer=False)):
        assert not leaks(repr(credential))
    assert not leaks(repr(judge))
    assert not leaks(str(judge.describe()))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("nothing here", "nothing here"),
        ("x abcdefghij y", "x [secret] y"),
        ("x bcdefghi y", "x [secret] y"),
        ("abcdefg", "abcdefg"),
        ("abcdefghijabcdefghij", "[secret][secret]"),
        ("abcdefgh--cdefghij", "[secret]--[secret]"),
    ],
)
def test_redaction_takes_every_run_of_eight(text: str, expected: str) -> None:
    assert redact(text, ["abcdefghij"]) == expected


# Parameters a model does not take.


def reasoning(request: Request) -> Answer:
    """A model that takes neither max_tokens nor a temperature."""
    for name, code in (
        ("max_tokens", "unsupported_parameter"),
        ("temperature", "unsupported_value"),
    ):
        if name in request.body:
            return error(400, f"Unsupported: '{name}'", code, name)
    return "ok"


def test_what_a_model_rejects_is_translated_and_remembered(server: JudgeServer) -> None:
    server.reply = reasoning
    judge = openai_at(server)

    async def work() -> None:
        for _ in range(3):
            await judge.complete(HI, max_tokens=300, temperature=0, seed=1)
        await judge.close()

    asyncio.run(work())
    sent = [set(request.body) - {"messages", "model"} for request in server.requests]
    assert sent == [
        {"max_tokens", "temperature", "seed"},
        {"max_completion_tokens", "temperature", "seed"},
        {"max_completion_tokens", "seed"},
        {"max_completion_tokens", "seed"},
        {"max_completion_tokens", "seed"},
    ]
    assert all(r.body["max_completion_tokens"] == 300 for r in server.requests[1:])
    assert judge.describe()["rejected_parameters"] == {
        "max_tokens": "sent as max_completion_tokens",
        "temperature": "not sent",
    }


def test_twenty_calls_at_once_learn_it_once(server: JudgeServer) -> None:
    server.reply = reasoning
    outcomes = ask(Limited(openai_at(server)), times=20, max_tokens=300, temperature=0)
    assert all(isinstance(outcome, Reply) for outcome in outcomes)
    assert server.count == 22
    last = server.requests[-1].body
    assert last == {"messages": HI, "model": "gpt-x", "max_completion_tokens": 300}


def test_twenty_unlimited_calls_at_once_all_find_the_way(server: JudgeServer) -> None:
    server.reply = reasoning
    outcomes = ask(openai_at(server), times=20, max_tokens=300, temperature=0)
    assert all(isinstance(outcome, Reply) for outcome in outcomes)
    assert not any(
        {"max_tokens", "max_completion_tokens"} <= r.body.keys() for r in server.requests
    )


def test_an_older_model_that_knows_only_max_tokens(server: JudgeServer) -> None:
    server.reply = lambda request: (
        error(400, "unknown", "unsupported_parameter", "max_completion_tokens")
        if "max_completion_tokens" in request.body
        else "ok"
    )
    reply(openai_at(server), max_completion_tokens=300)
    assert server.requests[-1].body == {"messages": HI, "model": "gpt-x", "max_tokens": 300}


def test_a_model_that_takes_neither_name_gets_neither(server: JudgeServer) -> None:
    def neither(request: Request) -> Answer:
        for name in ("max_tokens", "max_completion_tokens"):
            if name in request.body:
                return error(400, "no", "unsupported_parameter", name)
        return "ok"

    server.reply = neither
    reply(openai_at(server), max_tokens=300)
    assert server.requests[-1].body == {"messages": HI, "model": "gpt-x"}
    assert server.count == 3


@pytest.mark.parametrize(
    "answer",
    [
        error(400, "'seed' is wrong", "invalid_value", "seed"),
        error(400, "'messages' is wrong", "unsupported_value", "messages[0].role"),
        error(400, "who knows", "unsupported_parameter"),
    ],
)
def test_any_other_rejection_is_an_error_at_once(server: JudgeServer, answer: Response) -> None:
    server.reply = answer
    found = failure(openai_at(server), seed=1)
    assert found.cause == "bad_request"
    assert server.count == 1


# Entra ID.


@dataclass
class Token:
    token: str
    expires_on: float


@dataclass
class Source:
    """What azure-identity's credentials look like: get_token(scope)."""

    lifetimes: list[float]
    scopes: list[str] = field(default_factory=list)

    def get_token(self, scope: str) -> Token:
        self.scopes.append(scope)
        number = len(self.scopes)
        left = self.lifetimes[min(number, len(self.lifetimes)) - 1]
        return Token(f"token-{number}", time.time() + left)


def entra_at(server: JudgeServer, source: Any) -> OpenAIJudge:
    return azure("dep", endpoint=server.azure, credential=Entra(server.azure, source))


def ask_in_turn(judge: OpenAIJudge, times: int) -> None:
    async def work() -> None:
        for _ in range(times):
            await judge.complete(HI)
        await judge.close()

    asyncio.run(work())


def test_a_token_goes_out_as_a_bearer_and_is_kept(server: JudgeServer) -> None:
    source = Source([3600])
    ask_in_turn(entra_at(server, source), 3)
    assert source.scopes == [AZURE_SCOPE] == ["https://cognitiveservices.azure.com/.default"]
    assert [r.headers["authorization"] for r in server.requests] == ["Bearer token-1"] * 3
    assert all("api-key" not in request.headers for request in server.requests)


def test_a_token_is_renewed_five_minutes_before_its_end(server: JudgeServer) -> None:
    source = Source([299, 3600])
    ask_in_turn(entra_at(server, source), 3)
    assert [r.headers["authorization"] for r in server.requests] == [
        "Bearer token-1",
        "Bearer token-2",
        "Bearer token-2",
    ]


def test_an_asynchronous_source_is_awaited(server: JudgeServer) -> None:
    class Async:
        async def get_token(self, scope: str) -> Token:
            return Token("token-a", time.time() + 3600)

    ask_in_turn(entra_at(server, Async()), 1)
    assert server.requests[0].headers["authorization"] == "Bearer token-a"


@pytest.mark.parametrize("words", ["please run 'az login'\nmore", ""])
def test_a_source_that_fails_is_an_authentication_error(server: JudgeServer, words: str) -> None:
    class Failing:
        def get_token(self, scope: str) -> Token:
            raise OSError(words)

    found = failure(entra_at(server, Failing()))
    assert (found.cause, found.fatal) == ("authentication", True)
    assert str(found) == f"no Entra ID token: {words.split(chr(10))[0] or 'OSError'}"
    assert server.count == 0


@pytest.mark.parametrize(
    "url", ["http://name.openai.azure.com", "http://10.0.0.1", "", "https://[x"]
)
def test_a_token_never_goes_out_without_tls(url: str) -> None:
    with pytest.raises(SetupError):
        Entra(url, Source([3600]))


def test_a_token_the_server_repeats_is_in_no_message(server: JudgeServer) -> None:
    class Long:
        def get_token(self, scope: str) -> Token:
            return Token(KEY, time.time() + 3600)

    server.reply = error(400, f"bad {KEY}")
    judge = entra_at(server, Long())
    assert not leaks(str(failure(judge)))
    assert not leaks(repr(judge))


def test_scripted_answers_come_in_order(server: JudgeServer) -> None:
    server.reply = scripted(["one", "two"])
    judge = openai_at(server)

    async def work() -> list[str]:
        try:
            return [(await judge.complete(HI)).text for _ in range(3)]
        finally:
            await judge.close()

    assert asyncio.run(work()) == ["one", "two", "two"]


def test_one_judge_serves_several_loops_and_closing_twice_is_fine(server: JudgeServer) -> None:
    judge = openai_at(server)
    for _ in range(2):
        reply(judge)

    async def close_twice() -> None:
        await judge.close()
        await judge.close()

    asyncio.run(close_twice())
    assert server.count == 2

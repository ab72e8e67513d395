"""Judges through an Azure AI project, over TLS on loopback: the wire, its names, whole runs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import assay
from assay.errors import JudgeError, JudgeRefusal, SetupError
from assay.judge.base import Judge, Message, Reply, Usage
from assay.judge.credential import Entra
from assay.judge.embed import resolve_embedder
from assay.judge.limits import Limited
from assay.judge.prices import Prices
from assay.judge.resolve import resolve
from assay.judge.responses import ResponsesJudge
from assay.prompty import load, loads
from assay.run.dryrun import dry_run
from assay.run.plan import Options, prepare
from assay.run.progress import Silent
from tests.support.responses import failed, response
from tests.support.server import Answer, JudgeServer, Request, Response, error, scripted
from tests.support.tls import Tls

TOKEN = "a-token-0123456789abcdef"
PROJECT = "https://account.services.ai.azure.com/api/projects/p"
HI: list[Message] = [{"role": "user", "content": "hi"}]
MESSAGE = {"type": "message", "role": "user", "content": "hi"}

pytestmark = pytest.mark.usefixtures("folder")


class Access(NamedTuple):
    token: str
    expires_on: float


class Source:
    """What azure-identity's credentials look like from outside."""

    def __init__(self) -> None:
        self.scopes: list[str] = []

    def get_token(self, *scopes: str, **_: Any) -> Access:
        self.scopes += scopes
        return Access(TOKEN, time.time() + 3600)


@pytest.fixture
def hub(tls: Tls, monkeypatch: pytest.MonkeyPatch) -> Iterator[JudgeServer]:
    """The Responses API of a project, named by the environment."""
    monkeypatch.setenv("SSL_CERT_FILE", str(tls.cert))
    with JudgeServer(tls=tls) as running:
        monkeypatch.setenv("AZURE_AI_PROJECT_ENDPOINT", running.project)
        yield running


def judge_of(name: str = "project:conn/dep", **more: Any) -> ResponsesJudge:
    found = resolve(name, credential=more.pop("credential", Source()), **more)
    assert isinstance(found, ResponsesJudge)
    return found


def ask(judge: Judge, messages: list[Message] = HI, times: int = 1, **settings: Any) -> list[Reply]:
    async def work() -> list[Reply]:
        try:
            return [await judge.complete(messages, **settings) for _ in range(times)]
        finally:
            await judge.close()

    return asyncio.run(work())


def failure(judge: Judge, **settings: Any) -> JudgeError:
    with pytest.raises(JudgeError) as caught:
        ask(judge, **settings)
    return caught.value


# What is sent.


def test_a_request(hub: JudgeServer) -> None:
    source = Source()
    ask(judge_of(credential=source))
    (request,) = hub.requests
    assert request.path == "/api/projects/p/openai/v1/responses"
    assert request.query == {}
    assert request.headers["authorization"] == f"Bearer {TOKEN}"
    assert source.scopes == ["https://ai.azure.com/.default"]
    assert request.body == {"model": "conn/dep", "input": [MESSAGE], "store": False}


SCHEMA = {"name": "marks", "strict": True, "schema": {"type": "object"}}
FUNCTION = {"name": "mark", "parameters": {"type": "object"}}


@pytest.mark.parametrize(
    ("settings", "sent"),
    [
        ({"temperature": 0, "top_p": 0.5}, {"temperature": 0, "top_p": 0.5}),
        ({"max_tokens": 9}, {"max_output_tokens": 9}),
        ({"max_completion_tokens": 9}, {"max_output_tokens": 9}),
        ({"reasoning_effort": "low"}, {"reasoning": {"effort": "low"}}),
        (
            {"response_format": {"type": "json_object"}, "verbosity": "low"},
            {"text": {"format": {"type": "json_object"}, "verbosity": "low"}},
        ),
        (
            {"response_format": {"type": "json_schema", "json_schema": SCHEMA}},
            {"text": {"format": {"type": "json_schema", **SCHEMA}}},
        ),
        (
            {
                "tools": [{"type": "function", "function": FUNCTION}],
                "tool_choice": {"type": "function", "function": {"name": "mark"}},
            },
            {
                "tools": [{"type": "function", "strict": False, **FUNCTION}],
                "tool_choice": {"type": "function", "name": "mark"},
            },
        ),
        ({"tool_choice": "required"}, {"tool_choice": "required"}),
        ({"max_output_tokens": 9, "store": True}, {"max_output_tokens": 9, "store": True}),
        ({"reasoning": {"effort": "low"}}, {"reasoning": {"effort": "low"}}),
    ],
)
def test_settings_in_the_words_of_this_wire(
    hub: JudgeServer, settings: dict[str, Any], sent: dict[str, Any]
) -> None:
    judge = judge_of()
    ask(judge, **settings)
    (request,) = hub.requests
    assert request.body == {"model": "conn/dep", "input": [MESSAGE], "store": False, **sent}
    assert judge.describe()["rejected_parameters"] == {}


def test_settings_without_a_place_are_not_sent_and_the_header_says_so(hub: JudgeServer) -> None:
    judge = judge_of()
    ask(judge, seed=1, logprobs=True, top_logprobs=20, n=1, stop=["x"], presence_penalty=0)
    (request,) = hub.requests
    assert request.body == {"model": "conn/dep", "input": [MESSAGE], "store": False}
    names = ("seed", "logprobs", "top_logprobs", "n", "stop", "presence_penalty")
    assert judge.describe() == {
        "judge": "project:conn/dep",
        "url": f"{hub.project}/openai/v1/responses",
        "model": "conn/dep",
        "rejected_parameters": dict.fromkeys(names, "not sent"),
    }


def test_messages_and_their_parts(hub: JudgeServer) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    detailed = {"type": "image_url", "image_url": {"url": "https://x.test/i", "detail": "low"}}
    text = {"type": "text", "text": "look"}
    judge = judge_of()
    ask(
        judge,
        [
            {"role": "system", "content": "be fair", "name": "boss"},
            {"role": "user", "content": [text, image, detailed]},
            {"role": "assistant", "content": [text]},
            {"role": "assistant", "content": None},
        ],
    )
    assert hub.requests[0].body["input"] == [
        {"type": "message", "role": "system", "content": "be fair"},
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "look"},
                {"type": "input_image", "image_url": image["image_url"]["url"], "detail": "auto"},  # type: ignore[index]
                {"type": "input_image", "image_url": "https://x.test/i", "detail": "low"},
            ],
        },
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "look"}],
        },
        {"type": "message", "role": "assistant", "content": ""},
    ]
    assert judge.describe()["rejected_parameters"] == {"name of a message": "not sent"}


def test_calls_of_functions_and_what_they_gave(hub: JudgeServer) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"q": 1}'}}
    ask(
        judge_of(),
        [
            {"role": "assistant", "content": "wait", "tool_calls": [call]},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "found"},
        ],
    )
    made = {"type": "function_call", "call_id": "c1", "name": "find", "arguments": '{"q": 1}'}
    assert hub.requests[0].body["input"] == [
        {"type": "message", "role": "assistant", "content": "wait"},
        made,
        made,
        {"type": "function_call_output", "call_id": "c1", "output": "found"},
    ]


@pytest.mark.parametrize("calls", [["junk"], [{"function": "junk"}], [{}], [None]])
def test_calls_of_functions_in_a_form_of_their_own(hub: JudgeServer, calls: Any) -> None:
    with pytest.raises(JudgeError, match="not in the form id, type, function"):
        ask(judge_of(), [{"role": "assistant", "content": "", "tool_calls": calls}])
    assert hub.count == 0


# What comes back.


def test_every_field_of_a_reply(hub: JudgeServer) -> None:
    body = response("four", usage=(50, 12), model="gpt-x-2024")
    body["usage"]["output_tokens_details"] = {"reasoning_tokens": 8}
    body["usage"]["input_tokens_details"] = {"cached_tokens": 30}
    headers = {"x-ratelimit-remaining-requests": "3", "X-RateLimit-Reset-Requests": "1s"}
    hub.reply = Response(body=body, headers=headers)
    (found,) = ask(judge_of())
    assert found == Reply(
        text="four",
        usage=Usage(50, 12, reasoning_tokens=8, cached_tokens=30),
        finish_reason="stop",
        latency=found.latency,
        model="gpt-x-2024",
    )
    assert found.latency > 0
    assert found.limits == {"remaining-requests": "3", "reset-requests": "1s"}


@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_a_reply_that_was_cut_off(hub: JudgeServer, reason: str) -> None:
    hub.reply = Response(content='{"sc', finish_reason=reason)
    (found,) = ask(judge_of())
    assert (found.text, found.finish_reason) == ('{"sc', reason)


def test_a_reply_that_is_all_reasoning(hub: JudgeServer) -> None:
    hub.reply = Response(content=None, finish_reason="length", usage=None)
    (found,) = ask(judge_of())
    assert (found.text, found.usage, found.finish_reason) == ("", Usage(), "length")


def test_a_refusal_of_the_model(hub: JudgeServer) -> None:
    hub.reply = Response(content=None, refusal="I can't help with that.")
    (found,) = ask(judge_of())
    assert (found.text, found.refusal) == ("", "I can't help with that.")


def test_calls_of_the_model(hub: JudgeServer) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "mark", "arguments": '{"s": 4}'}}
    hub.reply = Response(content=None, finish_reason="tool_calls", tool_calls=[call, call])
    (found,) = ask(judge_of())
    assert found.tool_calls == ({"name": "mark", "arguments": '{"s": 4}'},) * 2
    assert found.finish_reason == "tool_calls"


def test_an_answer_in_parts_without_what_was_said_before_it(hub: JudgeServer) -> None:
    body = response("4")
    answer = body["output"][1]
    before = {**answer, "phase": "commentary"}
    body["output"][1:] = [before, {**answer, "content": answer["content"] * 2}]
    hub.reply = body
    assert ask(judge_of())[0].text == "44"


@pytest.mark.parametrize(
    "body",
    [
        "",
        "<html>gateway</html>",
        "[]",
        "null",
        "{}",
        {**response("4"), "status": "in_progress"},
        {**response("4"), "status": "failed"},
        {**response("4"), "status": None},
        {**response("4"), "status": "incomplete"},
        {**response("4"), "status": "incomplete", "incomplete_details": {"reason": "steered"}},
        {**response("4"), "output": None},
        {**response("4"), "output": ["4"]},
        {**response("4"), "output": [{"type": "message"}]},
        {**response("4"), "output": [{"type": "message", "content": [{"type": "output_text"}]}]},
        {
            **response("4"),
            "output": [{"type": "message", "content": [{"type": "output_text", "text": 4}]}],
        },
        {**response("4"), "usage": 7},
    ],
)
def test_a_200_that_holds_no_answer_may_be_tried_again(
    hub: JudgeServer, body: str | dict[str, Any]
) -> None:
    hub.reply = Response(body=body)
    found = failure(judge_of())
    assert (found.cause, found.retryable, found.fatal) == ("bad_response", True, False)
    assert "200 with no complete response" in str(found)


@pytest.mark.parametrize(
    ("code", "cause", "retryable", "fatal"),
    [
        ("rate_limit_exceeded", "rate_limited", True, False),
        ("server_error", "server_error", True, False),
        ("insufficient_quota", "quota", False, True),
        ("invalid_prompt", "bad_request", False, False),
        ("content_filter", "content_filter", False, False),
        ("misalignment_policy_violation", "content_filter", False, False),
    ],
)
def test_a_response_that_failed(
    hub: JudgeServer, code: str, cause: str, retryable: bool, fatal: bool
) -> None:
    hub.reply = Response(body=failed(code, f"it went wrong {TOKEN}"))
    found = failure(judge_of())
    assert (found.cause, found.retryable, found.fatal) == (cause, retryable, fatal)
    assert isinstance(found, JudgeRefusal) == (cause == "content_filter")
    assert "it went wrong [secret]" in str(found)


@pytest.mark.parametrize(
    ("answer", "cause", "retryable", "fatal"),
    [
        (error(401, TOKEN, "401"), "authentication", False, True),
        (error(404, "no such connection"), "not_found", False, True),
        (error(400, "wrong"), "bad_request", False, False),
        (error(400, "no", "content_filter"), "content_filter", False, False),
        (error(429, "slow down"), "rate_limited", True, False),
        (error(500, "oops"), "server_error", True, False),
        (Response(disconnect=True), "connection", True, False),
    ],
)
def test_what_every_failure_means(
    hub: JudgeServer, answer: Response, cause: str, retryable: bool, fatal: bool
) -> None:
    hub.reply = answer
    found = failure(judge_of())
    assert (found.cause, found.retryable, found.fatal) == (cause, retryable, fatal)
    assert TOKEN not in str(found)
    assert hub.count == 1


def test_a_certificate_nobody_vouches_for(
    hub: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    found = failure(judge_of())
    assert found.cause == "connection"
    assert "certificate" in str(found)
    assert hub.count == 0


# Parameters a model does not take.


def test_what_a_model_rejects_is_left_out_and_remembered(hub: JudgeServer) -> None:
    words = ("temperature", "reasoning.effort", "text.format", "max_output_tokens", "store")

    def picky(request: Request) -> Answer:
        body = request.body
        for word in words:
            outer, _, inner = word.partition(".")
            if outer in body and (not inner or inner in body[outer]):
                return error(400, f"Unsupported: '{word}'", "unsupported_parameter", word)
        return "ok"

    hub.reply = picky
    judge = judge_of()
    settings: dict[str, Any] = {
        "temperature": 0,
        "reasoning_effort": "low",
        "response_format": {"type": "json_object"},
        "max_tokens": 9,
        "top_p": 1,
    }
    ask(judge, times=2, **settings)
    bare = {"model": "conn/dep", "input": [MESSAGE], "top_p": 1}
    assert [request.body for request in hub.requests[-2:]] == [bare, bare]
    assert hub.count == len(words) + 2
    names = ("temperature", "reasoning_effort", "response_format", "max_tokens", "store")
    assert judge.describe()["rejected_parameters"] == dict.fromkeys(names, "not sent")


def test_any_other_rejection_is_an_error_at_once(hub: JudgeServer) -> None:
    found = failure(judge_of(), top_k=3)
    assert found.cause == "bad_request"
    assert "Unknown parameter: 'top_k'" in str(found)
    assert hub.count == 1


# How it is named.


@pytest.mark.parametrize(
    "by", ["argument", "AZURE_AI_PROJECT_ENDPOINT", "AZURE_AI_PROJECT", "toml"]
)
@pytest.mark.parametrize("endpoint", [PROJECT, f"{PROJECT}/", f" {PROJECT} "])
def test_by_name(monkeypatch: pytest.MonkeyPatch, folder: Path, by: str, endpoint: str) -> None:
    if by == "toml":
        (folder / "assay.toml").write_text(f'azure_ai_project = "{endpoint}"\n')
    elif by != "argument":
        monkeypatch.setenv(by, endpoint)
    source = Source()
    judge = judge_of(credential=source, base_url=endpoint if by == "argument" else None)
    assert (judge.name, judge.model) == ("project:conn/dep", "conn/dep")
    assert judge.url == f"{PROJECT}/openai/v1/responses"
    assert judge.credential == Entra(PROJECT, source, "https://ai.azure.com/.default")


@pytest.mark.parametrize(
    ("endpoint", "words"),
    [
        (None, "project:m needs its project: set AZURE_AI_PROJECT_ENDPOINT to https://ACCOUNT"),
        ("http://account.services.ai.azure.com/api/projects/p", "has no TLS"),
        ("http://127.0.0.1/api/projects/p", "has no TLS"),
        ("https://account.services.ai.azure.com", "names no project"),
        ("SUBSCRIPTION/GROUP/PROJECT", "is not the endpoint of a project"),
        ("https:///api/projects/p", "is not the endpoint of a project"),
    ],
)
def test_a_project_that_is_none(
    monkeypatch: pytest.MonkeyPatch, endpoint: str | None, words: str
) -> None:
    if endpoint:
        monkeypatch.setenv("AZURE_AI_PROJECT_ENDPOINT", endpoint)
    with pytest.raises(SetupError, match=words):
        judge_of("project:m")


def test_a_token_of_the_environment(hub: JudgeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_AI_PROJECT_TOKEN", f" {TOKEN}\n")
    judge = judge_of(credential=None)
    ask(judge)
    assert hub.requests[0].headers["authorization"] == f"Bearer {TOKEN}"
    assert TOKEN not in repr(judge)


def of(lines: str, **more: Any) -> ResponsesJudge:
    """The judge of a file with these lines under `configuration:`."""
    indented = "".join(f"    {line}\n" for line in lines.strip().split("\n"))
    file = loads(f"---\nmodel:\n  configuration:\n{indented}---\nuser:\nhi\n")
    found = resolve(model=file.model, path=Path("m.prompty"), **{"credential": Source(), **more})
    assert isinstance(found, ResponsesJudge)
    return found


@pytest.mark.parametrize(
    "lines",
    [
        f"byo_model: conn/dep\nproject_endpoint: {PROJECT}",
        f"type: azure_openai\nbyo_model: conn/dep\nproject_endpoint: {PROJECT}\n"
        "azure_endpoint: https://evil.example\nazure_deployment: other",
        "byo_model: ${env:MY_MODEL}\nproject_endpoint: ${env:MY_PROJECT}",
        f"type: project\nmodel: conn/dep\nendpoint: {PROJECT}",
    ],
)
def test_the_settings_of_a_file(monkeypatch: pytest.MonkeyPatch, lines: str) -> None:
    monkeypatch.setenv("MY_MODEL", "conn/dep")
    monkeypatch.setenv("MY_PROJECT", PROJECT)
    judge = of(lines)
    assert (judge.name, judge.url) == ("project:conn/dep", f"{PROJECT}/openai/v1/responses")


def test_a_named_connection(folder: Path) -> None:
    (folder / "assay.toml").write_text(
        f'[connections.team]\nbyo_model = "conn/dep"\nproject_endpoint = "{PROJECT}"\n'
    )
    judge = of("connection: team")
    assert (judge.name, judge.url) == ("project:conn/dep", f"{PROJECT}/openai/v1/responses")


def test_a_file_may_leave_the_project_to_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_AI_PROJECT_ENDPOINT", PROJECT)
    assert of("type: project\nbyo_model: conn/dep").url == f"{PROJECT}/openai/v1/responses"


@pytest.mark.parametrize("lines", ["byo_model: ''\nproject_endpoint: ''", "byo_model: conn/dep"])
def test_half_of_the_settings_name_no_judge(lines: str) -> None:
    with pytest.raises(SetupError, match="no judge"):
        of(lines)


@pytest.mark.parametrize("token", [True, False])
@pytest.mark.parametrize(
    "endpoint",
    [
        "https://evil.example/api/projects/p",
        "https://account.services.ai.azure.com.evil.example/api/projects/p",
        "https://u:p@account.services.ai.azure.com/api/projects/p",
        "https://127.0.0.2/api/projects/p",
        "${env:GONE:https://evil.example/api/projects/p}",
    ],
)
def test_a_login_is_not_sent_where_a_file_says(
    monkeypatch: pytest.MonkeyPatch, endpoint: str, token: bool
) -> None:
    source: Any = Source()
    if token:
        source = None
        monkeypatch.setenv("AZURE_AI_PROJECT_TOKEN", TOKEN)
    with pytest.raises(SetupError, match="login is not sent|give the address alone"):
        of(f"byo_model: conn/dep\nproject_endpoint: {endpoint}", credential=source)


def test_it_gives_no_embeddings(hub: JudgeServer) -> None:
    with pytest.raises(SetupError, match="gives no embeddings"):
        resolve_embedder("project:conn/dep", credential=Source())


@pytest.mark.parametrize(
    "name", ["project:gpt-4o", "project:conn/gpt-4o", "project:c/gpt-4o-2024-08-06"]
)
def test_what_it_costs(name: str) -> None:
    found = Prices().of(name)
    assert found == Prices().of("azure:gpt-4o")
    assert found is not None
    assert Prices({"prices": {name[8:]: {"input": 7, "output": 9}}}).of(name) != found
    assert Prices().of("project:gpt-4o/mine") is None


# Whole runs.

METRIC = """---
name: on_topic
model:
  parameters:
    temperature: 0
    seed: 7
    max_tokens: 300
    response_format: {type: json_object}
inputs:
  question:
    type: string
outputs:
  reason:
    type: string
  score:
    type: integer
    minimum: 1
    maximum: 5
    threshold: 3
---
system:
You mark answers. Reply with a JSON object that has the keys "reason" and "score".

user:
QUESTION: {{question}}
"""
REPLY = '{"reason": "because", "score": 4}'


@pytest.fixture
def metric(folder: Path) -> Path:
    path = folder / "on_topic.prompty"
    path.write_text(METRIC)
    return path


def run_of(metric: Path, rows: int = 1, **options: Any) -> assay.Run:
    options = {"judge": "project:conn/dep", "credential": Source(), "cache": False, **options}
    questions = [{"question": f"q{number}"} for number in range(rows)]
    return assay.evaluate(questions, [metric], progress=Silent(), **options)


def texts(folder: Path) -> str:
    return "".join(path.read_text("utf-8") for path in folder.rglob("*") if path.is_file())


def test_a_run(hub: JudgeServer, metric: Path) -> None:
    hub.reply = REPLY
    run = run_of(metric, rows=3)
    assert run.metrics["on_topic.score"]["mean"] == 4
    assert sorted(request.text.split("QUESTION: ")[1] for request in hub.requests) == [
        *("q0", "q1", "q2"),
    ]
    assert hub.requests[0].body["text"] == {"format": {"type": "json_object"}}
    (judge,) = run.header["judges"].values()
    assert judge["judge"] == "project:conn/dep"
    assert judge["url"] == f"{hub.project}/openai/v1/responses"
    assert judge["rejected_parameters"] == {"seed": "not sent"}
    assert TOKEN not in texts(run.directory)


@pytest.mark.parametrize(
    ("answer", "status", "cause"),
    [
        (error(401, TOKEN), "error", "authentication"),
        (error(400, TOKEN), "error", "bad_request"),
        (Response(body=failed("invalid_prompt", TOKEN)), "error", "bad_request"),
        (Response(body=failed("content_filter", TOKEN)), "refused", "content_filter"),
        (Response(content=None, refusal="no"), "refused", "refusal"),
        (Response(content='{"rea', finish_reason="content_filter"), "refused", "content_filter"),
        (Response(content='{"rea', finish_reason="length"), "invalid", "truncated"),
        (Response(content='{"reason": "x", "score": 9}'), "invalid", "out_of_scale"),
        (Response(content=None), "invalid", "empty"),
    ],
)
def test_what_a_row_becomes(
    hub: JudgeServer, metric: Path, answer: Response, status: str, cause: str
) -> None:
    hub.reply = answer
    run = run_of(metric)
    (row,) = run.rows()
    assert (row["outputs.on_topic.status"], row["outputs.on_topic.cause"]) == (status, cause)
    assert TOKEN not in texts(run.directory)


@pytest.mark.parametrize("status", [429, 500])
def test_what_passes_is_tried_again(hub: JudgeServer, metric: Path, status: int) -> None:
    busy = error(status, "later", headers={"retry-after-ms": "0"})
    failing = Response(body=failed("rate_limit_exceeded", "later"), headers={"retry-after-ms": "0"})
    hub.reply = scripted([busy, failing, REPLY])
    run = run_of(metric)
    assert run.metrics["on_topic.score"]["mean"] == 4
    assert hub.count == 3


def test_a_reply_is_kept_in_the_cache_by_project_and_model(hub: JudgeServer, metric: Path) -> None:
    hub.reply = REPLY
    run_of(metric, cache=True)
    run_of(metric, cache=True)
    assert hub.count == 1
    run_of(metric, cache=True, judge="project:other/dep")
    assert hub.count == 2


def test_nobody_at_the_address_ends_a_run_before_it_begins(
    hub: JudgeServer, metric: Path, folder: Path
) -> None:
    hub.stop()
    with pytest.raises(SetupError, match="cannot be reached"):
        run_of(metric)
    assert not (folder / "runs").exists()


class NoLogin:
    def get_token(self, *scopes: str, **_: Any) -> Any:
        raise OSError("run az login")


def test_a_login_that_fails_ends_a_run_before_it_begins(hub: JudgeServer, metric: Path) -> None:
    with pytest.raises(SetupError, match="no Entra ID token: run az login"):
        run_of(metric, credential=NoLogin())
    assert hub.count == 0


def test_a_dry_run_logs_in_and_counts(hub: JudgeServer, metric: Path) -> None:
    source = Source()
    options = Options(judge="project:conn/gpt-4o", credential=source)
    found = asyncio.run(dry_run(prepare([{"question": "q"}], [metric], options)))
    assert (found["rows"], found["calls"]) == (1, 1)
    assert found["cost"] is not None
    assert source.scopes == ["https://ai.azure.com/.default"]
    assert hub.count == 0
    options = Options(judge="project:conn/gpt-4o", credential=NoLogin())
    with pytest.raises(JudgeError, match="az login"):
        asyncio.run(dry_run(prepare([{"question": "q"}], [metric], options)))


def test_two_metrics_share_one_connection(hub: JudgeServer, metric: Path, folder: Path) -> None:
    other = folder / "other.prompty"
    other.write_text(METRIC.replace("name: on_topic", "name: other"))
    options = Options(judge="project:conn/dep", credential=Source())
    (judge,) = prepare([{"question": "q"}], [metric, other], options).distinct_judges()
    assert isinstance(judge, Limited)


# The same, said by the clients of others.


def test_the_fake_is_one_for_openais_own_client(hub: JudgeServer) -> None:
    from openai import BadRequestError, OpenAI

    hub.reply = Response(content="four", usage=(50, 12))
    with OpenAI(base_url=f"{hub.project}/openai/v1", api_key=TOKEN, max_retries=0) as client:
        found = client.responses.create(model="conn/dep", input="hi", store=False)
        assert (found.status, found.output_text, found.model) == ("completed", "four", "conn/dep")
        assert found.usage is not None
        assert (found.usage.input_tokens, found.usage.output_tokens) == (50, 12)
        hub.reply = Response(content="fo", finish_reason="length")
        found = client.responses.create(model="conn/dep", input="hi")
        assert found.incomplete_details is not None
        assert (found.status, found.incomplete_details.reason) == (
            *("incomplete", "max_output_tokens"),
        )
        hub.reply = Response(body=failed("server_error", "oops"))
        found = client.responses.create(model="conn/dep", input="hi")
        assert found.error is not None
        assert (found.status, found.error.code) == ("failed", "server_error")
        with pytest.raises(BadRequestError, match="Unknown parameter: 'seed'"):
            client.responses.create(model="conn/dep", input="hi", extra_body={"seed": 1})


def test_our_body_is_one_for_openais_own_types(hub: JudgeServer) -> None:
    """Every kind of item and setting we send is one their types know."""
    from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming
    from pydantic import ConfigDict, TypeAdapter

    class Known(ResponseCreateParamsNonStreaming):
        __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]

    call = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": "{}"}}
    image = {"type": "image_url", "image_url": {"url": "https://x.test/i"}}
    ask(
        judge_of(),
        [
            {"role": "system", "content": "be fair"},
            {"role": "user", "content": [{"type": "text", "text": "look"}, image]},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "found"},
        ],
        response_format={"type": "json_schema", "json_schema": SCHEMA},
        tools=[{"type": "function", "function": FUNCTION}],
        tool_choice={"type": "function", "function": {"name": "mark"}},
        reasoning_effort="low",
        max_tokens=9,
    )
    adapter = TypeAdapter(Known)
    found = adapter.validate_python(hub.requests[0].body)
    assert len(list(found["tools"])) == 1  # which are only looked at when they are read


@pytest.mark.filterwarnings("ignore")
def test_our_body_is_that_of_azures_own_judge(
    hub: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SimilarityEvaluator with a byo_model, and the same prompt file asked by us."""
    from azure.ai import evaluation

    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(hub.tls.cert if hub.tls else ""))
    hub.reply = '{"reason": "same", "score": 5}'
    theirs = evaluation.SimilarityEvaluator(
        model_config={"byo_model": "conn/dep", "project_endpoint": hub.project},
        credential=AsyncSource(),
    )
    said = theirs(query="q", response="a", ground_truth="a")
    assert said["similarity"] == 5
    prompty = load(Path(evaluation.__file__).parent / "_evaluators/_similarity/similarity.prompty")
    messages = prompty.render({"query": "q", "response": "a", "ground_truth": "a"})
    judge = judge_of()
    ask(judge, messages, **prompty.parameters)
    sent, ours = (request.body for request in hub.requests)
    assert ours.pop("store") is False
    assert ours == sent
    assert hub.requests[0].path == hub.requests[1].path
    unsent = set(judge.describe()["rejected_parameters"])
    assert unsent == prompty.parameters.keys() - {
        *("temperature", "top_p", "max_tokens", "response_format"),
    }


class AsyncSource:
    """The same for clients that wait for a token."""

    async def get_token(self, *scopes: str, **_: Any) -> Access:
        return Access(TOKEN, int(time.time()) + 3600)

    async def close(self) -> None:
        """Nothing is held."""

"""What of a request reaches the judge: rows, answers of a target, whole conversations."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.metric.conversation import conversation_input
from assay.metric.registry import load
from assay.prompty import Input
from assay.service.endpoint import make_endpoint
from assay.service.inputs import values_of
from tests.service.running import Running, request
from tests.support.server import JudgeServer

MESSAGES = [
    {"role": "user", "content": "Still no mail."},
    {"role": "assistant", "content": "I have sent it again."},
    {"role": "user", "content": "Can you not reset it?"},
    {"role": "assistant", "content": "I have sent it again."},
]

_METRIC = """---
name: Settled
inputs:
{inputs}
outputs:
  score:
    type: integer
    minimum: 1
    maximum: 5
---
system:
You judge whether the user was helped.

user:
{body}
"""


def write(folder: Path, inputs: str, body: str) -> Path:
    path = folder / "settled.prompty"
    path.write_text(_METRIC.format(inputs=inputs, body=body))
    return path


TURN = "  query:\n    type: string\n  response:\n    type: string"
TURN_BODY = "{{query}} / {{response}}"


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with JudgeServer(json.dumps({"score": 2})) as running:
        yield running


@pytest.fixture
def ask(tmp_path: Path, server: JudgeServer) -> Iterator[Callable[..., tuple[int, Any]]]:
    """(status, body) for a metric of those inputs, and a request's data and level."""
    opened: list[Running] = []

    def send(
        inputs: str, body: str, level: str, item: dict[str, Any], **data: Any
    ) -> tuple[int, Any]:
        file = write(tmp_path, inputs, body)
        endpoint = make_endpoint([file], judge="openai:test", base_url=server.url)
        opened.append(Running(endpoint))
        sent = request(**item) | {"evaluation_level": level}
        return opened[-1].post(body=sent | {"data": {"item": item, **data}})

    yield send
    for running in opened:
        running.stop()


def said(server: JudgeServer) -> list[dict[str, Any]]:
    """The messages of the one request there was, without the metric's own first."""
    (asked,) = server.requests
    messages: list[dict[str, Any]] = asked.body["messages"]
    return messages[1:]


def test_a_thread_is_judged_whole(ask: Any, server: JudgeServer) -> None:
    item = {"messages": MESSAGES}
    status, answer = ask("  talk:\n    type: thread", "{{talk}}", "conversation", item)
    assert (status, answer["status"], answer["score"]) == (200, "Completed", 2)
    assert said(server) == MESSAGES


@pytest.mark.parametrize(
    "item",
    [
        {"messages": MESSAGES},
        {"conversation": MESSAGES},
        {"conversation": {"messages": MESSAGES}},
    ],
)
@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("array", "{% for m in conversation %}[{{m.content}}]{% endfor %}"),
        ("object", "{% for m in conversation.messages %}[{{m.content}}]{% endfor %}"),
    ],
)
def test_a_conversation_takes_the_shape_that_is_declared(
    ask: Any, server: JudgeServer, item: dict[str, Any], kind: str, body: str
) -> None:
    ask(f"  conversation:\n    type: {kind}", body, "conversation", item)
    shown = "".join(f"[{message['content']}]" for message in MESSAGES)
    assert said(server) == [{"role": "user", "content": shown}]


def test_messages_in_a_text_input_are_json(ask: Any, server: JudgeServer) -> None:
    inputs = "  messages:\n    type: string"
    ask(inputs, "{{messages}}", "conversation", {"messages": MESSAGES})
    (only,) = said(server)
    assert only["role"] == "user"
    assert json.loads(only["content"]) == MESSAGES


def test_messages_at_turn_level_are_an_input_like_others(ask: Any, server: JudgeServer) -> None:
    inputs = "  messages:\n    type: thread"
    status, answer = ask(inputs, "{{messages}}", "turn", {"messages": MESSAGES})
    assert (status, answer["score"]) == (200, 2)


def test_a_conversation_that_may_be_missing(ask: Any, server: JudgeServer) -> None:
    inputs = f"{TURN}\n  messages:\n    type: array\n    required: false"
    status, answer = ask(inputs, TURN_BODY, "turn", {"query": "q", "response": "a"})
    assert (status, answer["score"]) == (200, 2)
    assert said(server) == [{"role": "user", "content": "q / a"}]


def test_no_message_is_no_conversation(ask: Any, server: JudgeServer) -> None:
    inputs = "  messages:\n    type: thread"
    status, answer = ask(inputs, "{{messages}}", "conversation", {"messages": []})
    assert (status, answer["status"]) == (200, "Skipped")
    assert "messages" in answer["reason"]
    assert server.count == 0


@pytest.mark.parametrize(
    ("inputs", "body", "level", "item", "why"),
    [
        (
            TURN,
            TURN_BODY,
            "conversation",
            {"messages": MESSAGES},
            "settled judges turns, not conversations: it takes query, response, at "
            "evaluation_level turn",
        ),
        (
            TURN,
            TURN_BODY,
            "conversation",
            {"query": "q", "response": "a"},
            "settled judges turns, not conversations: it takes query, response, at "
            "evaluation_level turn",
        ),
        (
            "  messages:\n    type: thread",
            "{{messages}}",
            "turn",
            {"query": "q", "response": "a"},
            "settled judges conversations: it needs evaluation_level conversation and a list at "
            "data.item.messages",
        ),
        (
            "  messages:\n    type: thread",
            "{{messages}}",
            "conversation",
            {"query": "q", "response": "a"},
            "a conversation needs a list at data.item.messages",
        ),
        (
            "  messages:\n    type: string",
            "{{messages}}",
            "conversation",
            {"messages": "user: hello"},
            "a conversation needs a list at data.item.messages",
        ),
        (
            TURN,
            TURN_BODY,
            "trace",
            {"query": "q", "response": "a"},
            "evaluation_level is turn or conversation, not 'trace'",
        ),
    ],
)
def test_a_metric_of_the_other_level(
    ask: Any, server: JudgeServer, inputs: str, body: str, level: str, item: Any, why: str
) -> None:
    status, answer = ask(inputs, body, level, item)
    assert (status, answer["status"]) == (400, "Error")
    assert answer["error"] == {"code": "bad_request", "message": why}
    assert server.count == 0


def test_an_entry_that_is_no_message(ask: Any, server: JudgeServer) -> None:
    inputs = "  messages:\n    type: thread"
    status, answer = ask(inputs, "{{messages}}", "conversation", {"messages": ["hello"]})
    assert (status, answer["status"], answer["error"]["code"]) == (200, "Error", "render")
    assert server.count == 0


@pytest.mark.parametrize("sample", [{"output_text": "a"}, {"response": "a", "output_text": "b"}])
@pytest.mark.parametrize("item", [{"query": "q"}, {"query": "q", "response": None}])
@pytest.mark.parametrize("name", ["response", "answer"])
def test_what_a_target_answered_is_the_response(
    ask: Any, server: JudgeServer, sample: dict[str, Any], item: dict[str, Any], name: str
) -> None:
    inputs = f"  query:\n    type: string\n  {name}:\n    type: string"
    sample = {**sample, "input": [{"role": "user", "content": "x"}], "model": "gpt"}
    status, _ = ask(inputs, f"{{{{query}}}} / {{{{{name}}}}}", "turn", item, sample=sample)
    assert status == 200
    assert said(server) == [{"role": "user", "content": "q / a"}]


@pytest.mark.parametrize("name", ["response", "answer"])
def test_a_row_s_own_response_counts_first(ask: Any, server: JudgeServer, name: str) -> None:
    item = {"query": "q", name: "mine"}
    ask(TURN, TURN_BODY, "turn", item, sample={"output_text": "theirs"})
    assert said(server) == [{"role": "user", "content": "q / mine"}]


@pytest.mark.parametrize("sample", [None, "text", {}, {"output_text": None}])
def test_a_target_without_an_answer(ask: Any, server: JudgeServer, sample: Any) -> None:
    status, answer = ask(TURN, TURN_BODY, "turn", {"query": "q"}, sample=sample)
    assert (status, answer["status"]) == (200, "Skipped")
    assert server.count == 0


def test_context_is_what_was_retrieved(ask: Any, server: JudgeServer) -> None:
    item = {"context": "ideal", "retrieval_context": "retrieved"}
    ask("  context:\n    type: string", "{{context}}", "turn", item)
    assert said(server) == [{"role": "user", "content": "retrieved"}]


def test_a_thread_beside_a_question_is_what_was_said_before() -> None:
    history = Input("history", "thread")
    assert conversation_input({"history": history, "question": Input("question")}) is None
    optional = Input("query", required=False)
    assert conversation_input({"history": history, "query": optional}) == history


def test_a_python_metric_takes_the_messages_as_they_are() -> None:
    def turns(conversation: Any) -> float:
        return float(len(conversation))

    body = {"evaluation_level": "conversation", "data": {"item": {"messages": MESSAGES}}}
    assert values_of(load(turns), body) == {"conversation": MESSAGES}


@pytest.mark.parametrize("level", [None, "turn"])
def test_without_a_level_it_is_a_turn(level: str | None) -> None:
    body = {"evaluation_level": level, "data": {"item": {"question": "q", "answer": "a"}}}
    found = values_of(load("similarity"), body)
    assert (found["query"], found["response"]) == ("q", "a")

"""`assay try`: one row with everything shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Assay
from tests.support import runs
from tests.support.server import JudgeServer, Response, error

ROW = '{"question": "q3", "answer": "a"}'
MESSAGES = [
    {
        "role": "system",
        "content": 'You mark answers. Reply with one JSON object that has the keys "reason" and '
        '"score".',
    },
    {"role": "user", "content": "QUESTION: q3\nANSWER: a"},
]


def attempt(assay: Assay, metric: Path, server: JudgeServer, *more: str) -> tuple[int, Any]:
    judge = ["--judge", "openai:test", "--base-url", server.url]
    found = assay("try", metric, *judge, "--json", *more)
    return found.code, json.loads(found.out, parse_constant=runs.refuse)


def test_the_json_has_the_shape_that_is_promised(
    assay: Assay, metric: Path, server: JudgeServer
) -> None:
    code, found = attempt(assay, metric, server, "--row", ROW)
    assert code == 0
    extra = {"message", "results", "replies"}
    assert {name: found[name] for name in found if name not in extra} == {
        "status": "scored",
        "cause": None,
        "outputs": {"reason": "because of 3", "score": 4},
        "reason": "because of 3",
        "messages": MESSAGES,
        "reply": runs.reply_for(3),
        "usage": {
            "prompt_tokens": 50,
            "completion_tokens": 12,
            "reasoning_tokens": 0,
            "cached_tokens": 0,
        },
    }
    assert server.requests[0].body["messages"] == MESSAGES


def test_the_text_shows_messages_reply_and_outputs(
    assay: Assay, metric: Path, server: JudgeServer
) -> None:
    judge = ["--judge", "openai:test", "--base-url", server.url]
    found = assay("try", metric, *judge, "-i", "question=q3", "-i", "answer=a")
    assert (found.code, found.err) == (0, "")
    assert found.out == (
        f"--- system\n{MESSAGES[0]['content']}\n\n"
        "--- user\nQUESTION: q3\nANSWER: a\n\n"
        f"--- reply\n{runs.reply_for(3)}\n\n"
        "status: scored\n"
        "reason: because of 3\n"
        "score: 4 (pass)\n"
        "tokens: 50 + 12\n"
    )


@pytest.mark.parametrize(
    "given",
    [
        ["--input", "question=q3", "--input", "answer=x=y"],
        ["--row", '{"question": "q3", "answer": "x=y"}'],
        ["--row", '{"question": "q3", "answer": "other"}', "-i", "answer=x=y"],
        ["--row", '{"query": "q3", "response": "x=y"}'],
        ["--row", "@row.json"],
        ["-i", "question=@question.txt", "-i", "answer=x=y"],
    ],
)
def test_every_way_to_give_a_row(
    assay: Assay, metric: Path, server: JudgeServer, given: list[str]
) -> None:
    Path("row.json").write_text('{"question": "q3", "answer": "x=y"}')
    Path("question.txt").write_text("q3")
    code, found = attempt(assay, metric, server, *given)
    assert code == 0
    assert found["messages"][1]["content"] == "QUESTION: q3\nANSWER: x=y"


def test_the_files_own_sample(assay: Assay, metric: Path, server: JudgeServer) -> None:
    text = metric.read_text()
    metric.write_text(text.replace("---\nsystem", "sample: {question: q3, answer: s}\n---\nsystem"))
    _, found = attempt(assay, metric, server, "--sample")
    assert found["messages"][1]["content"] == "QUESTION: q3\nANSWER: s"
    _, found = attempt(assay, metric, server, "--sample", "-i", "answer=mine")
    assert found["messages"][1]["content"] == "QUESTION: q3\nANSWER: mine"


@pytest.mark.parametrize(
    ("reply", "code", "status", "cause"),
    [
        ("no idea", 0, "invalid", "unparseable"),
        ('{"reason": "r", "score": 6}', 0, "invalid", "out_of_scale"),
        (Response(content=None, refusal="no"), 0, "refused", "refusal"),
        (error(400, "bad", "invalid_value"), 3, "error", "bad_request"),
        (error(401, "bad key"), 3, "error", "authentication"),
    ],
)
def test_a_row_without_a_score_says_why(
    assay: Assay,
    metric: Path,
    server: JudgeServer,
    reply: Any,
    code: int,
    status: str,
    cause: str,
) -> None:
    server.reply = reply
    exit_code, found = attempt(assay, metric, server, "--row", ROW)
    assert (exit_code, found["status"], found["cause"]) == (code, status, cause)
    assert found["outputs"] == {}
    assert found["message"]
    assert found["messages"] == MESSAGES
    if isinstance(reply, str):
        assert found["reply"] == reply


def test_an_input_without_a_value_asks_nobody(
    assay: Assay, metric: Path, server: JudgeServer
) -> None:
    code, found = attempt(assay, metric, server, "--row", '{"question": "q3", "answer": null}')
    assert (code, found["status"], found["cause"]) == (0, "not_applicable", "missing_input")
    assert found["message"] == "no value for input answer (null)"
    assert (found["reply"], server.count) == (None, 0)


def test_it_asks_again_when_told_to(assay: Assay, metric: Path, server: JudgeServer) -> None:
    server.reply = lambda request: (
        "no idea" if len(request.body["messages"]) == 2 else runs.reply_for(3)
    )
    code, found = attempt(assay, metric, server, "--row", ROW, "--reask", "1")
    assert (code, found["status"]) == (0, "scored")
    assert found["replies"] == ["no idea", runs.reply_for(3)]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (
            ["-i", "question=q"],
            "on_topic needs answer, which no row has; columns are question; map one with --map "
            "INPUT=COLUMN",
        ),
        (["-i", "question"], "--input 'question' must be NAME=VALUE"),
        (["--row", "{question}"], "--row is not JSON: "),
        (["--row", "[1]"], "--row must be a JSON object"),
        (["--row", "@gone.json"], "gone.json: "),
        (["--row", ROW, "--judge", "gpt"], "unknown judge 'gpt': give one: "),
        (["--row", ROW], "no judge: give one: "),
    ],
)
def test_what_it_refuses(assay: Assay, metric: Path, given: list[str], says: str) -> None:
    found = assay("try", metric, *given)
    assert (found.code, found.out) == (2, "")
    assert found.err.startswith(f"assay: {says}")
    assert found.err.count("\n") == 1

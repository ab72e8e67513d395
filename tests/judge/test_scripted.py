"""The scripted judge: a public tool for tests, so its rules hold."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from assay.errors import JudgeError, SetupError
from assay.judge.base import Reply
from assay.judge.scripted import ScriptedJudge


def ask(judge: ScriptedJudge, *texts: str) -> list[Reply]:
    async def work() -> list[Reply]:
        return [
            await judge.complete(
                [{"role": "system", "content": "s"}, {"role": "user", "content": t}]
            )
            for t in texts
        ]

    return asyncio.run(work())


def test_one_answer_for_all() -> None:
    assert [reply.text for reply in ask(ScriptedJudge("4"), "a", "b")] == ["4", "4"]


def test_a_function_of_the_messages() -> None:
    judge = ScriptedJudge(lambda messages: messages[-1]["content"].upper())
    assert ask(judge, "abc")[0].text == "ABC"


def test_entries_by_what_the_messages_hold() -> None:
    judge = ScriptedJudge([{"when": "cat", "reply": "meow"}, {"reply": "?"}])
    assert [reply.text for reply in ask(judge, "a cat", "a dog")] == ["meow", "?"]


def test_one_after_the_other_for_the_same_messages() -> None:
    judge = ScriptedJudge([{"replies": ["1", "2"]}])
    assert [reply.text for reply in ask(judge, "a", "b", "a", "a")] == ["1", "1", "2", "2"]


def test_every_field_of_a_reply() -> None:
    call = {"name": "mark", "arguments": "{}"}
    judge = ScriptedJudge(
        {"text": "x" * 8, "finish_reason": "length", "refusal": "no", "tool_calls": [call]}
    )
    (reply,) = ask(judge, "12345")
    assert reply.finish_reason == "length"
    assert reply.refusal == "no"
    assert reply.tool_calls == (call,)
    assert reply.model == "scripted"
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (1, 2)


@pytest.mark.parametrize(
    ("script", "cause"),
    [({"error": "timeout"}, "timeout"), ([{"when": "cat", "reply": "meow"}], "not_scripted")],
)
def test_failures(script: Any, cause: str) -> None:
    with pytest.raises(JudgeError) as caught:
        ask(ScriptedJudge(script), "a dog")
    assert caught.value.cause == cause


@pytest.mark.parametrize(
    "text",
    [
        '[{"when": "a", "reply": "1"}, {"reply": "2"}]',
        '{"when": "a", "reply": "1"}\n\n{"reply": "2"}\n',
    ],
)
def test_from_a_file(tmp_path: Path, text: str) -> None:
    path = tmp_path / "script.jsonl"
    path.write_text(text)
    judge = ScriptedJudge.from_file(path)
    assert [reply.text for reply in ask(judge, "a", "b")] == ["1", "2"]
    assert judge.name == f"scripted:{path}"
    assert judge.describe()["judge"] == judge.name


@pytest.mark.parametrize("text", ["", "[]", "[1]", "{", "4", '{"reply": 1}\nx'])
def test_a_file_that_is_no_script_says_so(tmp_path: Path, text: str) -> None:
    path = tmp_path / "script.json"
    path.write_text(text)
    with pytest.raises(SetupError, match=r"script\.json"):
        ScriptedJudge.from_file(path)


def test_a_file_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="No such file"):
        ScriptedJudge.from_file(tmp_path / "gone.json")

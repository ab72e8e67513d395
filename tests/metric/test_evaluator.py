"""One prompt as a metric: keys, statuses, asking again, and what goes over the wire."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pytest

from assay import sync
from assay.errors import InputError, JudgeError, PromptyError, RenderError, SetupError
from assay.judge.base import Usage
from assay.judge.credential import Key
from assay.judge.scripted import ScriptedJudge
from assay.judge.wire import openai
from assay.metric.evaluator import PromptEvaluator
from assay.metric.registry import load
from assay.metric.score import Call, Score, flat
from assay.prompty import Output, loads
from tests.support.server import Answer, JudgeServer, Request, Response, error, scripted

TEXT = """---
name: On topic
model:
  parameters:
    temperature: 0
    max_tokens: 300
inputs:
  question: {type: string}
  answer: {type: string}
outputs:
  score: {type: integer, minimum: 1, maximum: 5, threshold: 3}
  reason: {type: string}
---
system:
Mark.
user:
Q: {{question}}
A: {{answer}}
"""
ROW = {"question": "q", "answer": "a"}
GOOD = '{"reason": "fine", "score": 4}'
BAD = '{"reason": "fine", "score": 9}'


def evaluator(judge: Any = GOOD, text: str = TEXT) -> PromptEvaluator:
    found = judge if hasattr(judge, "complete") else ScriptedJudge(judge)
    return PromptEvaluator(loads(text, Path("on_topic.prompty")), found)


def score(
    judge: Any = GOOD, values: Mapping[str, Any] = ROW, text: str = TEXT, **more: Any
) -> Score:
    return asyncio.run(evaluator(judge, text).score(values, **more))


# The keys of a row.


def test_the_flat_keys_of_a_scored_row() -> None:
    assert evaluator()(**ROW) == {
        "score": 4,
        "score_score": 4.0,
        "score_result": "pass",
        "score_reason": "fine",
        "score_threshold": 3,
        "score_status": "completed",
        "score_properties": {
            "cause": None,
            "prompt_tokens": len("Mark.\nQ: q\nA: a") // 4,
            "completion_tokens": len(GOOD) // 4,
            "total_tokens": len("Mark.\nQ: q\nA: a") // 4 + len(GOOD) // 4,
            "finish_reason": "stop",
            "model": "scripted",
            "calls": 1,
        },
        "reason": "fine",
        "status": "scored",
        "cause": None,
    }


@pytest.mark.parametrize(
    ("reply", "result"),
    [('{"reason": "", "score": 3}', "pass"), ('{"reason": "", "score": 2}', "fail")],
)
def test_pass_and_fail(reply: str, result: str) -> None:
    assert evaluator(reply)(**ROW)["score_result"] == result


@pytest.mark.parametrize(
    ("reply", "values", "status", "portal"),
    [
        (BAD, ROW, "invalid", "error"),
        ({"refusal": "I can't."}, ROW, "refused", "error"),
        (GOOD, {"question": "q", "answer": ""}, "not_applicable", "skipped"),
    ],
)
def test_the_flat_keys_of_a_row_without_a_score(
    reply: Any, values: dict[str, Any], status: str, portal: str
) -> None:
    found = evaluator(reply)(**values)
    assert (found["status"], found["score_status"]) == (status, portal)
    assert found["score"] is None
    assert found["score_score"] is None
    assert found["score_result"] not in ("pass", "fail")
    assert found["score_reason"]
    assert found["cause"]
    assert found["reason"] is None


def test_a_boolean_and_several_outputs() -> None:
    outputs = {
        "grounded": Output("grounded", "boolean"),
        "depth": Output("depth", "number", threshold=0.5, direction="decrease"),
        "note": Output("note", "string"),
    }
    values = {"grounded": True, "depth": 0.75, "note": "n"}
    found = flat(Score("m", "scored", outputs=values), outputs)
    assert (found["grounded"], found["grounded_score"], found["grounded_result"]) == (
        True,
        1.0,
        "pass",
    )
    assert (found["depth"], found["depth_result"], found["note"]) == (0.75, "fail", "n")
    assert "note_score" not in found


def test_outputs_nobody_declared_are_read_for_what_they_are() -> None:
    text = "---\nname: x\n---\nuser:\n{{answer}}\n"
    found = evaluator('{"score": 4, "reason": "r"}', text)(answer="a")
    assert (found["score"], found["score_score"], found["reason"]) == (4, 4.0, "r")


# Inputs.


def test_every_missing_input_is_named_at_once() -> None:
    with pytest.raises(InputError, match="on_topic needs question, answer"):
        evaluator()()


def test_other_names_of_the_family_are_understood_and_the_rest_ignored() -> None:
    asked: list[str] = []
    judge = ScriptedJudge(lambda messages: asked.append(messages[-1]["content"]) or GOOD)  # type: ignore[func-returns-value]
    found = evaluator(judge)(query="Q1", response="A1", color="red")
    assert found["status"] == "scored"
    assert asked == ["Q: Q1\nA: A1"]


@pytest.mark.parametrize(
    ("values", "cause"),
    [
        ({"question": "q"}, "missing_input"),
        ({"question": "q", "answer": None}, "missing_input"),
        ({"question": "q", "answer": float("nan")}, "missing_input"),
        ({"question": "q", "answer": " \n"}, "empty_input"),
    ],
)
def test_a_gap_in_a_row_costs_no_call(values: dict[str, Any], cause: str) -> None:
    def never(messages: Any) -> str:
        raise AssertionError("asked")

    found = score(ScriptedJudge(never), values)
    assert (found.status, found.cause, found.calls) == ("not_applicable", cause, ())
    assert "answer" in str(found.message)


@pytest.mark.parametrize("value", [0, False, "None", "nan"])
def test_values_that_look_empty_are_scored(value: Any) -> None:
    assert score(values={"question": "q", "answer": value}).status == "scored"


def test_a_value_of_a_wrong_type_is_an_input_error() -> None:
    text = TEXT.replace("answer: {type: string}", "answer: {type: integer}")
    with pytest.raises(InputError, match="input answer must be integer, not str"):
        score(values={"question": "q", "answer": "many"}, text=text)


def test_a_template_that_meets_nothing_says_where() -> None:
    text = TEXT.replace("{{answer}}", "{{answer.text}}")
    with pytest.raises(RenderError, match=r"on_topic\.prompty:18: .*text"):
        score(text=text)


# The doors.


def test_it_works_inside_a_running_loop() -> None:
    async def notebook() -> Any:
        return evaluator()(**ROW), await evaluator().acall(**ROW)

    by_call, by_await = asyncio.run(notebook())
    assert by_call == by_await
    assert by_call["score"] == 4


def test_its_signature_names_the_inputs() -> None:
    found = inspect.signature(evaluator(text=TEXT.replace("answer: {", "answer: {default: x, ")))
    kinds = {name: parameter.kind for name, parameter in found.parameters.items()}
    keyword, rest = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD
    assert kinds == {"question": keyword, "answer": keyword, "kwargs": rest}
    assert found.parameters["question"].default is inspect.Parameter.empty
    assert found.parameters["answer"].default is None


def test_it_never_changes() -> None:
    metric = evaluator()
    before = json.dumps(metric.describe(), sort_keys=True)
    first, second = metric(**ROW), metric(**ROW)
    assert first == second
    assert json.dumps(metric.describe(), sort_keys=True) == before
    with pytest.raises(FrozenInstanceError):
        metric.judge = None  # type: ignore[misc]


def test_many_rows_at_once_do_not_mix() -> None:
    def echo(messages: Any) -> str:
        return json.dumps({"reason": messages[-1]["content"], "score": 4})

    metric = evaluator(ScriptedJudge(echo))

    async def work() -> list[Score]:
        rows = ({"question": f"q{n}", "answer": f"a{n}"} for n in range(50))
        return await asyncio.gather(*(metric.score(row) for row in rows))

    reasons = [found.reason for found in asyncio.run(work())]
    assert reasons == [f"Q: q{n}\nA: a{n}" for n in range(50)]


# Asking again.


def replies(*answers: Any) -> tuple[Callable[[Any], Any], list[Any]]:
    """A script that gives one answer after the other, and what it was asked."""
    asked: list[Any] = []

    def script(messages: Any) -> Any:
        asked.append(messages)
        return answers[min(len(asked), len(answers)) - 1]

    return script, asked


def test_an_invalid_reply_is_asked_again_with_the_reason() -> None:
    script, asked = replies(BAD, GOOD)
    found = score(ScriptedJudge(script))
    assert (found.status, found.outputs["score"], len(found.calls)) == ("scored", 4, 2)
    assert asked[1][:2] == asked[0]
    assert asked[1][2] == {"role": "assistant", "content": BAD}
    assert asked[1][3]["role"] == "user"
    assert "`score` is 9, outside 1..5" in asked[1][3]["content"]
    assert [call.reply for call in found.calls] == [BAD, GOOD]
    assert found.calls[0].note is None
    assert found.calls[1].note == "`score` is 9, outside 1..5"
    assert found.calls[0].messages_sha != found.calls[1].messages_sha


@pytest.mark.parametrize(("reask", "calls"), [(0, 1), (1, 2), (3, 4)])
def test_it_is_asked_as_often_as_is_said_and_never_scored_by_force(reask: int, calls: int) -> None:
    script, asked = replies(BAD)
    found = score(ScriptedJudge(script), reask=reask)
    assert (found.status, found.cause, found.outputs) == ("invalid", "out_of_scale", {})
    assert len(asked) == len(found.calls) == calls
    assert all(call.reply == BAD for call in found.calls)


def test_where_asking_again_fails_the_first_reply_is_kept() -> None:
    script, _ = replies(BAD, {"error": "timeout"})
    found = score(ScriptedJudge(script))
    assert (found.status, found.cause, len(found.calls)) == ("invalid", "out_of_scale", 1)
    assert found.calls[0].reply == BAD
    assert "asked again, but scripted error: timeout" in str(found.message)


def test_a_first_failure_is_an_error() -> None:
    with pytest.raises(JudgeError, match="timeout"):
        score({"error": "timeout"})


def test_tokens_of_all_calls_count() -> None:
    call = Call("p", "r", usage=Usage(10, 2, 1, 5))
    assert Score("m", "scored", calls=(call, call)).usage == Usage(20, 4, 2, 10)


# On the wire.


def over(server: JudgeServer, text: str = TEXT, **more: Any) -> Score:
    judge = openai("m", credential=Key("key-0123456789"), base_url=server.url)

    async def work() -> Score:
        try:
            return await evaluator(judge, text).score(ROW, **more)
        finally:
            await judge.close()

    return asyncio.run(work())


def test_messages_and_parameters_go_out_as_the_file_says(server: JudgeServer) -> None:
    server.reply = GOOD
    found = over(server)
    assert found.outputs == {"reason": "fine", "score": 4}
    assert server.requests[0].body == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Mark."},
            {"role": "user", "content": "Q: q\nA: a"},
        ],
        "temperature": 0,
        "max_tokens": 300,
    }


@pytest.mark.parametrize(
    "cut", ['{"reason": "It would des', '{"reason": "ten", "score": 1', "", "4"]
)
def test_a_reply_that_was_cut_off_gets_a_larger_limit(server: JudgeServer, cut: str) -> None:
    server.reply = scripted([Response(content=cut, finish_reason="length"), GOOD])
    found = over(server)
    assert (found.status, found.outputs["score"]) == ("scored", 4)
    assert [request.body["max_tokens"] for request in server.requests] == [300, 1200]
    assert server.requests[0].body["messages"] == server.requests[1].body["messages"]


def test_a_reply_that_stays_cut_off_names_the_setting_of_the_file(server: JudgeServer) -> None:
    body = {
        "choices": [{"message": {"content": '{"score": 1'}, "finish_reason": "length"}],
        "usage": {"completion_tokens_details": {"reasoning_tokens": 290}},
    }
    server.reply = body
    once, twice = over(server, reask=0), over(server)
    assert (once.status, once.cause, once.outputs) == ("invalid", "truncated", {})
    assert once.calls[0].reply == '{"score": 1'
    assert once.message == (
        "the reply was cut off at its limit, 290 tokens of it spent on reasoning: "
        "raise max_tokens, which is 300"
    )
    assert str(twice.message).endswith("which is 300 (1200 was too little as well)")
    assert twice.cause == "truncated"


def test_without_a_limit_in_the_file_it_is_not_asked_again(server: JudgeServer) -> None:
    server.reply = Response(content="{", finish_reason="length")
    found = over(server, TEXT.replace("    max_tokens: 300\n", ""))
    assert "max_tokens, which is not set in the file" in str(found.message)
    assert server.count == 1


def test_a_whole_object_at_the_limit_is_an_answer(server: JudgeServer) -> None:
    server.reply = Response(content=GOOD, finish_reason="length")
    assert over(server).outputs["score"] == 4


FILTERED = {"error": {"code": "content_filter", "message": "The prompt was filtered."}}


@pytest.mark.parametrize(
    ("reply", "cause", "calls"),
    [
        (Response(status=400, body=FILTERED), "content_filter", 0),
        (Response(content=None, finish_reason="content_filter"), "content_filter", 1),
        (Response(content=None, refusal="I can't help with that."), "refusal", 1),
    ],
)
def test_a_refusal_is_no_score_and_asked_once(
    server: JudgeServer, reply: Answer, cause: str, calls: int
) -> None:
    server.reply = reply
    found = over(server)
    assert (found.status, found.cause, found.outputs) == ("refused", cause, {})
    assert found.message
    assert server.count == 1
    assert len(found.calls) == calls


def test_a_refusal_of_the_second_asking_is_a_refusal(server: JudgeServer) -> None:
    server.reply = scripted([BAD, Response(status=400, body=FILTERED)])
    found = over(server)
    assert (found.status, len(found.calls)) == ("refused", 1)


TOOLS = TEXT.replace(
    "    max_tokens: 300\n",
    "    max_tokens: 300\n    tools: [{type: function, function: {name: give_mark}}]\n",
)


def called(*calls: tuple[str, str]) -> Response:
    tool_calls = [
        {"id": "c", "type": "function", "function": {"name": name, "arguments": arguments}}
        for name, arguments in calls
    ]
    return Response(content=None, finish_reason="tool_calls", tool_calls=tool_calls)


def test_a_call_of_the_declared_tool_is_the_answer(server: JudgeServer) -> None:
    server.reply = called(("give_mark", GOOD))
    assert over(server, TOOLS).outputs["score"] == 4
    assert server.requests[0].body["tools"] == [
        {"type": "function", "function": {"name": "give_mark"}}
    ]


@pytest.mark.parametrize(
    ("reply", "text", "cause"),
    [
        (called(("search_web", "{}")), TOOLS, "tool_call"),
        (called(("give_mark", GOOD), ("give_mark", GOOD)), TOOLS, "tool_call"),
        (called(("give_mark", '{"reason": "cut", "sco')), TOOLS, "unparseable"),
        (called(("give_mark", GOOD)), TEXT, "tool_call"),
    ],
)
def test_any_other_call_is_no_answer_but_kept(
    server: JudgeServer, reply: Response, text: str, cause: str
) -> None:
    server.reply = reply
    found = over(server, text)
    assert (found.status, found.cause) == ("invalid", cause)
    assert reply.tool_calls is not None
    name = reply.tool_calls[0]["function"]["name"]
    assert all(name in call.reply for call in found.calls)


def test_a_metric_that_is_its_own_judges_file(server: JudgeServer, folder: Path) -> None:
    """No judge given: the file's own settings, read once, with retries."""
    server.reply = scripted([error(503, "x", headers={"retry-after-ms": "1"}), GOOD])
    settings = f"  configuration: {{type: openai, model: m, base_url: '{server.url}'}}\n"
    path = folder / "own.prompty"
    path.write_text(TEXT.replace("model:\n", f"model:\n{settings}"))
    metric = load(path)
    try:
        assert metric(**ROW)["score"] == 4
        assert metric(**ROW)["score"] == 4
    finally:
        sync.run(metric._own_judge.close())
    assert server.count == 3


def test_without_any_judge_it_says_the_ways_out(folder: Path) -> None:
    with pytest.raises(SetupError, match="no judge"):
        PromptEvaluator(loads(TEXT))(**ROW)


# Before the first row.


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (TEXT.replace("{{question}}", "x").replace("{{answer}}", "y"), "none of its inputs"),
        (TEXT.replace("{{answer}}", "{{answer"), "template"),
        (TEXT.replace("temperature: 0", "user: ${env:CASE_GONE}"), "CASE_GONE"),
        (TEXT.replace("temperature: 0", "tools: ${file:gone.json}"), "gone.json"),
    ],
)
def test_what_would_fail_on_every_row_fails_before(text: str, words: str) -> None:
    metric = evaluator(text=text)
    with pytest.raises(PromptyError, match=words):
        metric.check(metric.judge)


def test_a_sound_metric_passes_the_check() -> None:
    evaluator().check(None)


def test_the_fingerprint_changes_with_what_changes_a_score() -> None:
    def of(text: str) -> str:
        return evaluator(text=text).fingerprint

    same = TEXT.replace("threshold: 3", "threshold: 4").replace("On topic", "Another")
    assert of(same) == of(TEXT)
    for old, new in (
        ("Mark.", "Mark!"),
        ("maximum: 5", "maximum: 4"),
        ("temperature: 0", "temperature: 1"),
        ("reason: {type: string}", "why: {type: string}"),
        ("maximum: 5", "levels: {1: a, 5: b}"),
    ):
        assert of(TEXT.replace(old, new)) != of(TEXT)
    mixed = TEXT.replace("temperature: 0", "logit_bias: {1: 5, a: 5}")
    assert of(mixed) != of(TEXT)


def test_the_description_holds_the_scale_and_the_text() -> None:
    found = evaluator().describe()
    assert found["kind"] == "prompty"
    assert found["text"] == TEXT
    assert found["outputs"]["score"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 5,
        "threshold": 3,
        "desirable_direction": "increase",
    }
    assert json.loads(json.dumps(found)) == found


def test_requests_of_one_row_are_those_of_that_row(server: JudgeServer) -> None:
    def reply(request: Request) -> Answer:
        assert request.text == "Mark.\nQ: q\nA: a"
        return GOOD

    server.reply = reply
    assert over(server).status == "scored"

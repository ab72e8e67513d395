"""The steps of a metric, against real prompts and a judge that answers from a script."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import math
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.errors import JudgeError
from assay.judge.base import Judge, Message, Reply
from assay.judge.cache import Cached, ReplyStore
from assay.judge.credential import NoCredential
from assay.judge.wire import openai
from assay.metric.metricfile import load_metric
from assay.metric.multistep import MetricEvaluator
from assay.metric.score import Score
from tests.support.server import Answer, JudgeServer, Request, Response, completion

ONE = """---
inputs:
  text: {type: string}
outputs:
  reason: {type: string, required: false}
  verdict: {enum: [yes, no, unknown]}
---
system:
Reply with JSON.

user:
ONE {{ text }}
"""
MANY = """---
inputs:
  claims: {type: array}
  text: {type: string, required: false}
outputs:
  verdicts:
    type: array
    items:
      properties:
        index: {type: integer}
        verdict: {type: string, enum: [yes, no, unknown]}
---
system:
Reply with JSON.

user:
MANY {{ text }}
{% for claim in claims %}
[{{ claim.index }}] {{ claim.text }}
{% endfor %}
"""
LEVEL = """---
model:
  parameters: {temperature: 0, max_tokens: 100}
inputs:
  text: {type: string}
outputs:
  score: {type: integer, minimum: 1, maximum: 5}
---
system:
Reply with JSON: score from 1 to 5.

user:
LEVEL {{ text }}
"""
HEAD = """inputs:
  response: {type: string, required: false}
  context: {type: array, required: false}
outputs:
  good: {type: number, minimum: 0, maximum: 5, threshold: 0.5}
steps:
"""
ALIGN = "  - v: {prompt: many.prompty, align: {claims: context}}\n"
MAP = "  - n: {map: v, to: {yes: 1, no: 0, unknown: 0}}\n"

Script = Sequence[Mapping[str, Any]]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "good"
    folder.mkdir()
    for name, text in (("one", ONE), ("many", MANY), ("level", LEVEL)):
        (folder / f"{name}.prompty").write_text(text)
    return folder / "metric.yaml"


def metric(place: Path, steps: str, score: str, more: str = "") -> MetricEvaluator:
    place.write_text(HEAD + steps + f"score: {score}\n" + more)
    return load_metric(place)


def run(evaluator: MetricEvaluator, judge: Judge, **values: Any) -> Score:
    async def work() -> Score:
        try:
            return await evaluator.score(values, judge)
        finally:
            await judge.close()

    return asyncio.run(work())


def entries(*pairs: tuple[Any, Any]) -> str:
    return json.dumps({"verdicts": [{"index": i, "verdict": v} for i, v in pairs]})


def at(server: JudgeServer) -> Judge:
    return openai("mock", credential=NoCredential(), base_url=server.url)


def replying(server: JudgeServer, *replies: str) -> None:
    left = list(replies)
    server.reply = lambda _: left.pop(0)


# Alignment.


def test_verdicts_are_put_in_order_by_their_index(place: Path, server: JudgeServer) -> None:
    replying(server, entries(("3", "no"), (1.0, "yes"), (2, "Unknown")))
    score = run(metric(place, ALIGN + MAP, "n[0]"), at(server), context=["a", "b", "c"])
    assert server.count == 1
    assert score.outputs == {"good": 1}
    parts = score.evidence["parts"]
    assert parts["n"] == [1, 0, 0]
    assert [(v["index"], v["text"], v["verdict"]) for v in parts["v"]] == [
        (1, "a", "yes"),
        (2, "b", "Unknown"),
        (3, "c", "no"),
    ]


def test_only_what_is_missing_is_asked_for_again(place: Path, server: JudgeServer) -> None:
    replying(server, entries((1, "yes"), (3, "no")), entries((2, "yes")))
    score = run(metric(place, ALIGN + MAP, "sum(n)"), at(server), context=["a", "b", "c"])
    assert score.outputs == {"good": 2}
    first, second = (request.text.partition("MANY")[2] for request in server.requests)
    assert first.split() == ["[1]", "a", "[2]", "b", "[3]", "c"]
    assert second.split() == ["[2]", "b"]
    assert len(score.calls) == 2
    assert [call.inputs for call in score.calls] == [
        {"claims": [{"index": i, "text": t} for i, t in ((1, "a"), (2, "b"), (3, "c"))]},
        {"claims": [{"index": 2, "text": "b"}]},
    ]


@pytest.mark.parametrize(
    "first",
    [
        [(1, "yes"), (2, "no"), (2, "yes")],  # twice, and they disagree
        [(1, "yes"), (2, None)],
        [(1, "yes"), (2, "perhaps")],
        [(1, "yes"), ("two", "no")],
        [(1, "yes"), (None, "no"), (9, "no"), (0, "no"), (-2, "no"), (True, "no"), (2.5, "no")],
    ],
)
def test_what_cannot_be_used_is_asked_for_again(
    place: Path, server: JudgeServer, first: list[tuple[Any, Any]]
) -> None:
    replying(server, entries(*first), entries((2, "no")))
    score = run(metric(place, ALIGN + MAP, "sum(n)"), at(server), context=["a", "b"])
    assert score.outputs == {"good": 1}
    assert server.count == 2


def test_the_same_twice_is_once(place: Path, server: JudgeServer) -> None:
    replying(server, entries((1, "yes"), (1, "yes"), (2, "no"), (3, "no")))
    score = run(metric(place, ALIGN + MAP, "len(n)"), at(server), context=["a", "b"])
    assert score.outputs == {"good": 2}


def test_verdicts_that_never_come_make_no_score(place: Path, server: JudgeServer) -> None:
    server.reply = entries((1, "yes"))
    score = run(metric(place, ALIGN + MAP, "sum(n)"), at(server), context=["a", "b", "c"])
    assert (score.status, score.cause) == ("invalid", "count_mismatch")
    assert score.message == "step v: 1 of 3 entries came back, asked 3 times; missing 2, 3"
    assert server.count == 3
    assert len(score.calls) == 3


def test_a_word_outside_the_vocabulary_is_for_the_map_to_judge(
    place: Path, server: JudgeServer
) -> None:
    server.reply = entries((1, "yes"), (2, None))
    evaluator = metric(place, ALIGN + MAP, "sum(n)")
    score = run(evaluator, at(server), context=["a", "b"])
    assert (score.status, score.cause) == ("invalid", "vocabulary")
    assert score.message == "step n: verdict is None, not one of yes, no, unknown"
    with_null = MAP.replace("unknown: 0", "unknown: 0, null: null")
    score = run(metric(place, ALIGN + with_null, "mean(n)"), at(server), context=["a", "b"])
    assert score.outputs == {"good": 1.0}


def test_nothing_to_align_costs_nothing(place: Path, server: JudgeServer) -> None:
    score = run(metric(place, ALIGN, "len(v)"), at(server), context=[])
    assert (score.outputs, server.count) == ({"good": 0}, 0)


def test_missing_entries_are_not_taken_from_the_cache(
    place: Path, server: JudgeServer, tmp_path: Path
) -> None:
    # Asked for all again, with the same messages: the first reply must not answer.
    replying(server, entries(), entries((1, "yes")))
    store = ReplyStore(tmp_path / "cache.db")
    judge = Cached(at(server), store)
    score = run(metric(place, ALIGN + MAP, "sum(n)"), judge, context=["a"])
    assert score.outputs == {"good": 1}
    store.close()
    store = ReplyStore(tmp_path / "cache.db")  # a store tells what was there when it was opened
    judge = Cached(at(server), store)
    again = run(metric(place, ALIGN + MAP, "sum(n)"), judge, context=["a"])
    assert again.outputs == {"good": 1}
    assert server.count == 2
    store.close()


# Each, repeat, when, parameters.


def test_each_keeps_the_order_whatever_comes_back_first(place: Path, server: JudgeServer) -> None:
    words = {"a": "yes", "b": "no", "c": "unknown"}

    def reply(request: Request) -> Response:
        text = request.text.split()[-1]
        delay = {"a": 0.05, "b": 0.02, "c": 0.0}[text]
        return Response(content=json.dumps({"verdict": words[text], "reason": text}), delay=delay)

    server.reply = reply
    steps = "  - v: {prompt: one.prompty, each: context, in: {text: item}}\n"
    score = run(metric(place, steps + MAP, "n[0]"), at(server), context=["a", "b", "c"])
    assert score.evidence["parts"]["n"] == [1, 0, 0]
    assert [call.inputs for call in score.calls] == [{"text": t} for t in "abc"]
    assert metric(place, steps, "len(v)").calls == "1 per element of context"


def test_each_sees_the_index(place: Path, server: JudgeServer) -> None:
    server.reply = '{"verdict": "yes"}'
    steps = "  - v: {prompt: one.prompty, each: context, in: {text: \"index ~ '/' ~ item\"}}\n"
    run(metric(place, steps, "len(v)"), at(server), context=["a", "b"])
    assert sorted(request.text.split()[-1] for request in server.requests) == ["1/a", "2/b"]


def test_each_and_align_together(place: Path, server: JudgeServer) -> None:
    def reply(request: Request) -> str:
        return entries(*((i + 1, "yes") for i in range(request.text.count("]"))))

    server.reply = reply
    steps = (
        "  - v: {prompt: many.prompty, each: context, in: {text: item}, "
        "align: {claims: sentences(item)}}\n"
        "  - all: {value: flatten(v)}\n"
    )
    passages = ["One. Two.", "...", "Three."]
    score = run(metric(place, steps, "len(all)"), at(server), context=passages)
    assert score.outputs == {"good": 3}
    assert server.count == 2  # a passage without a sentence is not asked about
    assert [len(one) for one in score.evidence["parts"]["v"]] == [2, 0, 1]


def test_each_over_what_is_no_list(place: Path, server: JudgeServer) -> None:
    steps = "  - v: {prompt: one.prompty, each: response, in: {text: item}}\n"
    score = run(metric(place, steps, "len(v)"), at(server), response="text")
    assert (score.status, score.cause) == ("invalid", "undefined")
    assert score.message == "`response` is no list but str"


def test_the_first_failure_ends_the_others(place: Path, server: JudgeServer) -> None:
    failed = threading.Event()

    def reply(request: Request) -> Response:
        if request.text.endswith("bad"):
            failed.set()
            return Response(status=400, content="no")
        return Response(stall=True)

    server.reply = reply
    steps = "  - v: {prompt: one.prompty, each: context, in: {text: item}}\n"
    score = run(metric(place, steps, "len(v)"), at(server), context=["a", "bad", "c"])
    assert failed.is_set()
    assert score.status == "error"
    assert score.cause


def test_repeats_are_asked_afresh(place: Path, server: JudgeServer, tmp_path: Path) -> None:
    replying(server, *(json.dumps({"score": n}) for n in (5, 4, 4, 3)))
    steps = (
        "  - s: {prompt: level.prompty, in: {text: response}, repeat: 4, "
        "parameters: {temperature: 1, top_p: 0.9}}\n"
    )
    evaluator = metric(place, steps, "mean(s | map(attribute='score'))")
    for _ in range(2):  # the second time from the cache, each repeat its own
        store = ReplyStore(tmp_path / "cache.db")
        score = run(evaluator, Cached(at(server), store), response="r")
        assert score.outputs == {"good": 4.0}
        store.close()
    assert server.count == 4
    for request in server.requests:
        assert request.body["temperature"] == 1
        assert request.body["top_p"] == 0.9
        assert request.body["max_tokens"] == 100
    assert evaluator.calls == "4"


def test_when_it_does_not_hold_nobody_is_asked(place: Path, server: JudgeServer) -> None:
    server.reply = '{"verdict": "yes"}'
    steps = "  - v: {prompt: one.prompty, in: {text: response}, when: context}\n"
    evaluator = metric(place, steps, "1 if v else 0")
    assert run(evaluator, at(server), response="r", context=[]).outputs == {"good": 0}
    assert server.count == 0
    assert run(evaluator, at(server), response="r", context=["c"]).outputs == {"good": 1}
    assert server.count == 1


# Maps, texts, values.


@pytest.mark.parametrize(
    ("to", "found"),
    [
        ("{yes: 1, no: 0}", [1, 0, 1]),
        ("{Yes: 0.5, 'NO': -1}", [0.5, -1, 0.5]),
        ("{yes: null, no: 0}", [None, 0, None]),
        ("{yes: 1}, other: null", [1, None, 1]),
        ("{yes: 1}, other: 0", [1, 0, 1]),
    ],
)
def test_a_vocabulary(place: Path, to: str, found: list[float | None]) -> None:
    steps = f"  - n: {{map: context, to: {to}}}\n"
    score = run(metric(place, steps, "1"), assay.ScriptedJudge("x"), context=["Yes.", "no", "YES"])
    assert score.evidence["parts"]["n"] == found


def test_texts_are_cut_and_joined(place: Path) -> None:
    steps = (
        "  - j: {join: context, with: '; '}\n"
        "  - s: {split: context}\n"
        "  - l: {split: response, by: lines}\n"
    )
    values = {"context": ["Aa. Bb.", "Cc."], "response": "1. x\n\n2. y"}
    score = run(metric(place, steps, "len(s) + len(l)"), assay.ScriptedJudge("x"), **values)
    parts = score.evidence["parts"]
    assert parts == {"j": "Aa. Bb.; Cc.", "s": ["Aa.", "Bb.", "Cc."], "l": ["x", "y"]}


def test_an_embedder_gives_vectors_and_none_are_kept(place: Path) -> None:
    if importlib.util.find_spec("wordllama") is None:
        pytest.skip("the extra `baseline` is not installed")
    steps = "  - e: {embed: '[response, response]'}\n"
    evaluator = metric(place, steps, "cosine(e[0], e[1])")
    assert evaluator.needs_embedder
    assert evaluator.calls == "0"
    score = run(evaluator, assay.ScriptedJudge("x"), response="the same")  # the embedded one
    assert score.outputs == {"good": 1.0}
    assert score.evidence == {"parts": {}}


# Policies, and what else ends a metric.


def test_a_policy_is_recorded_as_the_rule(place: Path) -> None:
    steps = (
        "  - stop: {when: not context, because: nothing to see, cause: no_context}\n"
        "  - stop: {when: len(context) == 1, score: 0, because: one is none}\n"
        "  - stop: {when: len(context) == 2, status: invalid, because: two is odd}\n"
    )
    evaluator = metric(place, steps, "len(context)", "reason: \"'three'\"\n")
    judge = assay.ScriptedJudge("x")
    none = run(evaluator, judge, context=[])
    assert (none.status, none.cause, none.message) == (
        "not_applicable",
        "no_context",
        "nothing to see",
    )
    assert none.evidence["rule"] == "nothing to see"
    one = run(evaluator, judge, context=["a"])
    assert (one.status, one.outputs, one.reason) == ("scored", {"good": 0}, "one is none")
    assert one.evidence["rule"] == "one is none"
    two = run(evaluator, judge, context=["a", "b"])
    assert (two.status, two.cause, two.evidence["rule"]) == ("invalid", "policy", "two is odd")
    three = run(evaluator, judge, context=["a", "b", "c"])
    assert (three.outputs, three.reason) == ({"good": 3}, "three")
    assert "rule" not in three.evidence


@pytest.mark.parametrize(
    ("score", "cause"),
    [
        ("ratio(1, len(context))", "undefined"),
        ("mean([])", "undefined"),
        ("1 / 0", "undefined"),
        ("response + 1", "undefined"),
        ("context[3]", "undefined"),
        ("1e308 * 10", "undefined"),
        ("1e308 * 10 - 1e308 * 10", "undefined"),
        ("5.1", "out_of_scale"),
        ("-0.1", "out_of_scale"),
        ("none", "out_of_scale"),
        ("\"'text'\"", "out_of_scale"),
        ("1 == 1", "out_of_scale"),
    ],
)
def test_what_is_no_number_on_the_scale_is_no_score(place: Path, score: str, cause: str) -> None:
    found = run(metric(place, "", score), assay.ScriptedJudge("x"), response="r", context=[])
    assert (found.status, found.cause, found.outputs) == ("invalid", cause, {})
    assert found.message


def test_blank_is_empty_and_missing_is_missing(place: Path) -> None:
    text = (HEAD + "score: len(context) + len(response)\n").replace(", required: false", "")
    place.write_text("may_be_empty: [context]\n" + text.replace("steps:\n", ""))
    evaluator = load_metric(place)
    judge = assay.ScriptedJudge("x")
    assert run(evaluator, judge, response="r", context=["", " ", "a"]).outputs == {"good": 2}
    assert run(evaluator, judge, response="r", context=[" "]).outputs == {"good": 1}
    for values, cause in (
        ({"response": "r"}, "missing_input"),
        ({"response": "r", "context": None}, "missing_input"),
        ({"response": " ", "context": []}, "empty_input"),
        ({"response": math.nan, "context": []}, "missing_input"),
    ):
        score = run(evaluator, judge, **values)
        assert (score.status, score.cause) == ("not_applicable", cause)


TWO = (
    "  - a: {prompt: one.prompty, in: {text: response}}\n"
    "  - b: {prompt: level.prompty, in: {text: response}}\n"
)


def test_what_was_paid_for_before_an_error_is_kept(place: Path) -> None:
    script: Script = [
        {"when": "ONE", "reply": '{"verdict": "yes"}'},
        {"when": "LEVEL", "reply": {"error": "timeout"}},
    ]
    score = run(metric(place, TWO, "b.score"), assay.ScriptedJudge(script), response="r")
    assert (score.status, score.cause) == ("error", "timeout")
    assert [call.reply for call in score.calls] == ['{"verdict": "yes"}']
    assert score.evidence["parts"]["a"] == {"verdict": "yes"}


@pytest.mark.parametrize(
    ("reply", "status", "cause"),
    [
        ({"text": "", "refusal": "no"}, "refused", "refusal"),
        ({"text": "", "finish_reason": "content_filter"}, "refused", "content_filter"),
        ("prose", "invalid", "wrong_type"),
        ('{"score": 6}', "invalid", "out_of_scale"),
        ("", "invalid", "empty"),
    ],
)
def test_a_step_without_an_answer(place: Path, reply: Any, status: str, cause: str) -> None:
    script: Script = [
        {"when": "ONE", "reply": '{"verdict": "no"}'},
        {"when": "LEVEL", "reply": reply},
    ]
    score = run(metric(place, TWO, "b.score"), assay.ScriptedJudge(script), response="r")
    assert (score.status, score.cause) == (status, cause)
    assert score.message is not None
    assert score.message.startswith("step b: ")
    assert len(score.calls) >= 2


def test_a_list_without_the_list_is_asked_again(place: Path, server: JudgeServer) -> None:
    replying(server, "nothing", entries((1, "yes")))
    score = run(metric(place, ALIGN + MAP, "sum(n)"), at(server), context=["a"])
    assert score.outputs == {"good": 1}
    assert server.count == 2


# Log-probabilities, over the wire.

DISTRIBUTION = "  - d: {prompt: level.prompty, in: {text: response}, distribution: score}\n"


def with_logprobs(text: str, *tokens: tuple[str, Mapping[str, float]]) -> Answer:
    """A reply whose tokens have these alternatives, each with its probability."""
    body = completion(text)
    body["choices"][0]["logprobs"] = {
        "content": [
            {
                "token": token,
                "logprob": math.log(top.get(token, 1.0)),
                "top_logprobs": [{"token": t, "logprob": math.log(p)} for t, p in top.items()],
            }
            for token, top in tokens
        ]
    }
    return body


def test_a_distribution_is_read_at_the_last_token_that_is_the_score(
    place: Path, server: JudgeServer
) -> None:
    server.reply = with_logprobs(
        '{"n": 4, "score": 4}',
        ('{"n": ', {}),
        ("4", {"4": 1.0}),  # the first 4 is not the score
        (', "score": ', {}),
        (" 4", {" 4": 0.5, "5": 0.2, "３": 0.1, "four": 0.15, "9": 0.05}),
        ("}", {}),
    )
    score = run(metric(place, DISTRIBUTION, "expectation(d.levels)"), at(server), response="r")
    assert score.outputs["good"] == pytest.approx((2.0 + 1.0 + 0.3) / 0.8)
    found = score.evidence["parts"]["d"]
    assert found["levels"] == pytest.approx({"4": 0.5, "5": 0.2, "3": 0.1})
    assert found["mass"] == pytest.approx(0.8)
    assert (found["value"], found["method"], found["score"]) == (4, "expectation", 4)
    (request,) = server.requests
    assert (request.body["logprobs"], request.body["top_logprobs"]) == (True, 20)


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ('{"score": 4}', "the judge gave no log-probabilities"),
        (with_logprobs('{"score": 4}', ('{"score": 4}', {})), "no single token of the reply is 4"),
        (
            with_logprobs('{"score": 4}', ("4", {"four": 1.0})),
            "no level of score has a probability",
        ),
    ],
)
def test_nothing_stands_in_for_log_probabilities(
    place: Path, server: JudgeServer, reply: Answer, words: str
) -> None:
    server.reply = reply
    score = run(metric(place, DISTRIBUTION, "expectation(d.levels)"), at(server), response="r")
    assert (score.status, score.cause) == ("invalid", "no_logprobs")
    assert score.message is not None
    assert words in score.message
    assert server.count == 1


class Breaks:
    """A judge whose connection is gone after the first answer."""

    name = "breaks"

    def __init__(self) -> None:
        self.asked = 0

    async def complete(self, messages: Sequence[Message], **settings: Any) -> Reply:
        self.asked += 1
        if self.asked > 1:
            raise JudgeError("gone", cause="connection")
        return Reply(text=entries((1, "yes")))

    def describe(self) -> dict[str, Any]:
        return {}

    async def close(self) -> None:
        return None


def test_an_error_while_asking_again_keeps_the_first_answer(place: Path) -> None:
    score = run(metric(place, ALIGN + MAP, "sum(n)"), Breaks(), context=["a", "b"])
    assert (score.status, score.cause) == ("error", "connection")
    assert len(score.calls) == 1

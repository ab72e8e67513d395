"""The shared cases, each an incident of some other evaluation library, at the level of one row.

Cases about whole runs (data files, resuming, summaries) are tested with `assay.run`.
"""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from assay.errors import AssayError, InputError, JudgeError, PromptyError, SetupError
from assay.judge.base import Judge
from assay.judge.limits import Limited
from assay.judge.resolve import resolve
from assay.judge.scripted import ScriptedJudge
from assay.judge.wire import OpenAIJudge
from assay.metric.evaluator import PromptEvaluator
from assay.metric.score import Score
from assay.prompty import load
from tests.support.server import Answer, JudgeServer, Request, Response

SCORE = "score"


@pytest.fixture
def cases(shared: Path, folder: Path) -> Path:
    return shared / "cases"


def read(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def rows(case: Path) -> list[dict[str, Any]]:
    lines = (case / "data.jsonl").read_text("utf-8").split("\n")
    return [json.loads(line) for line in lines if line.strip()]


def metric(case: Path, judge: Judge | None = None) -> PromptEvaluator:
    return PromptEvaluator(load(case / "metric.prompty"), judge)


def score_all(found: PromptEvaluator, values: list[dict[str, Any]], **more: Any) -> list[Score]:
    async def work() -> list[Score]:
        try:
            return [await found.score(row, **more) for row in values]
        finally:
            if found.judge is not None:
                await found.judge.close()

    return asyncio.run(work())


def is_right(found: Score, wanted: Any, raw: str) -> bool:
    """Whether a score is the number wanted, or none at all with the raw reply kept."""
    if isinstance(wanted, int):
        value = found.outputs.get(SCORE)
        return found.status == "scored" and value == wanted and type(value) is type(wanted)
    kept = all(call.reply == raw for call in found.calls)
    return found.status == "invalid" and not found.outputs and bool(found.message) and kept


@pytest.mark.parametrize(
    "name", ["01-score-types", "02-score-in-prose", "03-markdown-fences", "04-unicode-digits"]
)
@pytest.mark.parametrize("reask", [0, 1])
def test_replies(cases: Path, name: str, reask: int) -> None:
    case = cases / name
    answers = read(case / "expect.json")["answers"]
    assert answers
    wrong = []
    for file, wanted in answers.items():
        raw = (case / file).read_text("utf-8")
        found = score_all(metric(case, ScriptedJudge(raw)), rows(case)[:1], reask=reask)[0]
        if not is_right(found, wanted, raw):
            wrong.append((file, found))
    assert wrong == []


def test_03_a_fence_inside_a_value_comes_through_unchanged(cases: Path) -> None:
    case = cases / "03-markdown-fences"
    raw = (case / "answer.d.txt").read_text("utf-8")
    assert load(case / "metric.prompty").read(raw).outputs == json.loads(raw)


def test_07_gaps_are_not_scored_and_values_are(cases: Path) -> None:
    case = cases / "07-null-nan-empty"
    asked: list[str] = []

    def answer(messages: Any) -> str:
        asked.append(messages[-1]["content"])
        return (case / "answer.txt").read_text("utf-8")

    found = score_all(metric(case, ScriptedJudge(answer)), rows(case))
    assert [score.status for score in found] == ["not_applicable"] * 4 + ["scored"] * 4
    assert [score.cause for score in found[:4]] == ["missing_input"] * 2 + ["empty_input"] * 2
    assert [text.split("ANSWER: ")[1] for text in asked] == ["None", "nan", "0", "false"]


@pytest.mark.parametrize("name", ["08-typed-columns", "15-template-syntax-in-data"])
def test_rendering(cases: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "the-home-folder")
    case = cases / name
    prompty = load(case / "metric.prompty")
    asked: list[Any] = []

    def answer(messages: Any) -> str:
        asked.append(messages)
        return (case / "answer.txt").read_text("utf-8")

    (found,) = score_all(metric(case, ScriptedJudge(answer)), rows(case))
    assert found.status == "scored"
    expected = (case / "expected_render.txt").read_text("utf-8").rstrip("\n")
    assert asked[0][-1] == {"role": "user", "content": expected}
    assert len(asked[0]) == 2
    assert prompty.render(rows(case)[0])[-1]["content"] == expected


def test_08_a_value_that_does_not_fit_names_both_types(cases: Path) -> None:
    case = cases / "08-typed-columns"
    wrong = rows(case)[0] | {"answer": "many"}
    with pytest.raises(InputError, match="answer must be integer, not str"):
        score_all(metric(case, ScriptedJudge("")), [wrong])


def test_13_a_key_given_twice_is_named_with_its_line(cases: Path) -> None:
    path = cases / "13-duplicate-keys" / "dup_front_matter.prompty"
    line = path.read_text("utf-8").split("\n").index("    temperature: 1") + 1
    with pytest.raises(PromptyError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}:{line}:")
    assert "temperature" in caught.value.message


def test_16_roles_in_data_are_data(cases: Path) -> None:
    case = cases / "16-role-markers-in-data"
    messages = load(case / "metric.prompty").render(rows(case)[0])
    assert messages == read(case / "expected_messages.json")


def test_18_every_missing_variable_is_said_before_any_call(
    cases: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = cases / "18-env-missing"
    expected = read(case / "expect.json")
    for name in (*expected["env_unset"], *expected["message_lacks"]):
        monkeypatch.delenv(name, raising=False)
    prompty = load(case / "metric.prompty")
    with pytest.raises((SetupError, PromptyError)) as caught:
        resolve(model=prompty.model, path=prompty.path)
    message = str(caught.value)
    assert all(name in message for name in expected["message_has"])
    assert not any(name in message for name in expected["message_lacks"])
    assert str(case / "metric.prompty") in message
    monkeypatch.setenv("EVAL_CASE_KEY", "")
    with pytest.raises(AssayError, match=r"EVAL_CASE_KEY \(set but empty\)"):
        resolve(model=prompty.model, path=prompty.path)
    content = prompty.render(rows(case)[0])[-1]["content"]
    assert "QUESTION: ${env:EVAL_CASE_KEY}\n" in content


def test_18_a_login_in_code_needs_no_key(cases: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Source:
        def get_token(self, scope: str) -> Any:
            raise AssertionError

    monkeypatch.delenv("EVAL_CASE_KEY", raising=False)
    monkeypatch.setenv("EVAL_CASE_ENDPOINT", "https://gateway.example")
    prompty = load(cases / "18-env-missing" / "metric.prompty")
    judge = resolve(model=prompty.model, path=prompty.path, credential=Source())
    assert isinstance(judge, OpenAIJudge)
    assert judge.url.startswith("https://gateway.example/")


def azure_judge(case: Path, server: JudgeServer, monkeypatch: pytest.MonkeyPatch) -> Limited:
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", server.azure)
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "key-0123456789")
    return Limited(resolve("azure:judge-prod"))


def test_19_rejected_parameters_are_learnt_once(
    cases: Path, server: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = cases / "19-reasoning-parameters"
    expected = read(case / "expect.json")
    replies = read(case / "replies.json")

    def reply(request: Request) -> Answer:
        for entry in replies:
            if entry["when_request_has"] is None or entry["when_request_has"] in request.body:
                return Response(status=entry["status"], body=entry["body"])
        raise AssertionError(request.body)

    server.reply = reply
    judge = azure_judge(case, server, monkeypatch)
    found = score_all(metric(case, judge), rows(case))
    assert [score.outputs[SCORE] for score in found] == expected["scores"]
    rejected = sum(1 for r in server.requests if {"max_tokens", "temperature"} & r.body.keys())
    assert rejected <= expected["max_400"]
    for request in server.requests:
        assert not {"max_tokens", "max_completion_tokens"} <= request.body.keys()
    for request in server.requests[rejected:]:
        assert expected["final_request_has"].items() <= request.body.items()
        assert not set(expected["final_request_lacks"]) & request.body.keys()
    assert "max_tokens" in judge.describe()["rejected_parameters"]


def test_20_filters_and_refusals_are_no_scores(
    cases: Path, server: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = cases / "20-content-filter"
    replies = [read(case / f"reply.{n}.json") for n in range(1, 6)]

    def reply(request: Request) -> Answer:
        entry = replies[request.number]
        return Response(status=entry["status"], body=entry["body"])

    server.reply = reply
    found = score_all(metric(case, azure_judge(case, server, monkeypatch)), rows(case), reask=0)
    assert [score.status for score in found] == [
        "scored",
        "refused",
        "refused",
        "refused",
        "invalid",
    ]
    assert [score.cause for score in found[1:4]] == ["content_filter"] * 2 + ["refusal"]
    assert found[0].outputs[SCORE] == 4
    assert "violence" in str(found[1].message)
    assert "I can't help with that." in str(found[3].message)
    assert server.count == 5


@pytest.mark.parametrize("reask", [0, 1])
def test_22_a_reply_that_was_cut_off_is_no_mark(
    cases: Path, server: JudgeServer, monkeypatch: pytest.MonkeyPatch, reask: int
) -> None:
    case = cases / "22-finish-length"
    judge = azure_judge(case, server, monkeypatch)
    for number in (1, 2, 3):
        entry = read(case / f"reply.{number}.json")
        server.reply = Response(status=entry["status"], body=entry["body"])
        (found,) = score_all(metric(case, judge), rows(case)[:1], reask=reask)
        assert (found.status, found.cause, found.outputs) == ("invalid", "truncated", {})
        assert "max_tokens, which is 300" in str(found.message)
        sent = entry["body"]["choices"][0]["message"]["content"]
        assert [call.reply for call in found.calls] == [sent] * (1 + reask)


@pytest.mark.parametrize("reask", [0, 1])
def test_23_a_declared_tool_may_carry_the_answer(
    cases: Path, server: JudgeServer, monkeypatch: pytest.MonkeyPatch, reask: int
) -> None:
    case = cases / "23-tool-calls-answer"
    judge = azure_judge(case, server, monkeypatch)
    for file, wanted in read(case / "expect.json")["answers"].items():
        entry = read(case / file)
        server.reply = Response(status=entry["status"], body=entry["body"])
        (found,) = score_all(metric(case, judge), rows(case)[:1], reask=reask)
        if wanted == "invalid":
            assert (found.status, found.outputs) == ("invalid", {}), file
            call = entry["body"]["choices"][0]["message"]["tool_calls"][0]["function"]
            assert json.dumps(call["arguments"]) in found.calls[0].reply
        else:
            assert found.outputs[SCORE] == wanted


def test_28_a_key_is_nowhere(
    cases: Path,
    server: JudgeServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    case = cases / "28-secrets-stay-out"
    expected = read(case / "expect.json")
    for name, value in read(case / "env.json").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    entry = read(case / "reply.json")
    server.reply = Response(status=entry["status"], body=entry["body"])
    prompty = load(case / "metric.prompty")
    judge = Limited(resolve(model=prompty.model, path=prompty.path))
    found = PromptEvaluator(prompty, judge)

    async def work() -> list[Any]:
        try:
            calls = (found.score(row) for row in rows(case) * 5)
            return await asyncio.gather(*calls, return_exceptions=True)
        finally:
            await judge.close()

    failures = asyncio.run(work())
    assert all(isinstance(f, JudgeError) and f.cause == "authentication" for f in failures)
    assert server.count <= expected["max_calls"]
    sent = server.requests[0].headers["authorization"]
    assert sent.removeprefix("Bearer ") in expected["forbidden_text"]
    out, err = capfd.readouterr()
    seen = "\n".join(
        [out, err, caplog.text, *map(str, failures), *map(repr, failures), repr(judge), repr(found)]
        + [json.dumps(judge.describe()), json.dumps(found.describe())]
    )
    assert [text for text in expected["forbidden_text"] if text in seen] == []


MALFORMED = {"lost-indentation", "indented-delimiter", "yaml", "tab", "duplicate-key", "encoding"}


def test_the_public_files_load(shared: Path) -> None:
    """Every file people published loads and compiles, or is one of the few that are broken."""
    files = sorted((shared / "corpus").rglob("*.prompty"))
    refused = {}
    for path in files:
        try:
            _ = load(path).template
        except PromptyError as error:
            refused[path.name] = error.code
    assert len(files) > 300
    assert set(refused.values()) <= MALFORMED
    assert len(refused) <= len(files) // 50

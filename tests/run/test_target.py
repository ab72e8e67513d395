"""The application under test: every kind of callable, flow folders, and rows that fail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.errors import InputError, SetupError
from assay.run.progress import Silent
from assay.run.target import load_target
from tests.support import runs
from tests.support.server import JudgeServer

GOOD = assay.ScriptedJudge('{"reason": "r", "score": 4}')


def ask(target: Any, **row: Any) -> dict[str, Any]:
    return asyncio.run(load_target(target).run(row))


def upper(question: str) -> dict[str, Any]:
    return {"answer": question.upper()}


async def upper_later(question: str) -> dict[str, Any]:
    await asyncio.sleep(0)
    return {"answer": question.upper()}


class Upper:
    def __call__(self, question: str) -> dict[str, Any]:
        return {"answer": question.upper()}


class UpperLater:
    async def __call__(self, question: str) -> dict[str, Any]:
        return {"answer": question.upper()}


def prefixed(question: str, prefix: str) -> dict[str, Any]:
    return {"answer": prefix + question.upper()}


# --- callables -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "target",
    [
        upper,
        upper_later,
        Upper(),
        UpperLater(),
        Upper().__call__,
        lambda question: {"answer": question.upper()},
        lambda question: upper_later(question),
        partial(prefixed, prefix=""),
    ],
    ids=["def", "async", "object", "async object", "method", "lambda", "awaitable", "partial"],
)
def test_every_kind_of_callable(target: Callable[..., Any]) -> None:
    assert ask(target, question="hi", other=1) == {"answer": "HI"}


@pytest.mark.parametrize("result", ["text", 7, None, ["a"]])
def test_a_result_that_is_no_dict_is_output(result: Any) -> None:
    assert ask(lambda question: result, question="hi") == {"output": result}


def test_a_parameter_finds_its_column_under_another_name() -> None:
    assert ask(
        lambda query, contexts: {"answer": [query, contexts]}, question="q", context="c"
    ) == {"answer": ["q", "c"]}


def test_a_parameter_with_a_default_needs_no_column() -> None:
    def target(question: str, top: int = 3, **rest: Any) -> str:
        return f"{question}{top}{rest}"

    assert ask(target, question="q", more=1) == {"output": "q3{}"}
    assert ask(target, question="q", top=5) == {"output": "q5{}"}


def test_a_column_that_one_row_lacks() -> None:
    with pytest.raises(InputError, match="the target needs question, which this row has not"):
        ask(upper, other="x")


def test_a_column_that_no_row_has_is_told_before_any_call() -> None:
    with pytest.raises(SetupError) as caught:
        load_target(prefixed).check(("frage", "answer"))
    assert str(caught.value) == (
        "the target prefixed takes question, prefix, which no row has; columns are frage, answer"
    )


# --- in a run ------------------------------------------------------------------------------------


def evaluate(metric: Path, data: Any, target: Any, **options: Any) -> assay.Run:
    options = {"judge": GOOD, "progress": Silent(), **options}
    return assay.evaluate(data, metric, target=target, **options)


def test_a_failing_row_is_an_error_of_that_row_only(metric: Path) -> None:
    def target(question: str) -> dict[str, Any]:
        if question == "q2":
            raise ValueError("no such customer")
        return {"answer": question.upper()}

    run = evaluate(metric, [{"question": f"q{n}"} for n in range(5)], target)
    found = list(run.rows())
    assert [row["outputs.on_topic.status"] for row in found] == [
        "scored",
        "scored",
        "error",
        "scored",
        "scored",
    ]
    assert [row.get("outputs.answer") for row in found] == ["Q0", "Q1", None, "Q3", "Q4"]
    assert found[2]["outputs.on_topic.cause"] == "target"
    assert found[2]["outputs.on_topic.score_reason"] == (
        "the target failed: ValueError: no such customer"
    )
    assert found[2]["outputs.on_topic.score"] is None
    counts = run.metrics["on_topic.score"]
    assert (counts["n"], counts["scored"], counts["error"], counts["mean"]) == (5, 4, 1, 4)


def test_every_row_is_answered_once_even_those_that_were_tried_first(metric: Path) -> None:
    asked = []

    def target(question: str) -> dict[str, Any]:
        asked.append(question)
        return {"answer": question}

    evaluate(metric, [{"question": f"q{n}"} for n in range(4)], target, iterations=3)
    assert sorted(asked) == ["q0", "q1", "q2", "q3"]


def test_the_judge_sees_what_the_target_answered(metric: Path, server: JudgeServer) -> None:
    data = [{"question": f"q{n}", "answer": "an old one"} for n in range(3)]
    run = evaluate(metric, data, upper, judge="openai:test", base_url=server.url)
    texts = sorted(request.text.partition("QUESTION: ")[2] for request in server.requests)
    assert texts == [f"q{n}\nANSWER: Q{n}" for n in range(3)]
    # The row keeps both: what it came with, and what the target said.
    assert [row["inputs.answer"] for row in run.rows()] == ["an old one"] * 3
    assert [row["outputs.answer"] for row in run.rows()] == ["Q0", "Q1", "Q2"]


def test_a_target_that_never_works_stops_before_any_call(metric: Path, server: JudgeServer) -> None:
    def target(question: str) -> dict[str, Any]:
        raise RuntimeError("the index is empty")

    with pytest.raises(SetupError) as caught:
        evaluate(metric, runs.rows(5), target, judge="openai:test", base_url=server.url)
    assert str(caught.value) == (
        "the target target failed on the first rows: RuntimeError: the index is empty"
    )
    assert server.count == 0


def test_a_target_that_adds_nothing_the_metric_needs(metric: Path) -> None:
    with pytest.raises(SetupError, match="on_topic needs answer, which no row has"):
        evaluate(metric, [{"question": "q1"}], lambda question: {"reply_text": "x"})


def test_the_targets_model_is_the_judge_unless_another_is_given(
    metric: Path, server: JudgeServer
) -> None:
    async def target(question: str, model: assay.Judge) -> dict[str, Any]:
        reply = await model.complete([{"role": "user", "content": f"QUESTION: {question}"}])
        return {"answer": reply.text}

    data = [{"question": "q3"}]
    run = evaluate(metric, data, target, judge="openai:test", base_url=server.url)
    assert server.count == 2
    assert next(run.rows())["outputs.answer"] == runs.reply_for(3)

    other = assay.ScriptedJudge("from the other model")
    run = evaluate(
        metric, data, target, judge="openai:test", base_url=server.url, target_model=other
    )
    assert next(run.rows())["outputs.answer"] == "from the other model"


def test_a_target_with_a_model_and_no_judge_says_what_to_give(metric: Path) -> None:
    with pytest.raises(SetupError, match="needs a model: give --target-model"):
        assay.evaluate(
            runs.rows(1), lambda answer: 1.0, target=lambda question, model: {"answer": "x"}
        )


# --- flows ---------------------------------------------------------------------------------------

FLOW = (
    "entry: flow:answer\ninputs:\n  question: {type: string}\noutputs:\n  answer: {type: string}\n"
)


def flow(folder: Path, code: str, yaml: str = FLOW) -> Path:
    folder.mkdir()
    (folder / "flow.flex.yaml").write_text(yaml)
    (folder / "flow.py").write_text(code)
    return folder


def test_a_flow_folder(tmp_path: Path, metric: Path) -> None:
    folder = flow(
        tmp_path / "shout",
        "from words import louder\n"
        "def answer(question):\n    return {'answer': louder(question)}\n",
    )
    (folder / "words.py").write_text("def louder(text):\n    return text.upper() + '!'\n")
    loaded = load_target(folder)
    assert (loaded.name, loaded.outputs) == ("shout", ("answer",))
    run = evaluate(metric, [{"question": "hi"}], folder)
    assert next(run.rows())["outputs.answer"] == "HI!"
    assert run.header["target"]["name"] == "shout"


def test_a_flow_may_name_a_class(tmp_path: Path) -> None:
    code = "class Answer:\n    def __call__(self, question):\n        return question * 2\n"
    folder = flow(tmp_path / "twice", code, "entry: flow:Answer\n")
    assert ask(folder, question="hi") == {"output": "hihi"}


@pytest.mark.parametrize(
    ("code", "yaml", "says"),
    [
        ("import gone_module\n", FLOW, "ModuleNotFoundError: No module named 'gone_module'"),
        ("def answer(:\n", FLOW, "SyntaxError"),
        ("1 / 0\n", FLOW, "ZeroDivisionError: division by zero"),
        ("x = 1\n", FLOW, "flow.py has no function 'answer'"),
        ("", "entry: other:answer\n", "its entry names other.py, which is not beside it"),
        ("", "entry: flow\n", "`entry:` must be MODULE:FUNCTION, not 'flow'"),
        ("", "inputs: {}\n", "`entry:` must be MODULE:FUNCTION, not ''"),
        ("", "entry: [\n", "not valid YAML"),
        ("", "", "`entry:` must be MODULE:FUNCTION, not ''"),
    ],
    ids=["import", "syntax", "raises", "name", "module", "entry", "none", "yaml", "empty"],
)
def test_a_flow_that_cannot_be_used(tmp_path: Path, code: str, yaml: str, says: str) -> None:
    folder = flow(tmp_path / "broken", code, yaml)
    with pytest.raises(SetupError) as caught:
        load_target(folder)
    assert says in str(caught.value)
    assert str(folder) in str(caught.value)


def test_a_folder_without_a_flow(tmp_path: Path) -> None:
    with pytest.raises(SetupError) as caught:
        load_target(tmp_path)
    assert str(caught.value) == f"target {tmp_path}: no flow.flex.yaml there"


def test_two_flows_whose_modules_share_a_name(tmp_path: Path) -> None:
    code = "def answer(question):\n    return {'answer': '%s'}\n"
    first, second = (flow(tmp_path / name, code % name) for name in ("one", "two"))
    assert ask(first, question="q") == {"answer": "one"}
    assert ask(second, question="q") == {"answer": "two"}

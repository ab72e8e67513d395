"""From a name, a path or a callable to an evaluator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from assay.errors import PromptyError, SetupError
from assay.judge.limits import Limited
from assay.judge.scripted import ScriptedJudge
from assay.metric.evaluator import PromptEvaluator
from assay.metric.function import FunctionEvaluator
from assay.metric.registry import find, load, shipped

TEXT = "---\noutputs:\n  score: {type: integer}\n---\nuser:\n{{answer}}\n"


def test_a_path(folder: Path) -> None:
    (folder / "mine.prompty").write_text(TEXT)
    for source in ("mine.prompty", folder / "mine.prompty"):
        metric = load(source)
        assert isinstance(metric, PromptEvaluator)
        assert (metric.name, metric.judge) == ("mine", None)


def test_every_shipped_name_loads(folder: Path) -> None:
    assert {"similarity", "groundedness", "relevance"} <= set(shipped())
    for name in shipped():
        assert load(name).name == name


def test_an_edited_copy_in_the_working_folder_wins(folder: Path) -> None:
    (folder / "evaluators").mkdir()
    (folder / "evaluators" / "similarity.prompty").write_text(TEXT)
    (folder / "evaluators" / "mine.prompty").write_text(TEXT)
    assert load("similarity").prompty.text == TEXT
    assert load("mine").name == "mine"
    assert "mine" in shipped()


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("similarty", "did you mean similarity?"),
        ("zzzz", "there are .*similarity"),
        ("gone.prompty", "no such file"),
        ("sub", "is a folder"),
        ("../similarity", "no evaluator"),
    ],
)
def test_a_name_of_nothing_helps(folder: Path, source: str, words: str) -> None:
    (folder / "sub").mkdir()
    with pytest.raises(SetupError, match=words):
        find(source)


def test_a_file_that_is_broken_is_a_prompty_error(folder: Path) -> None:
    (folder / "bad.prompty").write_text("---\na: [\n---\nx")
    with pytest.raises(PromptyError, match=r"bad\.prompty:"):
        load("bad.prompty")


def test_a_judge_is_asked_within_limits(folder: Path) -> None:
    (folder / "mine.prompty").write_text(TEXT)
    metric = load("mine.prompty", judge=ScriptedJudge('{"score": 4}'))
    assert isinstance(metric.judge, Limited)
    assert metric(answer="x")["score"] == 4
    assert load("mine.prompty", judge="ollama:m").judge.name == "ollama:m"
    at = load("mine.prompty", judge="openai:m", base_url="http://localhost:1/v1").judge
    assert at.describe()["url"] == "http://localhost:1/v1/chat/completions"


def test_callables() -> None:
    def exact(answer: str, truth: str) -> bool:
        return answer == truth

    metric = load(exact)
    assert isinstance(metric, FunctionEvaluator)
    assert metric.name == "exact"
    assert load(exact, name="em").name == "em"

    class Object:
        name = "by_name"

        def __call__(self, answer: str) -> int:
            return 1

    assert load(Object()).name == "by_name"


def test_an_evaluator_is_itself_and_takes_another_judge(folder: Path) -> None:
    (folder / "mine.prompty").write_text(TEXT)
    metric = load("mine.prompty")
    assert load(metric) is metric
    other = load(metric, judge=ScriptedJudge('{"score": 2}'))
    assert other(answer="x")["score"] == 2
    assert metric.judge is None


@pytest.mark.parametrize("source", [7, None, ["similarity"]])
def test_anything_else_is_no_evaluator(source: Any) -> None:
    with pytest.raises(SetupError, match="is no evaluator"):
        load(source)

"""Metrics people write in Python: declared callables, classes with `evaluate`, files."""

from __future__ import annotations

import asyncio
import math
import re
from pathlib import Path
from typing import Any

import numpy
import pytest

import assay
import assay.metric.score
from assay.errors import InputError, SetupError
from assay.metric.custom import Row, from_object
from assay.metric.registry import load
from assay.metric.score import Score
from tests.support import runs


@assay.metric(minimum=0, maximum=1, threshold=0.5, direction="decrease")
def wordiness(response: str) -> float:
    """How many words more than ten, as a share.

    The second paragraph is for those who read the source.
    """
    return max(0.0, 1 - 10 / len(response.split()))


def score(source: Any, **values: Any) -> Score:
    found: Score = asyncio.run(load(source).score(values))
    return found


def test_a_declared_callable_stays_what_it_is() -> None:
    assert wordiness("a " * 20) == 0.5
    metric = load(wordiness)
    assert metric.name == "wordiness"
    assert metric.description == "How many words more than ten, as a share."
    output = metric.outputs["wordiness"]
    assert (output.type, output.scale, output.threshold) == ("number", "0..1", 0.5)
    assert metric(response="a " * 40)["wordiness_result"] == "fail"
    assert metric(answer="short")["wordiness_result"] == "pass"


def test_the_decorator_needs_no_argument_and_is_the_package_too() -> None:
    @assay.metric
    def is_short(response: str) -> bool:
        return len(response) < 5

    assert load(is_short).outputs["is_short"].type == "boolean"
    assert score(is_short, response="abc").outputs == {"is_short": True}
    assert load(is_short)(response="long text")["is_short_result"] == "fail"
    assert assay.metric.score.Score is Score  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("declared", "result", "outputs"),
    [
        ({"maximum": 1}, True, {"m": 1}),
        ({"maximum": 1}, numpy.float32(0.5), {"m": 0.5}),
        ({"type": "integer"}, 3.0, {"m": 3}),
        ({"type": "boolean"}, 1, {"m": True}),
        ({}, {"m": 0.5, "other": 7}, {"m": 0.5}),
    ],
)
def test_values_become_what_is_declared(declared: Any, result: Any, outputs: Any) -> None:
    found = score(assay.metric(name="m", **declared)(lambda response: result), response="x")
    assert (found.status, found.outputs) == ("scored", outputs)
    if isinstance(result, dict):
        assert found.evidence == {"other": 7}


@pytest.mark.parametrize(
    ("result", "cause"),
    [(1.5, "out_of_scale"), (-1, "out_of_scale"), (math.nan, "not_a_number"),
     (None, "not_a_number"), ("0.5", "not_a_number"), ({"other": 1}, "not_a_number")],
)  # fmt: skip
def test_a_value_off_the_scale_is_no_score(result: Any, cause: str) -> None:
    declared = assay.metric(name="m", minimum=0, maximum=1)(lambda response: result)
    found = score(declared, response="x")
    assert (found.status, found.cause, found.outputs) == ("invalid", cause, {})


def test_several_outputs() -> None:
    @assay.metric(
        outputs={
            "ok": {"type": "boolean", "is_primary": True},
            "length": {"type": "integer", "minimum": 0},
            "reason": {"type": "string"},
        }
    )
    def checked(response: str) -> dict[str, Any]:
        return {"length": len(response), "ok": True, "reason": "because"}

    found = score(checked, response="abc")
    assert found.outputs == {"ok": True, "length": 3, "reason": "because"}
    assert found.reason == "because"


@pytest.mark.parametrize("wrong", [{"direction": "up"}, {"type": "float"}])
def test_a_declaration_that_is_none(wrong: Any) -> None:
    with pytest.raises(SetupError, match="not '"):
        assay.metric(**wrong)


@pytest.mark.parametrize(
    "result",
    [
        {"m": None, "m_result": "not_applicable", "m_reason": "Not applicable: empty"},
        {"status": "skipped", "reason": "Not applicable: empty"},
    ],
)
def test_a_metric_may_say_that_it_does_not_apply(result: Any) -> None:
    found = score(lambda response: result, response="x")
    assert (found.status, found.message) == ("not_applicable", "Not applicable: empty")

    def refuses(response: str) -> int:
        raise InputError("no formula in it", cause="no_formula")

    assert score(refuses, response="x").cause == "no_formula"


class Overlap:
    """As people write a metric for Embedchain."""

    name = "overlap"

    def evaluate(self, dataset: list[Any]) -> float:
        shares = []
        for row in dataset:
            found = set(row.answer.split())
            shares.append(len(found & set(row.question.split())) / len(found))
        return sum(shares) / len(shares)


def test_a_class_with_evaluate_scores_row_by_row(folder: Path) -> None:
    rows = [{"query": "a b", "response": "a b"}, {"query": "a b", "response": "a c"}]
    overlap: Any = Overlap()
    run = assay.evaluate(rows, [overlap])
    assert [line["outputs"] for line in runs.journal(run.directory)] == [
        {"overlap": 1.0},
        {"overlap": 0.5},
    ]
    whole = Overlap().evaluate([Row(row) for row in rows])
    assert run.metrics["overlap.overlap"]["mean"] == whole
    assert load(Overlap).name == "overlap"


@pytest.mark.parametrize(
    ("result", "outputs"), [([0.5], {"e": 0.5}), ((1,), {"e": 1}), (2, {"e": 2})]
)
def test_what_evaluate_may_return(result: Any, outputs: Any) -> None:
    class Evaluates:
        name = "e"
        inputs = ("words",)

        def evaluate(self, dataset: list[Any]) -> Any:
            assert [row["words"] for row in dataset] == ["x"]
            return result

    assert score(Evaluates(), words="x").outputs == outputs
    assert score(Evaluates()).cause == "missing_input"


def test_more_results_than_rows_are_no_score() -> None:
    class Two:
        def evaluate(self, dataset: list[Any]) -> list[float]:
            return [1, 2]

    assert load(Two()).name == "Two"
    with pytest.raises(ValueError, match="returned 2 results for one row"):
        score(Two(), query="x")


def test_a_row_knows_the_names_of_the_libraries() -> None:
    row = Row({"query": "q", "response": "r", "context": ["c"], "extra": 1})
    assert (row.question, row.answer, row.contexts, row.extra) == ("q", "r", ["c"], 1)
    assert row.ground_truth is None
    with pytest.raises(AttributeError, match="the row has no 'missing'; it has query"):
        _ = row.missing


def test_what_is_no_metric() -> None:
    class NeedsMore:
        def __init__(self, more: int) -> None: ...

        def __call__(self, response: str) -> int:
            return 1

    with pytest.raises(SetupError, match="give an object of it"):
        load(NeedsMore)
    with pytest.raises(SetupError, match="is no evaluator"):
        from_object(3)


FILE = '''
"""Two metrics."""
import assay
from beside import LIMIT


@assay.metric(minimum=0, maximum=1, threshold=0.5)
def short(response: str) -> float:
    return min(1.0, LIMIT / len(response))


class Counter:
    def __call__(self, response):
        return len(response)


def _helper():
    return 1
'''


@pytest.fixture
def checks(folder: Path) -> Path:
    (folder / "beside.py").write_text("LIMIT = 4\n")
    (folder / "checks.py").write_text(FILE)
    return folder


def test_a_metric_of_a_file(checks: Path) -> None:
    assert score("checks.py:short", response="12345678").outputs == {"short": 0.5}
    assert score("checks.py:Counter", response="abc").outputs == {"Counter": 3}
    before = load("checks.py:short").fingerprint
    assert load("checks.py:short").fingerprint == before
    (checks / "checks.py").write_text(FILE + "\n# changed\n")
    assert load("checks.py:short").fingerprint != before


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("gone.py:short", r"no such file: gone\.py"),
        ("checks.py:shrt", "has no 'shrt'; it has short, Counter$"),
        ("broken.py:x", "broken.py cannot be imported: ZeroDivisionError"),
    ],
)
def test_a_file_that_cannot_be_used(checks: Path, source: str, words: str) -> None:
    (checks / "broken.py").write_text("1 / 0\n")
    with pytest.raises(SetupError, match=words):
        load(source)


def test_on_the_command_line(checks: Path) -> None:
    data = runs.write_lines(checks / "data.jsonl", [{"answer": "1234"}, {"answer": "12345678"}])
    done = runs.command("run", "checks.py:short", data, "--fail-under", "short=0.7", cwd=checks)
    assert done.returncode == 0, done.stderr
    again = runs.command("run", "--resume", runs.only_run(checks), cwd=checks)
    assert again.returncode == 0, again.stderr


@pytest.mark.usefixtures("folder")
def test_the_examples_of_the_documentation() -> None:
    text = (Path(__file__).parents[2] / "docs" / "custom-metrics.md").read_text("utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 4
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, "custom-metrics.md", "exec"), names)

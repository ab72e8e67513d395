"""Summaries, each figure computed by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

from assay.judge.prices import Prices
from assay.run.spending import Spending
from assay.run.summary import Tally

SCALE = {"type": "integer", "minimum": 1, "maximum": 5}
DECLARED = {"on_topic": {"scored": ["score"], "outputs": {"score": {**SCALE, "threshold": 3}}}}


def scored(value: Any, *, iteration: int = 0) -> dict[str, Any]:
    return record("scored", iteration=iteration, outputs={"score": value})


def record(status: str, cause: str | None = None, **more: Any) -> dict[str, Any]:
    base = {"evaluator": "on_topic", "iteration": 0, "outputs": {}, "calls": []}
    return {**base, "status": status, "cause": cause, **more}


def summary(*rows: list[dict[str, Any] | None], declared: Any = None) -> dict[str, Any]:
    tally = Tally(declared or DECLARED, Spending(Prices(), {}))
    for row in rows:
        tally.add(row)
    return tally.as_dict()


def metric(*rows: list[dict[str, Any] | None]) -> dict[str, Any]:
    found: dict[str, Any] = summary(*rows)["metrics"]["on_topic.score"]
    return found


def test_one_score_a_row() -> None:
    found = metric([scored(5)], [scored(3)], [scored(1)])
    assert found["mean"] == 3
    assert found["sd"] == 2
    assert found["pass_rate"] == pytest.approx(2 / 3)
    assert (found["n"], found["scored"]) == (3, 3)
    # 3 -+ 4.302653 * 2 / sqrt(3)
    assert found["ci95"] == pytest.approx([-1.968275, 7.968275], abs=1e-5)


def test_rows_without_a_score_are_counted_and_enter_no_mean() -> None:
    # A value that stands in a failed row's line must not be read either.
    found = metric(
        [scored(5)],
        [record("error", "rate_limited", outputs={"score": 1})],
        [record("not_applicable", "missing_input")],
        [scored(3)],
        [record("invalid", "unparseable", outputs={"score": 1})],
        [record("refused", "content_filter")],
        [record("error", "rate_limited")],
    )
    assert found["mean"] == 4
    assert found["pass_rate"] == 1
    counts = ("n", "scored", "not_applicable", "invalid", "refused", "error")
    assert [found[name] for name in counts] == [7, 2, 1, 1, 1, 2]
    assert found["causes"] == {
        "rate_limited": 2,
        "missing_input": 1,
        "unparseable": 1,
        "content_filter": 1,
    }


def test_nothing_scored_has_no_mean() -> None:
    found = metric([record("error", "timeout")], [record("invalid", "empty")])
    assert found["mean"] is None
    assert found["sd"] is None
    assert found["ci95"] is None
    assert found["pass_rate"] is None
    assert (found["n"], found["scored"], found["error"], found["invalid"]) == (2, 0, 1, 1)


def test_a_run_without_rows_still_names_its_metric() -> None:
    found = metric()
    assert (found["mean"], found["n"]) == (None, 0)


def test_a_row_counts_once_however_often_it_was_judged() -> None:
    found = metric(
        [scored(1), scored(2, iteration=1), scored(3, iteration=2)],
        [scored(4), scored(4, iteration=1), scored(4, iteration=2)],
    )
    assert found["mean"] == 3  # of the row means 2 and 4
    assert found["sd"] == pytest.approx(math.sqrt(2))
    assert (found["n"], found["scored"]) == (2, 2)
    assert found["pass_rate"] == 0.5  # one pass of three is no majority
    # Within rows: squares (1 + 0 + 1) + 0 over 2 + 2 degrees of freedom.
    assert found["within_sd"] == pytest.approx(math.sqrt(0.5))
    assert found["flip_rate"] == 0.5  # the first row passed and failed, the second did not


def test_a_tie_between_iterations_is_a_fail() -> None:
    found = metric([scored(2), scored(3, iteration=1)])
    assert found["pass_rate"] == 0


def test_a_rows_mean_is_over_its_scored_iterations() -> None:
    found = metric(
        [
            scored(2),
            record("error", "timeout", iteration=1),
            scored(4, iteration=2),
        ],
        [record("invalid", "empty"), record("error", "timeout", iteration=1), None],
        [scored(5), record("refused", "refusal", iteration=1), None],
    )
    assert found["mean"] == 4  # of 3 and 5
    # A row without any scored iteration has the worst of its statuses.
    counts = ("n", "scored", "invalid", "refused", "error")
    assert [found[name] for name in counts] == [3, 2, 0, 0, 1]
    assert found["causes"] == {"timeout": 1}
    assert found["within_sd"] == pytest.approx(math.sqrt(2))  # of 2 and 4 alone
    assert found["flip_rate"] == 1


def test_one_iteration_says_nothing_about_repeats() -> None:
    assert not {"within_sd", "flip_rate"} & metric([scored(5)]).keys()


def test_a_boolean_output_has_a_share() -> None:
    declared = {"on_topic": {"scored": ["score"], "outputs": {"score": {"type": "boolean"}}}}
    values: list[list[Any]] = [[scored(value)] for value in (True, False, True, True)]
    found = summary(*values, declared=declared)["metrics"]["on_topic.score"]
    assert (found["mean"], found["pass_rate"]) == (0.75, 0.75)


def test_lower_may_be_better() -> None:
    output = {**SCALE, "threshold": 2, "desirable_direction": "decrease"}
    declared = {"on_topic": {"scored": ["score"], "outputs": {"score": output}}}
    values: list[list[Any]] = [[scored(value)] for value in (1, 2, 3, 4)]
    assert summary(*values, declared=declared)["metrics"]["on_topic.score"]["pass_rate"] == 0.5


def test_without_a_threshold_nothing_passes_or_fails() -> None:
    declared = {"on_topic": {"scored": ["score"], "outputs": {"score": SCALE}}}
    found = summary([scored(5)], [scored(1)], declared=declared)["metrics"]["on_topic.score"]
    assert (found["mean"], found["pass_rate"]) == (3, None)


def test_several_outputs_and_evaluators_stand_apart() -> None:
    outputs = {"score": SCALE, "depth": {**SCALE, "threshold": 2}}
    declared = {
        "on_topic": {"scored": ["score", "depth"], "outputs": outputs},
        "other": {"scored": ["other"]},
    }
    first = record("scored", outputs={"score": 4, "depth": 1})
    second = {**record("scored", outputs={"other": 0.25}), "evaluator": "other"}
    third = {**record("error", "timeout"), "evaluator": "other"}
    found = summary([first, second], [first, third], declared=declared)["metrics"]
    assert list(found) == ["on_topic.score", "on_topic.depth", "other.other"]
    assert [found[name]["mean"] for name in found] == [4, 1, 0.25]
    assert [found[name]["pass_rate"] for name in found] == [None, 0, None]
    assert [found[name]["error"] for name in found] == [0, 0, 1]


def test_a_metric_that_declares_nothing_is_summed_over_what_is_a_number() -> None:
    declared: dict[str, Any] = {"on_topic": {"scored": []}}
    line = record("scored", outputs={"f1": 0.5, "note": "text", "exact": True})
    found = summary([line], declared=declared)["metrics"]
    assert {name: entry["mean"] for name, entry in found.items()} == {
        "on_topic.f1": 0.5,
        "on_topic.exact": 1.0,
    }


def test_tokens_and_calls_are_those_of_every_call() -> None:
    call = {"usage": {"prompt_tokens": 50, "completion_tokens": 12, "reasoning_tokens": 5}}
    found = summary(
        [{**scored(5), "calls": [call, call]}],
        [{**record("invalid", "empty"), "calls": [call]}],
        [record("error", "timeout")],
    )
    assert found["calls"] == 3
    assert found["cost"] is None  # of a model nobody knows
    assert found["tokens"] == {"prompt": 150, "completion": 36, "reasoning": 15, "total": 186}


def test_the_cost_is_that_of_every_call_that_was_paid_for() -> None:
    prices = Prices({"prices": {"our-model": {"input": 2.0, "output": 10.0}}})
    tally = Tally(DECLARED, Spending(prices, {"on_topic": "openai:our-model"}))
    usage = {"prompt_tokens": 1_000, "completion_tokens": 100}
    paid, kept = {"usage": usage}, {"usage": usage, "cached": True}
    for _ in range(3):
        tally.add([{**scored(5), "calls": [paid, kept]}])
    found = tally.as_dict()
    # Three times 1,000 tokens at 2 dollars and 100 at 10 dollars a million.
    assert found["cost"] == pytest.approx(3 * (0.002 + 0.001))
    assert (found["calls"], found["cached_calls"]) == (6, 3)
    assert found["tokens"]["total"] == 3_300

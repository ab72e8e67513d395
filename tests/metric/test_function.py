"""Any callable is an evaluator."""

from __future__ import annotations

import asyncio
import functools
import math
import threading
from typing import Any, overload

import numpy
import pytest

from assay.metric.function import FunctionEvaluator
from assay.metric.registry import load
from assay.metric.score import Score


def score(function: Any, **values: Any) -> Score:
    return asyncio.run(FunctionEvaluator(function, "m").score(values))


def length(response: str, limit: int = 10) -> float:
    """A metric as people write one."""
    return min(1.0, len(response) / limit)


def test_inputs_are_the_parameters() -> None:
    def metric(query: str, *rest: Any, response: str, limit: int = 1, **more: Any) -> int:
        return 1

    found = FunctionEvaluator(metric, "m").inputs
    assert {name: item.required for name, item in found.items()} == {
        "query": True,
        "response": True,
        "limit": False,
    }


@pytest.mark.parametrize(
    ("result", "outputs"),
    [
        (3, {"m": 3}),
        (0, {"m": 0}),
        (0.5, {"m": 0.5}),
        (True, {"m": True}),
        ({"a": 1, "b": 0.5}, {"a": 1, "b": 0.5}),
        (numpy.float64(0.5), {"m": 0.5}),
        (numpy.float32(0.5), {"m": 0.5}),
        (numpy.int64(3), {"m": 3}),
        ({"coherence": 4, "coherence_score": 4.0, "coherence_passed": True,
          "coherence_result": "pass", "coherence_threshold": 3, "coherence_reason": "why",
          "coherence_status": "completed", "coherence_prompt_tokens": 90,
          "coherence_properties": {"n": 1}}, {"coherence": 4}),
        ({"violence": "Very low", "violence_score": 0, "violence_result": "pass",
          "violence_threshold": 3, "violence_reason": "x"}, {"violence": 0}),
        ({"score": 4, "reason": "x", "threshold": 3, "passed": True}, {"score": 4}),
        ({"gpt_similarity": 5.0}, {"similarity": 5.0}),
        ({"a_label": True, "a_reason": "x"}, {"a_label": True}),
    ],
)  # fmt: skip
def test_what_a_callable_may_return(result: Any, outputs: dict[str, Any]) -> None:
    found = score(lambda response: result, response="x")
    assert (found.status, found.outputs) == ("scored", outputs)
    assert all(isinstance(value, bool | int | float) for value in found.outputs.values())


@pytest.mark.parametrize(
    "result", [None, math.nan, math.inf, {}, {"a": "text"}, {"a": 1, "b": None}, "text", [1]]
)
def test_what_is_no_number_is_no_score(result: Any) -> None:
    found = score(lambda response: result, response="x")
    assert (found.status, found.cause, found.outputs) == ("invalid", "not_a_number", {})


@pytest.mark.parametrize("result", [{"m": 1, "m_reason": "because"}, {"m": 1, "reason": "because"}])
def test_a_reason_is_kept(result: dict[str, Any]) -> None:
    assert score(lambda response: result, response="x").reason == "because"


async def later(response: str) -> int:
    return len(response)


class Callable_:
    async def __call__(self, response: str) -> int:
        return len(response)


@pytest.mark.parametrize(
    "function",
    [later, Callable_(), functools.partial(later), lambda response: later(response)],
    ids=["async", "object", "partial", "lambda"],
)
def test_every_kind_of_callable(function: Any) -> None:
    assert score(function, response="four").outputs == {"m": 4}


def test_missing_and_empty_values_are_not_applicable() -> None:
    assert score(length).cause == "missing_input"
    assert score(length, response=" ").cause == "empty_input"
    assert score(length, response=None).status == "not_applicable"


def test_an_error_of_the_callable_is_not_hidden() -> None:
    def broken(response: str) -> int:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        score(broken, response="x")


def test_called_directly_it_returns_flat_keys() -> None:
    evaluator = load(length)
    found = evaluator(response="12345", unused=1)
    assert evaluator.name == "length"
    assert found["length"] == found["length_score"] == 0.5
    assert found["length_result"] is None
    assert found["status"] == "scored"
    assert evaluator(answer="12345")["length"] == 0.5


def test_the_fingerprint_follows_the_source() -> None:
    def one(response: str) -> int:
        return 1

    def two(response: str) -> int:
        return 2

    def prints(function: Any) -> str:
        return FunctionEvaluator(function, "m").fingerprint

    assert prints(one) == prints(one)
    assert prints(one) != prints(two)


def test_verdict_threshold_and_tokens_are_kept_with_the_row() -> None:
    told = {
        "fluency": 4,
        "fluency_result": "pass",
        "fluency_threshold": 3,
        "fluency_properties": {"prompt_tokens": 50, "completion_tokens": 12, "model": "gpt"},
    }
    found = score(lambda response: told, response="x")
    assert found.evidence == {"fluency_result": "pass", "fluency_threshold": 3}
    (call,) = found.calls
    assert (call.prompt, call.usage.total_tokens, call.model) == ("m", 62, "gpt")


def test_each_reason_is_told_with_its_metric() -> None:
    told = {"a": 1, "a_reason": "one", "b": 2, "b_reason": "two", "c": 3}
    assert score(lambda response: told, response="x").reason == "a: one\nb: two"


def test_a_skipped_metric_says_why() -> None:
    told = {"m": None, "m_result": "not_applicable", "m_status": "skipped", "m_reason": "empty"}
    found = score(lambda response: told, response="x")
    assert (found.status, found.cause, found.message) == (
        *("not_applicable", "not_applicable"),
        "empty",
    )


def test_rows_wait_for_a_service_together() -> None:
    """Each call returns when 20 of them are under way: fewer threads would wait for ever."""
    together = threading.Barrier(20)

    def asks(response: str) -> int:
        together.wait(30)
        return 1

    async def all_at_once() -> list[Score]:
        evaluator = FunctionEvaluator(asks, "m")
        return await asyncio.gather(*(evaluator.score({"response": "x"}) for _ in range(40)))

    assert {found.status for found in asyncio.run(all_at_once())} == {"scored"}


class Overloaded:
    """Declares its inputs as azure-ai-evaluation's evaluators do."""

    @overload
    def __call__(self, *, response: str, ground_truth: str) -> dict[str, float]: ...

    @overload
    def __call__(self, *, conversation: dict[str, Any]) -> dict[str, float]: ...

    def __call__(self, *args: Any, **kwargs: Any) -> dict[str, float]:
        return {"same": float(kwargs["response"] == kwargs["ground_truth"])}


def test_the_first_overload_names_the_inputs() -> None:
    evaluator = FunctionEvaluator(Overloaded(), "overloaded")
    assert list(evaluator.inputs) == ["response", "ground_truth"]
    assert evaluator(response="a", ground_truth="a")["same"] == 1.0


class AllOptional:
    """As azure's protected-material evaluator does it."""

    @overload
    def __call__(self, *, query: str, response: str) -> dict[str, float]: ...

    @overload
    def __call__(self, *, conversation: dict[str, Any]) -> dict[str, float]: ...

    def __call__(self, *, query: Any = None, response: Any = None, **kwargs: Any) -> Any:
        return {"x": 1}


def test_a_callable_that_asks_for_nothing_is_taken_by_its_overload() -> None:
    found = FunctionEvaluator(AllOptional(), "m").inputs
    assert {name: item.required for name, item in found.items()} == {
        "query": True,
        "response": True,
    }

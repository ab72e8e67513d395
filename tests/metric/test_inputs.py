"""A row's values against what an evaluator declares."""

from __future__ import annotations

import math
from typing import Any

import pytest

from assay.errors import InputError
from assay.metric.inputs import bind, is_absent, is_empty
from assay.prompty import Input


def cause(inputs: dict[str, Input], values: dict[str, Any]) -> tuple[str, str]:
    with pytest.raises(InputError) as caught:
        bind(inputs, values)
    return caught.value.cause, str(caught.value)


def one(kind: str, value: Any) -> Any:
    return bind({"x": Input("x", kind)}, {"x": value})["x"]


@pytest.mark.parametrize(
    ("kind", "value", "bound"),
    [
        ("string", "a", "a"),
        ("string", " a ", " a "),
        ("string", "None", "None"),
        ("string", 0, "0"),
        ("string", False, "false"),
        ("string", 1.5, "1.5"),
        ("string", ["a", "b"], "a\n\nb"),
        ("string", ["a", 1], '["a", 1]'),
        ("string", {"k": "é"}, '{"k": "é"}'),
        ("integer", 3, 3),
        ("integer", 12345678901234567890, 12345678901234567890),
        ("integer", "12345678901234567890", 12345678901234567890),
        ("integer", " -3 ", -3),
        ("integer", 3.0, 3),
        ("number", 1.5, 1.5),
        ("number", "1.5", 1.5),
        ("number", 2, 2),
        ("boolean", True, True),
        ("boolean", "False", False),
        ("array", ["a", None, "b", math.nan], ["a", "b"]),
        ("array", ("a",), ["a"]),
        ("array", "a", ["a"]),
        ("object", {"a": 1}, {"a": 1}),
        ("thread", [{"role": "user"}], [{"role": "user"}]),
        ("any", {"a": [1]}, {"a": [1]}),
        ("any", 0, 0),
        ("any", False, False),
    ],
)
def test_values_arrive_in_the_declared_type(kind: str, value: Any, bound: Any) -> None:
    found = one(kind, value)
    assert found == bound
    assert type(found) is type(bound)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("integer", "x"),
        ("integer", "1.5"),
        ("integer", "1_000"),
        ("integer", 1.5),
        ("integer", True),
        ("integer", math.inf),
        ("integer", "9" * 5000),
        ("number", "x"),
        ("number", "nan"),
        ("number", "1_0"),
        ("number", math.inf),
        ("number", True),
        ("boolean", 1),
        ("boolean", "yes"),
        ("array", 3),
        ("array", {"a": 1}),
        ("object", "{}"),
        ("object", [1]),
        ("thread", "hi"),
        ("string", math.inf),
        ("string", {"a": math.nan}),
    ],
)
def test_a_value_of_another_type_is_said_so(kind: str, value: Any) -> None:
    found, message = cause({"x": Input("x", kind)}, {"x": value})
    assert found == "wrong_input_type"
    assert "input x" in message
    assert len(message) < 200


def test_the_message_names_the_type_wanted_and_found() -> None:
    assert cause({"n": Input("n", "integer")}, {"n": "many"})[1] == (
        "input n must be integer, not str (many)"
    )


TWO = {"a": Input("a", "string"), "b": Input("b", "string")}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, ("missing_input", "no value for input a, b")),
        ({"a": "x"}, ("missing_input", "no value for input b")),
        ({"a": None, "b": "x"}, ("missing_input", "no value for input a (null)")),
        ({"a": math.nan, "b": "x"}, ("missing_input", "no value for input a (null)")),
        ({"a": "", "b": " \t\n"}, ("empty_input", "empty input a, b")),
        ({"a": [], "b": ["", None]}, ("empty_input", "empty input a, b")),
        ({"a": "", "b": None}, ("missing_input", "no value for input b (null)")),
    ],
)
def test_every_gap_is_named_at_once(values: dict[str, Any], expected: tuple[str, str]) -> None:
    assert cause(TWO, values) == expected


def test_optional_inputs_may_be_missing_or_empty() -> None:
    inputs = {"a": Input("a", "string", required=False), "b": Input("b", required=False)}
    assert bind(inputs, {"a": "", "b": None}) == {"a": ""}
    assert bind(inputs, {}) == {}


def test_columns_that_are_no_input_are_left_out() -> None:
    assert bind({"a": Input("a")}, {"a": 1, "z": 2}) == {"a": 1}


@pytest.mark.parametrize("value", [0, False, "", [], {}])
def test_falsy_values_are_values(value: Any) -> None:
    assert not is_absent(value)


@pytest.mark.parametrize(
    ("value", "empty"),
    [("", True), (" \u3000", True), ([], True), ([[], ""], True), ({}, True), ([None], True),
     ("0", False), (0, False), (False, False), ([0], False), ({"a": None}, False)],
)  # fmt: skip
def test_what_is_empty(value: Any, empty: bool) -> None:
    assert is_empty(value) is empty

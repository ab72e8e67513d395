"""Declared inputs, and outputs with their scale, in every spelling."""

from __future__ import annotations

from typing import Any

import pytest

from assay.errors import PromptyError
from assay.prompty import Input, Output, loads
from assay.prompty.fields import MISSING, read_inputs, read_outputs, type_name


@pytest.mark.parametrize(
    ("declared", "name"),
    [
        ("string", "string"),
        ("Str", "string"),
        ("text", "string"),
        ("Integer", "integer"),
        ("int", "integer"),
        ("ordinal", "integer"),
        ("float", "number"),
        ("continuous", "number"),
        ("bool", "boolean"),
        ("List", "array"),
        ("List[Chapter]", "array"),
        ("list<string>", "array"),
        ("Dict", "object"),
        ("json_object", "object"),
        ("thread", "thread"),
        ("image", "image"),
        ("chapter", "any"),
        (None, "any"),
        (7, "any"),
    ],
)
def test_every_spelling_of_a_type(declared: Any, name: str) -> None:
    assert type_name(declared) == name


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"type": "string"}, Input("x", "string")),
        ({"kind": "string", "description": "d"}, Input("x", "string", description="d")),
        ("string", Input("x", "string")),
        ("Jane", Input("x", sample="Jane")),
        (3, Input("x", sample=3)),
        (["a"], Input("x", sample=["a"])),
        (None, Input("x")),
        ({"default": ""}, Input("x", required=False, default="")),
        ({"default": 0}, Input("x", required=False, default=0)),
        ({"default": False}, Input("x", required=False, default=False)),
        ({"default": None}, Input("x", required=False, default=None)),
        ({"type": "int", "sample": 4}, Input("x", "integer", sample=4)),
        ({"example": "e"}, Input("x", sample="e")),
        ({"optional": True}, Input("x", required=False)),
        ({"required": False}, Input("x", required=False)),
        ({"required": True}, Input("x")),
        ({"type": ["string", "null"]}, Input("x")),
        ({}, Input("x")),
    ],
)
def test_every_form_of_an_input(spec: Any, expected: Input) -> None:
    assert read_inputs({"x": spec}) == {"x": expected}


def test_inputs_as_a_list() -> None:
    found = read_inputs([{"name": "a", "kind": "string"}, {"name": "b", "default": 1}, "c"])
    assert found == {
        "a": Input("a", "string"),
        "b": Input("b", required=False, default=1),
        "c": Input("c"),
    }


def test_a_default_of_nothing_is_a_default_and_no_default_is_none() -> None:
    found = read_inputs({"a": {"default": None}, "b": {}})
    assert found["a"].default is None
    assert found["b"].default is MISSING


@pytest.mark.parametrize("declared", [7, "text", [1], [["a"]]])
def test_other_shapes_are_errors(declared: Any) -> None:
    with pytest.raises(PromptyError, match="must be a mapping or a list"):
        read_inputs(declared)


SCALED = Output(
    "x",
    "integer",
    minimum=0,
    maximum=2,
    levels={0: "no", 1: None, 2: "yes"},
)


@pytest.mark.parametrize(
    "spec",
    [
        {"levels": {0: "no", 1: None, 2: "yes"}},
        {"levels": {"0": "no", "1": None, "2": "yes"}, "type": "int"},
        {"enum": [0, 1, 2], "enumDescriptions": ["no", None, "yes"]},
        {"enumValues": [0, 1, 2], "enumDescriptions": {"0": "no", "2": "yes"}},
        {
            "anyOf": [
                {"const": 0, "description": "no"},
                {"const": 1},
                {"const": 2, "description": "yes"},
            ]
        },
        {
            "oneOf": [
                {"enum": [0], "description": "no"},
                {"enum": [1]},
                {"enumValues": [2], "description": "yes"},
            ]
        },
    ],
)
def test_levels_in_every_spelling(spec: dict[str, Any]) -> None:
    read = read_outputs({"x": {**spec, "min_value": 0, "max_value": 2}})["x"]
    assert read == SCALED
    assert list(read.levels) == [0, 1, 2]
    assert read.enum == (0, 1, 2)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2], "integer"),
        ([0.5, 1], "number"),
        ([True, False], "boolean"),
        (["a", "b"], "string"),
        ([1, "a"], "string"),
    ],
)
def test_a_type_that_is_not_declared_follows_from_the_levels(values: Any, kind: str) -> None:
    output = read_outputs({"x": {"enum": values}})["x"]
    assert output.type == kind
    assert output.scored


def test_levels_stand_in_the_declared_type() -> None:
    found = read_outputs(
        {
            "a": {"type": "string", "levels": {1: "low", 2: "high"}},
            "b": {"type": "boolean", "levels": {"true": "t", "false": "f"}},
            "c": {"type": "number", "levels": {"0.5": "half"}},
        }
    )
    assert [list(output.levels) for output in found.values()] == [["1", "2"], [True, False], [0.5]]


def test_null_among_the_levels_or_types_means_nullable() -> None:
    by_enum = read_outputs({"x": {"enum": [1, 2, None]}})["x"]
    by_type = read_outputs({"x": {"type": ["integer", "null"]}})["x"]
    assert (by_enum.nullable, by_enum.type, by_enum.enum) == (True, "integer", (1, 2))
    assert (by_type.nullable, by_type.type) == (True, "integer")


@pytest.mark.parametrize("key", ["minimum", "maximum", "threshold"])
def test_a_scale_without_a_type_is_a_number(key: str) -> None:
    assert read_outputs({"x": {key: 1}})["x"].type == "number"


@pytest.mark.parametrize(
    "spec",
    [
        {"minimum": "low"},
        {"maximum": True},
        {"threshold": [1]},
        {"type": "string", "minimum": 0},
        {"type": "array", "maximum": 3},
        {"desirable_direction": "up"},
        {"type": "integer", "levels": {"low": "text"}},
        {"type": "integer", "levels": {1.5: "text"}},
        {"enum": [[1], [2]]},
        {"type": "array", "enum": ["a"]},
    ],
)
def test_a_scale_that_cannot_hold_is_an_error_that_names_the_output(spec: dict[str, Any]) -> None:
    with pytest.raises(PromptyError, match="output `mark`"):
        read_outputs({"mark": spec})


@pytest.mark.parametrize("spec", [{"anyOf": 3}, {"oneOf": "x"}, {"enum": "x"}, {"anyOf": [1]}])
def test_words_used_in_another_sense_declare_no_levels(spec: dict[str, Any]) -> None:
    assert read_outputs({"x": spec})["x"].levels == {}


def test_outputs_as_a_list_and_as_a_schema() -> None:
    expected = {"a": Output("a", "string"), "b": Output("b", "integer")}
    assert read_outputs([{"name": "a", "kind": "string"}, {"name": "b", "kind": "int"}]) == expected
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}
    assert read_outputs(schema) == expected


@pytest.mark.parametrize(
    ("output", "value", "result"),
    [
        (Output("x", "integer", threshold=2), 2, "pass"),
        (Output("x", "integer", threshold=2), 1, "fail"),
        (Output("x", "integer", threshold=0), 0, "pass"),
        (Output("x", "number", threshold=0.2, direction="decrease"), 0.2, "pass"),
        (Output("x", "number", threshold=0.2, direction="decrease"), 0.3, "fail"),
        (Output("x", "integer", threshold=2, direction="neutral"), 3, None),
        (Output("x", "integer"), 3, None),
        (Output("x", "integer", threshold=2), None, None),
        (Output("x", "boolean"), True, "pass"),
        (Output("x", "boolean"), False, "fail"),
        (Output("x", "boolean", direction="decrease"), False, "pass"),
        (Output("x", "boolean", direction="decrease"), True, "fail"),
        (Output("x", "string", levels={"a": None}, threshold=1), "a", None),
    ],
)
def test_pass_and_fail(output: Output, value: Any, result: str | None) -> None:
    assert output.result(value) == result


@pytest.mark.parametrize(
    ("output", "scale"),
    [
        (Output("x", "integer", minimum=0, maximum=3), "0..3"),
        (Output("x", "number", minimum=0.5), "0.5.."),
        (Output("x", "string", levels={"yes": None, "no": None}), "one of yes, no"),
        (Output("x", "string"), ""),
    ],
)
def test_the_scale_in_words(output: Output, scale: str) -> None:
    assert output.scale == scale


def test_the_primary_output_is_the_marked_one_else_the_first_scored() -> None:
    body = "---\nuser:\nhi\n"
    first = loads(f"---\noutputs:\n  reason: string\n  a: integer\n  b: integer\n{body}")
    marked = loads("---\noutputs:\n  a: integer\n  b: {type: integer, is_primary: true}\n" + body)
    none = loads(f"---\noutputs:\n  reason: string\n{body}")
    assert first.primary is not None
    assert first.primary.name == "a"
    assert marked.primary is not None
    assert marked.primary.name == "b"
    assert none.primary is None


def test_a_wrong_scale_says_where_in_the_file() -> None:
    text = "---\nname: x\ninputs:\n  q: string\noutputs:\n  m: {type: int, minimum: low}\n---\nhi\n"
    with pytest.raises(PromptyError) as caught:
        loads(text)
    assert caught.value.line == 5
    assert "output `m`: minimum must be a number, not 'low'" in str(caught.value)

"""The published JSON Schema accepts what loads and rejects what cannot mean anything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from assay.prompty import load, loads
from assay.prompty.check.schema import schema, schema_text
from tests.prompty.check.helpers import FRONT, metric

ROOT = Path(__file__).parents[3]


def validate(front: Any) -> None:
    # JSON has only text as keys, where YAML's levels have numbers.
    jsonschema.Draft202012Validator(schema()).validate(json.loads(json.dumps(front)))


def test_the_schema_is_a_schema_of_the_draft_it_names() -> None:
    loaded = json.loads(schema_text())
    assert loaded["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema.Draft202012Validator.check_schema(loaded)
    jsonschema.Draft7Validator.check_schema(loaded)  # what VS Code's YAML extension reads


FILES = sorted([*ROOT.glob("evaluators/*.prompty"), *ROOT.glob("flows/**/*.prompty")])


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_shipped_files_are_valid(file: Path) -> None:
    validate(load(file).front)


@pytest.mark.parametrize(
    "front",
    [
        "model: gpt-4o",
        "model:\ninputs:\noutputs:",
        "model: ${file:model.json}\ninputs: ${file:inputs.json}",
        "inputs: [question, {name: a, kind: string}]",
        "inputs: {question: Why, n: 3, list: [1], none: null}",
        "outputs: {score: int}",
        "outputs: [{name: score, kind: integer, minimum: 0}]",
        "outputs: {v: {anyOf: [{const: 1, description: low}, {const: 2}]}}",
        "outputs: {v: {enum: [a, b], enumDescriptions: [x, y]}}",
        "outputs: {type: object, properties: {a: {type: string}}, required: [a]}",
        "template: jinja2",
        "template: {format: {kind: mustache}, parser: {kind: prompty}}",
        "anything: {at: all}",
    ],
)
def test_every_dialect_is_valid(front: str) -> None:
    validate(yaml.safe_load(front))


@pytest.mark.parametrize(
    "front",
    [
        {"outputs": {"a": {"minimum": "low"}}},
        {"outputs": {"a": {"threshold": [1]}}},
        {"outputs": {"a": {"desirable_direction": "up"}}},
        {"outputs": {"a": {"is_primary": "yes"}}},
        {"outputs": {"a": {"levels": [1, 2]}}},
        {"outputs": {"a": {"enum": "x"}}},
        {"outputs": [{"name": "a", "maximum": "high"}]},
        {"outputs": 3},
        {"inputs": 3},
        {"inputs": [3]},
        {"model": {"parameters": {"temperature": "hot"}}},
        {"model": {"parameters": {"max_tokens": 0}}},
        {"model": ["gpt-4o"]},
        {"tags": 3},
        {"name": ["a"]},
        ["a list"],
    ],
)
def test_wrong_front_matter_is_invalid(front: Any) -> None:
    with pytest.raises(jsonschema.ValidationError):
        validate(front)


def test_our_words_are_completed() -> None:
    words = set(schema()["$defs"]["output"]["properties"])
    words_of_design = {
        "type minimum maximum min_value max_value threshold desirable_direction is_primary "
        "description levels enum enumValues enumDescriptions anyOf oneOf required nullable"
    }
    assert set(words_of_design.pop().split()) <= words
    validate(loads(metric(FRONT)).front)

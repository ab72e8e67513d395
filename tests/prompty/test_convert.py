"""Conversion between dialects: settings carried over, everything else byte for byte."""

from __future__ import annotations

import pytest

from assay.errors import PromptyError
from assay.prompty import loads
from assay.prompty.convert import convert

CLASSIC = """---
# who made this
name: Tone   # the title
model:
  api: chat
  configuration:
    type: azure_openai   # our resource
    azure_deployment: judge
    azure_endpoint: ${env:ENDPOINT}
    api_key: ${env:KEY}
    api_version: "2024-10-21"
    region: "#1"
  # how
  parameters:
    temperature: 0
    max_tokens: 100
    top_p: 0.5
    stop: [END]
    response_format: {type: json_object}

# what comes in
inputs:
  answer: {type: string, description: "yes"}
  times: {type: number, default: 0}
  passages: {type: list, sample: [a]}
outputs:
  tone:
    type: integer
    minimum: 0
    maximum: 2
    levels:
      0: rude
      2: "1e5"
template: jinja2
odd: [kept,   as it is]
---
system:
  Judge {{ answer }} {{times}}\t{{passages}}
---
not front matter: x   \nlast line without newline"""


def test_classic_to_v2() -> None:
    front = loads(convert(CLASSIC, "v2").text).front
    assert front["model"] == {
        "id": "judge",
        "provider": "foundry",
        "apiType": "chat",
        "connection": {
            "kind": "key",
            "endpoint": "${env:ENDPOINT}",
            "apiKey": "${env:KEY}",
            "apiVersion": "2024-10-21",
            "region": "#1",
        },
        "options": {
            "temperature": 0,
            "maxOutputTokens": 100,
            "topP": 0.5,
            "stopSequences": ["END"],
            "additionalProperties": {"response_format": {"type": "json_object"}},
        },
    }
    assert front["inputs"] == [
        {"name": "answer", "kind": "string", "description": "yes"},
        {"name": "times", "kind": "float", "default": 0},
        {"name": "passages", "kind": "array", "example": ["a"]},
    ]
    assert front["outputs"] == [
        {
            "name": "tone",
            "kind": "integer",
            "minimum": 0,
            "maximum": 2,
            "levels": {0: "rude", 2: "1e5"},
        }
    ]
    assert front["template"] == {"format": {"kind": "jinja2"}, "parser": {"kind": "prompty"}}


def test_what_is_not_converted_stays_byte_for_byte() -> None:
    converted = convert(CLASSIC, "v2").text
    body = CLASSIC[CLASSIC.index("odd:") :]
    assert converted.endswith(body)
    assert converted.startswith(CLASSIC[: CLASSIC.index("model:")])
    for comment in ("# our resource", "# how", "# what comes in"):
        assert converted.count(comment) == 1


def test_a_model_of_a_project_there_and_back() -> None:
    settings = {"byo_model": "conn/dep", "project_endpoint": "${env:PROJECT}"}
    lines = "".join(f"    {key}: {value}\n" for key, value in settings.items())
    text = f"---\nmodel:\n  configuration:\n{lines}---\nuser:\nx\n"
    there = convert(text, "v2")
    assert loads(there.text).front["model"] == {
        "id": "conn/dep",
        "provider": "project",
        "connection": {"kind": "key", "endpoint": "${env:PROJECT}"},
    }
    back = convert(there.text, "classic")
    assert loads(back.text).front["model"] == {"configuration": settings}
    assert (there.notes, back.notes) == ([], [])
    assert loads(text).model == loads(there.text).model == loads(back.text).model


@pytest.mark.parametrize("newline", ["\r\n", "\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_there_and_back(mark: str, newline: str) -> None:
    text = mark + CLASSIC.replace("\n", newline)
    there = convert(text, "v2")
    back = convert(there.text, "classic")
    before, after = loads(text), loads(back.text)
    assert after.model == before.model
    assert after.declared_inputs == before.declared_inputs
    assert after.outputs == before.outputs
    body = text[text.index("system:") :]
    assert there.text.endswith(body)
    assert back.text.endswith(body)
    assert back.text.startswith(mark)
    if newline == "\r\n":
        assert "\n" not in back.text.replace("\r\n", "")
    assert (there.notes, back.notes) == ([], [])


def test_v2_to_classic() -> None:
    text = """---
model:
  id: gpt-4o
  provider: openai
  apiType: chat
  connection: {kind: key, endpoint: "https://example.org/v1", apiKey: "${env:KEY}"}
  options: {maxOutputTokens: 9, additionalProperties: {logprobs: true}}
inputs: [answer, {name: n, kind: float, required: true}]
outputs: [{name: score, kind: float, minimum: 0, maximum: 1}]
template: {format: {kind: mustache}, parser: {kind: prompty}}
---
user:
{{answer}}
"""
    front = loads(convert(text, "classic").text).front
    assert front["model"] == {
        "api": "chat",
        "configuration": {
            "type": "openai",
            "model": "gpt-4o",
            "base_url": "https://example.org/v1",
            "api_key": "${env:KEY}",
        },
        "parameters": {"logprobs": True, "max_tokens": 9},
    }
    assert front["inputs"] == {"answer": {}, "n": {"type": "number", "required": True}}
    assert front["outputs"] == {"score": {"type": "number", "minimum": 0, "maximum": 1}}
    assert front["template"] == {"type": "mustache", "parser": "prompty"}


def test_a_connection_by_name() -> None:
    text = "---\nmodel:\n  configuration:\n    connection: judge\n---\nuser:\nx\n"
    there = loads(convert(text, "v2").text)
    assert there.front["model"]["connection"] == {"kind": "reference", "name": "judge"}
    assert there.model.connection_name == "judge"
    assert "deployment" not in there.model.connection
    back = loads(convert(convert(text, "v2").text, "classic").text)
    assert back.front == loads(text).front


def test_what_cannot_be_carried_over_is_named() -> None:
    text = """---
model:
  id: a
  provider: foundry
  connection: {kind: oauth, endpoint: "https://example.org"}
template: {format: {kind: jinja2, strict: true}, parser: {kind: prompty}}
---
user:
x
"""
    notes = "\n".join(convert(text, "classic").notes)
    assert "oauth" in notes
    assert "strict" in notes
    twice = "---\nmodel:\n  configuration: {azure_deployment: a, model: b}\n---\nuser:\nx\n"
    assert "`model`" in convert(twice, "v2").notes[0]


@pytest.mark.parametrize(
    ("text", "to"),
    [
        (CLASSIC, "classic"),
        ("user:\nno front matter\n", "v2"),
        ("---\nname: x\n---\nuser:\nx\n", "classic"),
    ],
)
def test_nothing_to_convert(text: str, to: str) -> None:
    converted = convert(text, to)  # type: ignore[arg-type]
    assert converted.text == text
    assert len(converted.notes) == 1


def test_anchors_and_flow_mappings_are_written_anew_and_said_so() -> None:
    anchored = "---\n# c\nmodel:\n  api: &a chat\nname: *a\n---\nuser:\nx\n"
    converted = convert(anchored, "v2")
    assert loads(converted.text).front == {"model": {"apiType": "chat"}, "name": "chat"}
    assert "comments are not kept" in converted.notes[0]
    flow = convert("---\n{model: {api: chat}, name: x}\n---\nuser:\nx\n", "v2")
    assert loads(flow.text).front == {"model": {"apiType": "chat"}, "name": "x"}
    assert flow.text.endswith("---\nuser:\nx\n")


def test_explicit_keys_are_not_cut_apart() -> None:
    text = "---\n? model\n: api: chat\nname: x\n---\nuser:\nx\n"
    converted = convert(text, "v2")
    assert loads(converted.text).front == {"model": {"apiType": "chat"}, "name": "x"}
    assert "comments are not kept" in converted.notes[0]


@pytest.mark.parametrize(
    "value", ["yes", "on", "1e5", "0o17", "2024-01-01", "null", "~", "a: b", " x"]
)
def test_texts_stay_texts(value: str) -> None:
    text = f'---\ninputs:\n  a: {{type: string, default: "{value}"}}\n---\nuser:\n{{{{a}}}}\n'
    there = convert(text, "v2").text
    assert loads(there).declared_inputs["a"].default == value
    assert loads(convert(there, "classic").text).declared_inputs["a"].default == value


def test_a_file_that_does_not_load_is_not_converted() -> None:
    with pytest.raises(PromptyError, match="duplicate"):
        convert("---\na: 1\na: 2\n---\nx", "v2")

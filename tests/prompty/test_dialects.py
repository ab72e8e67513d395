"""Each dialect loads, is told apart, and keeps every setting."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from assay.prompty import Prompty, load, loads
from assay.prompty.dialect import Model, read_model

BODY = "system:\nMark the reply.\nuser:\n{{query}}\n"


def prompty(front: str) -> Prompty:
    return loads(f"---\n{front}---\n{BODY}")


CLASSIC = """name: On topic
model:
  api: chat
  configuration:
    type: azure_openai
    azure_endpoint: ${env:ENDPOINT}
    azure_deployment: judge-4
    api_version: 2024-06-01
    api_key: ${env:KEY}
    region: west
  parameters:
    max_tokens: 300
    temperature: 0
    top_p: 0.5
    stop: [END]
    seed: 7
    tools_choice: auto
    response_format:
      type: JSON_object
inputs:
  query: {type: string}
outputs:
  score: {type: int}
"""


def test_a_classic() -> None:
    file = prompty(CLASSIC)
    assert file.dialect == "A"
    assert file.model == Model(
        api="chat",
        connection={
            "provider": "azure_openai",
            "endpoint": "${env:ENDPOINT}",
            "deployment": "judge-4",
            "api_version": "2024-06-01",
            "api_key": "${env:KEY}",
            "region": "west",
        },
        parameters={
            "max_tokens": 300,
            "temperature": 0,
            "top_p": 0.5,
            "stop": ["END"],
            "seed": 7,
            "tool_choice": "auto",
            "response_format": {"type": "json_object"},
        },
    )
    assert file.model.provider == "azure"
    assert (file.title, list(file.inputs), list(file.outputs)) == ("On topic", ["query"], ["score"])


def test_b_classic_without_configuration() -> None:
    file = prompty("model:\n  api: chat\n  parameters:\n    max_tokens: 1\n    n: 2\n")
    assert file.dialect == "B"
    assert file.model == Model(parameters={"max_tokens": 1, "n": 2})
    assert file.model.provider is None


def test_c_no_model_and_top_level_parameters() -> None:
    file = prompty("name: x\nparameters:\n  temperature: 1\nsample:\n  query: q\n")
    assert file.dialect == "C"
    assert file.model == Model(parameters={"temperature": 1})
    assert prompty("model:\n").dialect == "C"


SECOND = """name: second
model:
  id: gpt-4o
  provider: foundry
  apiType: chat
  connection:
    kind: key
    endpoint: https://x.openai.azure.com
    apiKey: ${env:KEY}
  options:
    maxOutputTokens: 99
    topP: 0.9
    stopSequences: [A, B]
    frequencyPenalty: 0.1
    additionalProperties:
      logit_bias: {a: 1}
inputs:
  - name: query
    kind: string
outputs:
  - name: score
    kind: integer
tools:
  - name: look_up
    kind: function
"""


def test_d_second_generation() -> None:
    file = prompty(SECOND)
    assert file.dialect == "D"
    assert file.model == Model(
        connection={
            "deployment": "gpt-4o",
            "provider": "foundry",
            "endpoint": "https://x.openai.azure.com",
            "api_key": "${env:KEY}",
        },
        parameters={
            "max_tokens": 99,
            "top_p": 0.9,
            "stop": ["A", "B"],
            "frequency_penalty": 0.1,
            "logit_bias": {"a": 1},
            "tools": [{"name": "look_up", "kind": "function"}],
        },
    )
    assert file.model.provider == "azure"
    assert file.inputs["query"].type == "string"
    assert file.outputs["score"].type == "integer"


def test_d_a_connection_by_reference_is_a_name_not_a_deployment() -> None:
    model = prompty(
        "model:\n  provider: openai\n  connection:\n    kind: reference\n    name: team\n"
    ).model
    assert model == Model(connection={"provider": "openai"}, connection_name="team")


def test_of_two_endpoints_the_more_specific_counts() -> None:
    model = prompty(
        "model:\n  configuration:\n    type: azure_openai\n    endpoint: https://old.example\n"
        "    azure_endpoint: https://e.openai.azure.com\n    azure_deployment: judge\n"
    ).model
    assert model.connection["endpoint"] == "https://e.openai.azure.com"


def test_e_first_beta() -> None:
    file = prompty(
        "model:\n  id: gpt-4o\n  connection:\n    type: azure_openai\n"
        "    azure_deployment: other\n    endpoint: https://e.openai.azure.com\n"
        "  options:\n    max_tokens: 5\n    top_p: 0.1\n"
        "template:\n  format: jinja2\n  parser: prompty\n"
    )
    assert file.dialect == "E"
    assert file.model == Model(
        connection={
            "provider": "azure_openai",
            "deployment": "gpt-4o",
            "endpoint": "https://e.openai.azure.com",
        },
        parameters={"max_tokens": 5, "top_p": 0.1},
    )


def test_f_model_by_name() -> None:
    file = prompty("model: gpt-4o\n")
    assert file.dialect == "F"
    assert file.model == Model(connection={"deployment": "gpt-4o"})


def test_g_body_only() -> None:
    file = loads(BODY)
    assert file.dialect == "G"
    assert (file.front, file.model, file.body) == ({}, Model(), BODY)
    assert list(file.inputs) == ["query"]


@pytest.mark.parametrize(
    "front",
    ["model:\n  connection: team\n", "model:\n  configuration:\n    connection: team\n"],
    ids=["H", "A"],
)
def test_h_named_connection(front: str) -> None:
    assert prompty(front).model.connection_name == "team"


def test_h_is_told_by_its_connection() -> None:
    assert prompty("model:\n  connection: team\n").dialect == "H"


@pytest.mark.parametrize(
    ("declared", "sent"),
    [
        ("json_object", {"type": "json_object"}),
        ("Text", {"type": "text"}),
        ({"type": "JSON_Schema", "json_schema": {"name": "N"}},
         {"type": "json_schema", "json_schema": {"name": "N"}}),
    ],
)  # fmt: skip
def test_response_format_in_every_form(declared: Any, sent: Any) -> None:
    model = read_model({"model": {"parameters": {"response_format": declared}}})
    assert model.parameters == {"response_format": sent}


def test_words_for_the_deployment_among_the_parameters() -> None:
    model = read_model({"model": {"parameters": {"deployment_name": "d", "max_tokens": 1}}})
    assert model == Model(connection={"deployment": "d"}, parameters={"max_tokens": 1})


def test_streaming_is_not_passed_on() -> None:
    assert read_model({"model": {"parameters": {"stream": True}}}).parameters == {}


@pytest.mark.parametrize("word", ["serverless", "snowflake_cortex", "anthropic"])
def test_a_provider_assay_cannot_call_still_loads(word: str) -> None:
    assert prompty(f"model:\n  configuration:\n    type: {word}\n").model.provider == word


def test_unknown_keys_are_kept_and_fail_nothing() -> None:
    file = prompty("wizard: 1\nmodel:\n  api: chat\n  magic: [2]\n  parameters:\n    spell: 3\n")
    assert file.front["wizard"] == 1
    assert file.model.connection == {"magic": [2]}
    assert file.model.parameters == {"spell": 3}


@pytest.mark.parametrize("model", ["", " []", " 7", " {}", " ~"])
def test_a_model_of_no_use_is_no_model(model: str) -> None:
    assert prompty(f"model:{model}\n").model == Model()


def test_blocks_kept_in_other_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text(
        '{"configuration": "${file:conf.yaml}", "parameters": {"seed": 1}}'
    )
    (tmp_path / "conf.yaml").write_text("type: openai\nmodel: m\n")
    (tmp_path / "a.prompty").write_text(f"---\nmodel: ${{file:model.json}}\n---\n{BODY}")
    assert load(tmp_path / "a.prompty").model == Model(
        connection={"provider": "openai", "deployment": "m"}, parameters={"seed": 1}
    )


def test_a_block_in_a_file_that_is_gone_does_not_stop_the_rest(tmp_path: Path) -> None:
    (tmp_path / "a.prompty").write_text(
        f"---\nmodel:\n  connection: ${{file:gone.json}}\n  parameters: {{seed: 1}}\n---\n{BODY}"
    )
    file = load(tmp_path / "a.prompty")
    assert file.model.parameters == {"seed": 1}
    assert file.model.connection_name == "${file:gone.json}"


@pytest.mark.parametrize(
    ("name", "stem"),
    [("close.prompty", "close"), ("accuracy.metric.prompty", "accuracy")],
)
def test_a_metric_is_called_as_its_file(tmp_path: Path, name: str, stem: str) -> None:
    path = tmp_path / name
    path.write_text(f"---\nname: Another name\n---\n{BODY}")
    assert load(path).name == stem


def test_inputs_are_declared_ones_then_the_bodys_own() -> None:
    file = loads("---\ninputs:\n  z: string\n---\nuser:\n{{b}} {{a}} {{z}}\n")
    assert [(name, item.implicit) for name, item in file.inputs.items()] == [
        ("z", False),
        ("a", True),
        ("b", True),
    ]
    assert file.used_inputs == {"a", "b", "z"}


def test_a_sample_alone_declares_the_inputs() -> None:
    file = loads("---\nsample:\n  query: q\n  1: one\n---\nuser:\n{{query}}\n")
    assert list(file.inputs) == ["query", "1"]
    assert file.sample == {"query": "q", 1: "one"}


def test_the_sample_of_a_file_in_every_place(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text('{"query": "from a file"}')
    path = tmp_path / "a.prompty"
    for declared in ("s.json", "${file:s.json}", "file:s.json"):
        path.write_text(f"---\nsample: {declared}\n---\n{BODY}")
        assert load(path).sample == {"query": "from a file"}
    listed = prompty("sample:\n  - query: first\n  - query: second\n")
    assert listed.sample == {"query": "first"}
    by_input = prompty("inputs:\n  query: {type: string, sample: s}\n  other: bare\n")
    assert by_input.sample == {"query": "s", "other": "bare"}

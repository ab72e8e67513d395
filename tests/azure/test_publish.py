"""A .prompty file in Foundry's catalog: what is sent, what is said to be lost, what is refused."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from assay.azure.publish import publication, register
from assay.cli import main
from assay.errors import PromptyError, SetupError
from assay.prompty import Prompty, loads
from tests.azure.conftest import PATIENT, Credential
from tests.support.foundry import TOKEN, FakeFoundry

ROOT = Path(__file__).resolve().parents[2]

FILE = """---
name: On topic
description: Whether the answer stays on the question.
model:
  api: chat
  configuration:
    type: azure_openai
    azure_deployment: gpt
  parameters:
    temperature: 0
    max_tokens: 300
    response_format:
      type: json_object
inputs:
  question:
    type: string
  answer:
    type: string
outputs:
  reason:
    type: string
  score:
    type: integer
    minimum: 1
    maximum: 5
    threshold: 3
---
system:
You mark answers.

user:
QUESTION: {{question}}
ANSWER: {{ answer }}
"""


def prompty() -> Prompty:
    return loads(FILE)


def test_a_prompt_evaluator() -> None:
    made = publication(prompty(), "prompt")
    assert made.name == "on-topic"
    definition = made.body["definition"]
    text = definition["prompt_text"]
    assert text.startswith("# System\nYou mark answers.\n\n# User\nQUESTION: {{question}}\n")
    assert "ANSWER: {{answer}}" in text
    assert '"result": score, a whole number from 1 to 5' in text
    assert definition["metrics"] == {
        "score": {
            "type": "ordinal",
            "desirable_direction": "increase",
            "min_value": 1,
            "max_value": 5,
            "threshold": 3,
            "is_primary": True,
        }
    }
    assert definition["init_parameters"]["required"] == ["deployment_name", "threshold"]
    assert definition["data_schema"] == {
        "type": "object",
        "required": ["question", "answer"],
        "properties": {"question": {"type": "string"}, "answer": {"type": "string"}},
    }
    assert made.body["metadata"]["assay.sha256"] == prompty().sha256
    lost = " / ".join(made.lost)
    for word in ("roles", "temperature", "connection", "do not apply"):
        assert word in lost


def test_a_score_model_grader() -> None:
    made = publication(prompty(), "score_model", deployment="gpt-4o")
    assert made.body == {
        "type": "score_model",
        "name": "On topic",
        "model": "gpt-4o",
        "input": [
            {"role": "system", "content": "You mark answers."},
            {"role": "user", "content": "QUESTION: {{item.question}}\nANSWER: {{item.answer}}"},
        ],
        "range": [1, 5],
        "pass_threshold": 3,
        "sampling_params": {"temperature": 0, "max_completions_tokens": 300},
    }
    assert any("outputs reason" in lost for lost in made.lost)


def test_an_endpoint_loses_nothing_and_carries_everything() -> None:
    text = FILE.replace("{{question}}", "{% if question %}{{question}}{% endif %}")
    text = text.replace("threshold: 3", "threshold: 3\n    desirable_direction: decrease")
    made = publication(loads(text), "endpoint", connection="assay")
    assert made.lost == []
    assert made.body["definition"]["connection_name"] == "assay"
    assert made.body["definition"]["metrics"]["score"]["desirable_direction"] == "decrease"
    assert made.body["supported_evaluation_levels"] == ["turn"]
    with pytest.raises(SetupError, match="needs --connection"):
        publication(prompty(), "endpoint")


def test_an_endpoint_for_whole_conversations_says_so() -> None:
    text = FILE.replace("question", "messages")
    made = publication(loads(text), "endpoint", connection="assay")
    assert made.body["supported_evaluation_levels"] == ["conversation"]


@pytest.mark.parametrize("form", ["prompt", "score_model"])
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("threshold: 3", "desirable_direction: decrease", "score is better when lower"),
        ("{{question}}", "{% for q in question %}{{q}}{% endfor %}", "Jinja logic"),
        ("{{question}}", "{{question | upper}}", "an expression"),
        ("{{question}}", "{{question.text}}", "an expression"),
        ("{{question}}", "{{question}} {% raw %}{{x}}{% endraw %}", "raw text with braces"),
        ("  score:", "  other:\n    type: number\n  score:", "gives one score: name one of other"),
        (
            "type: integer\n    minimum: 1\n    maximum: 5\n    threshold: 3",
            "type: string",
            "declares no scored output",
        ),
    ],
)
def test_what_cannot_be_carried(form: Any, old: str, new: str, said: str) -> None:
    assert old in FILE
    with pytest.raises(PromptyError, match="cannot be published: ") as failure:
        publication(loads(FILE.replace(old, new)), form)
    assert said in str(failure.value)


def test_one_of_several_outputs() -> None:
    file = loads(FILE.replace("  score:", "  other:\n    type: number\n  score:"))
    made = publication(file, "prompt", output="score")
    assert made.name == "on-topic-score"
    assert "outputs other" in made.lost
    with pytest.raises(PromptyError, match="no scored output 'none': other, score"):
        publication(file, "prompt", output="none")


def test_it_is_registered_once(foundry: FakeFoundry) -> None:
    from assay.azure.project import Foundry

    project = Foundry(foundry.endpoint, Credential())
    made = publication(prompty(), "prompt")
    assert asyncio.run(register(project, made, PATIENT)) == "1"
    assert asyncio.run(register(project, made, PATIENT)) == "1"
    changed = publication(loads(FILE.replace("You mark", "You grade")), "prompt")
    assert asyncio.run(register(project, changed, PATIENT)) == "2"


def test_the_command(
    foundry: FakeFoundry, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["assay", "publish", "on_topic.prompty", *arguments])
        with pytest.raises(SystemExit) as exit_:
            main()
        out, err = capsys.readouterr()
        assert isinstance(exit_.value.code, int)
        return exit_.value.code, out, err

    Path("on_topic.prompty").write_text(FILE)
    monkeypatch.setenv("AZURE_AI_PROJECT_TOKEN", TOKEN)
    code, out, err = call("--azure-ai-project", foundry.endpoint)
    assert (code, out) == (0, "on-topic 1\n")
    assert "lost: roles" in err
    code, out, _ = call("--as", "score_model", "--deployment", "gpt")
    assert (code, json.loads(out)["model"]) == (0, "gpt")
    code, out, _ = call("--dry-run")
    assert (code, json.loads(out)["form"]) == (0, "prompt")
    code, out, err = call("--output", "none")
    assert (code, out) == (2, "")
    assert "cannot be published" in err
    assert len(foundry.calls("POST", "/versions$")) == 1

"""Evaluators of a project as files: listed, fetched, and refused."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from assay.azure.project import Foundry
from assay.azure.publish import publication, register
from assay.azure.pull import fetch_evaluator, list_evaluators
from assay.cli import main
from assay.errors import SetupError
from assay.prompty import load, loads
from tests.azure.conftest import PATIENT, make_run, write_metric
from tests.azure.test_log import log
from tests.support.foundry import TOKEN, FakeFoundry


def test_there_and_back(foundry: FakeFoundry, project: Foundry) -> None:
    file = load(write_metric("on_topic"))
    for text in (file.text.replace("You mark", "You rate"), file.text):
        made = publication(loads(text, file.path), "prompt")
        asyncio.run(register(project, made, PATIENT))
    back = loads(asyncio.run(fetch_evaluator(project, "on-topic", patience=PATIENT)))
    assert back.name == "on_topic"
    assert list(back.inputs) == ["question"]
    result = back.outputs["result"]
    assert (result.type, result.minimum, result.maximum, result.threshold) == ("integer", 1, 5, 3)
    (message,) = back.render({"question": "why?"})
    assert message["role"] == "user"
    assert "You mark on_topic." in message["content"]
    assert "QUESTION: why? for on_topic" in message["content"]
    older = asyncio.run(fetch_evaluator(project, "on-topic", "1", PATIENT))
    assert "You rate" in older


def test_what_is_listed_and_what_gives_no_prompt(foundry: FakeFoundry, project: Foundry) -> None:
    log(make_run(write_metric("on_topic")), project)
    (found,) = asyncio.run(list_evaluators(project, PATIENT))
    assert (found["kind"], found["version"]) == ("code", "1")
    assert found["display_name"] == "on_topic (assay)"
    with pytest.raises(SetupError, match="is a code evaluator: the service gives no prompt of it"):
        asyncio.run(fetch_evaluator(project, found["name"], patience=PATIENT))


def test_the_command(
    foundry: FakeFoundry,
    project: Foundry,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["assay", "pull", *arguments])
        with pytest.raises(SystemExit) as exit_:
            main()
        out, err = capsys.readouterr()
        assert isinstance(exit_.value.code, int)
        return exit_.value.code, out, err

    made = publication(load(write_metric("on_topic")), "prompt")
    asyncio.run(register(project, made, PATIENT))
    monkeypatch.setenv("AZURE_AI_PROJECT_TOKEN", TOKEN)
    monkeypatch.setenv("AZURE_AI_PROJECT_ENDPOINT", foundry.endpoint)
    assert call()[1] == "on-topic\t1\tprompt\ton_topic\n"
    assert call("on-topic")[1] == "on-topic.prompty\n"
    assert load(Path("on-topic.prompty")).outputs["result"].maximum == 5
    code, out, err = call("on-topic")
    assert (code, out) == (2, "")
    assert "is there already" in err
    code, _, err = call("none")
    assert code == 3
    assert "HTTP 404" in err

"""`assay azure doctor`: what it finds out, in which order, and that it shows no secret."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.azure.doctor import diagnose
from assay.cli import main
from tests.azure.conftest import PATIENT, Credential
from tests.support.foundry import SIGNATURE, TOKEN, FakeFoundry
from tests.support.hub import FakeHub
from tests.support.server import JudgeServer, error
from tests.support.tls import Tls

KEY = "a-judge-key-that-nobody-must-see"


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Iterator[JudgeServer]:
    with JudgeServer() as running:
        monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", running.azure)
        monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)
        yield running


def look(name: str | None, project: Any, **options: Any) -> dict[str, tuple[str, str]]:
    async def collect() -> dict[str, tuple[str, str]]:
        found = diagnose(name, project, patience=PATIENT, **options)
        return {finding.part: (finding.state, finding.said) async for finding in found}

    said = asyncio.run(collect())
    for secret in (TOKEN, SIGNATURE, KEY):
        assert secret not in repr(said)
    return said


def test_all_is_well(
    foundry: FakeFoundry, judge: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_AI_PROJECT_TOKEN", TOKEN)
    found = look("azure:gpt", foundry.endpoint)
    assert {part: state for part, (state, _) in found.items()} == dict.fromkeys(
        (
            *("endpoint", "login", "deployment"),
            *("project login", "project", "permissions", "storage", "portal"),
        ),
        "ok",
    )
    assert found["login"][1] == "a key"
    assert found["project login"][1] == "AZURE_AI_PROJECT_TOKEN"
    assert judge.count == 1
    assert not foundry.datasets
    assert not foundry.evals


@pytest.mark.parametrize(
    ("status", "part", "said"),
    [
        (401, "login", "check AZURE_OPENAI_API_KEY"),
        (404, "deployment", "deploy it in the portal"),
        (400, "deployment", "rejected the request"),
    ],
)
def test_the_part_of_the_judge_that_fails(
    judge: JudgeServer, status: int, part: str, said: str
) -> None:
    judge.reply = error(status, f"bad {KEY}")
    found = look("azure:gpt", None)
    assert found["endpoint"][0] == "ok"
    assert found[part][0] == "todo"
    assert said in found[part][1]
    assert list(found)[-2] == part


def test_an_endpoint_nobody_answers_at(judge: JudgeServer) -> None:
    judge.stop()
    found = look("azure:gpt", None)
    assert found["endpoint"][0] == "todo"
    assert "check AZURE_OPENAI_ENDPOINT" in found["endpoint"][1]


@pytest.mark.parametrize(
    ("answer", "states", "said"),
    [
        ("ok", {"endpoint": "ok", "login": "ok", "deployment": "ok"}, "project:c/gpt answered"),
        (error(401, TOKEN), {"endpoint": "ok", "login": "todo"}, '"Foundry User"'),
        (
            error(404, "no such connection"),
            {"endpoint": "ok", "login": "ok", "deployment": "todo"},
            "CONNECTION/DEPLOYMENT of a model connected to it",
        ),
    ],
)
def test_a_judge_through_a_project(
    tls: Tls, monkeypatch: pytest.MonkeyPatch, answer: Any, states: dict[str, str], said: str
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tls.cert))
    monkeypatch.setenv("AZURE_AI_PROJECT_TOKEN", TOKEN)
    with JudgeServer(answer, tls=tls) as judge:
        monkeypatch.setenv("AZURE_AI_PROJECT_ENDPOINT", judge.project)
        found = look("project:c/gpt", "s/g/p-that-is-not-there/and/no/form")
    assert {part: state for part, (state, _) in found.items() if part != "project"} == states
    assert said in found[list(states)[-1]][1]
    if states["login"] == "ok":
        assert found["login"][1] == "AZURE_AI_PROJECT_TOKEN"
    assert judge.count == 1


def test_a_judge_through_a_project_that_is_not_named() -> None:
    found = look("project:c/gpt", None)
    assert found["endpoint"][0] == "todo"
    assert "set AZURE_AI_PROJECT_ENDPOINT" in found["endpoint"][1]


def test_nothing_is_set_up() -> None:
    found = look(None, None)
    assert {state for state, _ in found.values()} == {"unset"}
    assert "give --azure-ai-project" in found["project"][1]
    assert look("azure:gpt", None)["endpoint"][0] == "todo"


@pytest.mark.parametrize(
    ("call", "part", "said"),
    [
        (("GET", "^/evaluators$"), "project", '"Foundry User"'),
        (("POST", "/evals$"), "permissions", '"Foundry User"'),
        (("PUT", "^/store/"), "storage", '"Storage Blob Data Contributor"'),
    ],
)
def test_the_part_of_the_project_that_fails(
    foundry: FakeFoundry, call: tuple[str, str], part: str, said: str
) -> None:
    foundry.fail(*call, 403)
    found = look(None, foundry.endpoint, credential=Credential())
    assert list(found)[-1] == part
    assert found[part][0] == "todo"
    assert said in found[part][1]


def test_a_hub(tls: Tls, monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeHub(tls) as hub:
        monkeypatch.setenv("HTTPS_PROXY", hub.proxy)
        monkeypatch.setenv("SSL_CERT_FILE", str(tls.cert))
        found = look(None, "s/g/p", credential=Credential())
        assert [found[part][0] for part in ("project", "permissions", "storage")] == ["ok"] * 3
        assert "portal" in found
        hub.actions.clear()
        found = look(None, "s/g/p", credential=Credential())
        assert found["project"][0] == "todo"
        assert "missing permission" in found["project"][1]


def test_the_command(
    foundry: FakeFoundry,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    def call(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["assay", "azure", "doctor", *arguments])
        with pytest.raises(SystemExit) as exit_:
            main()
        assert isinstance(exit_.value.code, int)
        return exit_.value.code, capsys.readouterr().out

    monkeypatch.setenv("AZURE_AI_PROJECT_TOKEN", TOKEN)
    code, out = call("--azure-ai-project", foundry.endpoint)
    assert code == 0
    lines = out.splitlines()
    assert lines[0].startswith("not set deployment: no judge is named")
    assert lines[-1].startswith("ok      portal: the new Foundry portal")
    foundry.fail("POST", "/evals$", 403)
    code, out = call("--azure-ai-project", foundry.endpoint, "--json")
    assert code == 2
    assert json.loads(out)[-1]["part"] == "permissions"

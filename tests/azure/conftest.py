"""A Foundry project on loopback, and runs whose scores are known."""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import assay
from assay.azure.client import Patience
from assay.azure.project import Foundry
from assay.run.progress import Silent
from tests.support.foundry import STORAGE_TOKEN, TOKEN, FakeFoundry
from tests.support.hub import FakeHub
from tests.support.tls import Tls

PATIENT = Patience(tries=3, pause=0.0, poll=0.0, wait=30.0)

SCOPES = {
    "https://ai.azure.com/.default": TOKEN,
    "https://management.azure.com/.default": TOKEN,
    "https://storage.azure.com/.default": STORAGE_TOKEN,
}

SCORES = {"q0": 1, "q1": 2, "q2": 3, "q3": 4, "q4": 5}

_METRIC = """---
name: {name}
inputs:
  question:
    type: string
outputs:
  reason:
    type: string
  score:
    type: integer
    minimum: 1
    maximum: 5
    {more}
---
system:
You mark {name}. Reply with a JSON object that has the keys "reason" and "score".

user:
QUESTION: {{{{question}}}} for {name}
"""


class Access(NamedTuple):
    token: str
    expires_on: int


class Credential:
    """What azure-identity's credentials look like from outside. `scopes`: what it was asked."""

    def __init__(self, token: str = TOKEN) -> None:
        self.token = token
        self.scopes: list[str] = []

    def get_token(self, *scopes: str, **_: Any) -> Access:
        self.scopes += scopes
        return Access(self.token, int(time.time()) + 3600)


class ScopedCredential:
    """Another token for every scope, as Entra ID gives them."""

    def get_token(self, *scopes: str, **_: Any) -> Access:
        return Access(SCOPES[scopes[0]], int(time.time()) + 3600)


@pytest.fixture
def foundry(tls: Tls, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeFoundry]:
    monkeypatch.setenv("SSL_CERT_FILE", str(tls.cert))
    with FakeFoundry(tls) as running:
        yield running


@pytest.fixture
def hub(tls: Tls, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    with FakeHub(tls) as running:
        for name in ("HTTPS_PROXY", "https_proxy"):
            monkeypatch.setenv(name, running.proxy)
        for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"):
            monkeypatch.setenv(name, str(tls.cert))
        yield running


@pytest.fixture
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing sleeps: not our tries, not azure-core's, not azure-ai-evaluation's evaluators."""
    from azure.core.pipeline.transport import HttpTransport

    really = asyncio.sleep

    async def at_once(_: float, result: Any = None) -> Any:
        return await really(0, result)

    monkeypatch.setattr(asyncio, "sleep", at_once)
    monkeypatch.setattr(HttpTransport, "sleep", lambda *_: None)


@pytest.fixture
def project(foundry: FakeFoundry) -> Foundry:
    return Foundry(foundry.endpoint, Credential())


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_metric(name: str, more: str = "threshold: 3") -> Path:
    path = Path(f"{name}.prompty")
    path.write_text(_METRIC.format(name=name, more=more))
    return path


def replies(name: str, special: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """A script that gives every question its score of `SCORES`, or a reply of its own."""
    found: list[dict[str, Any]] = []
    for question, score in SCORES.items():
        usual = json.dumps({"reason": f"because of {question}", "score": score})
        reply = (special or {}).get(question, usual)
        found.append({"when": f"QUESTION: {question} for {name}", "reply": reply})
    return found


def make_run(
    *metrics: Path,
    special: dict[str, dict[str, Any]] | None = None,
    rows: Sequence[dict[str, Any]] | None = None,
    **options: Any,
) -> assay.Run:
    """A finished run over q0 to q4, which score 1 to 5."""
    script = [entry for m in metrics for entry in replies(m.stem, (special or {}).get(m.stem))]
    data = rows or [{"question": question, "answer": f"a {question}"} for question in SCORES]
    options = {"judge": assay.ScriptedJudge(script), "reask": 0, "name": "demo", **options}
    return assay.evaluate(data, list(metrics), progress=Silent(), **options)


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run, to be copied."""
    folder = tmp_path_factory.mktemp("template")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        run = make_run(write_metric("on_topic"), runs=folder / "runs")
    return run.directory


@pytest.fixture
def run(template: Path, tmp_path: Path) -> assay.Run:
    return assay.Run(shutil.copytree(template, tmp_path / "runs" / template.name))

"""azure-identity's own DefaultAzureCredential, from its login to the upload and to the judge."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import assay
from assay.cli import main
from assay.run.progress import Silent
from tests.azure.conftest import SCOPES, make_run, write_metric
from tests.support.foundry import FakeFoundry
from tests.support.login import CLIENT, SECRET, TENANT, FakeLogin
from tests.support.runs import command
from tests.support.server import JudgeServer
from tests.support.tls import Tls

JUDGE_SCOPE = "https://cognitiveservices.azure.com/.default"
JUDGE_TOKEN = "a-judge-token-that-nobody-must-see"

pytest.importorskip("azure.identity")
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def login(tls: Tls, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLogin]:
    """A service principal in the environment, and the authority that knows it."""
    with FakeLogin(tls, SCOPES | {JUDGE_SCOPE: JUDGE_TOKEN}) as running:
        for name in ("HTTPS_PROXY", "https_proxy"):
            monkeypatch.setenv(name, running.proxy)
        for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"):
            monkeypatch.setenv(name, str(tls.cert))
        monkeypatch.setenv("AZURE_TENANT_ID", TENANT)
        monkeypatch.setenv("AZURE_CLIENT_ID", CLIENT)
        monkeypatch.setenv("AZURE_CLIENT_SECRET", SECRET)
        yield running


def call(monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> int:
    monkeypatch.setattr(sys, "argv", ["assay", *map(str, arguments)])
    with pytest.raises(SystemExit) as exit_:
        main()
    assert isinstance(exit_.value.code, int)
    return exit_.value.code


def test_an_upload_without_any_other_login(
    login: FakeLogin,
    foundry: FakeFoundry,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    run = make_run(write_metric("on_topic"))
    capfd.readouterr()
    code = call(monkeypatch, "upload", run.directory, "--azure-ai-project", foundry.endpoint)
    shown = capfd.readouterr()
    assert (code, shown.out) == (0, "https://ai.azure.com/nextgen/evals/run_1\n"), shown.err
    assert login.asked == ["https://ai.azure.com/.default"]


def test_storage_without_keys_asks_for_a_token_of_its_own(
    login: FakeLogin, foundry: FakeFoundry, monkeypatch: pytest.MonkeyPatch
) -> None:
    foundry.signature = ""
    run = make_run(write_metric("on_topic"))
    assert call(monkeypatch, "upload", run.directory, "--azure-ai-project", foundry.endpoint) == 0
    assert login.asked == ["https://ai.azure.com/.default", "https://storage.azure.com/.default"]


def test_a_login_that_is_refused(
    login: FakeLogin, foundry: FakeFoundry, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In a process of its own, where what azure-identity logs would be seen."""
    secret = f"{SECRET}-of-last-year"
    monkeypatch.setenv("AZURE_CLIENT_SECRET", secret)
    run = make_run(write_metric("on_topic"))
    before = (run.directory / "scores.jsonl").read_bytes()
    ended = command("upload", run.directory, "--azure-ai-project", foundry.endpoint, cwd=tmp_path)
    assert ended.returncode == 3
    assert not ended.stdout
    going, said = ended.stderr.splitlines()
    assert going == f"5 rows, 1 metrics, to {foundry.endpoint}"
    assert "AADSTS7000215: Invalid client secret provided" in said
    assert "log in with az login" in said
    assert f"repeat with: assay upload {run.directory}" in said
    for text in (ended.stderr, *(file.read_text() for file in run.directory.iterdir())):
        assert SECRET not in text
    assert (run.directory / "scores.jsonl").read_bytes() == before
    assert not foundry.seen


def test_a_login_that_is_refused_before_a_run(
    login: FakeLogin,
    foundry: FakeFoundry,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    secret = f"{SECRET}-of-last-year"
    monkeypatch.setenv("AZURE_CLIENT_SECRET", secret)
    write_metric("on_topic")
    Path("rows.jsonl").write_text('{"question": "q0"}\n')
    code = call(
        monkeypatch,
        *("run", "on_topic.prompty", "rows.jsonl", "--judge", "baseline"),
        *("--azure-ai-project", foundry.endpoint),
    )
    shown = capfd.readouterr()
    assert code == 2
    (line,) = shown.err.splitlines()
    assert "the run was not started, since its upload would fail: logging in failed" in line
    assert "AADSTS7000215" in line
    assert SECRET not in line + shown.out
    assert not Path("runs").exists()


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Iterator[JudgeServer]:
    with JudgeServer(json.dumps({"reason": "so it is", "score": 4})) as running:
        monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", running.azure)
        yield running


def test_a_judge_without_a_key(login: FakeLogin, judge: JudgeServer) -> None:
    run = assay.evaluate(
        [{"question": "q0"}, {"question": "q1"}],
        [write_metric("on_topic")],
        judge="azure:gpt",
        progress=Silent(),
    )
    assert run.metrics["on_topic.score"]["mean"] == 4
    assert login.asked == [JUDGE_SCOPE]
    sent = {request.headers["authorization"] for request in judge.requests}
    assert sent == {f"Bearer {JUDGE_TOKEN}"}


def test_a_judge_that_is_refused_a_login(
    login: FakeLogin,
    judge: JudgeServer,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    secret = f"{SECRET}-of-last-year"
    monkeypatch.setenv("AZURE_CLIENT_SECRET", secret)
    write_metric("on_topic")
    Path("rows.jsonl").write_text('{"question": "q0"}\n')
    code = call(monkeypatch, "run", "on_topic.prompty", "rows.jsonl", "--judge", "azure:gpt")
    shown = capfd.readouterr()
    assert code == 2
    assert "AADSTS7000215" in shown.err
    assert SECRET not in shown.err + shown.out
    assert judge.count == 0

"""What every test stands on: an environment that says nothing, and a judge server on loopback."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.server import JudgeServer
from tests.support.tls import Tls, make_tls

SHARED = Path(__file__).resolve().parents[2] / "shared"
_PREFIXES = ("OPENAI_", "AZURE_", "ASSAY_", "OLLAMA_")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")

# The same examples every time and no clock: `--hypothesis-profile=deep` looks further.
settings.register_profile("usual", max_examples=100, deadline=None, derandomize=True)
settings.register_profile("deep", max_examples=5000, deadline=None)
settings.load_profile("usual")


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key, endpoint or proxy of whoever runs the tests."""
    for name in list(os.environ):
        if name.upper().startswith(_PREFIXES) or name.upper() in _PROXIES:
            monkeypatch.delenv(name)


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    """A judge that speaks the OpenAI wire; set its `reply`."""
    with JudgeServer() as running:
        yield running


@pytest.fixture(scope="session")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Tls:
    """A certificate for loopback; clients trust it through SSL_CERT_FILE."""
    return make_tls(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that is the working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def shared() -> Path:
    """The project's shared cases, where they lie beside the repository."""
    if not SHARED.is_dir():
        pytest.skip("no shared folder beside the repository")
    return SHARED

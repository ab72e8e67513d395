"""Every test of a run works in a folder of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import runs
from tests.support.server import JudgeServer


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def metric(tmp_path: Path) -> Path:
    return runs.write_metric(tmp_path)


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with JudgeServer(runs.judged) as running:
        yield running

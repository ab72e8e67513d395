"""Every test of a command works in a folder of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from assay.cli import main
from tests.support import runs
from tests.support.server import JudgeServer


class Result(NamedTuple):
    code: int
    out: str
    err: str


Assay = Callable[..., Result]


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


@pytest.fixture
def assay(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Assay:
    """Run the command line in this process: what it prints, and how it exits."""

    def call(*arguments: str | Path) -> Result:
        monkeypatch.setattr(sys, "argv", ["assay", *map(str, arguments)])
        with pytest.raises(SystemExit) as exit_:
            main()
        out, err = capsys.readouterr()
        assert isinstance(exit_.value.code, int)
        return Result(exit_.value.code, out, err)

    return call

"""The README's examples do what they say."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A working folder as the README assumes: the clone's data, and the file it has one write."""
    for name in ("datasets", "flows", "evaluators"):
        shutil.copytree(ROOT / name, tmp_path / name)
    (prompty,) = blocks("prompty")
    (tmp_path / "politeness.prompty").write_text(prompty, "utf-8")
    return tmp_path


def execute(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=120, env=dict(os.environ)
    )


def test_the_shell_examples_succeed(folder: Path) -> None:
    commands = [line for block in blocks("sh") for line in block.splitlines() if line.strip()]
    assert len(commands) >= 4
    for command in commands:
        name, *arguments = shlex.split(command, comments=True)
        assert name == "assay"
        done = execute(
            [sys.executable, "-c", "from assay.cli import main; main()", *arguments], folder
        )
        assert done.returncode in (0, 3 if "run" in arguments else 0), f"{command}\n{done.stderr}"


def test_the_python_examples_run(folder: Path) -> None:
    found = blocks("python")
    assert found
    for block in found:
        done = execute([sys.executable, "-c", block], folder)
        assert done.returncode == 0, done.stderr


def test_every_file_it_links_to_is_there() -> None:
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", README):
        assert (ROOT / target).exists(), target

"""The rules of the house, read from the source: which way imports go, how long a module gets."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import assay

SOURCE = Path(assay.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))

ROOMS = ("prompty", "judge", "metric", "run")
"""From the bottom up; whatever is in no room and no edge lies below them all."""

EDGES = {"service", "report", "azure", "rag", "compat"}
"""What meets in the command line, and nowhere else."""

LONGEST = 320
STILL_LONGER = {"judge/baseline/lexical.py"}
"""Modules in which the second thing has not been looked for yet."""

HEAVY = {
    "pandas",
    "numpy",
    "openai",
    "azure",
    "fastapi",
    "ray",
    "aiohttp",
    "jinja2",
    "wordllama",
    "jwt",
}


def name_of(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """(line, module below `assay`) of every import, wherever in the file it stands."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        names = [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import"
            names = [f"{node.module}.{name}" for name in names]
        for name in names:
            if name.startswith("assay."):
                yield node.lineno, name.removeprefix("assay.")


def room_of(module: str) -> str:
    """The room, edge or lower module that `assay.<module>` is in."""
    return module.replace("/", ".").removesuffix(".py").split(".")[0]


def may_import(room: str, other: str) -> bool:
    if room in (other, "cli"):
        return True
    if other == "cli":
        return False
    if room in EDGES:
        return other not in EDGES
    if other in EDGES:
        return False
    if room in ROOMS and other in ROOMS:
        return ROOMS.index(other) < ROOMS.index(room)
    return other not in ROOMS  # what lies below the rooms knows none of them


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_go_down_only(path: Path) -> None:
    room = room_of(name_of(path))
    if room == "__init__":  # the public names, each imported when it is used
        return
    wrong = [
        f"{path}:{line}: {room} imports assay.{module}"
        for line, module in imported(path)
        if not may_import(room, room_of(module))
    ]
    assert wrong == []


def test_the_rule_can_tell_up_from_down() -> None:
    down = [("cli", "run"), ("run", "judge"), ("metric", "prompty"), ("cli", "report")]
    up = [("run", "cli"), ("judge", "metric"), ("errors", "prompty"), ("report", "azure")]
    assert [may_import(*pair) for pair in down] == [True] * 4
    assert [may_import(*pair) for pair in up] == [False] * 4
    assert {"run", "judge"} <= {room_of(module) for _, module in imported(SOURCE / "run/plan.py")}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_says_what_it_is_for(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text("utf-8")))


def test_a_module_does_one_thing() -> None:
    lengths = {name_of(path): len(path.read_text("utf-8").splitlines()) for path in MODULES}
    assert {name for name, length in lengths.items() if length > LONGEST} == STILL_LONGER


def test_the_public_names() -> None:
    assert assay.__all__ == [
        "AssayError",
        "Evaluator",
        "Judge",
        "Reply",
        "Run",
        "Score",
        "ScriptedJudge",
        "__version__",
        "evaluate",
        "load",
        "metric",
        "prompty",
    ]
    assert dir(assay) == sorted(assay.__all__)
    for name in assay.__all__:
        assert getattr(assay, name) is not None
    with pytest.raises(AttributeError, match="module 'assay' has no attribute 'evaluation'"):
        _ = assay.evaluation


def modules_after(code: str) -> set[str]:
    """The modules a fresh process holds after `code`."""
    code += "\nimport sys, json; sys.stderr.write(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    found: list[str] = json.loads(done.stderr)
    return set(found)


def test_the_import_is_light() -> None:
    found = modules_after("import assay")
    assert "assay" in found
    assert len(found) < 250
    assert found & HEAVY == set()


HELP = """
import sys
sys.argv = ["assay", "--help"]
from assay.cli import main
try:
    main()
except SystemExit as exit_:
    assert not exit_.code
"""


def test_help_is_light() -> None:
    found = modules_after(HELP)
    assert found & (HEAVY | {"orjson", "yaml"}) == set()
    assert not [name for name in found if name.startswith(("assay.run", "assay.metric"))]

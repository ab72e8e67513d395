"""`assay check`: what is wrong with metric files, and `--fix` for what is mechanical."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from assay.prompty.check import Finding

_SKIPPED = {"node_modules", "__pycache__", "venv"}


class Format(StrEnum):
    """How findings are printed."""

    text = "text"
    json = "json"
    github = "github"
    sarif = "sarif"


def check(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE|DIR...", help="Files, or folders to look through."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Findings as JSON on stdout.")] = False,
    format: Annotated[Format, typer.Option("--format", help="How to print.")] = Format.text,
    fix: Annotated[
        bool, typer.Option("--fix", help="Repair what is mechanical; the diff goes to stderr.")
    ] = False,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schema of the front matter.")
    ] = False,
    attack: Annotated[
        bool, typer.Option("--attack", help="Render with hostile values as well.")
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings count as errors.")] = False,
) -> None:
    """Check .prompty files. Exit 1 on errors, 2 where a file is not there."""
    if schema:
        from assay.prompty.check.schema import schema_text

        sys.stdout.write(schema_text())
        return
    form = Format.json if json else format
    files = _files(paths or [])
    if fix:
        for file in files:
            _fix(file)
    findings: list[Finding] = []
    for file in files:
        findings += CHECKERS[_kind(file)](file)
        if attack and file.suffix == ".prompty":
            findings += _attack(file, sys.stdout if form is Format.text else sys.stderr)
    _print(findings, form, len(files))
    failing = {"error", "warning"} if strict else {"error"}
    if any(finding.severity in failing for finding in findings):
        raise typer.Exit(1)


def _check_prompty(path: Path) -> list[Finding]:
    from assay.prompty.check import check_file

    return check_file(path)


def _check_metric(path: Path) -> list[Finding]:
    from assay.metric.check import check_metric_file
    from assay.prompty.check import Finding

    return [Finding(str(path), *found) for found in check_metric_file(path)]


CHECKERS: Mapping[str, Callable[[Path], list[Finding]]] = {
    ".prompty": _check_prompty,
    "metric.yaml": _check_metric,
}
"""How each kind of file is checked, by its suffix or its name."""


def _kind(path: Path) -> str:
    return path.name if path.name in CHECKERS else path.suffix


def _files(paths: list[Path]) -> list[Path]:
    if not paths:
        _stop("name a file or a folder to check")
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = list(_walk(path))
            if not inside:
                _stop(f"{path}: no {' or '.join(CHECKERS)} file in this folder")
            found += inside
        elif not path.exists():
            _stop(f"{path}: no such file")
        elif _kind(path) not in CHECKERS:
            _stop(f"{path}: only {', '.join(CHECKERS)} files can be checked")
        else:
            found.append(path)
    return list(dict.fromkeys(found))


def _walk(folder: Path) -> Iterator[Path]:
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f not in _SKIPPED)
        for name in sorted(names):
            if _kind(Path(name)) in CHECKERS:
                yield Path(root, name)


def _stop(message: str) -> None:
    print(f"assay check: {message}", file=sys.stderr)
    raise typer.Exit(2)


def _fix(path: Path) -> None:
    """Repair one file in place, byte order mark, encoding and line endings kept."""
    import difflib

    from assay.errors import PromptyError
    from assay.prompty.check import fix_text
    from assay.prompty.source import decode_verbatim

    if path.suffix != ".prompty":
        return
    try:
        text, encoding, mark = decode_verbatim(path.read_bytes(), path)
    except (PromptyError, OSError):
        return  # reported by the check that follows
    fixed = fix_text(text, path)
    if fixed == text:
        return
    before, after = text.splitlines(keepends=True), fixed.splitlines(keepends=True)
    for line in difflib.unified_diff(before, after, str(path), str(path)):
        print(line.rstrip("\r\n"), file=sys.stderr)
    try:
        path.write_bytes(mark + fixed.encode(encoding))
    except OSError as error:
        _stop(f"{path}: cannot be written: {error.strerror or error}")


def _attack(path: Path, stream: object) -> list[Finding]:
    from assay.errors import PromptyError
    from assay.prompty import load
    from assay.prompty.check.attack import attack
    from assay.prompty.check.finding import Collector

    try:
        prompty = load(path)
    except PromptyError:
        return []  # reported by the check itself
    found = Collector(str(path))
    outcome = attack(prompty, found)
    if outcome is not None and not found.findings:
        refused = f" ({outcome.refused} refused)" if outcome.refused else ""
        line = f"{path}: attack: {outcome.renders} renders, structure unchanged{refused}"
        print(line, file=stream)  # type: ignore[call-overload]
    return found.findings


def _print(findings: list[Finding], form: Format, files: int) -> None:
    from assay import __version__
    from assay.cli.output import print_json
    from assay.prompty.check.formats import as_dicts, as_github, as_sarif, counts

    if form is Format.json:
        print_json(as_dicts(findings))
    elif form is Format.sarif:
        print_json(as_sarif(findings, __version__))
    else:
        lines = as_github(findings) if form is Format.github else map(str, findings)
        for line in lines:
            print(line)
    print(counts(findings, files), file=sys.stderr)

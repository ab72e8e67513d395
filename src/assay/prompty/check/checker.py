"""One .prompty file through every check."""

from __future__ import annotations

from pathlib import Path

from assay.errors import PromptyError
from assay.prompty import Prompty, loads
from assay.prompty.check.body import check_roles, check_variables
from assay.prompty.check.finding import Collector, Finding, in_order
from assay.prompty.check.fix import repair_lines
from assay.prompty.check.front import check_front
from assay.prompty.check.hostile import check_template
from assay.prompty.check.scale import check_asked, check_outputs
from assay.prompty.check.security import check_connection, check_secrets
from assay.prompty.check.suppress import silence
from assay.prompty.source import decode, normal


def check_file(path: str | Path) -> list[Finding]:
    """Everything worth knowing about a .prompty file, in the order of its lines."""
    path = Path(path)
    try:
        text = decode(path.read_bytes(), path)
    except PromptyError as error:
        found = Collector(str(path))
        found.add_error(error)
        return found.findings
    except OSError as error:
        found = Collector(str(path))
        found.add("file", f"cannot be read: {error.strerror or error}", 1)
        return found.findings
    return check_text(text, path)


def check_text(text: str, path: str | Path | None = None) -> list[Finding]:
    """The same for a text. `path` names it in the findings and roots its references."""
    path = Path(path) if path is not None else None
    text = normal(text)
    found = Collector(str(path) if path else "<text>")
    prompty, repaired = _load(text, path, found)
    check_secrets(text, found)
    if prompty is not None:
        found.positions = prompty.positions
        _check(prompty, found)
    lines = text.split("\n")
    findings = found.findings
    if repaired != text:
        findings = [_as_written(f, lines, repaired.split("\n")) for f in findings]
    body_line = prompty.body_line if prompty else len(lines) + 1
    kept = silence(findings, lines, body_line, found)
    told = [f for f in found.findings if f.code == "unknown-code" and f not in kept]
    return in_order([*kept, *told])


def _load(text: str, path: Path | None, found: Collector) -> tuple[Prompty | None, str]:
    """The parsed file; where it does not load, its mechanically repaired form, line for line,
    so that one mistake does not hide the others."""
    try:
        return loads(text, path), text
    except PromptyError as error:
        found.add_error(error)
    repaired = repair_lines(text, path)
    if repaired != text:
        try:
            return loads(repaired, path), repaired
        except PromptyError as error:
            found.add_error(error)
    return None, text


def _as_written(finding: Finding, lines: list[str], repaired: list[str]) -> Finding:
    """A finding in a repaired text with its column in the text as it was written."""
    old, new = (texts[finding.line - 1] for texts in (lines, repaired))
    shift = (len(new) - len(new.lstrip())) - (len(old) - len(old.lstrip()))
    if not shift or finding.code in ("lost-indentation", "tab", "indented-delimiter", "secret"):
        return finding
    column = max(1, finding.column - shift)
    return Finding(
        finding.file, finding.line, column, finding.severity, finding.code, finding.message
    )


def _check(prompty: Prompty, found: Collector) -> None:
    check_front(prompty, found)
    check_connection(prompty, found)
    check_outputs(prompty, found)
    check_roles(prompty, found)
    check_asked(prompty, found)
    if not check_template(prompty, found):
        return
    try:
        check_variables(prompty, found)
    except PromptyError as error:
        found.add_error(error)

"""What a check found, and where."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from assay.errors import PromptyError
from assay.prompty.check.codes import CODES
from assay.prompty.frontmatter import Positions


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding. Lines and columns are from 1; severity is error, warning or info."""

    file: str
    line: int
    column: int
    severity: str
    code: str
    message: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}"
        return f"{place}: {self.severity} {self.code} {self.message}"


@dataclass(slots=True)
class Collector:
    """Findings of one file, as they are made."""

    file: str
    positions: Positions = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def add(
        self,
        code: str,
        message: str,
        line: int | None,
        column: int | None = None,
        severity: str | None = None,
    ) -> None:
        """A finding at a line. Without `severity` it has that of its code."""
        found = Finding(
            self.file, line or 1, column or 1, severity or CODES[code].severity, code, message
        )
        if found not in self.findings:
            self.findings.append(found)

    def add_at(
        self, code: str, message: str, path: Sequence[Any], severity: str | None = None
    ) -> None:
        """A finding at a front matter key, or at the nearest key above it that has a place."""
        line, column = self.place(path)
        self.add(code, message, line, column, severity)

    def add_error(self, error: PromptyError, path: Sequence[Any] = ()) -> None:
        """A finding for an error of the loader."""
        line, column = (error.line, error.column) if error.line else self.place(path)
        code = error.code if error.code in CODES else "prompty"
        self.add(code, error.message, line, column)

    def place(self, path: Sequence[Any]) -> tuple[int, int]:
        """Line and column of a key path."""
        for length in range(len(path), 0, -1):
            found = self.positions.get(tuple(path[:length]))
            if found:
                return found
        return 1, 1


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Findings as they stand in the file."""
    return sorted(findings, key=lambda found: (found.line, found.column, found.code))

"""Findings as machines read them: JSON, GitHub's workflow commands, SARIF."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from assay.prompty.check.codes import CODES
from assay.prompty.check.finding import Finding

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"
_GITHUB = {"error": "error", "warning": "warning", "info": "notice"}
_SARIF = {"error": "error", "warning": "warning", "info": "note"}


def as_dicts(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """The list behind `--json`: file, line, column, severity, code, message."""
    return [asdict(finding) for finding in findings]


def as_github(findings: Sequence[Finding]) -> list[str]:
    """Workflow commands that a GitHub runner turns into annotations."""
    return [
        f"::{_GITHUB[finding.severity]} file={_property(finding.file)},line={finding.line},"
        f"col={finding.column},title={_property(finding.code)}::{_data(finding.message)}"
        for finding in findings
    ]


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def as_sarif(findings: Sequence[Finding], version: str) -> dict[str, Any]:
    """A SARIF 2.1.0 log with one run."""
    codes = sorted({finding.code for finding in findings})
    rules = [
        {
            "id": code,
            "shortDescription": {"text": CODES[code].meaning},
            "defaultConfiguration": {"level": _SARIF[CODES[code].severity]},
        }
        for code in codes
    ]
    results = [
        {
            "ruleId": finding.code,
            "ruleIndex": codes.index(finding.code),
            "level": _SARIF[finding.severity],
            "message": {"text": finding.message},
            "locations": [_location(finding)],
        }
        for finding in findings
    ]
    driver = {"name": "assay", "version": version, "rules": rules}
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }


def _location(finding: Finding) -> dict[str, Any]:
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": quote(PurePath(finding.file).as_posix())},
            "region": {"startLine": finding.line, "startColumn": finding.column},
        }
    }


def counts(findings: Sequence[Finding], files: int) -> str:
    """The last line for people: how many files, errors, warnings, infos."""
    by_severity = Counter(finding.severity for finding in findings)
    words = [
        f"{by_severity[severity]} {severity}{'' if by_severity[severity] == 1 else 's'}"
        for severity in ("error", "warning", "info")
        if by_severity[severity]
    ]
    checked = f"{files} file{'' if files == 1 else 's'} checked"
    return f"{checked}: {', '.join(words) or 'nothing found'}"

"""Findings for machines."""

from __future__ import annotations

from assay.prompty.check import CODES, Finding
from assay.prompty.check.formats import as_dicts, as_github, as_sarif, counts

FINDINGS = [
    Finding("a b,c:d.prompty", 3, 5, "error", "yaml", "100% wrong:\nreally, yes"),
    Finding("x.prompty", 1, 1, "info", "role-like", "stays text"),
]


def test_dicts_have_the_stable_keys() -> None:
    assert as_dicts(FINDINGS)[1] == {
        "file": "x.prompty",
        "line": 1,
        "column": 1,
        "severity": "info",
        "code": "role-like",
        "message": "stays text",
    }


def test_github_commands_are_escaped() -> None:
    assert as_github(FINDINGS) == [
        "::error file=a b%2Cc%3Ad.prompty,line=3,col=5,title=yaml::100%25 wrong:%0Areally, yes",
        "::notice file=x.prompty,line=1,col=1,title=role-like::stays text",
    ]


def test_sarif_has_what_the_standard_requires() -> None:
    log = as_sarif(FINDINGS, "1.2.3")
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert (driver["name"], driver["version"]) == ("assay", "1.2.3")
    first = run["results"][0]
    assert first["level"] == "error"
    assert driver["rules"][first["ruleIndex"]]["id"] == first["ruleId"] == "yaml"
    assert first["message"] == {"text": "100% wrong:\nreally, yes"}
    place = first["locations"][0]["physicalLocation"]
    assert place["region"] == {"startLine": 3, "startColumn": 5}
    assert place["artifactLocation"]["uri"] == "a%20b%2Cc%3Ad.prompty"
    assert run["results"][1]["level"] == "note"
    assert as_sarif([], "1")["runs"][0]["results"] == []


def test_counts_for_people() -> None:
    assert counts(FINDINGS, 2) == "2 files checked: 1 error, 1 info"
    assert counts([], 1) == "1 file checked: nothing found"


def test_a_finding_reads_as_one_line() -> None:
    finding = FINDINGS[1]
    assert str(finding) == "x.prompty:1:1: info role-like stays text"
    assert all(code.severity in ("error", "warning", "info") for code in CODES.values())

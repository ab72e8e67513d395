"""Comments in a file that silence findings.

`# assay: ignore CODE, CODE` on a line of its own in the front matter holds for the whole file;
after a key it holds for that line. In the body a template comment says the same:
`{# assay: ignore CODE #}`, or `{{! assay: ignore CODE }}` in a Mustache body.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from assay.prompty.check.codes import CODES
from assay.prompty.check.finding import Collector, Finding

_COMMENT = re.compile(
    r"(?:(?P<yaml>#)|\{#-?|\{\{!)\s*assay:\s*ignore\b(?P<codes>[\w\s,-]*?)(?:-?#\}|\}\}|$)"
)


def silence(
    findings: Iterable[Finding], lines: list[str], body_line: int, found: Collector
) -> list[Finding]:
    """The findings that no comment silences.

    lines: the file's. body_line: number of the body's first line. A comment that names no
    known code is itself reported to `found`.
    """
    whole: set[str] = set()
    by_line: dict[int, set[str]] = {}
    for number, line in enumerate(lines, 1):
        if "ignore" not in line or "assay" not in line:
            continue
        for match in _COMMENT.finditer(line):
            if (match["yaml"] is not None) != (number < body_line):
                continue
            codes = _codes(match["codes"], number, match.start() + 1, found)
            alone = not (line[: match.start()] + line[match.end() :]).strip()
            (whole if alone else by_line.setdefault(number, set())).update(codes)
    return [
        finding
        for finding in findings
        if finding.code not in whole and finding.code not in by_line.get(finding.line, ())
    ]


def _codes(text: str, line: int, column: int, found: Collector) -> set[str]:
    named = [word for word in re.split(r"[\s,]+", text.strip()) if word]
    if not named:
        found.add("unknown-code", "the comment names no code to ignore", line, column)
    for word in named:
        if word not in CODES:
            found.add("unknown-code", f"there is no code {word!r}", line, column)
    return {word for word in named if word in CODES}

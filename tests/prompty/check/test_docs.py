"""docs/check.md shows exactly the codes there are."""

from __future__ import annotations

import re
from pathlib import Path

from assay.prompty.check import CODES

DOC = Path(__file__).parents[3] / "docs" / "check.md"


def test_the_table_of_codes_is_complete_and_right() -> None:
    rows = re.findall(
        r"^\| `([a-z-]+)` \| (\w+) \| (yes)? ?\| (.+) \|$", DOC.read_text(encoding="utf-8"), re.M
    )
    shown = {code: (severity, bool(fixable), text) for code, severity, fixable, text in rows}
    expected = {name: (code.severity, code.fixable, code.meaning) for name, code in CODES.items()}
    assert shown == expected
    assert len(rows) == len(CODES)

"""No text crashes the check, and fixing is idempotent and never breaks a file."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import PromptyError
from assay.prompty import loads
from assay.prompty.check import CODES, check_text, fix_text
from assay.prompty.syntax import blank_tags
from tests.prompty.check.helpers import codes, metric

PIECES = st.sampled_from(
    [
        *("---\n", "model:\n", "  api: chat\n", "inputs:\n", "outputs:\n", "  a: int\n"),
        *("\tb: 1\n", "    minimum: 1\n", "- x\n", "name: [\n", "sample: ${file:../x}\n"),
        *("system:\n", "user: hi\n", "{{ a }}", "{{", "}}", "{% if a %}", "{% endif %}"),
        *("{# assay: ignore x #}", "{{#a}}", "{{/a}}", "```\n", "score from 1 to 5\n"),
        *(
            '{"a": 7}',
            "\u2028",
            "\ue000",
            "\r\n",
            "\ufeff",
            "{{ a | nothing }}",
            "sk-" + "a1B2" * 8,
        ),
    ]
)
TEXTS = st.one_of(st.text(), st.lists(PIECES, max_size=30).map("".join))


@given(TEXTS)
def test_findings_are_inside_the_text_and_known(text: str) -> None:
    lines = text.replace("\r\n", "\n").replace("\r", "\n").count("\n") + 1
    for finding in check_text(text):
        assert finding.code in CODES
        assert 1 <= finding.line <= lines
        assert finding.column >= 1


@given(TEXTS)
def test_fixing_is_idempotent_and_what_it_changes_loads(text: str) -> None:
    fixed = fix_text(text)
    assert fix_text(fixed) == fixed
    if fixed != text:
        loads(fixed)
    try:
        loads(text)
    except PromptyError:
        return
    loads(fixed)


@given(TEXTS)
def test_blanked_tags_keep_length_and_lines(text: str) -> None:
    blank = blank_tags(text)
    assert len(blank) == len(text)
    assert [i for i, c in enumerate(blank) if c == "\n"] == [
        i for i, c in enumerate(text) if c == "\n"
    ]


def test_tags_are_blanked_and_nothing_else() -> None:
    text = "a {{ b }} c {# d\n #} e {% f %} g {{ h"
    assert blank_tags(text) == "a         c     \n    e         g {{ h"


@pytest.mark.parametrize(
    "body",
    ["{" * 10_000, "{{ a " * 5_000, "bearer " * 20_000, "key" * 30_000, "1 to " * 30_000],
    ids=["braces", "openings", "bearer", "keys", "ranges"],
)
def test_long_repetitions_come_to_an_end(body: str) -> None:
    assert isinstance(codes(metric(body=body)), list)

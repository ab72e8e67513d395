"""Comments that silence findings: for the file, for a line, in front matter and body."""

from __future__ import annotations

from assay.prompty.check import check_text
from tests.prompty.check.helpers import BODY, FRONT, codes, metric, only

UNUSED = FRONT.replace("outputs:", "  one:\n    type: string\n  two:\n    type: string\noutputs:")


def test_a_comment_line_holds_for_the_whole_file() -> None:
    assert codes(metric(UNUSED)) == ["unused-input", "unused-input"]
    assert codes(metric("# assay: ignore unused-input, role-like\n" + UNUSED)) == []
    assert codes("# assay: ignore unused-input\n" + metric(UNUSED)) == []


def test_a_comment_after_a_key_holds_for_its_line() -> None:
    finding = only(metric(UNUSED.replace("  one:", "  one:  # assay: ignore unused-input")))
    assert "`two`" in finding.message


def test_comments_in_the_body() -> None:
    twice = BODY + "user: one\nuser: two\n"
    assert codes(metric(body=twice)) == ["role-like", "role-like"]
    on_line = twice.replace("user: one", "user: one {# assay: ignore role-like #}")
    assert codes(metric(body=on_line)) == ["role-like"]
    assert codes(metric(body=twice + "{#- assay: ignore role-like -#}\n")) == []


def test_mustache_comments() -> None:
    body = BODY + "{{#answer}}x{{/answer}}\nuser: one\n"
    assert codes(metric(body=body)) == ["role-like"]
    assert codes(metric(body=body + "{{! assay: ignore role-like }}\n")) == []


def test_only_the_named_codes_are_silenced() -> None:
    assert codes(metric("# assay: ignore no-scale\n" + UNUSED)) == ["unused-input"] * 2


def test_an_unknown_code_is_told() -> None:
    finding = only(metric("# assay: ignore unusedinput\n" + FRONT))
    assert (finding.code, finding.line) == ("unknown-code", 2)
    assert only(metric("# assay: ignore\n" + FRONT)).code == "unknown-code"


def test_a_yaml_comment_in_the_body_is_text() -> None:
    found = check_text(metric(UNUSED, BODY + "# assay: ignore unused-input\n"))
    assert [f.code for f in found] == ["unused-input"] * 2

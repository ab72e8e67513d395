"""The body: roles, look-alikes, variables, and templates no prompt needs."""

from __future__ import annotations

import pytest

from assay.prompty.check import check_text
from tests.prompty.check.helpers import BODY, FRONT, codes, metric, only, place


def test_undeclared_variables_have_their_place_and_near_miss() -> None:
    text = metric(body=BODY + "Question: {{ question }}\nAgain {{ anwser }}\n")
    found = check_text(text)
    assert [(f.code, f.severity) for f in found] == [("undeclared-variable", "warning")] * 2
    assert (found[0].line, found[0].column) == place(text, "question }}")
    assert "`answer`" in found[1].message


def test_mustache_variables_too() -> None:
    text = metric(body=BODY + "{{#documents}}\n{{title}}\n{{/documents}}\n")
    finding = only(text)
    assert "`documents`" in finding.message
    assert finding.line == place(text, "{{#documents}}")[0]


def test_an_unused_input_is_a_warning_at_its_declaration() -> None:
    text = metric(FRONT.replace("outputs:", "  extra:\n    type: string\noutputs:"))
    finding = only(text)
    assert (finding.code, finding.severity) == ("unused-input", "warning")
    assert (finding.line, finding.column) == place(text, "extra:")


def test_a_prompt_without_any_of_its_inputs_is_an_error_at_the_body() -> None:
    text = metric(body=BODY.replace("{{ answer }}", "{answer}"))
    found = {f.code: f for f in check_text(text)}
    assert set(found) == {"unused-input", "inputs-unused"}
    assert found["inputs-unused"].severity == "error"
    assert found["inputs-unused"].line == place(text, "system:")[0]
    assert "{{answer}} instead of {answer}" in found["unused-input"].message


def test_no_role_line() -> None:
    text = metric(body=BODY.replace("system:\n", "").replace("user:\n", ""))
    finding = only(text)
    assert (finding.code, finding.severity) == ("no-role", "warning")


@pytest.mark.parametrize("line", ["  system :", "# User:", "assistant: ", 'user[name="Al"]:'])
def test_every_spelling_of_a_role_counts(line: str) -> None:
    body = BODY.replace("system:", "").replace("user:", line)
    assert codes(metric(body=body)) == []


@pytest.mark.parametrize(
    "line", ["## user:", "user: hello there", "**User:**", "<|im_start|>user", "Human:"]
)
def test_lines_that_only_look_like_roles(line: str) -> None:
    text = metric(body=BODY + line + "\n")
    finding = only(text)
    assert (finding.code, finding.severity) == ("role-like", "info")
    assert finding.line == place(text, line)[0]


def test_a_role_inside_fenced_code_stays_text() -> None:
    text = metric(body=BODY + "```\nassistant:\n```\n")
    finding = only(text)
    assert finding.code == "role-like"
    assert (finding.line, finding.column) == place(text, "assistant:")
    assert codes(metric(body=BODY + "```\nassistant:\n")) == []


def test_an_empty_body() -> None:
    assert "empty" in codes(metric("name: x", "\n"))


def test_a_body_that_is_no_template() -> None:
    text = metric(body=BODY + "{% if x %}\n")
    found = [f for f in check_text(text) if f.code == "template"]
    assert len(found) == 1
    assert found[0].severity == "error"


@pytest.mark.parametrize(
    "template",
    [
        "{{ answer.__class__ }}",
        "{{ answer['__class__'] }}",
        "{{ answer | attr('__class__') }}",
        "{{ range(1000000) | list }}",
        "{{ 9 ** 9 ** 9 }}",
        "{{ 'a' * 100000000 }}",
        "{{ 'a'.center(100000000) }}",
        "{{ '%0999999999d' % 1 }}",
        "{% include 'other.txt' %}",
        "{% import 'other.txt' as o %}",
        "{% for a in range(200) %}{% for b in range(200) %}x{% endfor %}{% endfor %}",
    ],
)
def test_hostile_templates(template: str) -> None:
    text = metric(body=BODY + template + "\n")
    found = [f for f in check_text(text) if f.code == "hostile-template"]
    assert found
    assert {(f.severity, f.line) for f in found} == {("error", place(text, template)[0])}


@pytest.mark.parametrize(
    "template",
    [
        "{% for p in answer %}{{ loop.index }} {{ p }}{% endfor %}",
        "{% for i in range(3) %}{{ i + 1 }} * 2{% endfor %}",
        "{{ answer | replace('a', 'b') | upper }} {{ 2 ** 3 }} {{ 3 * 4 }}",
        "{% set n = answer | length %}{{ n }}{% for i in range(answer | length) %}.{% endfor %}",
        "{{ answer['text'] }}",
    ],
)
def test_ordinary_templates_are_not_hostile(template: str) -> None:
    assert codes(metric(body=BODY + template + "\n")) == []


@pytest.mark.parametrize(
    "template",
    [
        "{% filter upper %}{{ answer }}{% endfilter %}",
        "{% set x | upper %}{{ answer }}{% endset %}{{ x }}",
        "{% set x %}{{ answer }}{% endset %}{{ x | upper }}",
    ],
)
def test_filters_over_printed_values(template: str) -> None:
    finding = only(metric(body=BODY + template + "\n"))
    assert (finding.code, finding.severity) == ("block-filter", "error")


def test_a_loop_bounded_by_an_input() -> None:
    text = metric(
        FRONT.replace("outputs:", "  times:\n    type: integer\noutputs:"),
        BODY + "{% for i in range(times) %}x{% endfor %}\n",
    )
    finding = only(text)
    assert (finding.code, finding.severity) == ("loop-bound", "warning")
    assert "times" in finding.message

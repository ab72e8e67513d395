"""Mechanical repairs: what they make of a file, and that they leave good files alone."""

from __future__ import annotations

import pytest

from assay.prompty import loads
from assay.prompty.check import fix_text
from tests.prompty.check.helpers import BODY, FRONT, codes, metric

FLAT = """---
name: Grade
# the judge
model:
api: chat
configuration:
type: azure_openai
azure_deployment: gpt-4
parameters:
temperature: 0.2
response_format: { "type": "text" }

inputs:
question:
type: string
answer:
type: string
outputs:
grade:
type: int
---
system:
Grade {{answer}} as an answer to {{question}}.
"""


def test_lost_indentation_is_put_back() -> None:
    fixed = fix_text(FLAT)
    front = loads(fixed).front
    assert front["model"] == {
        "api": "chat",
        "configuration": {"type": "azure_openai", "azure_deployment": "gpt-4"},
        "parameters": {"temperature": 0.2, "response_format": {"type": "text"}},
    }
    assert front["inputs"] == {"question": {"type": "string"}, "answer": {"type": "string"}}
    assert front["outputs"] == {"grade": {"type": "int"}}
    assert "# the judge" in fixed
    assert [line.strip() for line in fixed.split("\n")] == FLAT.split("\n")


@pytest.mark.parametrize("name", ["description", "type", "name", "default", "tags"])
def test_inputs_may_be_called_like_properties(name: str) -> None:
    text = FLAT.replace("question:\n", f"{name}:\n").replace("{{question}}", f"{{{{{name}}}}}")
    front = loads(fix_text(text)).front
    assert front["inputs"] == {name: {"type": "string"}, "answer": {"type": "string"}}


def test_nested_settings_and_levels_are_put_back() -> None:
    front = FRONT.replace("    temperature: 0", "    response_format:\n      type: json_object")
    flat = "\n".join(line.lstrip() for line in front.split("\n"))
    assert loads(fix_text(metric(flat))).front == loads(metric(front)).front


@pytest.mark.parametrize(
    "block",
    [
        "sample:\nanswer: >-\nSome text.",
        "sample:\ncustomer:\nname: Al",
        "tools:\n- type: function\nname: f",
        "sample:\nanswer: text\nthat: goes\non and on",
    ],
)
def test_levels_that_cannot_be_told_are_left_to_a_person(block: str) -> None:
    text = metric("\n".join(line.lstrip() for line in FRONT.split("\n")) + "\n" + block)
    assert "lost-indentation" in codes(text)
    assert fix_text(text) == text


def test_tabs_become_spaces() -> None:
    text = metric(FRONT.replace("    type: string\n", "\t\ttype: string\n").replace("  ", "\t"))
    assert codes(text) == ["tab"]
    fixed = fix_text(text)
    assert "\t" not in fixed
    assert loads(fixed).front == loads(metric()).front


def test_a_tab_inside_text_stays() -> None:
    text = metric(FRONT + "\ndescription: one\ttwo")
    assert fix_text(text) == text


@pytest.mark.parametrize("indent", [" ", "    ", "\t"])
def test_an_indented_file_comes_to_the_margin(indent: str) -> None:
    text = "\n".join(indent + line if line else line for line in metric().split("\n"))
    assert fix_text(text) == metric()


def test_an_indented_front_matter_over_a_body_at_the_margin() -> None:
    front = "".join(f"  {line}\n" for line in ["---", *FRONT.split("\n"), "---"])
    assert fix_text(front + BODY) == metric()


def test_only_the_delimiters_are_indented() -> None:
    assert fix_text(metric().replace("---\n", "  ---\n")) == metric()


def test_an_indented_closing_delimiter() -> None:
    text = f"---\n{FRONT}\n  ---\n{BODY}"
    assert codes(text)[0] == "unclosed"
    assert fix_text(text) == metric()


def test_unused_inputs_get_a_message() -> None:
    front = FRONT.replace("answer:", "question:\n    type: string\n  answer:")
    fixed = fix_text(metric(front, "system:\nGrade it.\n"))
    assert fixed == metric(
        front,
        "system:\nGrade it.\n\nuser:\nquestion:\n{{question}}\nanswer:\n{{answer}}\n",
    )
    messages = loads(fixed).render({"question": "Q?", "answer": "A."})
    assert [m["role"] for m in messages] == ["system", "user"]
    assert messages[1]["content"] == "question:\nQ?\nanswer:\nA."


def test_an_input_called_like_a_role_opens_no_message() -> None:
    front = FRONT.replace("answer:", "user:")
    fixed = fix_text(metric(front, "system:\nGrade it."))
    messages = loads(fixed).render({"user": "me"})
    assert [m["role"] for m in messages] == ["system", "user"]
    assert messages[1]["content"] == "user: me"


@pytest.mark.parametrize(
    "body",
    ["system:\nGrade {answer}.\n", "system:\nGrade {{ answer }}.\n", "system:\n{% if x %}\n"],
)
def test_what_a_person_must_decide_stays(body: str) -> None:
    assert fix_text(metric(body=body)) == metric(body=body)


def test_a_used_input_is_enough_to_leave_the_others() -> None:
    text = metric(FRONT.replace("answer:", "extra:\n    type: string\n  answer:"))
    assert fix_text(text) == text


def test_a_misspelt_tool_choice() -> None:
    text = metric(FRONT.replace("temperature: 0", "tools_choice: auto  # tools_choice"))
    assert fix_text(text) == text.replace("tools_choice: auto", "tool_choice: auto")
    both = metric(FRONT.replace("temperature: 0", "tools_choice: auto\n    tool_choice: none"))
    assert fix_text(both) == both


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_marks_and_line_endings_stay(newline: str, mark: str) -> None:
    text = mark + FLAT.replace("\n", newline)
    fixed = fix_text(text)
    assert fixed == mark + fix_text(FLAT).replace("\n", newline)
    assert fix_text(mark + metric().replace("\n", newline)) == mark + metric().replace(
        "\n", newline
    )


@pytest.mark.parametrize("text", [FLAT, metric(), metric(body="system:\nx"), "\tname: x", ""])
def test_fixing_twice_changes_nothing(text: str) -> None:
    assert fix_text(fix_text(text)) == fix_text(text)


@pytest.mark.parametrize(
    "text", ["---\nname: [\n---\nx", "---\nname: x", "---\na: 1\na: 2\n---\nx"]
)
def test_what_cannot_be_repaired_stays(text: str) -> None:
    assert fix_text(text) == text

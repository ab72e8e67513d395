"""Outputs: their scale, and the scale that the prompt asks for."""

from __future__ import annotations

import pytest

from assay.prompty.check import check_text
from tests.prompty.check.helpers import BODY, FRONT, codes, metric, only, place

PLAIN = FRONT[: FRONT.index("    levels:")].rstrip()
"""The metric without texts for its levels: tone is 0..2."""


def scaled(low: float, high: float) -> str:
    return PLAIN.replace("minimum: 0", f"minimum: {low}").replace("maximum: 2", f"maximum: {high}")


def asking(text: str) -> str:
    return (
        f'system:\n{text}\nReply with JSON: {{"reason": "r", "tone": 1}}\nuser:\n{{{{answer}}}}\n'
    )


def test_a_metric_without_outputs() -> None:
    front = FRONT[: FRONT.index("outputs:")].rstrip()
    assert codes(metric(front, asking("Rate the tone on a scale from 0 to 2."))) == ["no-outputs"]
    assert codes(metric(front, "system:\nBe kind.\nuser:\n{{answer}}\n")) == []


def test_a_numeric_output_without_a_scale() -> None:
    text = metric(PLAIN.replace("    minimum: 0\n    maximum: 2", ""))
    finding = only(text)
    assert (finding.code, finding.severity) == ("no-scale", "warning")
    assert (finding.line, finding.column) == place(text, "tone:")
    half = only(metric(PLAIN.replace("    minimum: 0\n", "")))
    assert "no minimum" in half.message
    assert "no maximum" not in half.message


def test_levels_are_a_scale() -> None:
    assert codes(metric(FRONT.replace("    minimum: 0\n    maximum: 2\n", ""))) == []


def test_a_score_that_is_declared_as_text() -> None:
    front = PLAIN.replace("type: integer\n    minimum: 0\n    maximum: 2", "type: string")
    assert codes(metric(front, asking("Rate it on a scale of 0 to 2."))) == ["no-score"]


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("maximum: 2", "maximum: 2\n    threshold: 3", "threshold-outside-scale"),
        ("minimum: 0", "minimum: 5", "empty-scale"),
    ],
)
def test_numbers_that_contradict_each_other(old: str, new: str, code: str) -> None:
    found = [f for f in check_text(metric(PLAIN.replace(old, new))) if f.code == code]
    assert [f.severity for f in found] == ["error"]


def test_a_threshold_outside_the_levels() -> None:
    front = FRONT.replace("    minimum: 0\n    maximum: 2\n", "    threshold: 4\n")
    assert codes(metric(front)) == ["threshold-outside-scale"]


def test_a_level_outside_the_scale() -> None:
    text = metric(FRONT + "\n      3: saintly", BODY.replace("2 is kind", "2 is kind, 3 saintly"))
    finding = only(text)
    assert (finding.code, finding.severity) == ("level-outside-scale", "error")


def test_a_level_the_prompt_never_mentions() -> None:
    text = metric(body=BODY.replace(", 2 is kind", ""))
    finding = only(text)
    assert (finding.code, finding.severity) == ("level-not-in-body", "warning")
    assert (finding.line, finding.column) == place(text, "2: kind")


def test_a_range_mentions_the_levels_inside_it() -> None:
    body = asking("Give the tone as a number from 0 to 2.")
    assert codes(metric(body=body)) == []


@pytest.mark.parametrize(
    "text",
    [
        "Rate the tone on a scale from 1 to 5.",
        "Give a score between 1 and 5.",
        "Rating (1-5):",
        "Use a 1-5 scale.",
        "Puntúa el tono de 1 a 5.",
        "Asigna una puntuación entre 0 y 10.",
        "Write a score from 0 to 100.",
        "Levels\n1 - rude\n2 - cold\n3 - flat\n4 - warm\n5 - kind",
        "[Tone: 1]\nrude\n[Tone: 2]\ncold\n[Tone: 3]\nflat",
    ],
)
def test_a_scale_that_contradicts_the_declared_one(text: str) -> None:
    found = check_text(metric(scaled(0, 2), asking(text)))
    assert {(f.code, f.severity) for f in found} == {("scale-contradiction", "warning")}


@pytest.mark.parametrize(
    "text",
    [
        "Rate the tone on a scale from 0 to 2.",
        "Give a score of 0 to 1 for rude texts and 2 for kind ones.",
        "Write 3 to 5 sentences as the reason for the score.",
        "Score the passages 3-5 as well.",
        "Steps\n1 - read\n2 - think\n3 - write\n4 - check",
        "Entre 2 y 1: la nota más baja.",
        "The rate rose by 0-50% last year.",
        "Between 2009 and 2014 the scale changed.",
        'Never show {"score": 7}.',
        'In the form {"reason": "...", "tone": "<0-2>"}.',
        "0 - rude\n1 - flat\n2 - kind",
    ],
)
def test_no_false_contradiction(text: str) -> None:
    assert codes(metric(scaled(0, 2), asking(text))) == []


def test_a_narrower_scale_contradicts_only_where_it_is_called_one() -> None:
    assert codes(metric(scaled(1, 5), asking("Use a scale from 1 to 3."))) == [
        "scale-contradiction"
    ]
    text = "Use a scale from 1 to 5. A score of 1 to 3 is bad."
    assert codes(metric(scaled(1, 5), asking(text))) == []


@pytest.mark.parametrize("shown", ["7", '"7"', "true", "1.5"])
def test_an_example_value_that_would_be_refused(shown: str) -> None:
    text = metric(PLAIN, BODY.replace('"tone": 1', f'"tone": {shown}'))
    finding = only(text)
    assert (finding.code, finding.severity) == ("scale-contradiction", "warning")
    assert (finding.line, finding.column) == place(text, '"tone": ')


@pytest.mark.parametrize("shown", ["2", '"2"', "2.0", '"number"'])
def test_an_example_value_that_would_be_read(shown: str) -> None:
    assert codes(metric(PLAIN, BODY.replace('"tone": 1', f'"tone": {shown}'))) == []


def test_a_word_that_is_no_level() -> None:
    front = PLAIN.replace(
        "type: integer\n    minimum: 0\n    maximum: 2", "type: string\n    enum: [rude, kind]"
    )
    body = BODY.replace('"tone": 1', '"tone": "flat"')
    assert codes(metric(front, body)) == ["scale-contradiction"]
    assert codes(metric(front, BODY.replace('"tone": 1', '"tone": "Rude"'))) == []


def test_an_output_the_judge_cannot_know() -> None:
    text = metric(body=BODY.replace('"reason": "short", ', ""))
    finding = only(text)
    assert (finding.code, finding.severity) == ("output-not-in-body", "warning")
    assert (finding.line, finding.column) == place(text, "reason:")
    tagged = BODY.replace(
        'Reply with JSON: {"reason": "short", "tone": 1}', "<S1>why</S1><S2>1</S2>"
    )
    assert codes(metric(body=tagged)) == []


def test_json_object_needs_the_word_json() -> None:
    form = "temperature: 0\n    response_format:\n      type: json_object"
    text = metric(FRONT.replace("temperature: 0", form), BODY.replace("JSON", "this"))
    finding = only(text)
    assert (finding.code, finding.severity) == ("json-not-in-body", "error")
    assert (finding.line, finding.column) == place(text, "response_format")
    hidden = BODY.replace("JSON", "this") + "{# JSON #}"
    assert codes(metric(FRONT.replace("temperature: 0", form), hidden)) == ["json-not-in-body"]


@pytest.mark.parametrize(("limit", "told"), [(1, True), (29, True), (400, False)])
def test_too_few_tokens_for_a_json_reply(limit: int, told: bool) -> None:
    text = metric(FRONT.replace("max_tokens: 400", f"max_tokens: {limit}"))
    assert codes(text) == (["max-tokens-small"] if told else [])


def test_one_bare_number_needs_one_token() -> None:
    front = PLAIN.replace("  reason:\n    type: string\n", "").replace("400", "1")
    body = "system:\nAnswer with the tone, a number from 0 to 2.\nuser:\n{{answer}}\n"
    assert codes(metric(front, body)) == []

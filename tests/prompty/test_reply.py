"""What a reply says, or why it says nothing. Never a guess."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from assay.prompty import Output, Reading
from assay.prompty.reply import read

MARK = {
    "score": Output("score", "integer", minimum=1, maximum=5),
    "reason": Output("reason", "string"),
}
ONE = {"score": MARK["score"]}


def score(text: str, outputs: Mapping[str, Output] = MARK) -> Any:
    """The score a reply gives, or the cause why it gives none."""
    reading = read(text, outputs)
    return reading.outputs["score"] if reading.status == "scored" else reading.cause


GOOD = '{"reason": "ok", "score": 4}'


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"\n \ufeff\u200b{GOOD}\u200b\n",
        f"```json\n{GOOD}\n```",
        f"```\n{GOOD}\n```\n",
        f"Here:\n~~~json\n{GOOD}\n~~~\nMore?",
        f"```json\n{GOOD}",
        f"The 5 claims, 2 of them wrong.\n{GOOD}\nNot downgrade: 1.",
        f"Set {{2, 3}} and {{x}} aside: {GOOD}",
        f"As {{'python': 1}} said, {GOOD}",
        f'The form {{"score": <n>}} filled in: {GOOD}',
        f"{GOOD} and once more {GOOD}",
        f"```\n{{'not': 'json'}}\n```\n```json\n{GOOD}\n```",
        f'{{"note": "a draft"}} then {GOOD}',
        '{"reason": "shows ```json\\n{\\"score\\": 1}\\n``` well", "score": 4}',
        "<reason>ok</reason><score>4</score>",
        "<S0>let me think: 5?</S0><S1>ok</S1><S2> 4 </S2>",
    ],
)
def test_the_one_answer_is_found(text: str) -> None:
    assert score(text) == 4


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("", "empty"),
        (" \n\u200b\ufeff", "empty"),
        ("4", "unparseable"),
        ("Score: 4", "unparseable"),
        ("I can only say that 3 and 5 are both defensible.", "unparseable"),
        ("[" + GOOD + "]", "unparseable"),
        ("null", "unparseable"),
        (GOOD[:-1], "unparseable"),
        ('{"reason": "draft", "score": 2} no: ' + GOOD, "ambiguous"),
        ('{"score": 2, "score": 4, "reason": "x"}', "ambiguous"),
        ("<score>2</score><score>4</score>", "ambiguous"),
        (f'```\n{{"score": 2, "reason": ""}}\n```\n```\n{GOOD}\n```', "ambiguous"),
        ('{"Score": 4, "reason": "x"}', "missing_output"),
        ('{"score": 4}', "missing_output"),
        ("{}", "missing_output"),
        ("```json\n[4]\n```", "unparseable"),
        # What stands inside a broken object is a part of it.
        ('{"reason": "x", "draft": {"score": 1, "reason": "y"}, "score": ', "unparseable"),
        ('{"reason": "said {"score": 1, "reason": ""} here", "score": 4}', "unparseable"),
        ('{"a": tru, "draft": {"score": 1, "reason": "y"}, "score": 4}', "unparseable"),
    ],
)  # fmt: skip
def test_what_is_no_clear_answer_is_invalid(text: str, cause: str) -> None:
    reading = read(text, MARK)
    assert (reading.status, reading.cause, reading.outputs) == ("invalid", cause, {})
    assert reading.message


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("4", 4),
        ('"4"', 4),
        ("4.0", 4),
        ('" 4.0 "', 4),
        ('"４"', 4),
        ('"٤"', 4),
        ('"\u200b4\u200b"', 4),
        ("4e0", 4),
        ("4.5", "wrong_type"),
        ("true", "wrong_type"),
        ("null", "wrong_type"),
        ('"four"', "wrong_type"),
        ('"4/5"', "wrong_type"),
        ('"4²"', "wrong_type"),
        ('"④"', "wrong_type"),
        ('"−4"', "wrong_type"),
        ('"1e0"', "wrong_type"),
        ('"1_0"', "wrong_type"),
        ('""', "wrong_type"),
        ("[4]", "wrong_type"),
        ('{"value": 4}', "wrong_type"),
        ("0", "out_of_scale"),
        ("6", "out_of_scale"),
        ("-4", "out_of_scale"),
        ("NaN", "unparseable"),
        ("Infinity", "unparseable"),
        ("1e999", "unparseable"),
        ("9" * 400, "unparseable"),
        ("9" * 5000, "unparseable"),
        ("４", "unparseable"),
        ("04", "unparseable"),
    ],
)
def test_an_integer_is_one_only_where_nothing_is_lost(written: str, value: Any) -> None:
    found = score('{"reason": "", "score": ' + written + "}")
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("output", "given", "value"),
    [
        (Output("x", "number"), 0.5, 0.5),
        (Output("x", "number"), "0.50", 0.5),
        (Output("x", "number"), 1, 1),
        (Output("x", "number"), True, "wrong_type"),
        (Output("x", "number"), "50%", "wrong_type"),
        (Output("x", "number"), "nan", "wrong_type"),
        (Output("x", "number", maximum=1.0), 1.01, "out_of_scale"),
        (Output("x", "boolean"), True, True),
        (Output("x", "boolean"), "False", False),
        (Output("x", "boolean"), 1, "wrong_type"),
        (Output("x", "boolean"), "yes", "wrong_type"),
        (Output("x", "string"), "a", "a"),
        (Output("x", "string"), 5, "5"),
        (Output("x", "string"), True, "true"),
        (Output("x", "string"), None, "wrong_type"),
        (Output("x", "string"), ["a"], "wrong_type"),
        (Output("x", "string", levels={"Yes": None, "No": None}), "yes", "Yes"),
        (Output("x", "string", levels={"Yes": None, "No": None}), " ＮＯ ", "No"),
        (Output("x", "string", levels={"Yes": None, "No": None}), "maybe", "wrong_type"),
        (Output("x", "integer", levels={1: None, 3: None}), 3, 3),
        (Output("x", "integer", levels={1: None, 3: None}), 2, "out_of_scale"),
        (Output("x", "array"), [1], [1]),
        (Output("x", "array"), "[1]", "wrong_type"),
        (Output("x", "object"), {"a": 1}, {"a": 1}),
        (Output("x", "object"), [1], "wrong_type"),
        (Output("x"), {"any": [1]}, {"any": [1]}),
        (Output("x", "integer", nullable=True), None, None),
    ],
)
def test_every_type(output: Output, given: Any, value: Any) -> None:
    reading = read(json.dumps({"x": given, "other": 1}), {"x": output})
    found = reading.outputs["x"] if reading.status == "scored" else reading.cause
    assert found == value
    assert type(found) is type(value)


def test_the_message_names_the_output_and_what_was_found() -> None:
    assert read('{"score": 4.5, "reason": ""}', MARK).message == "`score` is 4.5, not integer"
    assert read('{"score": 9, "reason": ""}', MARK).message == "`score` is 9, outside 1..5"
    assert "it has `Score`" in str(read('{"Score": 4, "reason": ""}', MARK).message)
    assert "it has a, b" in str(read('{"a": 4, "b": ""}', MARK).message)


def test_an_optional_output_may_be_missing_or_null() -> None:
    outputs = ONE | {"reason": Output("reason", "string", required=False)}
    assert read('{"score": 4}', outputs) == Reading("scored", {"score": 4})
    assert read('{"score": 4, "reason": null}', outputs) == Reading("scored", {"score": 4})
    assert read("4", outputs) == Reading("scored", {"score": 4})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("4", 4),
        (" 4.0\n", 4),
        ('"4"', 4),
        ("```\n4\n```", 4),
        ('{"score": 4}', 4),
        ("<S2>4</S2>", 4),
        ("<score>4</score>", 4),
        ("4.", "wrong_type"),
        ("4 of 5", "wrong_type"),
        ("Score: 4", "wrong_type"),
        ("true", "wrong_type"),
        ("7", "out_of_scale"),
        ("[4]", "unparseable"),
    ],
)
def test_a_single_output_may_be_the_whole_answer(text: str, value: Any) -> None:
    assert score(text, ONE) == value


def test_free_text_is_taken_whole() -> None:
    outputs = {"summary": Output("summary", "string")}
    for text in ("Plain words.", "5", '{"json": 1}', "See {x}: <summary", "```\ncode\n```"):
        assert read(text, outputs) == Reading("scored", {"summary": text})
    assert read('{"summary": "S"}', outputs) == Reading("scored", {"summary": "S"})


@pytest.mark.parametrize(
    ("text", "outputs"),
    [
        ('{"score": 4, "extra": [1]}', {"score": 4, "extra": [1]}),
        ("4", {"score": 4}),
        ('"4"', {"score": 4}),
        ("4.5", {"score": 4.5}),
        ("<S0>t</S0><S1>because</S1><S2>4</S2>", {"score": 4, "reason": "because"}),
        ("four", {"text": "four"}),
    ],
)
def test_nothing_declared_gives_what_there_is(text: str, outputs: Any) -> None:
    assert read(text, {}) == Reading("scored", outputs)


@pytest.mark.parametrize("word", ["skipped", "Skipped", "not_applicable", "N/A"])
def test_the_judge_may_declare_a_row_not_applicable(word: str) -> None:
    reading = read(json.dumps({"status": word, "score": None, "reason": "no claims"}), MARK)
    assert (reading.status, reading.cause) == ("not_applicable", "judge_declared")
    assert "no claims" in str(reading.message)


@pytest.mark.parametrize(
    ("status", "given", "value"), [("skipped", 4, 4), ("completed", None, "wrong_type")]
)
def test_a_status_that_does_not_fit_the_score_is_no_skip(
    status: str, given: Any, value: Any
) -> None:
    assert score(json.dumps({"status": status, "score": given, "reason": ""})) == value


def test_a_declared_status_is_an_output_like_any_other() -> None:
    outputs = {"status": Output("status", "string")}
    assert read('{"status": "skipped"}', outputs) == Reading("scored", {"status": "skipped"})


@pytest.mark.parametrize(
    "text",
    [
        '{"score": "' + "x" * 100_000 + '", "reason": ""}',
        '{"' + "k" * 100_000 + '": 1}',
        '{"' + "k" * 100_000 + '": 1, "' + "k" * 100_000 + '": 2}',
        json.dumps({f"k{n}": n for n in range(50_000)}),
        "w " * 100_000,
    ],
)
def test_messages_stay_short_however_long_the_reply(text: str) -> None:
    message = read(text, MARK).message
    assert message is not None
    assert len(message) < 300


@pytest.mark.parametrize(
    "text",
    [
        '{"' * 100_000,
        "{" * 1_000_000,
        '{"a":' * 100_000,
        "[" * 100_000,
        '{"a": "\\"' + '\\"' * 1_000_000,
        "```\n" * 100_000,
        "<score>" * 100_000,
        '{"a" {"a" ' * 50_000,
        "{" + " " * 1_000_000,
    ],
)
def test_hostile_replies_take_one_pass(text: str) -> None:
    # Each takes hours where every opening is tried up to the end of the text.
    assert read(text, MARK).status == "invalid"

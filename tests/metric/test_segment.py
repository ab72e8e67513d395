"""Text to sentences and lines, in the scripts people write."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.metric.segment import lines, sentences


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It opens at nine. It closes at six.", ["It opens at nine.", "It closes at six."]),
        ("Is it open? Yes! Come in.", ["Is it open?", "Yes!", "Come in."]),
        ("No full stop at the end", ["No full stop at the end"]),
        ("No. It is closed.", ["No.", "It is closed."]),
        ("¿Está abierto? Sí. ¡Pase!", ["¿Está abierto?", "Sí.", "¡Pase!"]),
        (
            "El Sr. Gil y la Dra. Paz llegan. Esperan.",
            ["El Sr. Gil y la Dra. Paz llegan.", "Esperan."],
        ),
        ("Er kostet ca. 5 Euro. Er ist neu.", ["Er kostet ca. 5 Euro.", "Er ist neu."]),
        ("Das gilt z. B. Montags. Sonst nicht.", ["Das gilt z. B. Montags.", "Sonst nicht."]),
        ("Am 3. Oktober ist zu. Danach auf.", ["Am 3. Oktober ist zu.", "Danach auf."]),
        ("Siehe Art. 5 und Abs. 2. Dort steht es.", ["Siehe Art. 5 und Abs. 2.", "Dort steht es."]),
        ("九時に開きます。土曜日は休みです。", ["九時に開きます。", "土曜日は休みです。"]),
        ("彼は「行く。」と言った。そして去った。", ["彼は「行く。」と言った。", "そして去った。"]),
        ("图书馆九点开门。你来吗？来！", ["图书馆九点开门。", "你来吗？", "来！"]),
        ("यह नौ बजे खुलता है। यह छह बजे बंद होता है।", ["यह नौ बजे खुलता है।", "यह छह बजे बंद होता है।"]),
        (
            "هل المتحف مفتوح؟ نعم. يفتح في التاسعة.",
            ["هل المتحف مفتوح؟", "نعم.", "يفتح في التاسعة."],
        ),
        ("کھلا ہے۔ آؤ۔", ["کھلا ہے۔", "آؤ۔"]),
        (
            "It costs 3.50 euros. Version 2.1.3 is out.",
            ["It costs 3.50 euros.", "Version 2.1.3 is out."],
        ),
        (
            "Dr. A. B. Smith met Mr. Jones. They spoke.",
            ["Dr. A. B. Smith met Mr. Jones.", "They spoke."],
        ),
        (
            "Bring fruit, e.g. apples. Or i.e. pears.",
            ["Bring fruit, e.g. apples.", "Or i.e. pears."],
        ),
        ("See No. 7 on p. 12. It is there.", ["See No. 7 on p. 12.", "It is there."]),
        ("Wait ... then go. Now.", ["Wait ... then go.", "Now."]),
        ('He said "Go." Then he left.', ['He said "Go."', "Then he left."]),
        (
            "Rules:\n- No dogs\n- No balls. Or bats\n1. Pay",
            ["Rules:", "No dogs", "No balls.", "Or bats", "Pay"],
        ),
        ("A line\nbroken in two. End.", ["A line broken in two.", "End."]),
        ("Title\n\nText here", ["Title", "Text here"]),
        ("", []),
        (" \n ", []),
        ("...", []),
        ('""', []),
    ],
)
def test_sentences(text: str, found: list[str]) -> None:
    assert sentences(text) == found


def test_lines() -> None:
    assert lines("1. One\n\n- two\n  * three \nfour. five\n-1\n") == [
        "One",
        "two",
        "three",
        "four. five",
        "-1",
    ]


@given(st.text(max_size=200))
def test_nothing_that_is_said_is_lost(text: str) -> None:
    found = sentences(text)
    assert all(sentence.strip() == sentence and sentence for sentence in found)
    letters = [char for char in text if char.isalpha()]
    assert [char for sentence in found for char in sentence if char.isalpha()] == letters

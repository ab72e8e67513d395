"""Text metrics against values of their reference packages, and against what must always hold.

Reference values: rouge-score 0.1.2, sacrebleu 2.6.0, nltk 3.10.4, azure-ai-evaluation 1.18.10.
Beyond the tables, 2,000 random pairs gave rouge-score's numbers and 600 azure's F1, bit for bit.
"""

from __future__ import annotations

import math
import random
import re
import string
from collections import Counter
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import InputError, SetupError
from assay.metric import text

CAT = ("The cat sat on the mat.", "A cat sat on a mat")
PARTY = (
    "It is a guide to action which ensures that the military always obeys the commands of the "
    "party",
    "It is a guide to action that ensures that the military will forever heed Party commands",
)
DOGS = ("running dogs", "the dog runs")
WEATHER = ("今天天气很好", "今天天气不错")

METRICS: dict[str, Callable[[str, Sequence[str]], float]] = {
    "exact_match": text.exact_match,
    "f1": text.f1,
    "bleu": text.bleu,
    "gleu": text.gleu,
    "chrf": text.chrf,
    "meteor": text.meteor,
}


@pytest.mark.parametrize(
    ("name", "pair", "value"),
    [
        ("exact_match", CAT, 1.0),
        ("f1", CAT, 1.0),
        ("f1", PARTY, 0.7142857142857143),
        ("f1", DOGS, 0.0),
        ("bleu", CAT, 0.26269098944241588),
        ("bleu", PARTY, 0.41180376356915765),
        ("bleu", WEATHER, 0.5081327481546149),  # sacrebleu with tokenize="zh"
        ("gleu", CAT, 0.3888888888888889),
        ("gleu", PARTY, 0.45454545454545453),
        ("chrf", CAT, 0.54181970344350205),
        ("chrf", PARTY, 0.63050621049071886),
        ("chrf", WEATHER, 0.35),
        ("meteor", CAT, 0.625),
        ("meteor", PARTY, 0.6944444444444445),  # the example of the paper's implementation
        ("meteor", DOGS, 0.3448275862068965),  # two stems, crossed: two chunks
        ("meteor", ("x", "y"), 0.0),
    ],
)
def test_the_numbers_of_the_reference_packages(
    name: str, pair: tuple[str, str], value: float
) -> None:
    assert METRICS[name](pair[0], [pair[1]]) == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize(
    ("pair", "rouge1", "rouge2", "rouge_l"),
    [
        (CAT, (2 / 3, 2 / 3, 2 / 3), (0.4, 0.4, 0.4), (2 / 3, 2 / 3, 2 / 3)),
        (
            PARTY,
            (2 / 3, 0.75, 0.7058823529411765),
            (0.47058823529411764, 0.5333333333333333, 0.5),
            (0.6111111111111112, 0.6875, 0.6470588235294118),
        ),
        (DOGS, (0, 0, 0), (0, 0, 0), (0, 0, 0)),
        (("one", "one"), (1, 1, 1), (0, 0, 0), (1, 1, 1)),  # one word has no pair
    ],
)
def test_rouge_of_the_reference_package(
    pair: tuple[str, str], rouge1: object, rouge2: object, rouge_l: object
) -> None:
    found = text.rouge(pair[0], [pair[1]])
    assert found["rouge1"] == pytest.approx(rouge1)
    assert found["rouge2"] == pytest.approx(rouge2)
    assert found["rougeL"] == pytest.approx(rouge_l)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("The Cat sat.", ["cat", "sat"]),
        ("3.5 %", ["35"]),
        ("state-of-the-art", ["stateoftheart"]),
        ("A", ["a"]),  # a choice of A to D, not nothing
        ("the", ["the"]),
        ("?!", ["?!"]),
        ("¿Qué año?", ["qué", "año"]),
        ("Cafe\u0301", ["café"]),
        ("ＡＢＣ　１２", ["abc", "12"]),
        ("今天。", ["今", "天"]),
        ("Straße", ["strasse"]),
    ],
)
def test_the_words_of_squad(written: str, expected: list[str]) -> None:
    assert text.squad_words(written) == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("Don't stop, 3.5!", ["don", "t", "stop", "3", "5"]),
        ("naïve_über", ["naïve", "über"]),
        ("हिन्दी में", ["हिन्दी", "में"]),  # marks stay in their word
        ("東京タワーへ", ["東", "京", "タ", "ワ", "ー", "へ"]),
        ("ที่นี่", ["ที่", "นี่"]),  # a mark belongs to the character before it
        ("한국어 문장", ["한국어", "문장"]),  # written with spaces
        ("GPT-4 是模型", ["gpt", "4", "是", "模", "型"]),
        ("...", []),
    ],
)
def test_words_in_every_script(written: str, expected: list[str]) -> None:
    assert text.words(written) == expected


def squad(answer: str) -> list[str]:
    """SQuAD's normalisation as its paper's appendix describes it, for ASCII."""
    plain = "".join(char for char in answer.lower() if char not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", plain).split()


SENTENCE = st.text(alphabet=" .,-'aehtn0", max_size=30)


@given(SENTENCE)
def test_ascii_is_normalised_as_squad_does(answer: str) -> None:
    if squad(answer):
        assert text.squad_words(answer) == squad(answer)


@given(SENTENCE, SENTENCE)
def test_f1_is_the_one_of_squad(response: str, truth: str) -> None:
    found, wanted = Counter(squad(response)), Counter(squad(truth))
    if not found or not wanted:
        return
    common = (found & wanted).total()
    expected = 2 * common / (found.total() + wanted.total())
    assert text.f1(response, [truth]) == pytest.approx(expected)


WRITTEN = st.text(
    alphabet=st.sampled_from("abc dé. 今日 हि ที่ñ1!？\n"), min_size=1, max_size=40
).filter(lambda written: bool(text.words(written)))


@given(WRITTEN, st.lists(WRITTEN, min_size=1, max_size=3))
def test_every_value_is_on_its_scale(response: str, references: list[str]) -> None:
    for name, metric in METRICS.items():
        value = metric(response, references)
        assert 0 <= value <= 1, name
        assert math.isfinite(value), name
    assert all(0 <= x <= 1 for three in text.rouge(response, references).values() for x in three)


@given(WRITTEN)
def test_the_same_text_has_the_best_score(written: str) -> None:
    for name in ("exact_match", "f1", "gleu", "chrf", "bleu"):
        assert METRICS[name](written, [written]) == pytest.approx(1), name
    assert text.rouge(written, [written])["rougeL"] == (1, 1, 1)
    assert text.meteor(written, [written]) == pytest.approx(1 - 0.5 / len(text.words(written)) ** 3)


@given(WRITTEN, WRITTEN, WRITTEN)
def test_another_reference_never_lowers_the_best(response: str, one: str, other: str) -> None:
    for name in ("exact_match", "f1", "meteor", "chrf"):
        both = METRICS[name](response, [one, other])
        assert both == pytest.approx(
            max(METRICS[name](response, [one]), METRICS[name](response, [other]))
        ), name
        assert both == METRICS[name](response, [other, one])


def slow_lcs(a: Sequence[str], b: Sequence[str]) -> int:
    row = [0] * (len(b) + 1)
    for x in a:
        before = row[:]
        for j, y in enumerate(b, 1):
            row[j] = before[j - 1] + 1 if x == y else max(before[j], row[j - 1])
    return row[-1]


@given(
    st.lists(st.sampled_from("abc"), max_size=20), st.lists(st.sampled_from("abcd"), max_size=20)
)
def test_the_longest_common_subsequence(a: list[str], b: list[str]) -> None:
    assert text.lcs_length(a, b) == slow_lcs(a, b)


def test_long_texts_are_no_trap() -> None:
    chance = random.Random(1)
    a, b = (" ".join(chance.choices("abcdefgh", k=20_000)) for _ in range(2))
    assert 0.5 < text.rouge(a, [b])["rougeL"][2] < 0.8


@pytest.mark.parametrize("name", ["gleu", "meteor"])
def test_a_reference_without_a_word_is_no_reference(name: str) -> None:
    with pytest.raises(InputError, match="no word") as caught:
        METRICS[name]("something", ["?!", " "])
    assert caught.value.cause == "no_words"
    assert METRICS[name]("?!", ["something"]) == 0


@pytest.mark.parametrize("truth", [{"a": "b"}, [["x"]], None, [None]])
def test_what_is_no_text_is_refused(truth: object) -> None:
    with pytest.raises(InputError, match="ground_truth must be a text"):
        text.texts(truth)
    assert text.texts(["a", 3, " "]) == ["a", "3"]


def test_wordnet_is_never_downloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    nltk = pytest.importorskip("nltk")
    monkeypatch.setattr(nltk.data, "path", [])
    with pytest.raises(SetupError, match=r"python -m nltk\.downloader wordnet"):
        text.load_wordnet()

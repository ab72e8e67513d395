"""The arithmetic of metrics: the golden values of the facts, and what holds for any input."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from assay.metric import functions as f

VERDICTS = st.lists(st.integers(0, 1), min_size=1, max_size=30)
COUNTS = st.integers(0, 50)
SHARE = st.floats(0, 1)
FINITE = st.floats(-1e6, 1e6)


def vectors(size: int = 4) -> st.SearchStrategy[list[float]]:
    return st.lists(st.floats(-1e3, 1e3), min_size=size, max_size=size).filter(any)


# Golden values.


@pytest.mark.parametrize(
    ("verdicts", "value"),
    [([1, 0, 1], 0.833333), ([0, 1, 1], 0.583333), ([0, 0, 1], 0.333333), ([0, 0, 0], 0)],
)
def test_average_precision(verdicts: list[int], value: float) -> None:
    assert f.average_precision(verdicts) == pytest.approx(value, abs=5e-7)


def test_average_precision_of_nothing_but_hits_is_exactly_one() -> None:
    for n in range(1, 200):
        assert f.average_precision([1] * n) == 1


def test_average_precision_is_over_what_was_retrieved() -> None:
    assert f.average_precision([1, 0, 1]) == pytest.approx((1 + 2 / 3) / 2, abs=1e-15)
    assert f.average_precision([]) == 0


@pytest.mark.parametrize(
    ("counts", "beta", "value"),
    [
        ((1, 1, 1), 1, 0.5),
        ((2, 1, 0), 1, 0.8),
        ((3, 1, 2), 1, 2 / 3),
        ((3, 1, 2), 2, 0.625),
        ((0, 2, 5), 1, 0.0),
        ((0, 0, 5), 1, 0.0),
    ],
)
def test_fbeta(counts: tuple[int, int, int], beta: float, value: float) -> None:
    assert f.fbeta(*counts, beta) == pytest.approx(value, abs=1e-15)


def test_fbeta_of_nothing_is_no_number() -> None:
    with pytest.raises(f.Undefined, match="no statement on either side"):
        f.fbeta(0, 0, 0)


def test_the_expectation_of_levels() -> None:
    # 8, 9 and 7 of 0..10; `ten` is no level, and is not among them.
    golden = f.expectation({"8": 0.6, "9": 0.3, "7": 0.095}, 0.01)
    assert golden == pytest.approx(8.20603, abs=5e-6)
    # What is less probable than 0.01 is left out ...
    assert f.expectation({"8": 0.985, "1": 0.009, "9": 0.006}, 0.01) == 8.0
    # ... where the file says so.
    assert f.expectation({"8": 0.985, "1": 0.009, "9": 0.006}) == pytest.approx(7.943)
    with pytest.raises(f.Undefined):
        f.expectation({"8": 0.005}, 0.01)
    with pytest.raises(f.Undefined):
        f.expectation({})


def test_frequencies() -> None:
    assert f.frequencies([5, 4, 4, 2]) == {"2": 0.25, "4": 0.5, "5": 0.25}
    assert f.frequencies([]) == {}


def test_ratio_and_mean_of_nothing_are_no_numbers() -> None:
    empties: list[Callable[[], float]] = [
        lambda: f.ratio(1, 0),
        lambda: f.mean([]),
        lambda: f.mean([None]),
        lambda: f.median([]),
        lambda: f.majority([]),
        lambda: f.wmean([1], [0]),
        lambda: f.recall_sets(["a"], []),
        lambda: f.precision_at_k([1], 0),
        lambda: f.cosine([0, 0], [1, 0]),
        lambda: f.cosine_mean([1, 0], []),
        lambda: f.rescale(1, 2, 2),
    ]
    for empty in empties:
        with pytest.raises(f.Undefined):
            empty()


def test_what_is_left_out_leaves_the_denominator() -> None:
    assert f.mean([1, None, 0]) == 0.5
    assert f.total([1, None, 0.5]) == 1.5
    assert f.median([3, None, 1, 2]) == 2
    assert f.median([1, 2]) == 1.5
    assert f.majority([2, 3, 3, None, 2]) == 2  # the lower of two


def test_the_other_functions() -> None:
    assert f.wmean([0.8, 0.6], [0.75, 0.25]) == pytest.approx(0.75)
    with pytest.raises(f.Undefined, match="2 values, but 1 weights"):
        f.wmean([1, 2], [1])
    assert f.precision_at_k([1, 1], 4) == 0.5
    assert f.count(["1", "0", "1"], "1") == 2
    assert f.rescale(8.20603, 0, 10) == pytest.approx(0.820603)
    assert f.gate(0.7, 0) == 0
    assert f.gate(0.7, 1) == 0.7
    assert f.flatten([[1], [], [2, 3]]) == [1, 2, 3]
    assert f.clamp(1.5) == 1
    assert f.numbered(["a", "b"]) == [{"index": 1, "text": "a"}, {"index": 2, "text": "b"}]
    assert f.recall_sets(["Köln ", "ＡＢＣ"], ["KÖLN", "abc", "abc", "x"]) == pytest.approx(2 / 3)
    assert f.recall_sets(["A"], ["a"], exact=True) == 0
    with pytest.raises(f.Undefined, match="vectors of 2 and 3"):
        f.cosine([1, 2], [1, 2, 3])


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("Yes", "yes"),
        (" NO. ", "no"),
        ("yes, because", "yes"),
        ("**No**", "no"),
        ("ＹＥＳ", "yes"),
        ("はい。", "はい"),
        ("Ja!", "ja"),
        (1, "1"),
        ("-1", "-1"),
        (True, "true"),
        (None, "null"),
        ("", ""),
    ],
)
def test_the_word_of_a_verdict(text: Any, word: str) -> None:
    assert f.word(text) == word


def test_texts_of_a_judge() -> None:
    assert f.texts([" a ", "", "  ", "b"]) == ["a", "b"]
    with pytest.raises(f.Undefined, match="stands where a text was asked for"):
        f.texts(["a", {"claim": "b"}])


def test_the_numbers_a_judge_names() -> None:
    assert f.chosen([2, "1", 2], 3) == [1, 2]
    assert f.chosen([], 3) == []
    for wrong in (0, 4, -1, 1.5, True, None, "one"):
        with pytest.raises(f.Undefined, match="none of the numbers 1 to 3"):
            f.chosen([wrong], 3)


# What holds for any input.


@given(VERDICTS)
def test_average_precision_is_a_share(verdicts: list[int]) -> None:
    value = f.average_precision(verdicts)
    assert 0 <= value <= 1
    assert (value == 0) == (sum(verdicts) == 0)
    ordered = sorted(verdicts, reverse=True)
    if sum(verdicts):
        assert f.average_precision(ordered) == 1  # the best order there is
    assert f.average_precision([*verdicts, 0]) == value  # what comes after costs nothing


@given(VERDICTS, st.data())
def test_average_precision_rises_when_a_hit_moves_up(verdicts: list[int], data: Any) -> None:
    steps = [i for i in range(1, len(verdicts)) if verdicts[i] and not verdicts[i - 1]]
    assume(steps)
    i = data.draw(st.sampled_from(steps))
    better = [*verdicts]
    better[i - 1], better[i] = better[i], better[i - 1]
    assert f.average_precision(better) > f.average_precision(verdicts)


@given(COUNTS, COUNTS, COUNTS, st.floats(0.1, 10))
def test_fbeta_is_a_share_and_rises_with_what_is_right(
    tp: int, fp: int, fn: int, beta: float
) -> None:
    assume(tp + fp + fn)
    value = f.fbeta(tp, fp, fn, beta)
    assert 0 <= value <= 1 + 1e-15
    assert f.fbeta(tp + 1, fp, fn, beta) >= value - 1e-12
    assert f.fbeta(tp, fp + 1, fn, beta) <= value + 1e-12
    assert f.fbeta(tp, fp, fn + 1, beta) <= value + 1e-12


@given(COUNTS, COUNTS, COUNTS)
def test_f1_does_not_care_which_side_is_which(tp: int, fp: int, fn: int) -> None:
    assume(tp + fp + fn)
    assert f.fbeta(tp, fp, fn) == pytest.approx(f.fbeta(tp, fn, fp))
    assert f.fbeta(tp, fp, fn) == pytest.approx(2 * tp / (2 * tp + fp + fn) if tp else 0)


@given(SHARE, SHARE)
def test_f_from_lies_between(precision: float, recall: float) -> None:
    value = f.f_from(precision, recall)
    assert min(precision, recall) - 1e-12 <= value <= max(precision, recall) + 1e-12
    assert 0 <= value <= 1


@given(vectors(), vectors(), st.floats(0.001, 1000))
def test_cosine(a: list[float], b: list[float], times: float) -> None:
    value = f.cosine(a, b)
    assert -1 <= value <= 1
    assert f.cosine(b, a) == pytest.approx(value, abs=1e-12)
    assert f.cosine([x * times for x in a], b) == pytest.approx(value, abs=1e-9)
    assert f.cosine(a, a) == pytest.approx(1)
    assert f.cosine(a, [-x for x in a]) == pytest.approx(-1)


@given(vectors(), st.lists(vectors(), min_size=1, max_size=5), st.randoms())
def test_cosine_mean_does_not_care_about_order(
    one: list[float], others: list[list[float]], random: Any
) -> None:
    value = f.cosine_mean(one, others)
    shuffled = [*others]
    random.shuffle(shuffled)
    assert f.cosine_mean(one, shuffled) == value
    assert -1 <= value <= 1


@given(st.dictionaries(st.integers(1, 5).map(str), st.floats(1e-6, 1), min_size=1))
def test_expectation_lies_between_its_levels(levels: dict[str, float]) -> None:
    value = f.expectation(levels)
    assert min(map(int, levels)) <= value <= max(map(int, levels))
    half = {level: p / 2 for level, p in levels.items()}
    assert f.expectation(half) == pytest.approx(value)  # it is normalised


@given(st.lists(st.integers(1, 5), min_size=1, max_size=40))
def test_the_expectation_of_frequencies_is_the_mean(samples: list[int]) -> None:
    assert f.expectation(f.frequencies(samples)) == pytest.approx(sum(samples) / len(samples))
    assert math.fsum(f.frequencies(samples).values()) == pytest.approx(1)


@given(st.lists(st.text(max_size=8)), st.lists(st.text(max_size=8), min_size=1))
def test_recall_of_sets(found: list[str], wanted: list[str]) -> None:
    value = f.recall_sets(found, wanted)
    assert 0 <= value <= 1
    assert f.recall_sets([*found, *wanted], wanted) == 1
    assert f.recall_sets(found * 2, wanted * 3) == value  # each counts once


@given(st.lists(FINITE | st.none(), min_size=1))
def test_means_lie_between(values: list[float | None]) -> None:
    present = [value for value in values if value is not None]
    assume(present)
    for function in (f.mean, f.median, f.majority):
        assert min(present) - 1e-9 <= function(values) <= max(present) + 1e-9
        assert function([*reversed(values)]) == function(values)

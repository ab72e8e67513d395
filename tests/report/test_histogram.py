"""Counting on a scale, and pairs of rows."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from assay.prompty import Output
from assay.report.chart import chart_of
from assay.report.histogram import Histogram
from assay.report.paired import Pairs, sign_test
from assay.report.terminal import bar


def filled(output: Output, *values: object) -> Histogram:
    found = Histogram(output)
    for value in values:
        found.add(value)
    return found


def test_every_level_of_the_scale_has_a_bar() -> None:
    found = filled(Output("s", "integer", minimum=0, maximum=3, threshold=2), 0, 3, 3)
    assert [(b.label, b.count, b.result) for b in found.bins] == [
        ("0", 1, "fail"),
        ("1", 0, "fail"),
        ("2", 0, "pass"),
        ("3", 2, "pass"),
    ]
    assert found.place(3) == 3


def test_words_and_booleans_are_levels() -> None:
    words = filled(Output("s", "string", levels={"bad": "x", "good": None}), "good", "odd")
    assert [(b.label, b.count) for b in words.bins] == [("bad", 0), ("good", 1), ("odd", 1)]
    yes = filled(Output("s", "boolean"), True, True, False)
    assert [(b.label, b.count, b.result) for b in yes.bins] == [
        ("no", 1, "fail"),
        ("yes", 2, "pass"),
    ]


def test_numbers_are_counted_in_ranges_of_the_scale() -> None:
    found = filled(Output("s", "number", minimum=0, maximum=1), 0.0, 0.1, 0.3, 0.99, 1.0)
    assert [b.count for b in found.bins] == [1, 1, 0, 1, 0, 0, 0, 0, 0, 2]
    assert found.place(1.0) == 9


def test_without_a_scale_the_range_is_what_was_met() -> None:
    found = filled(Output("s", "number"), -3.0, 0.5, 17.2)
    bins = found.bins
    assert sum(b.count for b in bins) == 3
    assert (bins[0].low, bins[-1].high) == (-5.0, 20.0)
    assert [b.label for b in filled(Output("s", "number"), 5, 5).bins] == ["5"]
    assert filled(Output("s", "number")).bins == []


def test_the_mean_stands_between_its_levels() -> None:
    found = filled(Output("s", "integer", minimum=1, maximum=5), 1, 5)
    chart = chart_of(found.bins, {"mean": 3.0, "ci95": [2.0, 4.0]})
    assert chart is not None
    assert chart.mean == chart.bars[2].center
    assert (chart.low, chart.high) == (chart.bars[1].center, chart.bars[3].center)
    assert chart_of([], {"mean": None}) is None


def test_bars_of_characters() -> None:
    assert bar([0, 1, 8, 4]) == "·▁█▄"
    assert bar([0, 1, 9, 4], blocks=False) == "0194"
    assert bar([]) == bar([0, 0]) == ""


@pytest.mark.parametrize(("up", "down"), [(0, 1), (3, 3), (9, 1), (40, 12), (700, 250)])
def test_the_sign_test_is_the_binomial_one(up: int, down: int) -> None:
    expected = stats.binomtest(up, up + down).pvalue
    assert sign_test(up, down) == pytest.approx(expected)


def test_the_sign_test_of_very_many_rows_is_near() -> None:
    expected = stats.binomtest(5200, 10_000).pvalue
    assert sign_test(5200, 4800) == pytest.approx(expected, rel=0.02)
    assert sign_test(0, 0) is None


def test_a_difference_has_the_paired_interval() -> None:
    before, after = [1.0, 2, 3, 4, 2, 5], [2.0, 2, 5, 4, 3, 4]
    pairs = Pairs()
    for one, other in zip(before, after, strict=True):
        pairs.add(one, other)
    result = stats.ttest_rel(after, before).confidence_interval(0.95)
    interval = pairs.difference.interval()
    assert interval is not None
    assert interval == pytest.approx((result.low, result.high), abs=1e-3)
    assert math.isclose(pairs.difference.mean, 0.5)
    assert (pairs.up, pairs.down) == (3, 1)

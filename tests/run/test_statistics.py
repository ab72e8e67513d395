"""Means, deviations and intervals, against scipy and against printed tables."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from assay.run.statistics import Moments, t_quantile

numbers = st.floats(-1e6, 1e6, allow_subnormal=False)

# Two-sided 95 % and 99 % points of Student's t, as printed in any textbook.
TABLE = [
    (1, 12.706, 63.657),
    (2, 4.303, 9.925),
    (3, 3.182, 5.841),
    (4, 2.776, 4.604),
    (5, 2.571, 4.032),
    (6, 2.447, 3.707),
    (8, 2.306, 3.355),
    (10, 2.228, 3.169),
    (15, 2.131, 2.947),
    (20, 2.086, 2.845),
    (30, 2.042, 2.750),
    (60, 2.000, 2.660),
    (120, 1.980, 2.617),
    (1_000_000, 1.960, 2.576),
]


def moments(values: list[float]) -> Moments:
    found = Moments()
    for value in values:
        found.add(value)
    return found


@pytest.mark.parametrize(("df", "at_95", "at_99"), TABLE)
def test_quantiles_are_those_of_the_printed_table(df: int, at_95: float, at_99: float) -> None:
    assert round(t_quantile(0.975, df), 3) == pytest.approx(at_95, abs=1e-9)
    assert round(t_quantile(0.995, df), 3) == pytest.approx(at_99, abs=1e-9)


@given(p=st.floats(0.75, 0.9995), df=st.integers(1, 10_000))
def test_quantiles_agree_with_scipy(p: float, df: int) -> None:
    assert t_quantile(p, df) == pytest.approx(float(stats.t.ppf(p, df)), rel=1e-4)


@given(st.lists(numbers, min_size=1, max_size=60))
def test_mean_and_deviation_agree_with_two_passes(values: list[float]) -> None:
    found = moments(values)
    mean = math.fsum(values) / len(values)
    scale = max(map(abs, values)) or 1.0
    assert found.n == len(values)
    assert found.mean == pytest.approx(mean, abs=1e-12 * scale)
    if len(values) == 1:
        assert found.sd is None
        return
    sd = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
    assert found.sd == pytest.approx(sd, rel=1e-9, abs=1e-9 * scale)


@given(st.lists(st.integers(0, 5), min_size=2, max_size=200).filter(lambda v: len(set(v)) > 1))
def test_the_interval_agrees_with_scipy(values: list[int]) -> None:
    found = moments([float(value) for value in values]).interval()
    low, high = stats.t.interval(
        0.95, len(values) - 1, loc=math.fsum(values) / len(values), scale=stats.sem(values)
    )
    assert found is not None
    assert found[0] == pytest.approx(float(low), abs=2e-4 * (high - low))
    assert found[1] == pytest.approx(float(high), abs=2e-4 * (high - low))


def test_an_interval_by_hand() -> None:
    # 1, 2, 3, 4: mean 2.5, sd sqrt(5/3), half width 3.182446 * sd / 2
    found = moments([1, 2, 3, 4])
    assert found.mean == 2.5
    assert found.sd == pytest.approx(1.2909944487)
    assert found.interval() == pytest.approx((0.4457397432, 4.5542602568), abs=2e-4)


def test_equal_values_have_an_interval_of_no_width() -> None:
    found = moments([0.1] * 1_000)
    assert found.interval() == pytest.approx((0.1, 0.1), abs=1e-12)


@pytest.mark.parametrize("values", [[], [4.0]])
def test_too_few_values_have_no_deviation_and_no_interval(values: list[float]) -> None:
    found = moments(values)
    assert (found.sd, found.interval()) == (None, None)


def test_a_large_offset_costs_no_precision() -> None:
    # Sums of squares would lose every digit here: (10^9)^2 has 18 of them.
    found = moments([1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16])
    assert found.mean == 1e9 + 10
    assert found.sd == pytest.approx(math.sqrt(30))

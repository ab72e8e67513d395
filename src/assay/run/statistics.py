"""Means that say how sure they are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist


@dataclass(slots=True)
class Moments:
    """Mean and variance of a stream, by Welford's method (Technometrics 4, 1962)."""

    n: int = 0
    mean: float = 0.0
    _squares: float = 0.0

    def add(self, value: float) -> None:
        self.n += 1
        change = value - self.mean
        self.mean += change / self.n
        self._squares += change * (value - self.mean)

    @property
    def sd(self) -> float | None:
        """Sample standard deviation (n - 1); None for fewer than two values."""
        return math.sqrt(self._squares / (self.n - 1)) if self.n > 1 else None

    def interval(self, level: float = 0.95) -> tuple[float, float] | None:
        """Student's t interval of the mean; None for fewer than two values."""
        if self.sd is None:
            return None
        half = t_quantile(0.5 + level / 2, self.n - 1) * self.sd / math.sqrt(self.n)
        return self.mean - half, self.mean + half


def t_quantile(p: float, df: int) -> float:
    """Quantile of Student's t, 0.5 <= p < 1, by Hill's expansion (CACM algorithm 396, 1970).

    Exact for one and two degrees of freedom, within 1e-4 of the truth from three on.
    """
    if df == 1:
        return math.tan(math.pi * (p - 0.5))
    if df == 2:
        return (2 * p - 1) * math.sqrt(2 / (4 * p * (1 - p)))
    tail = 2 * (1 - p)
    a = 1 / (df - 0.5)
    b = 48 / (a * a)
    c = ((20700 * a / b - 98) * a - 16) * a + 96.36
    d = ((94.5 / (b + c) - 3) / b + 1) * math.sqrt(a * math.pi / 2) * df
    x = d * tail
    y = x ** (2 / df)
    if y > 0.05 + a:
        x = NormalDist().inv_cdf(tail / 2)
        y = x * x
        if df < 5:
            c += 0.3 * (df - 4.5) * (x + 0.6)
        c = (((0.05 * d * x - 5) * x - 7) * x - 2) * x + b + c
        y = (((((0.4 * y + 6.3) * y + 36) * y + 94.5) / c - y - 3) / b + 1) * x
        y = math.expm1(a * y * y)
    else:
        y = (
            (1 / (((df + 6) / (df * y) - 0.089 * d - 0.822) * (df + 2) * 3) + 0.5 / (df + 4)) * y
            - 1
        ) * (df + 1) / (df + 2) + 1 / y
    return math.sqrt(df * y)

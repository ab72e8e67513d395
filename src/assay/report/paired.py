"""Statistics of pairs: the same rows, judged in two runs."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import NormalDist

from assay.run.statistics import Moments

EXACT_UP_TO = 1000


@dataclass
class Pairs:
    """Values of the same rows in the first run and in another one."""

    first: Moments = field(default_factory=Moments)
    other: Moments = field(default_factory=Moments)
    difference: Moments = field(default_factory=Moments)
    up: int = 0
    down: int = 0
    to_pass: int = 0
    to_fail: int = 0

    def add(self, before: float, after: float) -> None:
        self.first.add(before)
        self.other.add(after)
        self.difference.add(after - before)
        self.up += after > before
        self.down += after < before

    def add_results(self, before: str | None, after: str | None) -> None:
        """Count a row whose pass or fail has changed."""
        self.to_pass += (before, after) == ("fail", "pass")
        self.to_fail += (before, after) == ("pass", "fail")


def sign_test(up: int, down: int) -> float | None:
    """Two-sided p-value for as many ups and downs, had both been as likely; None without any.

    The exact binomial test up to a thousand pairs, from there its normal approximation with
    the correction for continuity. For passes and fails it is McNemar's exact test.
    """
    n = up + down
    if n == 0:
        return None
    fewer = min(up, down)
    if n <= EXACT_UP_TO:
        tail = sum(math.comb(n, k) for k in range(fewer + 1))
        return min(1.0, float(2 * tail / 2**n))
    z = (abs(up - down) - 1) / math.sqrt(n)
    return min(1.0, 2 * (1 - NormalDist().cdf(max(z, 0.0))))

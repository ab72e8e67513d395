"""What a run has used so far: tokens and, where prices are known, dollars."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from assay.judge.base import Usage
from assay.judge.prices import Price, Prices


class Spending:
    """Adds up calls. `cost` is None as soon as one model's price is not known.

    Replies from the cache are counted, and cost nothing.
    """

    def __init__(self, prices: Prices, judges: Mapping[str, str | None]) -> None:
        self._prices = prices
        self._judges = judges
        self._known: dict[tuple[str | None, str | None], Price | None] = {}
        self.usage = Usage()
        self.calls = 0
        self.cached = 0
        self.dollars = 0.0
        self.unpriced: set[str] = set()

    @property
    def cost(self) -> float | None:
        return None if self.unpriced else self.dollars

    def add(self, evaluator: str, calls: Iterable[Mapping[str, Any]]) -> None:
        """Count the calls of one score, as they stand in the journal."""
        for call in calls:
            self.calls += 1
            if call.get("cached"):
                self.cached += 1
                continue
            found = call.get("usage")
            if not found:
                continue
            usage = Usage(**found)
            self.usage += usage
            price = self._price(call.get("model"), self._judges.get(evaluator))
            if price is not None:
                self.dollars += price.of(usage)
            elif usage.total_tokens:
                self.unpriced.add(str(call.get("model") or self._judges.get(evaluator)))

    def as_dict(self) -> dict[str, Any]:
        """For a summary."""
        return {
            "tokens": {
                "prompt": self.usage.prompt_tokens,
                "completion": self.usage.completion_tokens,
                "reasoning": self.usage.reasoning_tokens,
                "total": self.usage.total_tokens,
            },
            "calls": self.calls,
            "cached_calls": self.cached,
            "cost": self.cost,
            **({"no_price_for": sorted(self.unpriced)} if self.unpriced else {}),
        }

    def _price(self, model: str | None, judge: str | None) -> Price | None:
        key = (model, judge)
        if key not in self._known:
            self._known[key] = self._prices.of(judge, model)
        return self._known[key]

"""The Jinja sandbox: nothing outside the values, and no sum that never ends."""

from __future__ import annotations

from typing import Any

from jinja2.exceptions import SecurityError
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

_LONGEST = 1_000_000
_LARGEST_POWER = 64


class Sandbox(ImmutableSandboxedEnvironment):
    """Powers and repetitions are bounded. Intercepting them also keeps Jinja from computing
    `9**9**9` when it compiles."""

    intercepted_binops = frozenset({"**", "*"})

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """The result of `*` or `**`. Raises SecurityError where it would be too large."""
        if operator == "**" and (abs(left) > _LONGEST or abs(right) > _LARGEST_POWER):
            raise SecurityError("a power that large is not computed")
        for text, times in ((left, right), (right, left)):
            is_text = isinstance(text, str | list | tuple) and isinstance(times, int)
            if is_text and len(text) * times > _LONGEST:
                raise SecurityError("a repetition that long is not made")
        return super().call_binop(context, operator, left, right)

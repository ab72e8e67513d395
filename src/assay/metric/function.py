"""Any Python callable as an evaluator."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import math
import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from assay.errors import InputError
from assay.judge.base import Judge
from assay.metric.evaluator import Doors
from assay.metric.inputs import bind
from assay.metric.score import Score, reason_of
from assay.prompty import Input, Output

_SIDE_KEYS = (
    "reason",
    "result",
    "threshold",
    "status",
    "properties",
    "score",
    "passed",
    "prompt_tokens",
    "completion_tokens",
    "total_tokens",
)


@dataclass(frozen=True)
class FunctionEvaluator(Doors):
    """A callable that takes columns by name and returns a number, a boolean or a dict.

    Inputs are its parameters; one with a default is optional. A dict's numeric values are the
    outputs; `<m>_reason`, `<m>_result` and the like belong to `m`, as azure's evaluators
    return them. None and NaN are no score.
    """

    function: Callable[..., Any]
    name: str = ""
    outputs: Mapping[str, Output] = field(default_factory=dict)
    judge: Judge | None = None
    needs_judge: bool = False

    @cached_property
    def inputs(self) -> Mapping[str, Input]:  # type: ignore[override]
        found = {}
        for name, parameter in inspect.signature(self.function).parameters.items():
            if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
                continue
            optional = parameter.default is not inspect.Parameter.empty
            found[name] = Input(name, required=not optional)
        return found

    def renamed(self, name: str) -> FunctionEvaluator:
        """The same metric under another name."""
        return replace(self, name=name)

    @cached_property
    def fingerprint(self) -> str:
        try:
            text = inspect.getsource(self.function)
        except (OSError, TypeError):
            text = repr(type(self.function))
        return hashlib.sha256(f"{self.name}\n{text}".encode()).hexdigest()[:16]

    def describe(self) -> dict[str, Any]:
        where = getattr(self.function, "__module__", None)
        what = getattr(self.function, "__qualname__", type(self.function).__qualname__)
        return {"kind": "function", "function": f"{where}.{what}", "outputs": {}}

    def check(self, judge: Judge | None) -> None:
        _ = self.inputs

    async def score(
        self, values: Mapping[str, Any], judge: Judge | None = None, *, reask: int = 1
    ) -> Score:
        try:
            bound = bind(self.inputs, values)
        except InputError as error:
            return Score(self.name, "not_applicable", cause=error.cause, message=str(error))
        result = await self._call(bound)
        found = result if isinstance(result, Mapping) else {self.name: result}
        outputs, reason = _split(found, self.name)
        wrong = [name for name, value in outputs.items() if _is_no_number(value)]
        if not outputs or wrong:
            message = f"{', '.join(wrong) or 'the result'} is not a number"
            return Score(self.name, "invalid", reason=reason, cause="not_a_number", message=message)
        return Score(self.name, "scored", outputs=outputs, reason=reason)

    async def _call(self, bound: Mapping[str, Any]) -> Any:
        if inspect.iscoroutinefunction(self.function) or inspect.iscoroutinefunction(
            getattr(self.function, "__call__", None)  # noqa: B004
        ):
            return await self.function(**bound)
        result = await asyncio.to_thread(self.function, **bound)
        return await result if inspect.isawaitable(result) else result


def _split(found: Mapping[str, Any], name: str) -> tuple[dict[str, Any], str | None]:
    """A result's measurements, and its reason; keys that go with another key are left out."""
    outputs: dict[str, Any] = {}
    for key, value in found.items():
        if any(key.endswith(f"_{side}") and key[: -len(side) - 1] in found for side in _SIDE_KEYS):
            continue
        if value is None or isinstance(value, bool | int | float):
            outputs[key] = value
        elif isinstance(value, numbers.Real):  # of numpy and the like
            outputs[key] = int(value) if isinstance(value, numbers.Integral) else float(value)
    reason = next(
        (str(found[f"{key}_reason"]) for key in outputs if found.get(f"{key}_reason")), None
    )
    return outputs, reason or reason_of(found)


def _is_no_number(value: Any) -> bool:
    return value is None or (isinstance(value, float) and not math.isfinite(value))

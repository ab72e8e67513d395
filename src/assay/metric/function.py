"""Any Python callable as an evaluator."""

from __future__ import annotations

import asyncio
import contextvars
import hashlib
import inspect
import math
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, get_overloads
from weakref import WeakKeyDictionary

from assay.errors import InputError
from assay.judge.base import Judge
from assay.metric.evaluator import Doors, describe_output
from assay.metric.flatkeys import Measured, measured, metric_fields, plain
from assay.metric.inputs import bind, is_absent
from assay.metric.observed import own_scale
from assay.metric.score import Call, Score, reason_of
from assay.prompty import Input, Output
from assay.prompty.fields import MISSING
from assay.prompty.values import Unreadable, value_of

_SKIPPED = ("not_applicable", "skipped")
_THREADS = 32
"""Calls of one callable's thread at once: most of them wait for a service."""

_pools: WeakKeyDictionary[asyncio.AbstractEventLoop, ThreadPoolExecutor] = WeakKeyDictionary()


@dataclass(frozen=True)
class FunctionEvaluator(Doors):
    """A callable that takes columns by name and returns a number, a boolean or a dict.

    Inputs are its parameters, unless `declared`; one with a default is optional. A dict's
    numeric values are the outputs; `<m>_reason`, `<m>_result` and the like belong to `m`, as
    azure's evaluators return them (`assay.metric.flatkeys`): verdict and threshold are kept
    with the row, tokens as a call. None and NaN are no score. Where `outputs` are declared,
    each of them must be there and within its scale, and what else the dict holds is evidence.
    A callable that raises InputError says that the row is not applicable.

    may_be_empty: inputs for which an empty list is a value. variant: whose number this
    reproduces. source: what `assay.load` makes it of again, where there is something.
    revision: changes with what the callable itself does not show. preflight: raises
    SetupError for what would fail on every row. quick: it takes no longer than handing it to
    a thread would, and waits for nothing.
    """

    function: Callable[..., Any]
    name: str = ""
    outputs: Mapping[str, Output] = field(default_factory=dict)
    judge: Judge | None = None
    needs_judge: bool = False
    declared: Mapping[str, Input] | None = None
    may_be_empty: frozenset[str] = frozenset()
    description: str = ""
    variant: str = "custom"
    calls: str = "0"
    source: str | None = None
    revision: str = ""
    preflight: Callable[[], Any] | None = None
    quick: bool = False

    @cached_property
    def inputs(self) -> Mapping[str, Input]:  # type: ignore[override]
        if self.declared is not None:
            return self.declared
        found = {}
        for name, parameter in _parameters(self.function).items():
            if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
                continue
            optional = parameter.default is not inspect.Parameter.empty
            found[name] = Input(name, required=not optional)
        return found

    def renamed(self, name: str) -> FunctionEvaluator:
        """The same metric under another name; declared outputs keep theirs."""
        return replace(self, name=name)

    @cached_property
    def fingerprint(self) -> str:
        try:
            text = inspect.getsource(self.function)
        except (OSError, TypeError):
            text = repr(type(self.function))
        scales = [(o.name, o.type, o.minimum, o.maximum) for o in self.outputs.values()]
        parts = [self.name, text, *([self.revision, str(scales)] if scales else [])]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]

    def describe(self) -> dict[str, Any]:
        where = getattr(self.function, "__module__", None)
        what = getattr(self.function, "__qualname__", type(self.function).__qualname__)
        return {
            "kind": "function",
            "function": f"{where}.{what}",
            **({"path": self.source} if self.source else {}),
            "outputs": {name: describe_output(output) for name, output in self.outputs.items()},
        }

    def check(self, judge: Judge | None) -> None:
        _ = self.inputs
        if self.preflight is not None:
            self.preflight()

    async def score(
        self, values: Mapping[str, Any], judge: Judge | None = None, *, reask: int = 1
    ) -> Score:
        try:
            result = await self._call(self._bound(values))
        except InputError as error:
            if error.cause == "wrong_input_type":
                raise
            return Score(self.name, "not_applicable", cause=error.cause, message=str(error))
        found = result if isinstance(result, Mapping) else {self._headline: result}
        fields = metric_fields(tuple(str(key) for key in found))
        said = {name: measured(found, sides, self.name) for name, sides in fields.items()}
        if _is_skipped(found, said):
            why = _reason(found, said) or "the metric says that it does not apply to this row"
            return Score(self.name, "not_applicable", {}, None, "not_applicable", why, _calls(said))
        return (
            self._declared_score(found, said) if self.outputs else self._inferred_score(found, said)
        )

    @property
    def _headline(self) -> str:
        """The output that a result which is no dict belongs to."""
        outputs = self.outputs.values()
        return next((o.name for o in outputs if o.is_primary), next(iter(self.outputs), self.name))

    def _bound(self, values: Mapping[str, Any]) -> dict[str, Any]:
        inputs = dict(self.inputs)
        for name in self.may_be_empty:
            if not is_absent(values.get(name, MISSING)):
                inputs[name] = replace(inputs[name], required=False)
        return bind(inputs, values)

    def _inferred_score(self, found: Mapping[str, Any], said: Mapping[str, Measured]) -> Score:
        numbers = {name: m for name, m in said.items() if m.value is not None or m.other is None}
        reason, calls = _reason(found, numbers), _calls(said)
        wrong = [name for name, m in numbers.items() if m.value is None]
        if not numbers or wrong:
            why = f"{', '.join(wrong) or 'the result'} is not a number"
            return Score(self.name, "invalid", {}, reason, "not_a_number", why, calls)
        evidence = {k: v for name, m in numbers.items() for k, v in own_scale(name, m).items()}
        outputs = {name: m.value for name, m in numbers.items()}
        return Score(self.name, "scored", outputs, reason, None, None, calls, evidence)

    def _declared_score(self, found: Mapping[str, Any], said: Mapping[str, Measured]) -> Score:
        outputs: dict[str, Any] = {}
        for name, output in self.outputs.items():
            value = plain(found.get(name))
            is_number = output.type in ("number", "integer", "boolean")
            if is_number and (isinstance(value, str) or _is_no_number(value)):
                message = f"{name} is not a number"
                return Score(self.name, "invalid", cause="not_a_number", message=message)
            try:
                outputs[name] = value_of(output, {name: _as_declared(output, value)})
            except Unreadable as error:
                return Score(self.name, "invalid", cause=error.cause, message=error.message)
        evidence = {
            key: told
            for key, value in found.items()
            if key not in outputs and isinstance(told := plain(value), str | int | float)
        }
        reason = _reason(found, {name: m for name, m in said.items() if name in outputs})
        return Score(self.name, "scored", outputs=outputs, reason=reason, evidence=evidence)

    async def _call(self, bound: Mapping[str, Any]) -> Any:
        if inspect.iscoroutinefunction(self.function) or inspect.iscoroutinefunction(
            getattr(self.function, "__call__", None)  # noqa: B004
        ):
            return await self.function(**bound)
        if self.quick:
            return self.function(**bound)
        result = await _in_thread(self.function, bound)
        return await result if inspect.isawaitable(result) else result


def _as_declared(output: Output, value: Any) -> Any:
    """True and False as the numbers they are in Python, 1 and 0 as booleans."""
    if isinstance(value, bool) and output.type in ("number", "integer"):
        return int(value)
    if output.type == "boolean" and not isinstance(value, bool) and value in (0, 1):
        return bool(value)
    return value


def _reason(found: Mapping[str, Any], said: Mapping[str, Measured]) -> str | None:
    """The one reason there is; of several, each with the metric it is of."""
    reasons = {name: m.reason for name, m in said.items() if m.reason}
    if len(reasons) > 1:
        return "\n".join(f"{name}: {reason}" for name, reason in reasons.items())
    return next(iter(reasons.values()), None) or reason_of(found)


def _calls(said: Mapping[str, Measured]) -> tuple[Call, ...]:
    return tuple(m.call for m in said.values() if m.call is not None)


def _parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """What a callable takes; of one that itself asks for nothing, what its first overload names,
    which is how azure-ai-evaluation declares the inputs of its evaluators."""
    found = inspect.signature(function).parameters
    caller = function if inspect.isroutine(function) else type(function).__call__
    if hasattr(caller, "__module__") and not any(_is_required(p) for p in found.values()):
        overloads = get_overloads(caller)
        if overloads:
            declared = dict(inspect.signature(overloads[0]).parameters)
            declared.pop("self", None)
            return declared
    return found


def _is_required(parameter: inspect.Parameter) -> bool:
    variable = parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
    return not variable and parameter.default is parameter.empty


def _is_skipped(found: Mapping[str, Any], said: Mapping[str, Measured]) -> bool:
    """Whether a result says that it is none: `status`, or azure's `<m>_result`."""
    return found.get("status") in _SKIPPED or any(
        m.skipped and m.value is None for m in said.values()
    )


def _is_no_number(value: Any) -> bool:
    return value is None or (isinstance(value, float) and not math.isfinite(value))


async def _in_thread(function: Callable[..., Any], bound: Mapping[str, Any]) -> Any:
    """Call it beside the loop. A loop's own threads are few, and a service's answers slow."""
    loop = asyncio.get_running_loop()
    pool = _pools.get(loop)
    if pool is None:
        pool = _pools[loop] = ThreadPoolExecutor(_THREADS, "assay-metric")
    context = contextvars.copy_context()
    return await loop.run_in_executor(pool, partial(context.run, function, **bound))

"""Metrics that people write in Python: callables, classes with `evaluate(dataset)`, files.

@assay.metric(minimum=0, maximum=1, threshold=0.8)
def polite(response: str) -> float:
    ...

assay run similarity checks.py:polite data.jsonl
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar, overload

from assay.errors import SetupError
from assay.metric.columns import FAMILIES, alias_of
from assay.metric.function import FunctionEvaluator
from assay.prompty import Input, Output
from assay.prompty.fields import read_outputs

F = TypeVar("F", bound=Callable[..., Any])

_DECLARED = "__assay_metric__"
_DATASET_INPUTS = ("query", "response", "context", "ground_truth")
_TYPES = {bool: "boolean", int: "integer", "bool": "boolean", "int": "integer"}


@dataclass(frozen=True)
class Declaration:
    """What `@assay.metric` says of a callable."""

    name: str
    outputs: Mapping[str, Output] = field(default_factory=dict)
    description: str = ""


@overload
def metric(function: F, /) -> F: ...


@overload
def metric(
    *,
    name: str | None = None,
    minimum: float | None = None,
    maximum: float | None = None,
    threshold: float | None = None,
    direction: str = "increase",
    type: str | None = None,
    outputs: Mapping[str, Mapping[str, Any]] | None = None,
    description: str | None = None,
) -> Callable[[F], F]: ...


def metric(
    function: Any = None,
    /,
    *,
    name: str | None = None,
    minimum: float | None = None,
    maximum: float | None = None,
    threshold: float | None = None,
    direction: str = "increase",
    type: str | None = None,
    outputs: Mapping[str, Mapping[str, Any]] | None = None,
    description: str | None = None,
) -> Any:
    """Declare a callable, or a class, as a metric; it stays what it is and can be called as before.

    name: of the metric and its output; the callable's own by default. minimum, maximum: a
    value outside is `invalid`. threshold, direction: when a row passes (`increase`,
    `decrease`, `neutral`). type: `number`, `integer` or `boolean`; by default what the
    callable's annotation says. outputs: several of them in the words of a .prompty file,
    where the callable returns a dict. description: its first line of documentation by default.
    Raises SetupError for a direction or type that is none.
    """
    if direction not in ("increase", "decrease", "neutral"):
        raise SetupError(f"direction is increase, decrease or neutral, not {direction!r}")
    if type not in (None, "number", "integer", "boolean"):
        raise SetupError(f"type is number, integer or boolean, not {type!r}")

    def declare(found: Any) -> Any:
        own = name or _name_of(found)
        one = Output(
            own,
            type=type or _annotated(found),
            minimum=minimum,
            maximum=maximum,
            threshold=threshold,
            direction=direction,
            is_primary=True,
        )
        several = read_outputs({key: dict(spec) for key, spec in (outputs or {}).items()})
        text = description or (inspect.getdoc(found) or "").split("\n")[0]
        setattr(found, _DECLARED, Declaration(own, several or {own: one}, text))
        return found

    return declare if function is None else declare(function)


def from_object(source: Any, name: str | None = None) -> FunctionEvaluator:
    """An evaluator from a callable, an object with `evaluate(dataset)`, or a class of either.

    Raises SetupError for anything else, and for a class that cannot be made without arguments.
    """
    if inspect.isclass(source):
        source = _instance(source)
    evaluates = callable(getattr(source, "evaluate", None)) and not callable(source)
    if not evaluates and not callable(source):
        raise SetupError(
            f"{source!r} is no evaluator: give a name, a .prompty file, a callable, or an object "
            "with evaluate(dataset)"
        )
    declared: Declaration = getattr(source, _DECLARED, None) or Declaration(_name_of(source))
    function: Callable[..., Any] = OneRow(source) if evaluates else source
    return FunctionEvaluator(
        function,
        name or declared.name,
        outputs=declared.outputs,
        declared=_dataset_inputs(source) if evaluates else None,
        description=declared.description,
        revision=function.fingerprint if isinstance(function, OneRow) else "",
    )


class Evaluates(Protocol):
    """An object that scores a data set, as Embedchain's metrics do."""

    def evaluate(self, dataset: Any, /) -> Any: ...


class Row(dict[str, Any]):
    """One row for `evaluate(dataset)`: keys are also attributes, and the names the libraries
    use for the same thing are understood (`question` for `query`, `contexts` for `context`)."""

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        alias = alias_of(name, self)
        if alias is None:
            if any(name in (family, *others) for family, others in FAMILIES.items()):
                return None
            raise AttributeError(f"the row has no {name!r}; it has {', '.join(self) or 'nothing'}")
        return self[alias]


class OneRow:
    """Calls `evaluate` with a data set of one row: what it returns is the row's score."""

    def __init__(self, source: Any) -> None:
        self.source = source

    def __call__(self, **values: Any) -> Any:
        result = self.source.evaluate([Row(values)])
        if isinstance(result, list | tuple):
            if len(result) != 1:
                raise ValueError(f"evaluate() returned {len(result)} results for one row")
            return result[0]
        return result

    @property
    def fingerprint(self) -> str:
        try:
            text = inspect.getsource(type(self.source))
        except (OSError, TypeError):
            text = repr(type(self.source))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def is_python(source: str) -> bool:
    """Whether a source is written as `file.py:name`."""
    return source.rpartition(":")[0].endswith(".py")


def from_file(source: str) -> FunctionEvaluator:
    """The metric `name` of `file.py:name`. The file is run, as an import would.

    Raises SetupError where the file or the name is not there, or the file fails.
    """
    file, _, name = source.rpartition(":")
    path = Path(file)
    if not path.is_file():
        raise SetupError(f"no such file: {path}")
    module = _module(path)
    found = getattr(module, name, None)
    if found is None:
        known = [key for key, value in vars(module).items() if _is_own(module, key, value)]
        raise SetupError(f"{path} has no {name!r}; it has {', '.join(known) or 'no function'}")
    made = found if isinstance(found, FunctionEvaluator) else from_object(found)
    text = path.read_bytes()
    return replace(made, source=source, revision=hashlib.sha256(text).hexdigest()[:16])


def _module(path: Path) -> Any:
    resolved = path.resolve()
    label = hashlib.sha256(str(resolved).encode()).hexdigest()[:12]
    spec = importlib.util.spec_from_file_location(f"assay_metric_{path.stem}_{label}", resolved)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(resolved.parent))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[spec.name]
        raise SetupError(f"{path} cannot be imported: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(str(resolved.parent))
    return module


def _is_own(module: Any, key: str, value: Any) -> bool:
    return callable(value) and getattr(value, "__module__", "") == module.__name__ and key[0] != "_"


def _instance(source: Any) -> Any:
    try:
        return source()
    except TypeError as error:
        raise SetupError(f"{source.__name__} is a class; give an object of it: {error}") from None


def _dataset_inputs(source: Any) -> dict[str, Input]:
    """The columns an object with `evaluate` reads: those it names, required, else the four of
    question answering, each where it is there."""
    named: Iterable[str] | None = getattr(source, "inputs", None)
    if named is not None:
        return {str(name): Input(str(name)) for name in named}
    return {name: Input(name, required=False) for name in _DATASET_INPUTS}


def _name_of(source: Any) -> str:
    name = getattr(source, "name", None) or getattr(source, "__name__", None)
    return str(name or type(source).__name__)


def _annotated(source: Any) -> str:
    returned = getattr(source, "__annotations__", {}).get("return")
    return _TYPES.get(returned, "number")

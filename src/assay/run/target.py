"""The application under test: a callable, or a flow folder, that adds columns to a row."""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from assay.errors import InputError, SetupError
from assay.judge.base import Judge
from assay.metric.columns import alias_of

FLOW = "flow.flex.yaml"
MODEL = "model"


@dataclass(frozen=True)
class Target:
    """A callable with the columns it takes. `outputs` are the columns a flow declares.

    A parameter called `model` is given the judge that answers for the application.
    """

    function: Callable[..., Any]
    name: str
    outputs: tuple[str, ...] = ()
    model: Judge | None = None
    parameters: Mapping[str, inspect.Parameter] = field(default_factory=dict)

    @property
    def wants_model(self) -> bool:
        return MODEL in self.parameters

    def describe(self) -> dict[str, Any]:
        found: dict[str, Any] = {"name": self.name}
        if self.model is not None:
            found["model"] = self.model.describe()
        return found

    def check(self, columns: tuple[str, ...]) -> None:
        """Raises SetupError naming every parameter that no column gives."""
        missing = [
            name
            for name, parameter in self.parameters.items()
            if parameter.default is inspect.Parameter.empty
            and name != MODEL
            and name not in columns
            and alias_of(name, columns) is None
        ]
        if missing:
            raise SetupError(
                f"the target {self.name} takes {', '.join(missing)}, which no row has; columns "
                f"are {', '.join(columns)}"
            )

    async def run(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The columns the application adds to a row. A result that is no dict is `output`."""
        arguments: dict[str, Any] = {}
        for name, parameter in self.parameters.items():
            column = name if name in row else alias_of(name, row)
            if name == MODEL:
                arguments[name] = self.model
            elif column is not None:
                arguments[name] = row[column]
            elif parameter.default is inspect.Parameter.empty:
                raise InputError(f"the target needs {name}, which this row has not")
        result = await self._call(arguments)
        return dict(result) if isinstance(result, Mapping) else {"output": result}

    async def _call(self, arguments: dict[str, Any]) -> Any:
        if inspect.iscoroutinefunction(self.function) or inspect.iscoroutinefunction(
            getattr(self.function, "__call__", None)  # noqa: B004
        ):
            return await self.function(**arguments)
        result = await asyncio.to_thread(self.function, **arguments)
        return await result if inspect.isawaitable(result) else result


def load_target(source: str | Path | Callable[..., Any], model: Judge | None = None) -> Target:
    """A target from a callable or from a folder with a flow.flex.yaml.

    Raises SetupError where the folder, the file, its `entry` or what it imports is not there.
    """
    if callable(source):
        name = getattr(source, "__name__", type(source).__name__)
        return Target(source, name, model=model, parameters=_parameters(source))
    folder = Path(source)
    path = folder / FLOW if folder.is_dir() else folder
    if not path.is_file():
        raise SetupError(f"target {source}: no {FLOW} there")
    try:
        flow = yaml.safe_load(path.read_text("utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SetupError(f"{path}: not valid YAML: {error}") from None
    entry = str(flow.get("entry") or "") if isinstance(flow, dict) else ""
    module_name, _, attribute = entry.partition(":")
    if not module_name or not attribute:
        raise SetupError(f"{path}: `entry:` must be MODULE:FUNCTION, not {entry!r}")
    function = _import(path.parent, module_name, attribute, path)
    outputs = flow.get("outputs")
    return Target(
        function,
        path.parent.name,
        outputs=tuple(outputs) if isinstance(outputs, Mapping) else (),
        model=model,
        parameters=_parameters(function),
    )


def _import(folder: Path, module_name: str, attribute: str, path: Path) -> Callable[..., Any]:
    file = folder / f"{module_name.replace('.', '/')}.py"
    spec = importlib.util.spec_from_file_location(f"assay_flow_{folder.name}_{module_name}", file)
    if spec is None or spec.loader is None or not file.is_file():
        raise SetupError(f"{path}: its entry names {file.name}, which is not beside it")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(folder.resolve()))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise SetupError(f"{file} cannot be imported: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(str(folder.resolve()))
    found: Any = getattr(module, attribute, None)
    if inspect.isclass(found):
        found = found()
    if not callable(found):
        raise SetupError(f"{file} has no function {attribute!r}")
    function: Callable[..., Any] = found
    return function


def _parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    found = inspect.signature(function).parameters
    return {name: parameter for name, parameter in found.items() if parameter.kind not in kinds}

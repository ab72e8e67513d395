"""Reading one step of a metric.yaml."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from assay.errors import PromptyError
from assay.metric.expressions import Expression
from assay.metric.functions import word
from assay.metric.levels import levels_of
from assay.metric.promptstep import PromptStep
from assay.metric.score import STATUSES
from assay.metric.steps import INVALID, EmbedStep, MapStep, Step, StopStep, ValueStep
from assay.prompty import Output, Prompty, load
from assay.prompty.fields import read_outputs

Where = tuple[Any, ...]

_KINDS = {
    "prompt": "prompt in each align when repeat parameters distribution",
    "map": "map field to other",
    "split": "split by",
    "join": "join with",
    "embed": "embed",
    "value": "value",
}
_STOP = ("when", "because", "cause", "status", "score")
_MOST_REPEATS = 100


class StepReader:
    """Makes steps of what a file says. compile and error know the file's lines."""

    def __init__(
        self,
        path: Path,
        compile_: Callable[..., Expression],
        error: Callable[..., PromptyError],
    ) -> None:
        self.path = path
        self.compile = compile_
        self.error = error

    def read(self, number: int, name: str, spec: Any, where: Where) -> Step:
        if not isinstance(spec, Mapping):
            raise self.error(f"step `{name}` must be a mapping", *where)
        if name == "stop":
            return self._stop(number, spec, where)
        kind = next((kind for kind in _KINDS if kind in spec), None)
        if kind is None:
            raise self.error(f"step `{name}` has none of {', '.join(_KINDS)}", *where)
        for key in spec:
            if key not in _KINDS[kind].split():
                known = _KINDS[kind].replace(" ", ", ")
                raise self.error(f"step `{name}`: unknown `{key}`; known are {known}", *where, key)
        if kind == "prompt":
            return self._prompt(name, spec, where)
        source = self.compile(spec[kind], *where, kind)
        if kind == "map":
            return self._map(name, source, spec, where)
        if kind == "embed":
            return EmbedStep(name, source)
        by = {"split": str(spec.get("by", "sentences")), "join": "join"}.get(kind, "value")
        if kind == "split" and by not in ("sentences", "lines"):
            raise self.error(f"step `{name}`: by is sentences or lines, not {by!r}", *where, "by")
        return ValueStep(name, source, by, str(spec.get("with", "\n")))

    def _map(self, name: str, source: Expression, spec: Mapping[str, Any], where: Where) -> MapStep:
        to = spec.get("to")
        if not isinstance(to, Mapping) or not to:
            raise self.error(f"step `{name}`: `to` must say what each word is worth", *where)
        worth = {word(key): value for key, value in to.items()}
        for key, value in [*worth.items(), ("other", spec.get("other"))]:
            if not _is_worth(value):
                message = f"step `{name}`: {key} is worth a number or null, not {value!r}"
                raise self.error(message, *where, "to")
        field = str(spec.get("field", "verdict"))
        return MapStep(name, source, field, worth, spec.get("other", INVALID))

    def _stop(self, number: int, spec: Mapping[str, Any], where: Where) -> StopStep:
        for key in spec:
            if key not in _STOP:
                known = ", ".join(_STOP)
                raise self.error(f"stop: unknown `{key}`; known are {known}", *where, key)
        if "when" not in spec or not spec.get("because"):
            raise self.error("stop needs `when` and `because`", *where)
        status = spec.get("status", "scored" if "score" in spec else "not_applicable")
        if status not in STATUSES or (status == "scored") != ("score" in spec):
            raise self.error("stop ends with `score: NUMBER`, or with another status", *where)
        return StopStep(
            name=f"stop {number + 1}",
            when=self.compile(spec["when"], *where, "when"),
            status=status,
            score=self.compile(spec["score"], *where, "score") if "score" in spec else None,
            because=str(spec["because"]).strip(),
            cause=str(spec.get("cause", "policy")),
        )

    def _prompt(self, name: str, spec: Mapping[str, Any], where: Where) -> PromptStep:
        prompty = self._load(name, spec, where)
        given = spec.get("in") or {}
        if not isinstance(given, Mapping):
            raise self.error(f"step `{name}`: in is INPUT: EXPRESSION", *where, "in")
        align = self._align(name, spec, where)
        self._check_inputs(name, prompty, [*given, *([align[0]] if align else [])], where)
        repeat, parameters = spec.get("repeat", 1), spec.get("parameters") or {}
        if type(repeat) is not int or not 1 <= repeat <= _MOST_REPEATS:
            message = f"step `{name}`: repeat is a number from 1 to {_MOST_REPEATS}"
            raise self.error(message, *where, "repeat")
        if not isinstance(parameters, Mapping):
            message = f"step `{name}`: parameters are NAME: VALUE, as in a .prompty"
            raise self.error(message, *where, "parameters")
        optional = {
            key: self.compile(spec[key], *where, key) for key in ("each", "when") if key in spec
        }
        return PromptStep(
            name=name,
            prompty=prompty,
            given={str(k): self.compile(v, *where, "in", k) for k, v in given.items()},
            align=align,
            entry=self._entry(name, prompty, where) if align else {},
            repeat=repeat,
            parameters=dict(parameters),
            distribution=self._distribution(name, prompty, spec, where),
            **optional,
        )

    def _load(self, name: str, spec: Mapping[str, Any], where: Where) -> Prompty:
        file = (self.path.parent / str(spec["prompt"])).resolve()
        if not file.is_relative_to(self.path.parent.resolve().parent):
            message = f"step `{name}`: {spec['prompt']} is outside the folder of the metrics"
            raise self.error(message, *where, "prompt")
        if not file.is_file():
            raise self.error(f"step `{name}`: no file {spec['prompt']}", *where, "prompt")
        prompty = load(file)
        _ = prompty.template
        if not prompty.outputs:
            message = f"step `{name}`: {spec['prompt']} declares no outputs"
            raise self.error(message, *where, "prompt")
        return prompty

    def _align(
        self, name: str, spec: Mapping[str, Any], where: Where
    ) -> tuple[str, Expression] | None:
        if "align" not in spec:
            return None
        if not isinstance(spec["align"], Mapping) or len(spec["align"]) != 1:
            raise self.error(f"step `{name}`: align is one INPUT: LIST", *where, "align")
        target, source = next(iter(spec["align"].items()))
        return str(target), self.compile(source, *where, "align")

    def _check_inputs(self, name: str, prompty: Prompty, taken: list[str], where: Where) -> None:
        missing = [n for n, i in prompty.inputs.items() if i.required and n not in taken]
        unknown = [str(n) for n in taken if n not in prompty.inputs]
        if missing or unknown:
            file = prompty.path.name if prompty.path else prompty.name
            raise self.error(
                f"step `{name}`: {file} takes {', '.join(prompty.inputs)}; missing "
                f"{', '.join(missing) or 'none'}, unknown {', '.join(unknown) or 'none'}",
                *where,
            )

    def _entry(self, name: str, prompty: Prompty, where: Where) -> Mapping[str, Output]:
        """What an entry of the reply's one list holds: its `items`, in JSON Schema's words."""
        lists = [output for output in prompty.outputs.values() if output.type == "array"]
        if len(lists) != 1:
            message = f"step `{name}`: align needs a prompt with one output of type array"
            raise self.error(message, *where, "align")
        declared = prompty.front.get("outputs")
        spec = declared.get(lists[0].name) if isinstance(declared, Mapping) else None
        items = spec.get("items") if isinstance(spec, Mapping) else None
        return read_outputs(items) if isinstance(items, Mapping) and "properties" in items else {}

    def _distribution(
        self, name: str, prompty: Prompty, spec: Mapping[str, Any], where: Where
    ) -> str | None:
        chosen = spec.get("distribution")
        if chosen is None:
            return None
        if "align" in spec:
            message = f"step `{name}`: align and distribution do not go together"
            raise self.error(message, *where, "distribution")
        output = prompty.outputs.get(str(chosen))
        if output is None or not levels_of(output):
            numbers = [n for n, o in prompty.outputs.items() if levels_of(o)]
            message = f"step `{name}`: distribution is of an output with levels; there are "
            raise self.error(message + (", ".join(numbers) or "none"), *where, "distribution")
        return str(chosen)


def _is_worth(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))

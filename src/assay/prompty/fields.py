"""What a .prompty file declares: its inputs, and its outputs with their scale."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from assay.errors import PromptyError

MISSING: Any = type("Missing", (), {"__repr__": lambda _: "MISSING", "__bool__": lambda _: False})()
"""No value at all; unlike None, which is a value a file can give."""

_TYPES = {
    "string": "string str text",
    "integer": "integer int ordinal",
    "number": "number float double decimal continuous",
    "boolean": "boolean bool",
    "array": "array list tuple",
    "object": "object dict map mapping json json_object",
    "thread": "thread",
    "image": "image",
}
_TYPE_OF = {alias: name for name, aliases in _TYPES.items() for alias in aliases.split()}

REASONS = ("reason", "explanation", "rationale", "justification", "reasoning", "thought")
"""Names under which judges give their reason, most usual first."""


def type_name(declared: Any) -> str:
    """The canonical type of any spelling seen in the wild; `any` for what is not known."""
    if not isinstance(declared, str):
        return "any"
    return _TYPE_OF.get(re.split(r"[\[<(]", declared.strip().lower())[0], "any")


@dataclass(frozen=True, slots=True)
class Input:
    """One declared input. `default` and `sample` are MISSING where the file gives none."""

    name: str
    type: str = "any"
    required: bool = True
    default: Any = MISSING
    sample: Any = MISSING
    description: str = ""
    implicit: bool = False


@dataclass(frozen=True, slots=True)
class Output:
    """One declared output and, where it is scored, its scale.

    levels: value to text, in the file's order; texts may be None.
    threshold: pass when the value reaches it (from above with direction `decrease`).
    """

    name: str
    type: str = "any"
    required: bool = True
    nullable: bool = False
    minimum: float | None = None
    maximum: float | None = None
    threshold: float | None = None
    direction: str = "increase"
    is_primary: bool = False
    description: str = ""
    levels: Mapping[Any, str | None] = field(default_factory=dict)

    @property
    def scored(self) -> bool:
        """Whether the value is a measurement: a number, a boolean or one of some levels."""
        return self.type in ("integer", "number", "boolean") or bool(self.levels)

    @property
    def enum(self) -> tuple[Any, ...] | None:
        """The values allowed, where they are listed."""
        return tuple(self.levels) or None

    @property
    def scale(self) -> str:
        """The scale in words, e.g. `0..3` or `one of yes, no`; "" where none is declared."""
        if self.minimum is not None or self.maximum is not None:
            return f"{_bound(self.minimum)}..{_bound(self.maximum)}"
        return "one of " + ", ".join(map(str, self.levels)) if self.levels else ""

    def result(self, value: Any) -> str | None:
        """`pass` or `fail` against the threshold; None where there is none to compare with."""
        number = as_number(value)
        if number is None or self.direction == "neutral":
            return None
        threshold = self.threshold
        if threshold is None:
            if self.type != "boolean":
                return None
            threshold = 1.0 if self.direction == "increase" else 0.0
        reached = number >= threshold if self.direction == "increase" else number <= threshold
        return "pass" if reached else "fail"


def as_number(value: Any) -> float | None:
    """A value as a number to average: booleans are 0 and 1, text is none."""
    return float(value) if isinstance(value, int | float) else None


def read_inputs(declared: Any) -> dict[str, Input]:
    """`inputs:` as a map (name to type, map, or sample value) or as a list of named maps.

    Raises PromptyError for anything else.
    """
    return {name: _input(name, spec) for name, spec in _named(declared, "inputs")}


def read_outputs(declared: Any) -> dict[str, Output]:
    """`outputs:` as a map or a list, in JSON Schema's words and the catalog's for its gaps."""
    if isinstance(declared, Mapping) and isinstance(declared.get("properties"), Mapping):
        declared = declared["properties"]
    return {name: _output(name, spec) for name, spec in _named(declared, "outputs")}


def _named(declared: Any, key: str) -> list[tuple[str, Any]]:
    if declared is None:
        return []
    if isinstance(declared, Mapping):
        return [(str(name), spec) for name, spec in declared.items()]
    if isinstance(declared, list) and all(isinstance(item, Mapping | str) for item in declared):
        entries = [{"name": item} if isinstance(item, str) else item for item in declared]
        return [(str(item.get("name", "")), item) for item in entries if item.get("name")]
    raise PromptyError(f"`{key}` must be a mapping or a list of named entries", code=key)


def _input(name: str, spec: Any) -> Input:
    if not isinstance(spec, Mapping):
        # A bare value is an example of the input, never something to judge silently.
        known = isinstance(spec, str) and spec.strip().lower() in _TYPE_OF
        if known:
            return Input(name, type=type_name(spec))
        return Input(name, sample=MISSING if spec is None else spec)
    default = spec.get("default", MISSING)
    optional = spec.get("optional") is True or spec.get("required") is False
    return Input(
        name,
        type=type_name(spec.get("type", spec.get("kind"))),
        required=default is MISSING and not optional,
        default=default,
        sample=spec.get("sample", spec.get("example", MISSING)),
        description=str(spec.get("description") or ""),
    )


def _output(name: str, spec: Any) -> Output:
    if not isinstance(spec, Mapping):
        return Output(name, type=type_name(spec))
    listed = _levels(spec)
    declared = spec.get("type", spec.get("kind"))
    nullable = spec.get("nullable") is True or any(value is None for value, _ in listed)
    if isinstance(declared, list):
        nullable = nullable or "null" in declared
        declared = next((word for word in declared if word != "null"), None)
    listed = [(value, text) for value, text in listed if value is not None]
    minimum = _number(name, spec, "minimum", "min_value", "min")
    maximum = _number(name, spec, "maximum", "max_value", "max")
    threshold = _number(name, spec, "threshold")
    kind = type_name(declared)
    if kind == "any" and listed:
        kind = _type_of_values([value for value, _ in listed])
    elif kind == "any" and (minimum, maximum, threshold) != (None, None, None):
        kind = "number"
    if kind not in ("integer", "number", "boolean") and (minimum, maximum) != (None, None):
        raise PromptyError(f"output `{name}`: minimum and maximum are for numbers, not for {kind}")
    return Output(
        name,
        type=kind,
        required=spec.get("required") is not False,
        nullable=nullable,
        minimum=minimum,
        maximum=maximum,
        threshold=threshold,
        direction=_direction(name, spec),
        is_primary=spec.get("is_primary") is True,
        description=str(spec.get("description") or ""),
        levels={
            _level(name, kind, value): None if text is None else str(text) for value, text in listed
        },
    )


def _levels(spec: Mapping[str, Any]) -> list[tuple[Any, Any]]:
    """The values an output may have, each with its text or None, in the file's order."""
    levels = spec.get("levels")
    if isinstance(levels, Mapping):
        return list(levels.items())
    for key in ("anyOf", "oneOf"):
        branches = spec.get(key)
        found: list[tuple[Any, Any]] = []
        for branch in branches if isinstance(branches, list) else ():
            if isinstance(branch, Mapping):
                values = branch.get("enumValues", branch.get("enum"))
                values = [branch["const"]] if "const" in branch else values
                text = branch.get("description")
                found += [(value, text) for value in (values if isinstance(values, list) else ())]
        if found:
            return found
    values = spec.get("enum", spec.get("enumValues"))
    if not isinstance(values, list):
        return []
    texts = spec.get("enumDescriptions")
    if isinstance(texts, Mapping):
        by_name = {str(value): text for value, text in texts.items()}
        texts = [by_name.get(str(value)) for value in values]
    texts = texts if isinstance(texts, list) else []
    return [(value, texts[i] if i < len(texts) else None) for i, value in enumerate(values)]


def _type_of_values(values: list[Any]) -> str:
    kinds = {type(value) for value in values}
    if kinds == {bool}:
        return "boolean"
    if kinds == {int}:
        return "integer"
    return "number" if kinds <= {int, float} else "string"


def _level(name: str, kind: str, value: Any) -> Any:
    """A listed value in the declared type: keys of a mapping in JSON, or in quotes, are text."""
    found: Any = None
    if kind == "string" and isinstance(value, str | int | float):
        found = value if isinstance(value, str) else json.dumps(value)
    elif kind == "boolean":
        found = {"true": True, "false": False, "1": True, "0": False}.get(str(value).lower())
    elif kind in ("integer", "number") and not isinstance(value, bool):
        found = _plain_number(value)
        if kind == "integer" and found is not None:
            found = int(found) if found == int(found) else None
    if found is None:
        raise PromptyError(f"output `{name}`: {str(value)[:60]!r} is no value of type {kind}")
    return found


def _plain_number(value: Any) -> int | float | None:
    if isinstance(value, int | float):
        return value if _is_finite(value) else None
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,15}(\.[0-9]{1,15})?", value.strip()):
        return float(value) if "." in value else int(value)
    return None


def _number(name: str, spec: Mapping[str, Any], *keys: str) -> float | None:
    for key in keys:
        value = spec.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and _is_finite(value):
            return value
        if value is not None:
            raise PromptyError(f"output `{name}`: {key} must be a number, not {value!r}")
    return None


def _is_finite(value: float) -> bool:
    return abs(value) < math.inf  # also for whole numbers no float can hold


def _direction(name: str, spec: Mapping[str, Any]) -> str:
    value = str(spec.get("desirable_direction", "increase")).strip().lower()
    if value not in ("increase", "decrease", "neutral"):
        raise PromptyError(
            f"output `{name}`: desirable_direction is increase, decrease or neutral, not {value!r}"
        )
    return value


def _bound(value: float | None) -> str:
    return "" if value is None else f"{value:g}"

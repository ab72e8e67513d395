"""Inputs, outputs and the template language, from one dialect's form to another's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_TO_V2_KIND = {
    "string": "string",
    "str": "string",
    "text": "string",
    "int": "integer",
    "integer": "integer",
    "number": "float",
    "float": "float",
    "bool": "boolean",
    "boolean": "boolean",
    "list": "array",
    "array": "array",
    "dict": "object",
    "object": "object",
}


def fields_to_v2(declared: Any, notes: list[str]) -> Any:
    """Inputs as a list of entries with `name` and `kind`; None where they are one already."""
    if not isinstance(declared, Mapping):
        return None
    if isinstance(declared.get("properties"), Mapping):
        notes.append("outputs written as one JSON Schema object stay as they are")
        return None
    return [_field_to_v2(name, spec, notes) for name, spec in declared.items()]


def _field_to_v2(name: Any, spec: Any, notes: list[str]) -> dict[str, Any]:
    made: dict[str, Any] = {"name": str(name)}
    if not isinstance(spec, Mapping):
        kind = _TO_V2_KIND.get(spec.strip().lower()) if isinstance(spec, str) else None
        made["kind"] = kind or "any"
        if spec is not None and kind is None:
            made["example"] = spec
        return made
    words = dict(spec)
    if words.pop("name", name) != name:
        notes.append(f"`{name}` has a key `name`, which is now taken: it cannot be carried over")
    declared = words.get("type", words.get("kind"))
    if isinstance(declared, list):
        made["kind"] = "any"
    else:
        made["kind"] = _TO_V2_KIND.get(str(declared).strip().lower(), declared or "any")
        if str(declared).strip().lower() in _TO_V2_KIND or declared is None:
            words.pop("type", None)
        words.pop("kind", None)
    if "sample" in words and "example" not in words:
        words["example"] = words.pop("sample")
    return made | words


def outputs_to_v2(declared: Any, notes: list[str]) -> Any:
    """The same for outputs, where a bare word is a type and never an example."""
    made = fields_to_v2(declared, notes)
    for entry in made or ():
        # An output that is declared by a word alone has no example: the word is its type.
        example = entry.pop("example", None) if len(entry) == 3 and entry["kind"] == "any" else None
        if isinstance(example, str):
            entry["kind"] = example
        elif example is not None:
            entry["example"] = example
    return made


def fields_to_classic(declared: Any, notes: list[str]) -> Any:
    """Inputs or outputs as a mapping by name; None where they are one already."""
    if not isinstance(declared, list):
        return None
    made: dict[str, Any] = {}
    for entry in declared:
        if isinstance(entry, str):
            made[entry] = {}
            continue
        words = dict(entry)
        name = str(words.pop("name", "") or "")
        if not name:
            notes.append("an entry without a name cannot be carried over")
            continue
        kind = words.pop("kind", None)
        if kind is not None and kind != "any" and "type" not in words:
            words = {"type": "number" if kind == "float" else kind, **words}
        if "example" in words and "sample" not in words:
            words["sample"] = words.pop("example")
        made[name] = words
    return made


def template_to_v2(declared: Any, notes: list[str]) -> Any:
    """`template` with a `format` and a `parser`."""
    format_, parser, extra = _template_parts(declared)
    if format_ is None:
        return None
    made: dict[str, Any] = {"format": {"kind": format_} | extra}
    return made | {"parser": {"kind": parser or "prompty"}}


def template_to_classic(declared: Any, notes: list[str]) -> Any:
    """`template` with a `type`."""
    format_, parser, extra = _template_parts(declared)
    if format_ is None or isinstance(declared, str):
        return None
    if extra:
        notes.append(f"template.format.{', '.join(extra)} cannot be carried over")
    return {"type": format_} | ({"parser": parser} if parser else {})


def _template_parts(declared: Any) -> tuple[Any, Any, dict[str, Any]]:
    """(language, parser, further options) of any form of `template`."""
    if not isinstance(declared, Mapping):
        return declared, None, {}
    format_, parser = declared.get("format", declared.get("type")), declared.get("parser")
    extra = {"strict": declared["strict"]} if "strict" in declared else {}
    if isinstance(format_, Mapping):
        extra |= {key: value for key, value in format_.items() if key != "kind"}
        format_ = format_.get("kind")
    return format_, parser.get("kind") if isinstance(parser, Mapping) else parser, extra

"""The JSON Schema of the front matter: what an editor completes, and which keys are known."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

_TYPES: Mapping[str, type | tuple[type, ...]] = {"object": Mapping, "array": list}


def schema_text() -> str:
    """The schema as it is published: draft 2020-12, in words that older drafts know too."""
    return files(__package__).joinpath("prompty.schema.json").read_text(encoding="utf-8")


@cache
def schema() -> Mapping[str, Any]:
    """The schema as a dict."""
    loaded: dict[str, Any] = json.loads(schema_text())
    return loaded


def branches(node: Any, value: Any) -> Iterator[Mapping[str, Any]]:
    """The parts of a schema node that speak of values of `value`'s kind, references followed."""
    if not isinstance(node, Mapping):
        return
    if "$ref" in node:
        yield from branches(schema()["$defs"][node["$ref"].rsplit("/", 1)[1]], value)
        return
    for branch in node.get("anyOf", ()):
        yield from branches(branch, value)
    wanted = node.get("type")
    names = wanted if isinstance(wanted, list) else [wanted]
    if any(isinstance(value, _TYPES.get(str(name), ())) for name in names):
        yield node


def properties(name: str) -> Mapping[str, Any]:
    """The known keys of one of the schema's definitions, such as `parameters`."""
    for node in branches(schema()["$defs"][name], {}):
        if "properties" in node:
            return node["properties"]  # type: ignore[no-any-return]
    return {}

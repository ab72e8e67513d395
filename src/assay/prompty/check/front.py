"""Keys and values of the front matter."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from assay.errors import PromptyError
from assay.prompty import Prompty, references
from assay.prompty.check.finding import Collector
from assay.prompty.check.schema import branches, properties, schema
from assay.prompty.fields import MISSING, type_name

_FREE = {"sample", "samples", "metadata", "default", "levels", "tools", "properties", "items"}
"""Keys whose values belong to the author, not to the format."""
_EXTRAS = {"configuration", "connection", "additionalProperties"}
"""Blocks in which services have words of their own: only a near miss is worth a word."""
_SETTINGS = ("model", "connection", "configuration", "parameters", "tools")
_REFERENCE = re.compile(r"\$\{\s*(\w+)\s*[:.]?[^}]*\}")
_JUDGED = re.compile(
    r"query|question|user_input|input|prompt|response|answer|actual_output|output|prediction|"
    r"completion|contexts?|documents|retrieved_contexts|ground_truth|reference|expected_output",
    re.IGNORECASE,
)
_JUDGES = re.compile(
    r"\b(?:scor|rat(?:e|ing)|grad(?:e|ing)|evaluat|assess|judg|eval[uú]a|punt[uú]|califi|valora)",
    re.IGNORECASE,
)
_TYPE_WORDS = ("string", "integer", "number", "boolean", "array", "object", "thread", "image")
_KNOWN_TYPES = {*_TYPE_WORDS, "any", "file", "audio", "union", "*"}


def check_front(prompty: Prompty, found: Collector) -> None:
    """Unknown keys and types, references, samples and defaults."""
    _unknown_keys(prompty.front, schema(), (), found)
    _types(prompty, found)
    _references(prompty, found)
    _values(prompty, found)
    _judged_defaults(prompty, found)


def _unknown_keys(value: Any, node: Any, path: tuple[Any, ...], found: Collector) -> None:
    nodes = list(branches(node, value))
    if isinstance(value, list):
        for index, item in enumerate(value):
            for part in nodes:
                _unknown_keys(item, part.get("items"), (*path, index), found)
        return
    if not isinstance(value, Mapping):
        return
    known = {key: child for part in nodes for key, child in part.get("properties", {}).items()}
    for key, item in value.items():
        here = (*path, key)
        if known and key not in known:
            _unknown_key(key, known, path, found)
        child = known.get(key)
        if child is None and not known:
            child = next((n["additionalProperties"] for n in nodes if _maps(n)), None)
        if child is not None and key not in _FREE:
            _unknown_keys(item, child, here, found)


def _maps(node: Mapping[str, Any]) -> bool:
    return isinstance(node.get("additionalProperties"), Mapping)


def _unknown_key(
    key: Any, known: Mapping[str, Any], path: tuple[Any, ...], found: Collector
) -> None:
    where = ".".join(map(str, path)) or "the front matter"
    if key == "tools_choice":
        message = "`tools_choice` is spelt `tool_choice`; it is read as that"
        found.add_at("misspelt-key", message, (*path, key))
        return
    near = near_miss(key, known)
    home = _home(key) if len(path) < 2 and path[:1] in ((), ("model",)) else None
    if near:
        message, severity = f"unknown key `{key}` in {where}: did you mean `{near}`?", "warning"
    elif home:
        message, severity = f"`{key}` is not read in {where}: it belongs in {home}", "warning"
    elif path and path[-1] in _EXTRAS:
        return
    else:
        message, severity = f"unknown key `{key}` in {where}", "info"
    found.add_at("unknown-key", message, (*path, key), severity)


def near_miss(word: Any, known: Any) -> str | None:
    """The known word that `word` is most likely meant to be."""
    if not isinstance(word, str):
        return None
    folded = {name.lower().replace("-", "_"): name for name in known}
    close = difflib.get_close_matches(word.lower().replace("-", "_"), folded, n=1, cutoff=0.82)
    return folded[close[0]] if close else None


def _home(key: Any) -> str | None:
    if key in properties("parameters") and key not in ("name", "model", "user"):
        return "`model.parameters`"
    return "`model.configuration`" if key in ("azure_endpoint", "api_key", "api_version") else None


def _types(prompty: Prompty, found: Collector) -> None:
    for block in ("inputs", "outputs"):
        for path, spec in entries(prompty, block):
            words = {
                key: spec[key]
                for key in ("type", "kind")
                if isinstance(spec, Mapping) and key in spec
            }
            for key, word in words.items():
                plain = isinstance(word, str) and "${" not in word
                if not plain or type_name(word) != "any" or word.lower() in _KNOWN_TYPES:
                    continue
                near = near_miss(word, _TYPE_WORDS)
                hint = f": did you mean `{near}`?" if near else ", read as any type"
                found.add_at("unknown-type", f"unknown type `{word}`{hint}", (*path, key))


def entries(prompty: Prompty, block: str) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Key path and declaration of every input or output, in either form."""
    declared = prompty.front.get(block)
    if isinstance(declared, Mapping):
        for name, spec in declared.items():
            yield (block, name), spec
    elif isinstance(declared, list):
        for index, spec in enumerate(declared):
            yield (block, index), spec


def path_of(prompty: Prompty, block: str, name: str, *keys: str) -> tuple[Any, ...]:
    """Key path of a declared input or output, of the first of `keys` it has."""
    for path, spec in entries(prompty, block):
        named = spec.get("name") if isinstance(spec, Mapping) and isinstance(path[1], int) else None
        if str(path[1]) == name or named == name or spec == name:
            for key in keys:
                if isinstance(spec, Mapping) and key in spec:
                    return (*path, key)
            return path
    return (block,)


def _references(prompty: Prompty, found: Collector) -> None:
    told: set[str] = set()
    for path, text in _texts(prompty.front, ()):
        for match in _REFERENCE.finditer(text):
            kind = match[1].lower()
            if kind == "file":
                _file(prompty, path, text, found)
            elif path[0] in _SETTINGS and kind != "env":
                message = f"`{match[0][:40]}` is sent as it stands: write ${{env:NAME}}"
                found.add_at("unknown-reference", message, path)
        unset = references.unset(text) if path[0] in _SETTINGS else {}
        for name, why in unset.items():
            if name not in told:
                found.add_at("env-unset", f"environment variable {name} is {why}", path)
            told.add(name)


def _file(prompty: Prompty, path: tuple[Any, ...], text: str, found: Collector) -> None:
    try:
        references.resolve_files(text, prompty.path)
    except PromptyError as error:
        found.add_at(error.code, error.message, path)


def _texts(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], str]]:
    if isinstance(value, str):
        if "${" in value and path:
            yield path, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts(item, (*path, index))


def _values(prompty: Prompty, found: Collector) -> None:
    """Samples and defaults against the declared types, and sample keys against the inputs."""
    for name, item in prompty.declared_inputs.items():
        for key, value in (("default", item.default), ("sample", item.sample)):
            if value is not MISSING and value is not None and not _fits(item.type, value):
                where = path_of(prompty, "inputs", name, key, "example")
                found.add_at("sample-mismatch", f"the {key} of `{name}` is no {item.type}", where)
    sample = prompty.front.get("sample")
    try:
        values = prompty.sample
    except PromptyError as error:
        if not (isinstance(sample, str) and "${" in sample):
            found.add_at(error.code, error.message, ("sample",))
        return
    if sample is None or not prompty.declared_inputs:
        return
    for name, value in values.items():
        declared = prompty.declared_inputs.get(name)
        if declared is None:
            near = near_miss(name, prompty.declared_inputs)
            hint = f": did you mean `{near}`?" if near else ""
            message = f"the sample gives `{name}`, which is no declared input{hint}"
            found.add_at("sample-mismatch", message, ("sample", name))
        elif value is not None and not _fits(declared.type, value):
            message = f"the sample's `{name}` is no {declared.type}"
            found.add_at("sample-mismatch", message, ("sample", name))
    for name, item in prompty.declared_inputs.items():
        if item.required and name not in values:
            message = f"the sample has no value for `{name}`"
            found.add_at("sample-mismatch", message, ("sample",))


def _fits(kind: str, value: Any) -> bool:
    if isinstance(value, str) and "${" in value:
        return True
    if kind in ("integer", "number"):
        try:
            number = float(value) if isinstance(value, str | int | float) else None
        except ValueError:
            return False
        if number is None or isinstance(value, bool) or not math.isfinite(number):
            return False
        return kind == "number" or number.is_integer()
    if kind == "boolean":
        return isinstance(value, bool) or str(value).lower() in ("true", "false")
    if kind == "object":
        return isinstance(value, Mapping)
    return isinstance(value, list | str) if kind in ("array", "thread") else True


def is_metric(prompty: Prompty) -> bool:
    """Whether the file scores something: a scored output with a scale, or with a judge's words."""
    scored = [output for output in prompty.outputs.values() if output.scored]
    scaled = any(output.scale or output.threshold is not None for output in scored)
    return scaled or (bool(scored) and _JUDGES.search(prompty.body) is not None)


def _judged_defaults(prompty: Prompty, found: Collector) -> None:
    if not is_metric(prompty):
        return
    for name, item in prompty.declared_inputs.items():
        if _JUDGED.fullmatch(name) and item.default not in (MISSING, None, "", [], {}):
            message = (
                f"rows without `{name}` would be judged on its default, and nobody would know: "
                "give it as a sample instead"
            )
            found.add_at("judged-default", message, path_of(prompty, "inputs", name, "default"))

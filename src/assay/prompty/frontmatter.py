"""Front matter: YAML 1.2 (core schema) into plain values, with the place of every key.

The scanner is libyaml's; what a plain scalar means is decided here, because YAML 1.1 would
read `yes`, `on` and `2024-01-01` as something else than text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from assay.errors import PromptyError
from assay.prompty.indent import lost_indentation

Path_ = tuple[Any, ...]
Positions = Mapping[Path_, tuple[int, int]]

_NULL = {"", "~", "null", "Null", "NULL"}
_BOOL = dict.fromkeys(("true", "True", "TRUE"), True) | dict.fromkeys(
    ("false", "False", "FALSE"), False
)
_INT = re.compile(r"[-+]?[0-9]+$|0o[0-7]+$|0x[0-9a-fA-F]+$")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")
_TAB = re.compile(r" *\t\s*\S")
_LONGEST_NUMBER = 300
_LARGEST = 100_000
"""Values a front matter may hold, every alias counted as all that it stands for."""


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """libyaml where it is there. Every plain scalar arrives as text."""

    yaml_implicit_resolvers: dict[str, Any] = {}


def parse(
    text: str, first_line: int, path: Path | str | None = None
) -> tuple[dict[str, Any], Positions]:
    """Front matter as a dict, and for every key path its (line, column), both from 1.

    Raises PromptyError with the cause and the place: lost indentation, tabs, control
    characters, duplicate keys, recursive aliases, a front matter that is no mapping.
    """
    found = lost_indentation(text)
    if found:
        raise PromptyError(
            f"the front matter lost its indentation ({found} and more stand at column 0 with "
            "nothing below them); `assay check --fix` restores it",
            path=path,
            line=first_line,
            code="lost-indentation",
        )
    control = _CONTROL.search(text)
    if control:
        line = text.count("\n", 0, control.start())
        raise PromptyError(
            f"control character U+{ord(control[0]):04X} is not allowed in YAML",
            path=path,
            line=first_line + line,
            column=control.start() - text.rfind("\n", 0, control.start()),
            code="yaml",
        )
    value, positions = load_value(text, first_line, path)
    if value is None:
        value = {}
    if not isinstance(value, dict):
        raise PromptyError(
            f"the front matter must be `key: value` lines, not {_kind(value)}",
            path=path,
            line=first_line,
            code="yaml",
        )
    return value, positions


def load_value(
    text: str, first_line: int = 1, path: Path | str | None = None
) -> tuple[Any, Positions]:
    """Any YAML text as a plain value, and the places of its keys. Raises PromptyError."""
    builder = _Builder(first_line, path)
    try:
        node = yaml.compose(text, _Loader)
        return (None if node is None else builder.build(node, ())), builder.positions
    except yaml.MarkedYAMLError as error:
        raise _explain(error, text, first_line, path) from None
    except yaml.YAMLError as error:
        message = str(error).split("\n")[0]
        raise PromptyError(
            f"not valid YAML: {message}", path=path, line=first_line, code="yaml"
        ) from None
    except RecursionError:
        raise PromptyError("nested too deeply", path=path, line=first_line, code="yaml") from None


class _Builder:
    """Values from nodes. Aliases share one object, but whoever walks the result would meet it
    again and again: their weight is counted and bounded."""

    def __init__(self, first_line: int, path: Path | str | None) -> None:
        self.first_line = first_line
        self.path = path
        self.positions: dict[Path_, tuple[int, int]] = {}
        self._done: dict[int, tuple[Any, int]] = {}
        self._open: set[int] = set()
        self._weight = 0

    def build(self, node: Any, where: Path_) -> Any:
        self._weight += 1
        if isinstance(node, yaml.ScalarNode):
            return node.value if node.style else scalar(node.value)
        key = id(node)
        if key in self._done:
            known, weight = self._done[key]
            self._weight += weight
            if self._weight > _LARGEST:
                raise self._error(node, f"aliases that stand for more than {_LARGEST} values")
            return known
        if key in self._open:
            raise self._error(node, "an alias that contains itself")
        self._open.add(key)
        before = self._weight
        value: Any
        if isinstance(node, yaml.MappingNode):
            value = self._mapping(node, where)
        else:
            value = [self._item(child, (*where, i)) for i, child in enumerate(node.value)]
        self._open.discard(key)
        self._done[key] = value, self._weight - before
        return value

    def _item(self, node: Any, where: Path_) -> Any:
        self.positions[where] = self._place(node)
        return self.build(node, where)

    def _mapping(self, node: Any, where: Path_) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise self._error(key_node, f"a key must be text, not {_node_kind(key_node)}")
            key = key_node.value if key_node.style else scalar(key_node.value)
            if key in result:
                first = self.positions[(*where, key)][0]
                raise self._error(
                    key_node, f"duplicate key `{key}` (first on line {first})", "duplicate-key"
                )
            self.positions[(*where, key)] = self._place(key_node)
            result[key] = self.build(value_node, (*where, key))
        return result

    def _place(self, node: Any) -> tuple[int, int]:
        mark = node.start_mark
        return self.first_line + mark.line, mark.column + 1

    def _error(self, node: Any, message: str, code: str = "yaml") -> PromptyError:
        line, column = self._place(node)
        return PromptyError(message, path=self.path, line=line, column=column, code=code)


def scalar(text: str) -> Any:
    """What an unquoted YAML 1.2 scalar means: null, bool, int, float or the text itself.

    Numbers beyond what a float holds stay text.
    """
    if text in _NULL:
        return None
    if text in _BOOL:
        return _BOOL[text]
    if len(text) > _LONGEST_NUMBER:
        return text
    if _INT.match(text):
        return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
    if _FLOAT.match(text) and math.isfinite(float(text)):
        return float(text)
    return text


def _explain(
    error: yaml.MarkedYAMLError, text: str, first_line: int, path: Path | str | None
) -> PromptyError:
    mark = error.problem_mark or error.context_mark
    lines = text.split("\n")
    tab = _TAB.match(lines[mark.line]) if mark and mark.line < len(lines) else None
    if mark and tab:
        return PromptyError(
            "a tab is used for indentation: YAML allows only spaces",
            path=path,
            line=first_line + mark.line,
            column=tab[0].index("\t") + 1,
            code="tab",
        )
    cause = " ".join(part for part in (error.context, error.problem) if part)
    return PromptyError(
        f"not valid YAML: {cause}",
        path=path,
        line=first_line + mark.line if mark else first_line,
        column=mark.column + 1 if mark else None,
        code="yaml",
    )


def _kind(value: Any) -> str:
    return "a list" if isinstance(value, list) else "a single value"


def _node_kind(node: Any) -> str:
    return "a list" if isinstance(node, yaml.SequenceNode) else "a mapping"

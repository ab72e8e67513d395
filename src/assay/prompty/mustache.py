"""Mustache bodies: `{{name}}`, sections, inverted sections, comments.

Rendered into the same tokens as Jinja bodies, so the same rules hold. Nothing is escaped:
prompts are no HTML. Partials and other delimiters are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jinja2 import Undefined

from assay.errors import PromptyError, RenderError
from assay.prompty.template import Rendered, RoleName, Template, as_text

LOOKS_LIKE = re.compile(r"\{\{\s*[#/^]")
_DEEPEST = 100
_MISSING: Any = object()


@dataclass(slots=True)
class _Section:
    name: str
    inverted: bool
    line: int
    children: list[str | _Section | _Variable] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Variable:
    name: str
    line: int


def compile_mustache(body: str, first_line: int, path: Path | None) -> Template:
    """Compile a Mustache body. Raises PromptyError with the line where it is not well formed."""
    root = _parse(body, first_line, path)

    def render(values: Mapping[str, Any]) -> Rendered:
        sink = Rendered()
        sink.text = "".join(_render(root, [values], sink, path))
        return sink

    return Template(frozenset(_names(root, outer=True)), render)


def _parse(body: str, first_line: int, path: Path | None) -> _Section:
    root = _Section("", False, first_line)
    open_sections = [root]
    start = 0
    line = first_line
    counted = 0
    for begin, end, kind, name in _tags(body):
        line += body.count("\n", counted, begin)
        counted = begin
        if kind in ("#", "^", "/", "!"):
            begin, end = _standalone(body, begin, end)
        open_sections[-1].children.append(body[start:begin])
        start = max(start, end)
        if kind in ("#", "^"):
            if len(open_sections) > _DEEPEST:
                raise _wrong(f"more than {_DEEPEST} sections inside each other", path, line)
            section = _Section(name, kind == "^", line)
            open_sections[-1].children.append(section)
            open_sections.append(section)
        elif kind == "/":
            if len(open_sections) == 1 or open_sections[-1].name != name:
                raise _wrong(f"`{{{{/{name}}}}}` closes nothing that is open", path, line)
            open_sections.pop()
        elif kind in (">", "="):
            raise _wrong("partials and other delimiters are not supported", path, line)
        elif kind in ("", "&"):
            if not re.fullmatch(r"\.|[\w.-]+", name):
                raise _wrong(f"`{name[:40]}` is no Mustache name", path, line)
            open_sections[-1].children.append(_Variable(name, line))
    if len(open_sections) > 1:
        section = open_sections[-1]
        raise _wrong(f"`{{{{#{section.name}}}}}` is never closed", path, section.line)
    root.children.append(body[start:])
    return root


def _tags(body: str) -> Iterator[tuple[int, int, str, str]]:
    """(start, end, kind, name) of every tag, in one pass; kind is "" for a variable."""
    start = body.find("{{")
    while start >= 0:
        closing = "}}}" if body.startswith("{{{", start) else "}}"
        stop = body.find(closing, start)
        if stop < 0:
            return
        end = stop + len(closing)
        inside = body[start + len(closing) : stop].strip()
        kind = inside[:1] if len(closing) == 2 and inside[:1] in "#^/!&>=" else ""
        yield start, end, kind, inside[len(kind) :].strip()
        start = body.find("{{", end)


def _standalone(body: str, begin: int, end: int) -> tuple[int, int]:
    """A section tag alone on its line takes the whole line with it."""
    left = body.rfind("\n", 0, begin) + 1
    right = body.find("\n", end)
    right = len(body) if right < 0 else right + 1
    alone = not body[left:begin].strip() and not body[end:right].strip()
    return (left, right) if alone else (begin, end)


def _render(section: _Section, stack: list[Any], sink: Rendered, path: Path | None) -> list[str]:
    out: list[str] = []
    for child in section.children:
        if isinstance(child, str):
            out.append(child)
        elif isinstance(child, _Variable):
            out.append(_print(child, stack, sink, path))
        else:
            value = _look_up(child.name, stack)
            truthy = value is not _MISSING and bool(value)
            if child.inverted:
                scopes = [] if truthy else [None]
            else:
                scopes = (value if isinstance(value, list) else [value]) if truthy else []
            for scope in scopes:
                out.extend(_render(child, [*stack, scope], sink, path))
    return out


def _print(variable: _Variable, stack: list[Any], sink: Rendered, path: Path | None) -> str:
    value = _look_up(variable.name, stack)
    if isinstance(value, Undefined):
        return ""  # an optional input without a value
    if value is _MISSING:
        raise RenderError(
            f"'{variable.name}' is undefined", path=path, line=variable.line, code="render"
        )
    try:
        text = as_text(value)
    except ValueError as error:
        raise RenderError(str(error), path=path, line=variable.line, code="render") from None
    in_loop = len(stack) > 1 and variable.name.split(".")[-1] == "role"
    return sink.token(RoleName(text) if in_loop else value)


def _look_up(name: str, stack: list[Any]) -> Any:
    if name == ".":
        return stack[-1]
    first, *rest = name.split(".")
    for scope in reversed(stack):
        if isinstance(scope, Mapping) and first in scope:
            value = scope[first]
            for key in rest:
                value = value.get(key, _MISSING) if isinstance(value, Mapping) else _MISSING
            return value
    return _MISSING


def _names(section: _Section, outer: bool) -> set[str]:
    """Names taken from outside. Inside a section a name may belong to its elements."""
    names: set[str] = set()
    for child in section.children:
        if isinstance(child, _Section):
            if outer:
                names.add(child.name.split(".")[0])
            names |= _names(child, outer=outer and child.inverted)
        elif isinstance(child, _Variable) and outer and child.name != ".":
            names.add(child.name.split(".")[0])
    return names


def _wrong(message: str, path: Path | None, line: int) -> PromptyError:
    return PromptyError(f"template: {message}", path=path, line=line, code="template")

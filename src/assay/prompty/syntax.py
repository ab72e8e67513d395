"""A body's template syntax, looked at without running it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from jinja2 import Environment, TemplateSyntaxError, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from assay.prompty.model import Prompty

_OPENING = re.compile(r"\{[{%#]")
_CLOSING = {"{{": "}}", "{%": "%}", "{#": "#}"}
_MUSTACHE_NAME = re.compile(r"\{\{\{?\s*[#^&]?\s*([\w.-]+)\s*\}?\}\}")


def parse_jinja(body: str) -> nodes.Template | None:
    """The syntax tree of a Jinja body; None where it is no template."""
    env: Environment = ImmutableSandboxedEnvironment(trim_blocks=True, keep_trailing_newline=True)
    try:
        return env.parse(body)
    except (TemplateSyntaxError, RecursionError):
        return None


def blank_tags(body: str) -> str:
    """The body's own text: every template tag and comment becomes blanks of the same length.

    A tag that is never closed is text. Time grows with the length, whatever the text.
    """
    parts: list[str] = []
    position = 0
    unclosed: set[str] = set()
    opening = _OPENING.search(body)
    while opening and len(unclosed) < len(_CLOSING):
        sign, start = opening[0], opening.start()
        end = -1 if sign in unclosed else body.find(_CLOSING[sign], start + 2)
        if end < 0:
            unclosed.add(sign)
            opening = _OPENING.search(body, start + 1)
            continue
        parts += [body[position:start], re.sub(r"[^\n]", " ", body[start : end + 2])]
        position = end + 2
        opening = _OPENING.search(body, position)
    return "".join([*parts, body[position:]])


def first_uses(prompty: Prompty) -> Mapping[str, tuple[int, int]]:
    """Line and column, in the file, where each variable of the body first stands."""
    found: dict[str, tuple[int, int]] = {}
    lines = prompty.body.split("\n")
    if prompty.is_mustache:
        for match in _MUSTACHE_NAME.finditer(prompty.body):
            line = prompty.body.count("\n", 0, match.start())
            column = match.start() - prompty.body.rfind("\n", 0, match.start())
            name = match[1].split(".")[0]
            found.setdefault(name, (prompty.body_line + line, column))
        return found
    tree = parse_jinja(prompty.body)
    for node in tree.find_all(nodes.Name) if tree else ():
        if node.name in found or node.ctx != "load":
            continue
        line = node.lineno - 1
        text = lines[line] if line < len(lines) else ""
        tag = max(text.find("{{"), 0) if "{{" in text and "{%" not in text else 0
        match_ = re.compile(rf"\b{re.escape(node.name)}\b").search(text, tag)
        found[node.name] = (prompty.body_line + line, match_.start() + 1 if match_ else 1)
    return found

"""Mechanical repairs. Each is proven by loading the result; what does not load is not kept."""

from __future__ import annotations

import keyword
import re
from pathlib import Path

from assay.errors import PromptyError
from assay.prompty import Prompty, loads
from assay.prompty.check.body import unused_inputs
from assay.prompty.check.finding import Collector
from assay.prompty.check.hostile import check_template
from assay.prompty.indent import restore_indentation
from assay.prompty.messages import ROLES
from assay.prompty.source import split

_ENDING = re.compile(r"\r\n|\n|\r")
_DELIMITER = re.compile(r"[ \t]*(-{3,}|\+{3,})[ \t]*$")
_ROUNDS = 4
"""Repairs that may follow one another: dedent, indentation, tabs, and one more that tells
that nothing is left."""


def fix_text(text: str, path: str | Path | None = None) -> str:
    """The text with what is mechanical repaired; the same text where nothing is.

    Byte order mark and line endings stay as they are. The result of a repair always loads.
    """
    path = Path(path) if path is not None else None
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    lines = _ENDING.split(text[len(mark) :])
    endings = [*_ENDING.findall(text[len(mark) :]), ""]
    plain = repair_lines("\n".join(lines), path)
    try:
        prompty = loads(plain, path)
    except PromptyError:
        return text
    plain = _spelling(plain, prompty)
    repaired = plain.split("\n")
    fixed = "".join(line + end for line, end in zip(repaired, endings, strict=True))
    newline = endings[0] or "\n"
    addition = "\n".join(_message_of_inputs(prompty))
    if addition:
        fixed += "" if fixed.endswith(("\n", "\r")) else newline
        fixed += (newline + addition.replace("\n", newline)) if prompty.body.strip() else addition
        fixed += newline
    return mark + fixed if _loads(mark + fixed, path) else text


def repair_lines(text: str, path: Path | None = None) -> str:
    """Repairs that keep the number of lines, until the text loads or no repair applies.

    `text` has \\n line endings. Returns it unchanged where the result would not load.
    """
    current = text
    for _ in range(_ROUNDS):
        code = _error_code(current, path)
        if code is None:
            return current
        repair = _REPAIRS.get(code)
        repaired = repair(current, path) if repair else current
        if repaired == current:
            return text
        current = repaired
    return text


def _error_code(text: str, path: Path | None) -> str | None:
    try:
        loads(text, path)
    except PromptyError as error:
        return error.code
    return None


def _loads(text: str, path: Path | None) -> bool:
    return _error_code(text, path) is None


def _dedent(text: str, path: Path | None) -> str:
    """Take the indent of the first delimiter off the file, or off the front matter only where
    the body stands at the margin."""
    lines = text.split("\n")
    marks = [index for index, line in enumerate(lines) if _DELIMITER.match(line)]
    if len(marks) < 2:
        return text
    first, last = marks[0], marks[1]
    indent = lines[first][: len(lines[first]) - len(lines[first].lstrip())]

    def shared(part: list[str]) -> bool:
        return all(line.startswith(indent) for line in part if line.strip())

    end = len(lines) if shared(lines[first:]) else last + 1
    if not shared(lines[first:end]):
        lines[first], lines[last] = lines[first].strip(), lines[last].strip()
        return "\n".join(lines)
    return "\n".join(
        line.removeprefix(indent) if first <= index < end and line.strip() else line
        for index, line in enumerate(lines)
    )


def _close(text: str, path: Path | None) -> str:
    """Bring an indented closing delimiter to the margin: the first one with which it loads."""
    lines = text.split("\n")
    marks = [index for index, line in enumerate(lines) if _DELIMITER.match(line)]
    for index in marks[1:]:
        tried = [*lines]
        tried[index] = tried[index].strip()
        if _loads("\n".join(tried), path):
            return "\n".join(tried)
    return text


def _indentation(text: str, path: Path | None) -> str:
    source = split(text, path)
    if source.front is None:
        return text
    return _with_front(text, restore_indentation(source.front))


def _tabs(text: str, path: Path | None) -> str:
    """Tabs in indentation to the first width with which the file loads."""
    source = split(text, path)
    lines = (source.front or "").split("\n")
    for width in (2, 4, 8):
        front = "\n".join(_expand(line, width) for line in lines)
        if _loads(_with_front(text, front), path):
            return _with_front(text, front)
    return text


def _expand(line: str, width: int) -> str:
    rest = line.lstrip(" \t")
    return line[: len(line) - len(rest)].expandtabs(width) + rest


def _with_front(text: str, front: str) -> str:
    source = split(text)
    lines = text.split("\n")
    start = source.front_line - 1
    lines[start : source.body_line - 2] = front.split("\n") if source.body_line - 2 > start else []
    return "\n".join(lines)


_REPAIRS = {
    "indented-delimiter": _dedent,
    "unclosed": _close,
    "lost-indentation": _indentation,
    "tab": _tabs,
}


def _spelling(text: str, prompty: Prompty) -> str:
    """`tools_choice` to `tool_choice`, where the file does not have that already."""
    lines = text.split("\n")
    for path, (line, column) in prompty.positions.items():
        if path[-1] != "tools_choice" or (*path[:-1], "tool_choice") in prompty.positions:
            continue
        if path[0] not in ("model", "parameters"):
            continue
        before, after = lines[line - 1][: column - 1], lines[line - 1][column - 1 :]
        lines[line - 1] = before + after.replace("tools_choice", "tool_choice", 1)
    return "\n".join(lines)


def _message_of_inputs(prompty: Prompty) -> list[str]:
    """Lines of a user message with every input, for a body that uses none of them."""
    declared = list(prompty.declared_inputs)
    if not check_template(prompty, Collector("")):
        return []
    try:
        unused = unused_inputs(prompty)
    except PromptyError:
        return []
    if not declared or unused != declared or not all(map(_is_variable, declared)):
        return []
    if any(re.search(rf"\{{\s*{re.escape(name)}\s*\}}", prompty.body) for name in declared):
        return []  # written with single braces: a person must say what is meant
    lines = ["user:"]
    for name in declared:
        gap = " " if name.lower() in ROLES else "\n"  # a role name alone would open a message
        lines.append(f"{name}:{gap}{{{{{name}}}}}")
    return lines


def _is_variable(name: str) -> bool:
    reserved = {"loop", "self", "super", "caller", "varargs", "kwargs", "range", "dict", "lipsum"}
    reserved |= {"true", "false", "none", "cycler", "joiner", "namespace"}
    return name.isidentifier() and not keyword.iskeyword(name) and name not in reserved

"""The body: its messages and its variables."""

from __future__ import annotations

import re

from assay.prompty import Prompty
from assay.prompty.check.finding import Collector
from assay.prompty.check.front import near_miss, path_of
from assay.prompty.fences import closed_fences
from assay.prompty.messages import ROLE_LINE, ROLES
from assay.prompty.syntax import blank_tags, first_uses

_NAMES = "|".join(ROLES)
_PRINTED_ROLE = re.compile(r"[ \t]*#?[ \t]*\{\{.*\}\}[ \t]*:[ \t]*$")
_HEADING = re.compile(rf"[ \t]*#{{2,}}[ \t]*({_NAMES})[ \t]*:?[ \t]*$", re.IGNORECASE)
_INLINE = re.compile(rf"[ \t]*#?[ \t]*({_NAMES})[ \t]*:[ \t]*\S", re.IGNORECASE)
_OTHER = re.compile(
    rf"[ \t]*(?:\*\*({_NAMES})(?::\*\*|\*\*[ \t]*:?)|<\|im_start\|>[ \t]*({_NAMES})|"
    r"\[/?INST\]|(?:human|ai|bot|model)[ \t]*:)[ \t]*$",
    re.IGNORECASE,
)


def check_roles(prompty: Prompty, found: Collector) -> None:
    """Lines that open a message, and lines that only look as if they did."""
    if not prompty.body.strip():
        if not _threads(prompty):
            found.add("empty", "the body is empty: there is nothing to send", prompty.body_line)
        return
    lines = prompty.body.split("\n")
    visible = blank_tags(prompty.body).split("\n")
    fenced = {i for first, last in closed_fences(lines) for i in range(first, last + 1)}
    opened = False
    inline: list[int] = []
    for index, line in enumerate(lines):
        is_role = ROLE_LINE.fullmatch(visible[index]) is not None
        if index not in fenced and (is_role or _PRINTED_ROLE.fullmatch(line)):
            opened = True
        why = _looks_like_role(visible[index], is_role and index in fenced)
        if why:
            inline.append(index)
            column = len(line) - len(line.lstrip()) + 1
            found.add("role-like", why, prompty.body_line + index, column)
    if not opened and not _threads(prompty):
        message = "no line opens a message (`system:` or `user:` alone on its line)"
        if inline:
            message += f"; line {prompty.body_line + inline[0]} only looks like one"
        found.add("no-role", message + ": all of it is one system message", prompty.body_line)


def _threads(prompty: Prompty) -> bool:
    return any(item.type == "thread" for item in prompty.declared_inputs.values())


def _looks_like_role(line: str, in_fence: bool) -> str | None:
    """Why a line opens no message although it looks as if it should."""
    if in_fence:
        return "a role line inside fenced code stays text"
    if _HEADING.match(line):
        return "a role with two or more # stays text: write it with one # or none"
    if _INLINE.match(line):
        return "text after the colon keeps this line from opening a message"
    if _OTHER.match(line):
        return "this spelling of a role stays text: write `user:` alone on the line"
    return None


def check_variables(prompty: Prompty, found: Collector) -> None:
    """Variables no input declares, and declared inputs that reach no message."""
    uses = first_uses(prompty)
    declared = prompty.declared_inputs
    for name in sorted(prompty.template.variables):
        if name in declared:
            continue
        near = near_miss(name, declared)
        hint = f": did you mean `{near}`?" if near else ", so every row must give it"
        line, column = uses.get(name, (prompty.body_line, 1))
        message = f"`{name}` is not declared under inputs{hint}"
        found.add("undeclared-variable", message, line, column)
    _unused(prompty, found)


def _unused(prompty: Prompty, found: Collector) -> None:
    unused = unused_inputs(prompty)
    for name in unused:
        single = re.search(rf"(?<!\{{)\{{\s*{re.escape(name)}\s*\}}(?!\}})", prompty.body)
        hint = f": write {{{{{name}}}}} instead of {single[0]}" if single else ""
        message = f"input `{name}` never reaches the prompt{hint}"
        found.add_at("unused-input", message, path_of(prompty, "inputs", name))
    if unused and len(unused) == len(prompty.declared_inputs) and prompty.body.strip():
        names = ", ".join(f"`{name}`" for name in unused)
        message = (
            f"the prompt uses none of its inputs ({names}): every row would get the same answer"
        )
        found.add("inputs-unused", message, prompty.body_line)


def unused_inputs(prompty: Prompty) -> list[str]:
    """Declared inputs that neither the body nor a tool's bindings use."""
    tools = str(prompty.front.get("tools") or "")
    used = prompty.used_inputs
    return [
        name for name in prompty.declared_inputs if name not in used and f"'{name}'" not in tools
    ]

"""Fenced code blocks, as Markdown writes them."""

from __future__ import annotations

import re

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([^`\n]*)$")


def closed_fences(lines: list[str]) -> list[tuple[int, int]]:
    """(first, last) line indexes of every closed fence, the fence lines included.

    A fence that is never closed is text: it must not swallow what follows.
    """
    found: list[tuple[int, int]] = []
    opened: tuple[int, str] | None = None
    for index, line in enumerate(lines):
        match = _FENCE.match(line)
        if match is None:
            continue
        if opened is None:
            opened = (index, match[1])
        elif match[1].startswith(opened[1]) and not match[2].strip():
            found.append((opened[0], index))
            opened = None
    return found

"""Text to sentences or lines, in any script, without a model."""

from __future__ import annotations

import re

_END = re.compile(
    # A full stop of a wide script ends a sentence by itself; others need a space after them.
    r"[。！？｡]+[」』”’）)\"']*|[.!?؟۔।…]+[\"'”’)\]]*(?=\s|$)|\n\s*\n"
)
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:[A-Z]|Mr|Mrs|Ms|Dr|Prof|St|vs|etc|approx|No|Nr|Sr|Sra|Dra|bzw|ca|z\.B|d\.h"
    r"|e\.g|i\.e|u\.a|p\.ej|Fig|Abs|Art|Inc|Ltd|Co)\.$"
)
_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+")


def sentences(text: str) -> list[str]:
    """The sentences of a text, trimmed, none empty. Lines of a list are sentences too."""
    found: list[str] = []
    for block in re.split(r"\n(?=\s*(?:[-*•]|\d+[.)])\s)|\n{2,}", text):
        start = 0
        for match in _END.finditer(block):
            candidate = block[start : match.end()]
            if _ABBREVIATION.search(candidate.rstrip()):
                continue
            found.append(candidate)
            start = match.end()
        found.append(block[start:])
    stripped = (" ".join(_BULLET.sub("", sentence).split()) for sentence in found)
    return [sentence for sentence in stripped if any(char.isalnum() for char in sentence)]


def lines(text: str) -> list[str]:
    """The lines of a text that hold something, without bullets and numbering."""
    stripped = (_BULLET.sub("", line).strip() for line in text.split("\n"))
    return [line for line in stripped if line]

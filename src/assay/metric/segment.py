"""Text to sentences or lines, in any script, without a model."""

from __future__ import annotations

import re

_END = re.compile(
    # The full stops of wide scripts and of Indic scripts end a sentence by themselves; others
    # need a space after them.
    r"[。！？｡।॥]+[」』”’）)\"']*+(?!と|って)|[.!?؟۔…]+[\"'”’»)\]]*(?=\s|$)"
)
_INITIALS = re.compile(r"(?:^|[\s(\"'“«])(?:[^\W\d_]\.\s?)*[^\W\d_]\.$")
_TITLE = re.compile(
    r"(?:^|[\s(])(?:Mr|Mrs|Ms|Dr|Prof|St|Hr|Fr|Frl|Sr|Sra|Srta|Dra|Ud|Uds|Mme|Mlle|vs|bzw|ca|evtl"
    r"|inkl|Jan|Feb|Aug|Sept|Oct|Nov|Dec)\.$"
)
_BEFORE_NUMBER = re.compile(
    r"(?:^|[\s(])(?:No|Nos|Nr|Art|Abs|Fig|Abb|Kap|Tel|pp?|S|núm)\.$", re.IGNORECASE
)
_ORDINAL = re.compile(r"(?:^|\s)\d{1,2}\.$")
_MONTH = re.compile(
    r"\s(?:Januar|Jänner|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November"
    r"|Dezember|Klasse|Stock|Etage|Tag|Woche|Jahrhundert)"
)
_BLOCK = re.compile(r"\n\s*\n|\n(?=[ \t]*(?:[-*•]|\d{1,3}[.)])[ \t])")
_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,3}[.)])\s+")


def sentences(text: str) -> list[str]:
    """The sentences of a text, trimmed, none empty. Lines of a list are sentences too."""
    found: list[str] = []
    for block in _BLOCK.split(text):
        block = _BULLET.sub("", block)
        start = 0
        for match in _END.finditer(block):
            if _goes_on(block[start : match.end()], block[match.end() :]):
                continue
            found.append(block[start : match.end()])
            start = match.end()
        found.append(block[start:])
    stripped = (" ".join(sentence.split()) for sentence in found)
    return [sentence for sentence in stripped if any(char.isalnum() for char in sentence)]


def lines(text: str) -> list[str]:
    """The lines of a text that hold something, without bullets and numbering."""
    stripped = (_BULLET.sub("", line).strip() for line in text.split("\n"))
    return [line for line in stripped if line]


def _goes_on(before: str, after: str) -> bool:
    """Whether the full stop at the end of `before` ends no sentence."""
    if not before.endswith((".", "…")):
        return False
    following = after.lstrip()[:1]
    if following.islower() or following in (",", ";"):
        return True
    if following.isdigit() and _BEFORE_NUMBER.search(before):
        return True
    if _ORDINAL.search(before) and _MONTH.match(after):
        return True
    return bool(following and (_INITIALS.search(before) or _TITLE.search(before)))

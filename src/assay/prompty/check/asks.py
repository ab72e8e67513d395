"""What a prompt asks the judge for, as far as its text says so beyond doubt.

Three things are read: values in example JSON, ranges beside words such as "scale" or
"puntuación", and runs of listed levels. Whatever may mean something else is left out: a
finding made from these must be right.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_MEMBER = re.compile(
    r"""(?P<quote>["'])(?P<key>[^"'\n]{1,60})(?P=quote)\s*:\s*"""
    r"""(?P<value>"[^"\\\n]{0,40}"|'[^'\\\n]{0,40}'|-?\d+(?:\.\d+)?|true|false)\s*(?=[,}\n])"""
)
_WORD = (
    r"(?:scor(?:e|es|ing)|scale|rat(?:e|ed|ing|ings)|grad(?:e|es|ing)|escala|puntuaci[oó]n|"
    r"punt[uú]a|puntaje|nota|calificaci[oó]n|califica|valora|skala|bewert(?:e|en|ung)|"
    r"échelle|échelonn\w*|note)"
)
_NUMBER = r"(-?\d{1,4}(?:\.\d{1,2})?)"
_BETWEEN = r"(?:\s*(?:-|–|—|\.{2,3})\s*|\s+(?:to|through|and|a|al|y|hasta|bis|und|à|et)\s+)"
_RANGE = rf"(?<![\w.,/-]){_NUMBER}{_BETWEEN}{_NUMBER}(?![\w%/]|\.\d|-\d)"
_COUNTED = (
    r"(?!\s*(?:sentences?|words?|lines?|paragraphs?|passages?|bullets?|examples?|minutes?|"
    r"frases|palabras|líneas|oraciones)\b)"
)
_BESIDE = re.compile(rf"\b{_WORD}\b(?P<gap>[^.\n;!?0-9]{{0,40}}?){_RANGE}{_COUNTED}", re.IGNORECASE)
_BEFORE = re.compile(
    rf"{_RANGE}[\s-]{{0,2}}(?:point[\s-]+)?(?:scale|rating|stars?|escala|estrellas)\b",
    re.IGNORECASE,
)
_LEVEL = re.compile(
    r"[ \t]*(?:[-*•#>]+[ \t]*)?(?:\*\*)?"
    r"(?:\[\w+:\s*(?P<tagged>\d{1,3})\s*\]|"
    r"(?:(?:score|level|rating|grade|nivel|puntuaci[oó]n|stufe|note)\s+)?(?P<plain>\d{1,3})"
    r"(?:\*\*)?\s*(?:[:=–—]|-\s)(?:\*\*)?[ \t]*\S)",
    re.IGNORECASE,
)
_STEPS = re.compile(r"steps?\b|proceed|instructions?|paso|example|question|schritt", re.IGNORECASE)
_SCALE_WORD = re.compile(r"scale|escala|skala|échelle", re.IGNORECASE)
_NO_VALUE = {"string", "str", "number", "integer", "int", "float", "boolean", "bool", "value"}


@dataclass(frozen=True, slots=True)
class Range:
    """Two ends that the prompt names as a scale. `explicit`: it uses the word scale itself."""

    low: float
    high: float
    offset: int
    explicit: bool


def json_members(text: str) -> Iterator[tuple[str, Any, int]]:
    """(key, value, offset) of members of example JSON; placeholders such as <1-5> are none."""
    for match in _MEMBER.finditer(text):
        raw = match["value"]
        value: Any = raw[1:-1].strip() if raw[0] in "\"'" else json.loads(raw)
        placeholder = isinstance(value, str) and (
            not re.fullmatch(r"[\w.-]+", value) or value.lower() in _NO_VALUE or "..." in value
        )
        if not placeholder:
            yield match["key"], value, match.start()


def ranges(text: str) -> list[Range]:
    """Scales that the text names: "from 1 to 5" beside a word for a score, a "1-5 scale"."""
    found: list[Range] = []
    for pattern in (_BESIDE, _BEFORE):
        for match in pattern.finditer(text):
            *_, low, high = match.groups()
            explicit = pattern is _BEFORE or _SCALE_WORD.match(match[0]) is not None
            made = Range(float(low), float(high), match.start(), explicit)
            if made.low < made.high and made.low <= 1:
                found.append(made)
    return found


def level_runs(text: str) -> Iterator[tuple[list[int], int]]:
    """Runs of three or more listed levels, each one more or one less than the last.

    Yields the values and the offset of the first; numbered steps and examples are left out.
    """
    run: list[int] = []
    start = last = offset = 0
    heading = before = ""
    for number, line in enumerate(text.split("\n")):
        match = _LEVEL.match(line)
        if match:
            value = int(match["tagged"] or match["plain"])
            near = run and number - last <= 8 and abs(value - run[-1]) == 1
            if not near:
                if len(run) >= 3 and not _STEPS.search(heading):
                    yield run, start
                run, start, heading = [], offset, before
            run.append(value)
            last = number
        elif line.strip():
            before = line
        offset += len(line) + 1
    if len(run) >= 3 and not _STEPS.search(heading):
        yield run, start


def mentions(text: str, value: Any) -> bool:
    """Whether the text names a level: a number by itself or inside a range, a word anywhere."""
    if isinstance(value, bool):
        return re.search(rf"\b{str(value).lower()}\b", text, re.IGNORECASE) is not None
    if isinstance(value, int | float):
        if re.search(rf"(?<![\d.]){re.escape(f'{value:g}')}(?!\d|\.\d)", text):
            return True
        spans = re.finditer(_RANGE, text)
        return any(float(span[1]) <= value <= float(span[2]) for span in spans)
    return str(value).casefold() in text.casefold()

"""Reading a judge's reply: the declared outputs, or why not. Never a guess."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from assay.prompty.fences import closed_fences
from assay.prompty.fields import REASONS, Output
from assay.prompty.values import AROUND, LONGEST_NUMBER, NUMBER, Unreadable, cut, value_of

_ATTEMPTS = 256
_OBJECT = re.compile(r'\{\s*["}]')
_MARKS = re.compile(r'"(?:[^"\\]|\\.)*+"?|[{}]', re.DOTALL)
_SKIPPED = {"skipped", "not_applicable", "not applicable", "n/a"}


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reply says.

    status: `scored` with all declared outputs in `outputs`; `not_applicable` where the judge
        declared it; `invalid` with a `cause` (`empty`, `unparseable`, `missing_output`,
        `wrong_type`, `out_of_scale`, `ambiguous`) and a `message` for people.
    """

    status: str
    outputs: Mapping[str, Any]
    cause: str | None = None
    message: str | None = None


def read(text: str, outputs: Mapping[str, Output]) -> Reading:
    """Read `text` as the declared `outputs`.

    In this order: the whole text as JSON; one fenced block; the one balanced object; then
    tags (`<score>4</score>`, `<S2>4</S2>`); then, where a single output is declared, a bare
    value that is the whole answer. Values are converted only where nothing is lost, then
    checked against their scale.
    """
    cleaned = text.strip(AROUND)
    if not cleaned:
        return Reading("invalid", {}, "empty", "the reply is empty")
    try:
        found = _find(cleaned, outputs)
        if _declared_skipped(found, outputs):
            why = next((found[key] for key in REASONS if found.get(key)), None)
            message = f"the judge declared it not applicable{f': {why}' if why else ''}"
            return Reading("not_applicable", dict(found), "judge_declared", message)
        if not outputs:
            return Reading("scored", found)
        values = {
            name: value_of(output, found)
            for name, output in outputs.items()
            if output.required or found.get(name) is not None
        }
    except Unreadable as error:
        return Reading("invalid", {}, error.cause, error.message)
    return Reading("scored", values)


def _find(text: str, outputs: Mapping[str, Output]) -> Mapping[str, Any]:
    """The object the reply holds, by the names of the outputs."""
    problem = ""
    try:
        whole = _loads(text)
    except ValueError as error:
        problem = str(error)
    else:
        if isinstance(whole, dict):
            return _known(whole, text, outputs)
        return _bare(whole, text, outputs)
    lines = text.split("\n") if "```" in text or "~~~" in text else []
    fenced = closed_fences(lines)
    if len(fenced) == 1:
        first, last = fenced[0]
        try:
            inside = _loads("\n".join(lines[first + 1 : last]).strip(AROUND))
        except ValueError as error:
            problem = str(error)
        else:
            if isinstance(inside, dict):
                return inside
            return _bare(inside, text, outputs)
    found = _objects(text)
    objects = [item for item in found if any(name in item for name in outputs)] or found
    if objects:
        if len({json.dumps(item, sort_keys=True) for item in objects}) > 1:
            raise Unreadable(
                "ambiguous", f"the reply holds {len(objects)} JSON objects that disagree"
            )
        return _known(objects[0], text, outputs)
    tagged = _tags(text, outputs)
    if tagged:
        return tagged if outputs else {name: _plain(value) for name, value in tagged.items()}
    return _bare(text, text, outputs, problem)


def _known(found: dict[str, Any], text: str, outputs: Mapping[str, Output]) -> Mapping[str, Any]:
    """An object; but text that only mentions one is the answer where free text is declared."""
    only = _single(outputs)
    if only and not only.scored and only.type in ("string", "any") and only.name not in found:
        return {only.name: text}
    return found


def _bare(
    value: Any, text: str, outputs: Mapping[str, Output], problem: str = ""
) -> Mapping[str, Any]:
    """A reply that is one value, not an object."""
    if not outputs:
        value = _plain(value)
        is_number = isinstance(value, int | float)
        return {"score": value} if is_number else {"text": text}
    only = _single(outputs)
    if only is None:
        names = ", ".join(outputs)
        kind = "no JSON object was found" if isinstance(value, str) else f"it is {_kind(value)}"
        note = f" ({problem})" if problem else ""
        raise Unreadable("unparseable", f"a JSON object with {names} was expected; {kind}{note}")
    if not only.scored and only.type in ("string", "any"):
        return {only.name: text}
    if isinstance(value, list | dict) and only.type not in ("array", "object", "any"):
        raise Unreadable("unparseable", f"{only.name}: {_kind(value)}, not one value")
    return {only.name: value}


def _plain(value: Any) -> Any:
    """Text that is a number, as that number; where nothing is declared there is no type."""
    if isinstance(value, str) and NUMBER.fullmatch(value) and len(value) < 100:
        return float(value) if "." in value else int(value)
    return value


def _single(outputs: Mapping[str, Output]) -> Output | None:
    required = [output for output in outputs.values() if output.required]
    return required[0] if len(required) == 1 else None


def _tags(text: str, outputs: Mapping[str, Output]) -> dict[str, str]:
    """Outputs given as `<name>value</name>`, or in the S0/S1/S2 form of older evaluators."""
    scored = [name for name, output in outputs.items() if output.scored] or ["score"]
    reasons = [name for name in outputs if name in REASONS] or ["reason"]
    names = {name: name for name in outputs} | {"S2": scored[0], "S1": reasons[0]}
    found: dict[str, str] = {}
    for tag, name in names.items():
        values = {v.strip(AROUND) for v in _between(text, f"<{tag}>", f"</{tag}>")}
        if len(values) > 1:
            raise Unreadable("ambiguous", f"the reply gives <{tag}> more than one value")
        if values:
            found.setdefault(name, values.pop())
    return found if scored[0] in found else {}


def _between(text: str, opening: str, closing: str) -> list[str]:
    found = []
    start = text.find(opening)
    while start >= 0:
        end = text.find(closing, start)
        if end < 0:
            break
        found.append(text[start + len(opening) : end])
        start = text.find(opening, end)
    return found


def _objects(text: str) -> list[dict[str, Any]]:
    """The JSON objects in prose, outermost only: what stands inside a broken one is a part of
    it, never an answer. A failed attempt costs a look at the whole text: they are bounded."""
    found: list[dict[str, Any]] = []
    failed = 0
    match = _OBJECT.search(text)
    while match and failed < _ATTEMPTS:
        try:
            value, end = _DECODER.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            failed += 1
            end = _end_of(text, match.start())
        else:
            found.append(value)
        match = _OBJECT.search(text, end)
    return found


def _end_of(text: str, start: int) -> int:
    """Where the braces opened at `start` are closed again; the end of the text if nowhere."""
    depth = 0
    for mark in _MARKS.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(mark[0], 0)
        if depth == 0:
            return mark.end()
    return len(text)


def _loads(text: str) -> Any:
    try:
        return _DECODER.decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = next(name for name, count in counts.items() if count > 1)
        raise Unreadable("ambiguous", f"the reply gives `{cut(twice)}` twice")
    return result


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _integer(digits: str) -> int:
    if len(digits) > LONGEST_NUMBER:
        raise ValueError("a number is too large")
    return int(digits)


def _float(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError("a number is too large")
    return value


_DECODER = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_constant=_constant, parse_int=_integer, parse_float=_float
)


def _declared_skipped(found: Mapping[str, Any], outputs: Mapping[str, Output]) -> bool:
    status = found.get("status")
    if "status" in outputs or not isinstance(status, str):
        return False
    scored = [name for name, output in outputs.items() if output.scored] or ["score"]
    return status.strip().lower() in _SKIPPED and all(found.get(name) is None for name in scored)


def _kind(value: Any) -> str:
    return {list: "a list", dict: "an object", bool: "a boolean", type(None): "null"}.get(
        type(value), "a number" if isinstance(value, int | float) else "text"
    )

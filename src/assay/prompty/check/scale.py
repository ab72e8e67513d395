"""Outputs: their scale by itself, and against what the prompt asks for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from assay.errors import PromptyError
from assay.prompty import Output, Prompty
from assay.prompty.check.asks import json_members, level_runs, mentions, ranges
from assay.prompty.check.finding import Collector
from assay.prompty.check.front import path_of
from assay.prompty.reply import read
from assay.prompty.syntax import blank_tags

_TAGGED = re.compile(r"<S[012]>")
_SCORE_KEY = re.compile(r"score|rating|grade|puntuaci[oó]n", re.IGNORECASE)
_JSON_TOKENS = 30
"""Fewer tokens than this cannot hold an object with a reason in it."""


def check_outputs(prompty: Prompty, found: Collector) -> None:
    """The declared outputs: numbers that fit one another, and a scale for every score."""
    text = blank_tags(prompty.body)
    if not prompty.outputs:
        if _asks_for_score(text):
            message = "the prompt asks for a score, but the file declares no outputs"
            found.add_at("no-outputs", message, ("outputs",))
        return
    for output in prompty.outputs.values():
        _check_scale(prompty, output, found)
    if prompty.primary is None and _asks_for_score(text):
        message = "no output is a number, a boolean or has levels: nothing can be averaged"
        found.add_at("no-score", message, ("outputs",))


def check_asked(prompty: Prompty, found: Collector) -> None:
    """The declared outputs against the text of the prompt and the call's settings."""
    text = blank_tags(prompty.body)
    _check_examples(prompty, text, found)
    _check_ranges(prompty, text, found)
    for output in prompty.outputs.values():
        for value in output.levels:
            if not mentions(text, value):
                where = path_of(prompty, "outputs", output.name, "levels", "enum", "anyOf", "oneOf")
                if (*where, value) in found.positions:
                    where = (*where, value)
                message = f"the prompt never mentions level {value} of `{output.name}`"
                found.add_at("level-not-in-body", message, where)
    _check_reply_form(prompty, text, found)


def _asks_for_score(text: str) -> bool:
    """Whether the prompt is a judge's: it shows a score in its reply, or names a scale."""
    if _TAGGED.search(text) or ranges(text):
        return True
    return any(
        _SCORE_KEY.search(key) and re.fullmatch(r"-?\d+(\.\d+)?", str(value))
        for key, value, _ in json_members(text)
    )


def _check_scale(prompty: Prompty, output: Output, found: Collector) -> None:
    def at(code: str, message: str, *keys: str) -> None:
        found.add_at(code, message, path_of(prompty, "outputs", output.name, *keys))

    low, high = output.minimum, output.maximum
    name = output.name
    if output.type in ("integer", "number") and (low is None or high is None) and not output.levels:
        missing = [w for w, v in (("minimum", low), ("maximum", high)) if v is None]
        at("no-scale", f"output `{name}` has no {' and no '.join(missing)}: any number would count")
    if low is not None and high is not None and low > high:
        at("empty-scale", f"output `{name}`: minimum {low:g} is above maximum {high:g}", "minimum")
        return
    numbers = [v for v in output.levels if isinstance(v, int | float)]
    bottom = low if low is not None else min(numbers, default=None)
    top = high if high is not None else max(numbers, default=None)
    for value in numbers:
        if (low is not None and value < low) or (high is not None and value > high):
            message = f"output `{name}`: level {value} is outside {output.scale}"
            at("level-outside-scale", message, "levels", "enum", "anyOf", "oneOf")
    limit = output.threshold
    if limit is None:
        return
    if (bottom is not None and limit < bottom) or (top is not None and limit > top):
        scale = output.scale or f"{bottom:g}..{top:g}"
        at(
            "threshold-outside-scale",
            f"output `{name}`: threshold {limit:g} is outside {scale}",
            "threshold",
        )


def _check_examples(prompty: Prompty, text: str, found: Collector) -> None:
    """Example values are read as a reply would be: what that refuses contradicts the file."""
    told: set[tuple[str, str]] = set()
    for key, value, offset in json_members(text):
        output = prompty.outputs.get(key)
        if output is None or not output.scored or (key, str(value)) in told:
            continue
        reading = read(_as_reply(key, value), {key: output})
        if reading.status == "invalid":
            told.add((key, str(value)))
            wanted = output.scale or output.type
            message = f"the prompt shows `{key}` with {value!r}, but the file declares {wanted}"
            found.add("scale-contradiction", message, *_at(prompty, text, offset))


def _as_reply(key: str, value: Any) -> str:
    import json

    return json.dumps({key: value})


def _check_ranges(prompty: Prompty, text: str, found: Collector) -> None:
    scored = [o for o in prompty.outputs.values() if o.type in ("integer", "number", "boolean")]
    scales = [scale for scale in map(_ends, scored) if scale is not None]
    if not scales or len(scales) != len(scored):
        return
    asked = ranges(text)
    agreed = any((r.low, r.high) in scales for r in asked)
    for made in asked:
        inside = any(low <= made.low and made.high <= high for low, high in scales)
        if (made.low, made.high) in scales or (inside and (agreed or not made.explicit)):
            continue
        _contradiction(prompty, text, made.offset, f"{made.low:g} to {made.high:g}", scales, found)
    for run, offset in level_runs(text):
        if not any(low <= min(run) and max(run) <= high for low, high in scales):
            span = f"levels {min(run)} to {max(run)}"
            _contradiction(prompty, text, offset, span, scales, found)


def _contradiction(
    prompty: Prompty,
    text: str,
    offset: int,
    asked: str,
    scales: list[tuple[float, float]],
    found: Collector,
) -> None:
    declared = ", ".join(f"{low:g}..{high:g}" for low, high in scales)
    message = f"the prompt speaks of {asked}, but the file declares {declared}"
    found.add("scale-contradiction", message, *_at(prompty, text, offset))


def _ends(output: Output) -> tuple[float, float] | None:
    if output.type == "boolean":
        return 0, 1
    if output.minimum is not None and output.maximum is not None:
        return output.minimum, output.maximum
    numbers = [value for value in output.levels if isinstance(value, int | float)]
    return (min(numbers), max(numbers)) if numbers else None


def _check_reply_form(prompty: Prompty, text: str, found: Collector) -> None:
    try:
        parameters = prompty.parameters
    except PromptyError:
        return  # reported where the reference stands
    form = parameters.get("response_format")
    kind = form.get("type") if isinstance(form, Mapping) else None
    says_json = re.search("json", text, re.IGNORECASE) is not None
    if kind == "json_object" and not says_json:
        message = "response_format is json_object, but the prompt never says JSON"
        found.add_at("json-not-in-body", message, setting_path(prompty, "response_format"))
    required = [output for output in prompty.outputs.values() if output.required]
    as_json = kind in ("json_object", "json_schema") or len(required) > 1
    _check_limit(prompty, as_json, found)
    if kind == "json_schema" or _TAGGED.search(text) or not (as_json or says_json):
        return
    for output in required:
        if not re.search(rf"(?<!\w){re.escape(output.name)}(?!\w)", text, re.IGNORECASE):
            message = f"the prompt never names `{output.name}`: the judge cannot know the key"
            found.add_at("output-not-in-body", message, path_of(prompty, "outputs", output.name))


def _check_limit(prompty: Prompty, as_json: bool, found: Collector) -> None:
    for name in ("max_tokens", "max_completion_tokens"):
        limit = prompty.model.parameters.get(name)
        if as_json and isinstance(limit, int) and limit < _needed(prompty):
            message = f"{name} is {limit}: the JSON reply needs about {_needed(prompty)}"
            found.add_at("max-tokens-small", message, setting_path(prompty, name))


def _needed(prompty: Prompty) -> int:
    """Tokens of the smallest useful reply: keys, punctuation, a short sentence for a text."""
    need = 4
    for output in prompty.outputs.values():
        if output.required:
            need += 4 + len(output.name) // 4 + (2 if output.scored else 15)
    return max(need, _JSON_TOKENS)


def setting_path(prompty: Prompty, name: str) -> tuple[Any, ...]:
    """Key path of a sampling parameter, in whichever spelling and place the file has it."""
    from assay.prompty.dialect import PARAMETERS

    spellings = {name, *(word for word, wire in PARAMETERS.items() if wire == name)}
    for path in prompty.positions:
        if path[-1] in spellings and path[0] in ("model", "parameters"):
            return path
    return ("model",)


def _at(prompty: Prompty, text: str, offset: int) -> tuple[int, int]:
    line = text.count("\n", 0, offset)
    return prompty.body_line + line, offset - text.rfind("\n", 0, offset)

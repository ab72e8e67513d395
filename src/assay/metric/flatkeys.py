"""The flat keys of a result, read: what azure-ai-evaluation's evaluators return, old and new,
and what `assay.metric.score.flat` writes.

For a metric `m` they are `m`, `m_score`, `m_passed`, `m_result`, `m_reason`, `m_threshold`,
`m_status`, `m_properties` and a few more, each of which may be missing; graders of the OpenAI
evals API have the same words without `m_`.
"""

from __future__ import annotations

import json
import math
import numbers
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal

from assay.judge.base import Usage
from assay.metric.score import Call, Score

Verdict = Literal["pass", "fail"]
Fields = Mapping[str, str]
"""Side to key of one metric; the side of the metric's own key is ""."""

SIDES = (
    *("score", "passed", "result", "label", "reason", "threshold", "status", "properties"),
    *("prompt_tokens", "completion_tokens", "total_tokens", "finish_reason", "model"),
    *("sample_input", "sample_output", "sample", "details"),
)
_LONGEST_FIRST = sorted(SIDES, key=len, reverse=True)
_VALUES = ("", "score", "label")
_HEADLINES = ("score", "result", "label", "passed")
_SKIPPED = ("not_applicable", "not applicable", "skipped")
_TOKENS = ("prompt_tokens", "completion_tokens")
_LARGEST = sys.float_info.max


@lru_cache(maxsize=256)
def metric_fields(keys: tuple[str, ...]) -> Mapping[str, Fields]:
    """Metric to its fields, in the order of `keys`; a key that goes with no other is a metric of
    its own, whether or not its values turn out to be measurements.

    A metric without a key of its own has the name of the key that holds its value. `gpt_m` is
    `m` under its old name, and nothing where `m` is there too.
    """
    names = {key.removeprefix("gpt_"): key for key in keys if key.startswith("gpt_")}
    names = {key: key for key in keys if not key.startswith("gpt_")} | {
        name: key for name, key in names.items() if name not in keys
    }
    parts = {name: _split(name) for name in names}
    counted = Counter(base for base, _ in parts.values())
    groups: dict[str, dict[str, str]] = {}
    bare = [name for name in names if name in SIDES]
    for name in (name for name in names if name not in SIDES):
        base, side = parts[name]
        belongs = base and (base in names or counted[base] > 1)
        groups.setdefault(base if belongs else name, {})[side if belongs else ""] = names[name]
    if bare:
        groups |= _with_bare(groups, {name: names[name] for name in bare})
    return {_name(name, fields): fields for name, fields in groups.items()}


def _split(name: str) -> tuple[str, str]:
    """The metric and the side a key may be of; ("", "") for one that is none."""
    for side in _LONGEST_FIRST:
        if name.endswith(f"_{side}") and len(name) > len(side) + 1:
            return name[: -len(side) - 1], side
    return "", ""


def _with_bare(
    groups: Mapping[str, dict[str, str]], bare: Mapping[str, str]
) -> dict[str, dict[str, str]]:
    """Where words without a metric go: to `score`, else to the only metric, else they are one."""
    if "score" not in bare and len(groups) == 1:
        name, fields = next(iter(groups.items()))
        return {name: {**bare, **fields}}
    head = next((name for name in _HEADLINES if name in bare), None)
    if head is None or (groups and head != "score"):
        return {name: {"": key} for name, key in bare.items()}
    rest = {name: key for name, key in bare.items() if name != head}
    return {head: {"": bare[head], **rest}}


def _name(base: str, fields: Fields) -> str:
    if "" in fields:
        return base
    side = next((side for side in _HEADLINES if side in fields), None)
    return f"{base}_{side}" if side else base


@dataclass(frozen=True, slots=True)
class Measured:
    """What a result says of one metric.

    value: a number or a boolean. other: its own key or label where that is something else.
    told: whether anything is said at all. failure: (code, message) of what went wrong.
    properties: without what `call` holds.
    """

    value: bool | int | float | None = None
    other: Any = None
    verdict: Verdict | None = None
    threshold: float | None = None
    reason: str | None = None
    skipped: bool = False
    told: bool = False
    failure: tuple[str, str] | None = None
    call: Call | None = None
    properties: Mapping[str, Any] = field(default_factory=dict)


def measured(found: Mapping[str, Any], fields: Fields, name: str) -> Measured:
    """One metric of a result. `name` is that of the evaluator, for the judge's call."""
    at = {side: plain(found.get(key)) for side, key in fields.items()}
    values = [at.get(side) for side in _VALUES]
    others = [value for value in values if isinstance(value, str | list | Mapping) and value]
    threshold = at.get("threshold")
    is_mark = is_number(threshold) and not isinstance(threshold, bool)
    properties = at.get("properties")
    properties = properties if isinstance(properties, Mapping) else {}
    sample = at.get("sample")
    call = _call(name, at, properties, sample)
    words = [str(at.get(side)).lower() for side in ("result", "status", *_VALUES)]
    return Measured(
        value=next((value for value in values if is_number(value)), None),
        other=others[0] if others else None,
        verdict=_verdict(at),
        threshold=threshold if is_mark else None,
        reason=str(at["reason"]) if at.get("reason") else None,
        skipped=any(word in _SKIPPED for word in words),
        told=any(value is not None for value in at.values()),
        failure=_failure(at, sample),
        call=call,
        properties={k: v for k, v in properties.items() if not (call and k in SIDES)},
    )


def _verdict(at: Mapping[str, Any]) -> Verdict | None:
    """A fail anywhere is a fail, as both portals count it."""
    said = {at.get("passed")} if isinstance(at.get("passed"), bool) else set()
    words = {str(at.get(side)).lower() for side in ("result", "label")}
    if False in said or "fail" in words:
        return "fail"
    return "pass" if True in said or "pass" in words else None


def _failure(at: Mapping[str, Any], sample: Any) -> tuple[str, str] | None:
    error = sample.get("error") if isinstance(sample, Mapping) else None
    if isinstance(error, Mapping) and (error.get("code") or error.get("message")):
        return str(error.get("code") or ""), str(error.get("message") or "")
    if error and not isinstance(error, Mapping):
        return "", str(error)
    failed = str(at.get("status")).lower() in ("error", "failed")
    return ("", str(at.get("reason") or "")) if failed else None


def _call(
    name: str, at: Mapping[str, Any], properties: Mapping[str, Any], sample: Any
) -> Call | None:
    """The judge's answer, where its tokens are told."""
    found = {side: at[side] for side in SIDES if at.get(side) is not None}
    if isinstance(sample, Mapping):
        usage = sample.get("usage")
        found |= usage if isinstance(usage, Mapping) else {}
        found |= {key: sample.get(key) for key in ("model", "finish_reason")}
        found["sample_output"] = sample.get("output")
    found |= {key: properties[key] for key in SIDES if properties.get(key) is not None}
    tokens = [_count(found.get(key)) for key in _TOKENS]
    if not any(tokens):
        return None
    return Call(
        prompt=name,
        reply=_reply(found.get("sample_output")),
        usage=Usage(prompt_tokens=tokens[0], completion_tokens=tokens[1]),
        finish_reason=str(found["finish_reason"]) if found.get("finish_reason") else None,
        model=str(found["model"]) if found.get("model") else None,
    )


def _count(value: Any) -> int:
    """Tokens: numbers, which some evaluators give as text."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 16:
        return int(value)
    return int(value) if is_number(value) and 0 <= value < 1e15 else 0


def _reply(output: Any) -> str:
    """The text of the last message: a list of messages, or the same as JSON."""
    if isinstance(output, str):
        try:
            output = json.loads(output)
        except (ValueError, RecursionError):
            return str(output)
    last = output[-1] if isinstance(output, list) and output else None
    content = last.get("content") if isinstance(last, Mapping) else None
    return content if isinstance(content, str) else ""


def to_score(
    evaluator: str, output: str, found: Measured, *, by_verdict: bool = False, nothing: str = ""
) -> Score:
    """What a measurement comes to. by_verdict: the metric gives pass and fail alone. nothing:
    what to say of a row of which the result says nothing."""
    value = found.verdict == "pass" if by_verdict and found.verdict else found.value
    calls = (found.call,) if found.call else ()
    if found.failure is not None:
        text = ": ".join(part for part in found.failure if part) or "the evaluator failed"
        if "content_filter" in found.failure[0].lower():
            return Score(evaluator, "refused", cause="content_filter", message=text, calls=calls)
        return Score(evaluator, "error", cause="evaluator_failed", message=text, calls=calls)
    if found.skipped:
        why = found.reason or "the metric says that it does not apply to this row"
        return Score(evaluator, "not_applicable", cause="not_applicable", message=why, calls=calls)
    if not found.told:
        return Score(evaluator, "error", cause="not_recorded", message=nothing, calls=calls)
    evidence = dict(found.properties)
    if isinstance(found.other, str) and found.other.lower() not in ("pass", "fail"):
        evidence["label"] = found.other
    score = Score(evaluator, "scored", {output: value}, found.reason, None, None, calls, evidence)
    if value is not None:
        return score
    wrong = f"{output} is not a number"
    return replace(score, status="invalid", outputs={}, cause="not_a_number", message=wrong)


def is_measurement(values: Iterable[Measured]) -> bool:
    """Whether a key of many rows is a metric, and no text, list or object."""
    others = False
    for found in values:
        if found.value is not None or found.verdict or found.skipped or found.failure:
            return True
        others = others or found.other is not None
    return not others


def plain(value: Any) -> Any:
    """A number of numpy and the like as Python's own, NaN as None; other values as they are."""
    if value is None or isinstance(value, str | int | Mapping):
        return value
    if not isinstance(value, float) and isinstance(value, numbers.Real):
        value = int(value) if isinstance(value, numbers.Integral) else float(value)
    return None if isinstance(value, float) and math.isnan(value) else value


def is_number(value: Any) -> bool:
    """Whether a value is a measurement: a boolean, or a number that is finite."""
    return isinstance(value, int | float) and abs(value) <= _LARGEST

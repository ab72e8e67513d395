"""What an evaluator returns for a row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from assay.judge.base import Usage
from assay.prompty.fields import REASONS, Output, as_number, type_name

Status = Literal["scored", "not_applicable", "invalid", "refused", "error"]
STATUSES: tuple[Status, ...] = ("scored", "not_applicable", "invalid", "refused", "error")

_PORTAL_STATUS = {"scored": "completed", "not_applicable": "skipped"}
_PORTAL_RESULT = {"not_applicable": "not_applicable"}


@dataclass(frozen=True, slots=True)
class Call:
    """One answer of a judge, as evidence.

    prompt: the .prompty file's name. reply: the raw text. inputs: values given to the prompt
    where they are not the row's own. messages_sha: hash of the messages as sent.
    note: why it was asked again, where it was.
    """

    prompt: str
    reply: str
    usage: Usage = field(default_factory=Usage)
    latency: float = 0.0
    attempts: int = 1
    finish_reason: str | None = None
    model: str | None = None
    messages_sha: str = ""
    inputs: Mapping[str, Any] | None = None
    note: str | None = None
    cached: bool = False


@dataclass(frozen=True, slots=True)
class Score:
    """A row's result for one evaluator: a status, and the outputs only where it is `scored`.

    outputs: declared output to value. reason: the judge's own. cause and message: why there
    is no score. calls: every answer it took. evidence: parts of a metric of several steps.
    """

    evaluator: str
    status: Status
    outputs: Mapping[str, Any] = field(default_factory=dict)
    reason: str | None = None
    cause: str | None = None
    message: str | None = None
    calls: tuple[Call, ...] = ()
    evidence: Mapping[str, Any] = field(default_factory=dict)

    @property
    def usage(self) -> Usage:
        return sum((call.usage for call in self.calls), Usage())


def declared_or_inferred(
    outputs: Mapping[str, Output], values: Mapping[str, Any]
) -> dict[str, Output]:
    """The declared outputs; where there are none, what the values themselves look like."""
    if outputs:
        return dict(outputs)
    return {
        name: Output(name, type=type_name(type(value).__name__)) for name, value in values.items()
    }


def reason_of(values: Mapping[str, Any]) -> str | None:
    """The judge's reason among its outputs, under any of its usual names."""
    for name in REASONS:
        if isinstance(values.get(name), str):
            return str(values[name])
    return None


def flat(score: Score, outputs: Mapping[str, Output]) -> dict[str, Any]:
    """The keys notebooks and both Azure portals read, for every scored output `m`: `m`,
    `m_score`, `m_result`, `m_reason`, `m_threshold`, `m_status`, `m_properties`; other outputs
    under their own name; `status` and `cause` of the score beside them.
    """
    result: dict[str, Any] = {}
    properties = _properties(score)
    for name, output in declared_or_inferred(outputs, score.outputs).items():
        value = score.outputs.get(name) if score.status == "scored" else None
        if not output.scored:
            result.setdefault(name, value)
            continue
        result[name] = value
        result[f"{name}_score"] = as_number(value)
        result[f"{name}_result"] = output.result(value) or _PORTAL_RESULT.get(score.status)
        result[f"{name}_reason"] = score.reason if score.status == "scored" else score.message
        result[f"{name}_threshold"] = output.threshold
        result[f"{name}_status"] = _PORTAL_STATUS.get(score.status, "error")
        result[f"{name}_properties"] = properties
    return result | {"status": score.status, "cause": score.cause}


def _properties(score: Score) -> dict[str, Any]:
    usage = score.usage
    last = score.calls[-1] if score.calls else None
    return {
        "cause": score.cause,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total_tokens,
        "finish_reason": last.finish_reason if last else None,
        "model": last.model if last else None,
        "calls": len(score.calls),
        **score.evidence,
    }

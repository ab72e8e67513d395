"""An evaluator of assay behind the keys of azure-ai-evaluation's."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from assay.compat.conversation import mean_score, turns_of
from assay.errors import InputError
from assay.judge.base import Judge
from assay.metric.columns import alias_of
from assay.metric.evaluator import Doors, PromptEvaluator
from assay.metric.function import FunctionEvaluator
from assay.metric.score import Score
from assay.prompty import Input, Output

_RESULT = {"not_applicable": "not_applicable"}
_STATUS = {"scored": "completed", "not_applicable": "skipped"}


class AzureEvaluator(Doors):
    """An evaluator of assay behind the keys of azure's."""

    def __init__(self, inner: PromptEvaluator | FunctionEvaluator) -> None:
        self._inner = inner
        self.name = inner.name

    @property
    def inputs(self) -> Mapping[str, Input]:  # type: ignore[override]
        return self._inner.inputs

    @property
    def outputs(self) -> Mapping[str, Output]:  # type: ignore[override]
        return self._inner.outputs

    @property
    def judge(self) -> Judge | None:
        return self._inner.judge

    @property
    def needs_judge(self) -> bool:
        return self._inner.needs_judge

    @property
    def fingerprint(self) -> str:
        return self._inner.fingerprint

    def describe(self) -> dict[str, Any]:
        return self._inner.describe()

    def check(self, judge: Judge | None) -> None:
        self._inner.check(judge)

    def renamed(self, name: str) -> PromptEvaluator | FunctionEvaluator:
        """The evaluator behind it under another name, for `assay.evaluate`."""
        return self._inner.renamed(name)

    @property
    def headline(self) -> Output:
        """The output that gives the keys their name."""
        return next(output for output in self.outputs.values() if output.scored)

    async def score(
        self, values: Mapping[str, Any], judge: Judge | None = None, *, reask: int = 1
    ) -> Score:
        return await self._inner.score(values, judge, reask=reask)

    async def acall(self, **kwargs: Any) -> dict[str, Any]:
        """Score one row, or a `conversation` turn by turn. Returns azure's keys.

        Raises InputError naming missing inputs, JudgeError where no answer can be had.
        """
        conversation = kwargs.pop("conversation", None)
        if conversation is None:
            values = known(self.inputs, kwargs, self.name)
            return self.keys(await self.score(values), values)
        given = sorted({"query", "response"} & {k for k, v in kwargs.items() if v is not None})
        if given:
            raise InputError(f"{self.name}: give conversation or {' and '.join(given)}, not both")
        found = [{**kwargs, **turn} for turn in turns_of(conversation)]
        turns = [{key: turn[key] for key in self.inputs if key in turn} for turn in found]
        scores = await asyncio.gather(*(self.score(turn) for turn in turns))
        each = [self.keys(score, turn) for score, turn in zip(scores, turns, strict=True)]
        whole = self.keys(mean_score(self.name, self.headline, scores), {})
        per_turn = {key: [found[key] for found in each] for key in each[0]}
        return whole | {"evaluation_per_turn": per_turn}

    def keys(self, score: Score, values: Mapping[str, Any]) -> dict[str, Any]:
        """`m`, `m_score`, `m_passed`, `m_result`, `m_reason`, `m_status`, `m_threshold` and
        `m_properties` of the headline output."""
        return keys_of(self.headline, score, _properties(score, values))


def keys_of(output: Output, score: Score, properties: Any) -> dict[str, Any]:
    """Azure's keys for one output. `m_passed` is None where there is no verdict, `m_status` is
    `error` where there is neither a score nor a reason to skip."""
    m = output.name
    value = score.outputs.get(m) if score.status == "scored" else None
    number = None if value is None else float(value)
    result = output.result(number) or _RESULT.get(score.status, "unknown")
    return {
        m: number,
        f"{m}_score": number,
        f"{m}_passed": {"pass": True, "fail": False}.get(result),
        f"{m}_result": result,
        f"{m}_reason": score.reason if score.status == "scored" else score.message,
        f"{m}_status": _STATUS.get(score.status, "error"),
        f"{m}_threshold": output.threshold,
        f"{m}_properties": properties,
    }


def _properties(score: Score, values: Mapping[str, Any]) -> dict[str, Any] | None:
    if not score.calls:
        return dict(score.evidence) or None
    last, usage = score.calls[-1], score.usage
    asked = json.dumps(values, ensure_ascii=False, default=str)
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total_tokens,
        "finish_reason": last.finish_reason or "",
        "model": last.model or "",
        "sample_input": json.dumps([{"role": "user", "content": asked}], ensure_ascii=False),
        "sample_output": json.dumps(
            [{"role": "assistant", "content": last.reply}], ensure_ascii=False
        ),
        **({"cause": score.cause} if score.cause else {}),
        **score.evidence,
    }


def known(inputs: Mapping[str, Input], given: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The values of the inputs, also from other names of their families. Raises InputError."""
    found = dict(given)
    for key in inputs:
        alias = None if key in given else alias_of(key, given)
        if alias is not None:
            found[key] = given[alias]
    missing = [key for key, item in inputs.items() if item.required and key not in found]
    if missing:
        raise InputError(f"{name} needs {', '.join(missing)}")
    return {key: found[key] for key in inputs if key in found}

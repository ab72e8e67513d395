"""One row, with everything that happened to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from assay import sync
from assay.errors import RenderError, SetupError
from assay.judge.base import Judge, is_decider
from assay.metric.columns import bind_columns
from assay.metric.evaluator import PromptEvaluator
from assay.metric.registry import load
from assay.run.engine import score_row
from assay.run.plan import Options, judge_for


def score_one(
    source: Any,
    values: Mapping[str, Any],
    *,
    use_sample: bool = False,
    judge: str | Judge | None = None,
    base_url: str | None = None,
    reask: int = 0,
) -> dict[str, Any]:
    """Score one row given as column to value.

    Returns `status`, `cause`, `message`, `outputs`, `results`, `reason`, `messages` as sent,
    the raw `reply` and all `replies`, and `usage`.
    Raises SetupError naming every input no value is given for.
    """
    evaluator = load(source)
    prompty = evaluator.prompty if isinstance(evaluator, PromptEvaluator) else None
    if use_sample:
        values = {**(prompty.sample if prompty else {}), **values}
    binding = bind_columns(evaluator.name, evaluator.inputs, values)
    chosen = judge_for(evaluator, Options(judge=judge, base_url=base_url))
    evaluator.check(chosen)
    bound = binding.values(values)

    async def once() -> Any:
        try:
            return await score_row(evaluator, bound, chosen, reask)
        finally:
            if chosen is not None:
                await chosen.close()

    score = sync.run(once())
    return {
        "status": score.status,
        "cause": score.cause,
        "message": score.message,
        "outputs": dict(score.outputs),
        "results": {
            name: evaluator.outputs[name].result(value)
            for name, value in score.outputs.items()
            if name in evaluator.outputs
        },
        "reason": score.reason,
        "messages": _messages(prompty, bound, chosen),
        "reply": score.calls[-1].reply if score.calls else None,
        "replies": [call.reply for call in score.calls],
        "usage": asdict(score.usage),
    }


def _messages(prompty: Any, bound: Mapping[str, Any], judge: Judge | None) -> list[Any]:
    """The messages as they are sent; none where the judge reads inputs instead."""
    from assay.errors import InputError
    from assay.metric.inputs import bind

    if prompty is None or is_decider(judge):
        return []
    try:
        messages: list[Any] = prompty.render(bind(prompty.inputs, bound))
    except (InputError, RenderError, SetupError):
        return []
    return messages

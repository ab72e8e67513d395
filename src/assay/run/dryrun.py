"""What a run would take: rows, calls, tokens and dollars, without one call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.config import load_config
from assay.errors import AssayError, SetupError
from assay.judge.base import Usage, is_decider
from assay.judge.connection import Connection
from assay.judge.limits import Limited
from assay.judge.prices import READ_ON, Prices, estimate_tokens
from assay.metric.evaluator import Evaluator, PromptEvaluator
from assay.metric.expressions import ExpressionError
from assay.metric.inputs import bind
from assay.metric.multistep import MetricEvaluator
from assay.metric.promptstep import PromptStep
from assay.prompty.template import as_text
from assay.run.data import Row
from assay.run.plan import Plan

SAMPLED = 500
"""Rows that are rendered to estimate the tokens of all."""

REPLY_TOKENS = 120
"""Tokens assumed for a reply with a reason; one without is a tenth of it."""


async def dry_run(plan: Plan) -> dict[str, Any]:
    """Check files, mapping, environment and credentials, render a sample, and count.

    Returns `rows`, `calls`, `tokens`, `cost` (None where a price is not known), the same for
    every metric, and `messages`: the first row's, as they would be sent.
    """
    await _log_in(plan)
    if plan.target is not None and not plan.bindings:
        raise SetupError(
            "a dry run cannot know what the target adds: declare its outputs in flow.flex.yaml"
        )
    metrics = {name: _Estimate(plan, name) for name in plan.evaluators}
    step = max(1, plan.survey.rows // SAMPLED)
    for row in plan.data.rows():
        if row.index % step == 0:
            for estimate in metrics.values():
                estimate.add(row)
    found = {name: estimate.as_dict() for name, estimate in metrics.items()}
    costs = [entry["cost"] for entry in found.values()]
    return {
        "rows": plan.survey.rows,
        "calls": sum(entry["calls"] for entry in found.values()),
        "tokens": sum(entry["tokens"] for entry in found.values()),
        "cost": None if None in costs else sum(costs),
        "prices_read": READ_ON,
        "metrics": found,
        "messages": next((e.first for e in metrics.values() if e.first), []),
    }


ELEMENTS = 4
"""Elements assumed in a list that an earlier step makes."""


class _Estimate:
    """Calls and tokens of one metric, from the rows of a sample."""

    def __init__(self, plan: Plan, name: str) -> None:
        self.plan = plan
        self.name = name
        self.evaluator: Evaluator = plan.evaluators[name]
        self.sampled = self.asked = self.steps = self.prompt_tokens = 0
        self.not_asked: dict[str, int] = {}
        self.first: list[Any] = []

    def add(self, row: Row) -> None:
        self.sampled += 1
        if isinstance(self.evaluator, MetricEvaluator):
            self._add_steps(self.evaluator, row)
            return
        if not isinstance(self.evaluator, PromptEvaluator) or is_decider(
            self.plan.judges[self.name]
        ):
            self.asked += 1
            return
        values = self.plan.bindings[self.name].values(row.columns)
        prompty = self.evaluator.prompty
        try:
            messages = prompty.render(bind(prompty.inputs, values))
        except AssayError as error:
            why = getattr(error, "cause", "render")
            self.not_asked[why] = self.not_asked.get(why, 0) + 1
            return
        self.asked += 1
        self.first = self.first or messages
        self.prompt_tokens += sum(estimate_tokens(str(m["content"])) + 4 for m in messages)

    def _add_steps(self, metric: MetricEvaluator, row: Row) -> None:
        """Every step that asks, with the row's own values: replies of earlier steps are not
        known, so lists made by them count as ELEMENTS elements."""
        try:
            values = bind(metric.inputs, self.plan.bindings[self.name].values(row.columns))
        except AssayError as error:
            why = getattr(error, "cause", "render")
            self.not_asked[why] = self.not_asked.get(why, 0) + 1
            return
        self.asked += 1
        row_tokens = sum(estimate_tokens(as_text(value)) for value in values.values())
        for step in metric.steps:
            if isinstance(step, PromptStep):
                times = step.repeat * _elements(step, values)
                self.steps += times
                self.prompt_tokens += times * (estimate_tokens(step.prompty.body) + row_tokens)

    def as_dict(self) -> dict[str, Any]:
        rows = self.plan.survey.rows * self.plan.options.iterations
        judge = self.plan.judges[self.name]
        calls = 0
        if judge is not None:
            calls = round(rows * (self.steps or self.asked) / self.sampled)
        prompt = round(self.prompt_tokens / self.sampled * rows)
        reply = self._reply_tokens() * calls if self.prompt_tokens else 0
        price = Prices(load_config()).of(judge.name if judge else "baseline")
        usage = Usage(prompt_tokens=prompt, completion_tokens=reply)
        return {
            "judge": judge.name if judge else None,
            "calls": calls,
            "prompt_tokens": prompt,
            "completion_tokens": reply,
            "tokens": prompt + reply,
            "cost": price.of(usage) if price else None,
            "not_asked": self.not_asked,
        }

    def _reply_tokens(self) -> int:
        has_text = self.steps or any(not o.scored for o in self.evaluator.outputs.values())
        expected = REPLY_TOKENS if has_text or not self.evaluator.outputs else REPLY_TOKENS // 10
        prompty = getattr(self.evaluator, "prompty", None)
        parameters: Mapping[str, Any] = prompty.parameters if prompty else {}
        limit = parameters.get("max_tokens", parameters.get("max_completion_tokens"))
        return min(expected, limit) if isinstance(limit, int) else expected


def _elements(step: PromptStep, values: Mapping[str, Any]) -> int:
    """How many times a step asks about a row, as far as the row tells."""
    if step.each is None:
        return 1
    try:
        return len(step.each(values))
    except (ExpressionError, TypeError):
        return ELEMENTS


async def _log_in(plan: Plan) -> None:
    """Obtain a token where Entra ID is used: a missing role is found before anything is paid."""
    for judge in plan.distinct_judges():
        connection = judge.judge if isinstance(judge, Limited) else judge
        if isinstance(connection, Connection):
            await connection.credential.headers()

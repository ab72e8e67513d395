"""A metric of several steps: a folder with a metric.yaml and the prompts it names."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from assay.errors import InputError, JudgeError, JudgeRefusal, SetupError
from assay.judge.base import Judge, is_decider
from assay.judge.embed import Embedder
from assay.metric.evaluator import Doors, check_prompty, describe_output, fingerprint_of
from assay.metric.expressions import Expression, ExpressionError
from assay.metric.inputs import bind
from assay.metric.score import Score
from assay.metric.steps import EmbedStep, PromptStep, Step, Stop, Work
from assay.prompty import Input, Output
from assay.prompty.reply import check_scale


@dataclass(frozen=True)
class MetricEvaluator(Doors):
    """A metric.yaml, ready to run. `assay.load` makes one; `assay.metric.metricfile` reads it.

    variant: the library whose number this reproduces, or `assay`.
    """

    path: Path
    name: str
    text: str
    inputs: Mapping[str, Input]
    outputs: Mapping[str, Output]
    steps: tuple[Step, ...]
    result: Expression
    reason: Expression | None = None
    description: str = ""
    variant: str = "assay"
    judge: Judge | None = None
    embedder: Embedder | None = field(default=None, compare=False)

    @property
    def needs_judge(self) -> bool:
        return any(isinstance(step, PromptStep) for step in self.steps)

    @property
    def needs_embedder(self) -> bool:
        return any(isinstance(step, EmbedStep) for step in self.steps)

    @property
    def calls(self) -> str:
        """The calls a row takes, in words: `2`, `1 + 1 per element of context`."""
        parts = [step.calls for step in self.steps if step.calls != "0"]
        fixed = sum(int(part) for part in parts if part.isdigit())
        others = [part for part in parts if not part.isdigit()]
        return " + ".join(([str(fixed)] if fixed or not others else []) + others)

    @cached_property
    def fingerprint(self) -> str:
        prompts = [fingerprint_of(s.prompty) for s in self.steps if isinstance(s, PromptStep)]
        embedder = self.embedder.describe() if self.embedder else {}
        parts = "\n".join([self.text, *prompts, str(sorted(embedder.items()))])
        return hashlib.sha256(parts.encode("utf-8", "replace")).hexdigest()[:16]

    def renamed(self, name: str) -> MetricEvaluator:
        """The same metric under another name."""
        return replace(self, name=name)

    def with_embedder(self, embedder: Embedder) -> MetricEvaluator:
        """The same metric with an embedder, where it has none yet."""
        return self if self.embedder else replace(self, embedder=embedder)

    def describe(self) -> dict[str, Any]:
        prompts = {s.prompty.path: s.prompty for s in self.steps if isinstance(s, PromptStep)}
        return {
            "kind": "metric",
            "path": str(self.path),
            "sha256": hashlib.sha256(self.text.encode()).hexdigest(),
            "variant": self.variant,
            "text": self.text,
            "prompts": {
                path.name if path else prompty.name: {
                    "sha256": prompty.sha256,
                    "text": prompty.text,
                }
                for path, prompty in prompts.items()
            },
            "outputs": {name: describe_output(output) for name, output in self.outputs.items()},
            **({"embedder": self.embedder.describe()} if self.embedder else {}),
        }

    def check(self, judge: Judge | None) -> None:
        if judge is not None and is_decider(judge) and self.needs_judge:
            raise SetupError(
                f"{self.name} asks in several steps, which the {judge.name} "
                "judge cannot give; name a chat model"
            )
        for step in self.steps:
            if isinstance(step, PromptStep):
                check_prompty(step.prompty, judge)

    async def score(
        self, values: Mapping[str, Any], judge: Judge | None = None, *, reask: int = 1
    ) -> Score:
        try:
            bound = bind(self.inputs, values)
        except InputError as error:
            if error.cause == "wrong_input_type":
                raise
            return Score(self.name, "not_applicable", cause=error.cause, message=str(error))
        absent = {name: None for name in self.inputs if name not in bound}
        work = Work({**absent, **bound}, judge or self.judge, self.embedder, reask)
        try:
            for step in self.steps:
                work.scope[step.name] = await step.run(work)
            value, rule = self.result(work.scope), None
        except Stop as stop:
            if stop.score is None:
                return self._absent(work, stop.status, stop.cause, stop.message)
            value, rule = stop.score, stop.message
        except ExpressionError as error:
            return self._absent(work, "invalid", "undefined", str(error))
        except JudgeRefusal as error:
            return self._absent(work, "refused", error.cause, str(error))
        except JudgeError as error:
            # What earlier steps were answered is paid for, and kept.
            return self._absent(work, "error", error.cause, str(error))
        return self._scored(work, value, rule)

    def _scored(self, work: Work, value: Any, rule: str | None) -> Score:
        output = next(iter(self.outputs.values()))
        problem = check_scale(output, value)
        if problem is not None:
            return self._absent(work, "invalid", "out_of_scale", problem)
        evidence = self._evidence(work) | ({"rule": rule} if rule else {})
        reason = rule
        if reason is None and self.reason is not None:
            try:
                reason = str(self.reason(work.scope))
            except ExpressionError:
                reason = None
        return Score(
            self.name,
            "scored",
            outputs={output.name: value},
            reason=reason,
            calls=tuple(work.calls),
            evidence=evidence,
        )

    def _absent(self, work: Work, status: Any, cause: str, message: str) -> Score:
        return Score(
            self.name,
            status,
            cause=cause,
            message=message,
            calls=tuple(work.calls),
            evidence=self._evidence(work),
        )

    def _evidence(self, work: Work) -> dict[str, Any]:
        """The parts of the number. Vectors are left out: they say nothing to people."""
        parts = {
            step.name: work.scope[step.name]
            for step in self.steps
            if step.name in work.scope and not isinstance(step, EmbedStep)
        }
        return {"parts": {name: part for name, part in parts.items() if part is not None}}

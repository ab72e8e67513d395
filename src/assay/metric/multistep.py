"""A metric of several steps: a folder with a metric.yaml and the prompts it names."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from assay.errors import InputError, JudgeError, JudgeRefusal, SetupError
from assay.judge.base import Judge, is_decider
from assay.judge.embed import Embedder
from assay.metric.evaluator import Doors, check_prompty, describe_output, fingerprint_of
from assay.metric.expressions import Expression, ExpressionError
from assay.metric.inputs import bind, is_absent, is_empty
from assay.metric.promptstep import PromptStep
from assay.metric.score import Score, Status
from assay.metric.steps import EmbedStep, Step, StopStep
from assay.metric.work import Stop, Work
from assay.prompty import Input, Output, Prompty
from assay.prompty.fields import MISSING
from assay.prompty.values import check_scale


@dataclass(frozen=True)
class MetricEvaluator(Doors):
    """A metric.yaml, ready to run. `assay.load` makes one; `assay.metric.metricfile` reads it.

    variant: the library whose number this reproduces, or `assay`. may_be_empty: inputs of which
    `""` and `[]` are values, for the steps to say what they mean; elsewhere they make the metric
    not applicable.
    """

    path: Path
    name: str
    text: str
    inputs: Mapping[str, Input]
    outputs: Mapping[str, Output]
    steps: tuple[Step, ...]
    result: Expression
    reason: Expression | None = None
    may_be_empty: frozenset[str] = frozenset()
    description: str = ""
    variant: str = "assay"
    judge: Judge | None = None
    embedder: Embedder | None = None

    @property
    def needs_judge(self) -> bool:
        return any(isinstance(step, PromptStep) for step in self.steps)

    @property
    def needs_embedder(self) -> bool:
        return any(isinstance(step, EmbedStep) for step in self.steps)

    @property
    def calls(self) -> str:
        """The calls a row takes at most, in words: `2`, `1 + 1 per element of context`.

        A policy may end a metric earlier; only a reply that cannot be used is asked for again.
        """
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
        prompts = [step.prompty for step in self.steps if isinstance(step, PromptStep)]
        return {
            "kind": "metric",
            "path": str(self.path),
            "sha256": hashlib.sha256(self.text.encode()).hexdigest(),
            "variant": self.variant,
            "text": self.text,
            "prompts": {
                _place(prompty): {"sha256": prompty.sha256, "text": prompty.text}
                for prompty in prompts
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

    @cached_property
    def _own_judge(self) -> Judge | None:
        """What the prompts, ASSAY_JUDGE or assay.toml name, once it is needed."""
        from assay.judge.limits import Limited
        from assay.judge.resolve import resolve

        prompts = [step.prompty for step in self.steps if isinstance(step, PromptStep)]
        if not prompts:
            return None
        return Limited(resolve(model=prompts[0].model, path=prompts[0].path))

    @cached_property
    def _own_embedder(self) -> Embedder | None:
        """The embedded one, where no other was given and one is needed."""
        from assay.judge.embed import resolve_embedder

        return resolve_embedder() if self.needs_embedder else None

    async def score(
        self, values: Mapping[str, Any], judge: Judge | None = None, *, reask: int = 1
    ) -> Score:
        try:
            bound = self._bind(values)
        except InputError as error:
            if error.cause == "wrong_input_type":
                raise
            return Score(self.name, "not_applicable", cause=error.cause, message=str(error))
        absent = {name: None for name in self.inputs if name not in bound}
        judge = judge or self.judge or self._own_judge
        embedder = self.embedder or self._own_embedder
        work = Work({**absent, **bound}, frozenset(self.inputs), judge, embedder, reask)
        try:
            for step in self.steps:
                work.scope[step.name] = await step.run(work)
            return self._scored(work, self.result(work.scope), None)
        except Stop as stop:
            if stop.status == "scored":
                return self._scored(work, stop.score, stop.rule)
            return self._absent(work, stop.status, stop.cause, stop.message, stop.rule)
        except ExpressionError as error:
            return self._absent(work, "invalid", "undefined", str(error))
        except JudgeRefusal as error:
            return self._absent(work, "refused", error.cause, str(error))
        except JudgeError as error:
            # What earlier steps were answered is paid for, and kept.
            return self._absent(work, "error", error.cause, str(error))

    def _bind(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The row's values in their types. Blank text is empty; blank elements are none."""
        relaxed = {
            name: replace(item, required=item.required and name not in self.may_be_empty)
            for name, item in self.inputs.items()
        }
        # Missing is missing, also where empty is allowed.
        present = {n: i for n, i in self.inputs.items() if is_absent(values.get(n, MISSING))}
        bound = bind(relaxed | present, values)
        for name, value in bound.items():
            if isinstance(value, str) and not value.strip():
                bound[name] = ""
            elif isinstance(value, list):
                bound[name] = [element for element in value if not is_empty(element)]
        return bound

    def _scored(self, work: Work, value: Any, rule: str | None) -> Score:
        output = next(iter(self.outputs.values()))
        problem = check_scale(output, value)
        if isinstance(value, float) and not math.isfinite(value):
            return self._absent(work, "invalid", "undefined", f"the score is {value}", rule)
        if problem is not None:
            return self._absent(work, "invalid", "out_of_scale", problem, rule)
        return Score(
            self.name,
            "scored",
            outputs={output.name: value},
            reason=rule or self._reason(work),
            calls=tuple(work.calls),
            evidence=self._evidence(work, rule),
        )

    def _reason(self, work: Work) -> str | None:
        if self.reason is None:
            return None
        try:
            return str(self.reason(work.scope)) or None
        except ExpressionError:
            return None

    def _absent(
        self, work: Work, status: Status, cause: str, message: str, rule: str | None = None
    ) -> Score:
        return Score(
            self.name,
            status,
            cause=cause,
            message=message,
            calls=tuple(work.calls),
            evidence=self._evidence(work, rule),
        )

    def _evidence(self, work: Work, rule: str | None) -> dict[str, Any]:
        """The parts of the number, and the policy that made it, where one did. Vectors are left
        out: they say nothing to people."""
        silent = (EmbedStep, StopStep)
        steps = [step for step in self.steps if not isinstance(step, silent)]
        parts = {s.name: work.scope[s.name] for s in steps if work.scope.get(s.name) is not None}
        return {"parts": parts} | ({"rule": rule} if rule else {})


def _place(prompty: Prompty) -> str:
    """Folder and file of a prompt: several folders may have a file of the same name."""
    path = prompty.path
    return f"{path.parent.name}/{path.name}" if path else prompty.name

"""A metric that is one prompt: bind the inputs, ask, read, compare with the scale."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

from assay import sync
from assay.errors import InputError, PromptyError, SetupError
from assay.judge.base import Judge, is_decider
from assay.judge.faults import redact
from assay.metric.ask import ask
from assay.metric.columns import alias_of
from assay.metric.inputs import bind
from assay.metric.score import Score, flat, reason_of
from assay.prompty import Input, Output, Prompty


class Evaluator(Protocol):
    """A metric ready to run. Immutable: results are returned, never kept."""

    @property
    def name(self) -> str: ...

    @property
    def inputs(self) -> Mapping[str, Input]: ...

    @property
    def outputs(self) -> Mapping[str, Output]: ...

    @property
    def judge(self) -> Judge | None:
        """The evaluator's own judge, where it was given one."""

    @property
    def needs_judge(self) -> bool: ...

    @property
    def fingerprint(self) -> str:
        """Changes with everything that can change a score, but not with a threshold."""

    def describe(self) -> dict[str, Any]:
        """What belongs into a run's header."""

    def check(self, judge: Judge | None) -> None:
        """Raises SetupError or PromptyError for what would fail on every row."""

    async def score(
        self, values: Mapping[str, Any], judge: Judge | None = None, *, reask: int = 1
    ) -> Score:
        """Score one row, given as input name to value."""


class Doors:
    """The sync and the async door, the same for every kind of evaluator."""

    name: str
    inputs: Mapping[str, Input]
    outputs: Mapping[str, Output]

    def __call__(self, **kwargs: Any) -> dict[str, Any]:
        """Score one row given as keywords; also inside a running event loop.

        Other names of an input's family are understood (`answer` for `response`), keywords
        that are no input are ignored. Returns the flat keys of `assay.metric.score.flat`.
        Raises InputError naming every missing input, JudgeError where no answer can be had.
        """
        return sync.run(self.acall(**kwargs))

    def _to_async(self) -> Callable[..., Awaitable[dict[str, Any]]]:
        """How azure-ai-evaluation asks for a form that takes no thread of its pool: its event
        loops need those threads themselves, and with ten evaluators all of them wait for ever."""

        async def call(**kwargs: Any) -> dict[str, Any]:
            return await sync.beside(self.acall(**kwargs))

        return call

    async def acall(self, **kwargs: Any) -> dict[str, Any]:
        """The same, to be awaited."""
        values = dict(kwargs)
        missing = []
        for name, item in self.inputs.items():
            alias = None if name in kwargs else alias_of(name, kwargs)
            if alias:
                values[name] = kwargs[alias]
            elif name not in kwargs and item.required:
                missing.append(name)
        if missing:
            raise InputError(f"{self.name} needs {', '.join(missing)}")
        known = {name: values[name] for name in self.inputs if name in values}
        score: Score = await self.score(known)  # type: ignore[attr-defined]
        return flat(score, self.outputs)

    @cached_property
    def __signature__(self) -> inspect.Signature:
        keyword = inspect.Parameter.KEYWORD_ONLY
        parameters = [
            inspect.Parameter(
                name, keyword, default=inspect.Parameter.empty if item.required else None
            )
            for name, item in self.inputs.items()
            if name.isidentifier()
        ]
        rest = inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD)
        return inspect.Signature([*parameters, rest], return_annotation=dict[str, Any])


@dataclass(frozen=True)
class PromptEvaluator(Doors):
    """A .prompty file as a metric. `assay.load` makes one."""

    prompty: Prompty
    judge: Judge | None = None
    needs_judge: bool = True
    label: str | None = None

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.label or self.prompty.name

    @property
    def description(self) -> str:
        return self.prompty.description

    @property
    def inputs(self) -> Mapping[str, Input]:  # type: ignore[override]
        return self.prompty.inputs

    @property
    def outputs(self) -> Mapping[str, Output]:  # type: ignore[override]
        return self.prompty.outputs

    def renamed(self, name: str) -> PromptEvaluator:
        """The same metric under another name."""
        return replace(self, label=name)

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint_of(self.prompty)

    @cached_property
    def _own_judge(self) -> Judge:
        """What the file, ASSAY_JUDGE or assay.toml name, once it is needed."""
        from assay.judge.limits import Limited
        from assay.judge.resolve import resolve

        return Limited(resolve(model=self.prompty.model, path=self.prompty.path))

    def describe(self) -> dict[str, Any]:
        return {"kind": "prompty", **describe_prompty(self.prompty)}

    def check(self, judge: Judge | None) -> None:
        check_prompty(self.prompty, judge)

    async def score(
        self, values: Mapping[str, Any], judge: Judge | None = None, *, reask: int = 1
    ) -> Score:
        judge = judge or self.judge or self._own_judge
        try:
            bound = bind(self.inputs, values)
        except InputError as error:
            if error.cause == "wrong_input_type":
                raise
            return Score(self.name, "not_applicable", cause=error.cause, message=str(error))
        answer = await ask(self.prompty, bound, judge, reask=reask)
        return Score(
            evaluator=self.name,
            status=answer.status,
            outputs=answer.outputs,
            reason=reason_of(answer.outputs),
            cause=answer.cause,
            message=answer.message,
            calls=answer.calls,
        )


def check_prompty(prompty: Prompty, judge: Judge | None) -> None:
    """Raises what would fail on every row: a template that does not compile, a metric of which
    no input reaches the judge, variables not set, a decider that cannot judge it."""
    _ = prompty.template, prompty.parameters
    if is_decider(judge):
        refusal = judge.refuses(prompty)
        if refusal:
            raise SetupError(f"{prompty.name}: {refusal}")
        return
    if prompty.declared_inputs and not prompty.used_inputs & prompty.inputs.keys():
        raise PromptyError(
            f"none of its inputs ({', '.join(prompty.declared_inputs)}) is used in the body: the "
            "judge would never see them; `assay check --fix` adds a user message with them",
            path=prompty.path,
            line=prompty.body_line,
            code="inputs-unused",
        )


def describe_prompty(prompty: Prompty) -> dict[str, Any]:
    """A prompty for a run's header: text, hash, and the scale its numbers were made with."""
    return {
        "path": str(prompty.path) if prompty.path else None,
        "sha256": prompty.sha256,
        "dialect": prompty.dialect,
        "text": _without_key(prompty),
        "outputs": {name: describe_output(output) for name, output in prompty.outputs.items()},
    }


def _without_key(prompty: Prompty) -> str:
    """The file's text. A key that somebody wrote into it, instead of `${env:...}`, is blanked."""
    key = prompty.model.connection.get("api_key")
    is_secret = isinstance(key, str) and len(key) >= 8 and "${" not in key
    return redact(prompty.text, [str(key)]) if is_secret else prompty.text


def describe_output(output: Output) -> dict[str, Any]:
    """An output's declaration as plain JSON, what is not declared left out."""
    found = {
        "type": output.type,
        "minimum": output.minimum,
        "maximum": output.maximum,
        "threshold": output.threshold,
        "desirable_direction": output.direction if output.scored else None,
        "is_primary": output.is_primary or None,
        "levels": {str(value): text for value, text in output.levels.items()} or None,
    }
    return {key: value for key, value in found.items() if value is not None}


def fingerprint_of(prompty: Prompty) -> str:
    """Hash of what the judge sees and how its reply is read; thresholds change no score."""
    outputs = {
        name: [o.type, o.minimum, o.maximum, [str(level) for level in o.levels], o.required]
        for name, o in prompty.outputs.items()
    }
    parts = [prompty.body, dict(prompty.parameters), outputs, sorted(prompty.inputs)]
    plain = json.loads(json.dumps(parts, default=str))  # every key is text now
    text = json.dumps(plain, ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]

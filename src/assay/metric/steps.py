"""The steps a metric of several calls is made of.

Each step puts one value under its name. Later steps, and the score, see the inputs and the
values of earlier steps.

| step | value |
|---|---|
| `prompt: f.prompty` with `in:` | the outputs of one call |
| ... and `each: LIST` | one such value for each element, as `item` and `index` from 1 |
| ... and `align: {INPUT: LIST}` | one entry of the reply's list for each element, by index |
| ... and `repeat: N` | N such values, each asked afresh |
| ... and `distribution: OUTPUT` | probability of each level, by token log-probabilities |
| `map: LIST`, `field:`, `to:` | a number for each word of a vocabulary |
| `split: TEXT`, `by: sentences|lines` | a list of texts |
| `join: LIST`, `with: TEXT` | one text |
| `embed: LIST` | a vector for each text |
| `value: EXPRESSION` | anything that can be computed |
| `stop: {when, status or score, because}` | ends the metric: its policy for that case |
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from assay.errors import InputError
from assay.judge.base import Judge
from assay.judge.embed import Embedder
from assay.metric.ask import Answer, ask
from assay.metric.expressions import Expression
from assay.metric.functions import word
from assay.metric.inputs import bind
from assay.metric.score import Call, Status
from assay.metric.segment import lines, sentences
from assay.prompty import Prompty
from assay.prompty.fields import Output

ASK_MISSING = 2
"""How often verdicts that did not come back are asked for again."""


class Stop(Exception):
    """Ends a metric before its score: a policy of the file, or a step without a value."""

    def __init__(
        self,
        status: Status,
        cause: str,
        message: str,
        score: float | None = None,
    ) -> None:
        self.status = status
        self.cause = cause
        self.message = message
        self.score = score
        super().__init__(message)


@dataclass
class Work:
    """One row under way: values by name, who is asked, and every call made."""

    scope: dict[str, Any]
    judge: Judge | None
    embedder: Embedder | None
    reask: int = 1
    calls: list[Call] = field(default_factory=list)

    def within(self, extra: Mapping[str, Any]) -> dict[str, Any]:
        return {**self.scope, **extra}


@dataclass(frozen=True)
class PromptStep:
    """A .prompty file, asked once or for each element of a list."""

    name: str
    prompty: Prompty
    given: Mapping[str, Expression]
    each: Expression | None = None
    align: tuple[str, Expression] | None = None
    when: Expression | None = None
    repeat: int = 1
    distribution: str | None = None

    @property
    def names(self) -> frozenset[str]:
        found = [*self.given.values(), self.each, self.when]
        found.append(self.align[1] if self.align else None)
        names = frozenset().union(*(e.names for e in found if e is not None))
        return names - {"item", "index"} if self.each else names

    @property
    def calls(self) -> str:
        """The calls it makes, in words."""
        times = f"{self.repeat} x " if self.repeat > 1 else ""
        return f"{times}1 per element of {self.each.text}" if self.each else f"{times}1"

    @property
    def _settings(self) -> Mapping[str, Any]:
        return {"logprobs": True, "top_logprobs": 20} if self.distribution else {}

    async def run(self, work: Work) -> Any:
        if self.when is not None and not self.when(work.scope):
            return None
        if self.each is not None:
            elements = list(self.each(work.scope))
            return await _together(
                self._repeated(work, {"item": item, "index": index})
                for index, item in enumerate(elements, 1)
            )
        if self.align is not None:
            return await self._aligned(work)
        return await self._repeated(work, {})

    async def _repeated(self, work: Work, extra: Mapping[str, Any]) -> Any:
        if self.repeat == 1:
            return await self._once(work, extra, work.judge)
        judges = [_afresh(work.judge, number) for number in range(self.repeat)]
        return await _together(self._once(work, extra, judge) for judge in judges)

    async def _once(self, work: Work, extra: Mapping[str, Any], judge: Judge | None) -> Any:
        scope = work.within(extra)
        answer = await self._ask(work, {n: e(scope) for n, e in self.given.items()}, judge)
        if self.distribution is None:
            return dict(answer.outputs)
        return _distribution(answer, self.prompty.outputs[self.distribution])

    async def _ask(self, work: Work, values: dict[str, Any], judge: Judge | None) -> Answer:
        if judge is None:
            raise Stop("error", "set_up", f"step {self.name} needs a judge")
        try:
            bound = bind(self.prompty.inputs, values)
        except InputError as error:
            raise Stop("not_applicable", error.cause, f"step {self.name}: {error}") from None
        answer = await ask(self.prompty, bound, judge, reask=work.reask, settings=self._settings)
        # What came of earlier steps is kept with the call: the row does not hold it.
        own = {n: v for n, v in bound.items() if self._is_made(n, work)}
        work.calls += [replace(call, inputs=own or None) for call in answer.calls]
        if answer.status != "scored":
            raise Stop(answer.status, answer.cause or "", f"step {self.name}: {answer.message}")
        return answer

    def _is_made(self, name: str, work: Work) -> bool:
        expression = self.given.get(name)
        return expression is None or expression.text not in work.scope

    async def _aligned(self, work: Work) -> list[Any]:
        """One call for a whole list; entries are put in order by the index they carry."""
        assert self.align is not None
        name, expression = self.align
        elements = list(expression(work.scope))
        missing = list(range(1, len(elements) + 1))
        entries: dict[int, Any] = {}
        for _ in range(1 + ASK_MISSING):
            if not missing:
                break
            values = {n: e(work.scope) for n, e in self.given.items()}
            values[name] = [{"index": i, "text": elements[i - 1]} for i in missing]
            answer = await self._ask(work, values, work.judge)
            entries |= _by_index(_only_list(answer, self.name), set(missing))
            missing = [i for i in missing if i not in entries]
        if missing:
            raise Stop(
                "invalid",
                "count_mismatch",
                f"step {self.name}: {len(entries)} of {len(elements)} entries came back; "
                f"missing {', '.join(map(str, missing))}",
            )
        return [entries[i] for i in range(1, len(elements) + 1)]


@dataclass(frozen=True)
class MapStep:
    """Words of a vocabulary to numbers; None leaves a verdict out of what follows."""

    name: str
    source: Expression
    field_name: str
    to: Mapping[str, float | None]
    calls: str = "0"

    @property
    def names(self) -> frozenset[str]:
        return self.source.names

    async def run(self, work: Work) -> list[float | None]:
        return [self._number(entry) for entry in self.source(work.scope)]

    def _number(self, entry: Any) -> float | None:
        found = entry.get(self.field_name) if isinstance(entry, Mapping) else entry
        key = "null" if found is None else word(found)
        if key not in self.to:
            raise Stop(
                "invalid",
                "vocabulary",
                f"step {self.name}: {self.field_name} is {found!r}, not one of "
                f"{', '.join(self.to)}",
            )
        return self.to[key]


@dataclass(frozen=True)
class ValueStep:
    """Something computed: an expression, a text cut up or put together."""

    name: str
    source: Expression
    by: str = "value"
    glue: str = "\n"
    calls: str = "0"

    @property
    def names(self) -> frozenset[str]:
        return self.source.names

    async def run(self, work: Work) -> Any:
        found = self.source(work.scope)
        if self.by == "sentences":
            return [s for text in _as_list(found) for s in sentences(text)]
        if self.by == "lines":
            return [line for text in _as_list(found) for line in lines(text)]
        return self.glue.join(map(str, found)) if self.by == "join" else found


@dataclass(frozen=True)
class EmbedStep:
    """A vector for each text."""

    name: str
    source: Expression
    calls: str = "0"

    @property
    def names(self) -> frozenset[str]:
        return self.source.names

    async def run(self, work: Work) -> list[list[float]]:
        if work.embedder is None:
            raise Stop("error", "set_up", f"step {self.name} needs an embedder")
        texts = [str(text) for text in self.source(work.scope)]
        return await work.embedder.embed(texts) if texts else []


@dataclass(frozen=True)
class StopStep:
    """A policy: in this case the metric ends here, with a status or with a score."""

    name: str
    when: Expression
    status: Status
    score: Expression | None
    because: str
    calls: str = "0"

    @property
    def names(self) -> frozenset[str]:
        return self.when.names | (self.score.names if self.score else frozenset())

    async def run(self, work: Work) -> None:
        if self.when(work.scope):
            score = None if self.score is None else float(self.score(work.scope))
            raise Stop(self.status, "policy", self.because, score)


Step = PromptStep | MapStep | ValueStep | EmbedStep | StopStep


async def _together(work: Any) -> list[Any]:
    """Results in order; the first failure ends the others, so that nothing more is paid for."""
    tasks: list[asyncio.Task[Any]] = []
    try:
        async with asyncio.TaskGroup() as group:
            tasks += [group.create_task(one) for one in work]
    except BaseExceptionGroup as error:
        first: BaseException = error
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        raise first from None
    return [task.result() for task in tasks]


def _afresh(judge: Judge | None, number: int) -> Judge | None:
    """A judge whose cache does not answer one repeat with another."""
    afresh = getattr(judge, "afresh", None)
    return afresh(number) if afresh else judge


def _only_list(answer: Answer, step: str) -> list[Any]:
    lists = [value for value in answer.outputs.values() if isinstance(value, list)]
    if len(lists) != 1:
        raise Stop("invalid", "unparseable", f"step {step}: the reply must hold one list")
    return lists[0]


def _by_index(entries: Sequence[Any], wanted: set[int]) -> dict[int, Any]:
    """Entries by their `index`. One that comes twice with different content is not used."""
    found: dict[int, Any] = {}
    twice: set[int] = set()
    for entry in entries:
        try:
            index = int(str(entry["index"]))
        except (KeyError, TypeError, ValueError):
            continue
        if index in wanted and found.setdefault(index, entry) != entry:
            twice.add(index)
    return {index: entry for index, entry in found.items() if index not in twice}


def _as_list(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else [str(item) for item in value]


def _distribution(answer: Answer, output: Output) -> dict[str, Any]:
    """Probability of each level, read at the token that carries the score.

    `mass` is the share of probability the levels have there: what the model would say that is
    no level is left out, and said.
    """
    value = answer.outputs[output.name]
    levels = {str(level) for level in _levels(output)}
    position = next(
        (token for token in reversed(answer.logprobs) if token["token"].strip() == str(value)), None
    )
    if position is None:
        raise Stop(
            "invalid",
            "no_logprobs",
            f"the judge gave no log-probabilities for {output.name}; use a metric that samples",
        )
    found: dict[str, float] = {}
    for candidate in position.get("top_logprobs") or [position]:
        level = candidate["token"].strip()
        if level in levels:
            found[level] = found.get(level, 0.0) + math.exp(candidate["logprob"])
    mass = math.fsum(found.values())
    if not found or mass <= 0:
        raise Stop("invalid", "no_logprobs", f"no level of {output.name} has a probability")
    return {"levels": found, "mass": min(mass, 1.0), "value": value}


def _levels(output: Output) -> list[Any]:
    if output.levels:
        return list(output.levels)
    if output.minimum is None or output.maximum is None:
        return []
    return list(range(int(output.minimum), int(output.maximum) + 1))

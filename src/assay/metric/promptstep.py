"""A step that asks the judge: once, for each element of a list, or for a list with indices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from assay.errors import InputError, RenderError
from assay.metric.ask import Answer, ask
from assay.metric.expressions import Expression, ExpressionError
from assay.metric.functions import word
from assay.metric.inputs import bind
from assay.metric.levels import SETTINGS, distribution
from assay.metric.score import Status
from assay.metric.work import Stop, Work, afresh
from assay.prompty import Prompty
from assay.prompty.fields import Output

ASK_MISSING = 2
"""How often entries that did not come back are asked for again."""


@dataclass(frozen=True)
class PromptStep:
    """A .prompty file and how it is asked.

    given: input to expression. each: the list whose elements are asked about one by one, as
    `item` and `index`. align: input, and the list that it is given as [{index, text}]; the reply
    must bring one entry for each. entry: what the file declares an entry to hold. repeat: how
    often the same is asked. parameters: what is sent instead of the file's own.
    distribution: the output whose levels get a probability.
    """

    name: str
    prompty: Prompty
    given: Mapping[str, Expression]
    each: Expression | None = None
    align: tuple[str, Expression] | None = None
    entry: Mapping[str, Output] = field(default_factory=dict)
    when: Expression | None = None
    repeat: int = 1
    parameters: Mapping[str, Any] = field(default_factory=dict)
    distribution: str | None = None

    @property
    def names(self) -> frozenset[str]:
        inside = [*self.given.values(), *([self.align[1]] if self.align else [])]
        names = frozenset().union(*(expression.names for expression in inside))
        if self.each is not None:
            names = (names - {"item", "index"}) | self.each.names
        return names | self.when.names if self.when else names

    @property
    def calls(self) -> str:
        """The calls it makes at most, in words."""
        each = f" per element of {self.each.text}" if self.each is not None else ""
        return f"{self.repeat}{each}"

    async def run(self, work: Work) -> Any:
        if self.when is not None and not self.when(work.scope):
            return None
        if self.each is None:
            return await self._repeated(work)
        elements = list_of(self.each, work)
        branches = [work.branch({"item": x, "index": i}) for i, x in enumerate(elements, 1)]
        return await work.together(branches, self._repeated)

    async def _repeated(self, work: Work) -> Any:
        run = self._aligned if self.align else self._once
        if self.repeat == 1:
            return await run(work)
        branches = [work.branch({}, afresh(work.judge, n)) for n in range(self.repeat)]
        return await work.together(branches, run)

    async def _once(self, work: Work) -> Any:
        answer = await self._ask(work, {})
        if self.distribution is None:
            return dict(answer.outputs)
        levels = distribution(answer, self.prompty.outputs[self.distribution])
        return {**answer.outputs, **levels}

    async def _aligned(self, work: Work) -> list[Any]:
        """One call for a whole list; entries are put in order by the index they carry.

        One that is not there, or says nothing that the file declares, is asked for again. What
        still says nothing then is kept as it is, for the metric's own vocabulary to judge.
        """
        assert self.align is not None
        name, expression = self.align
        elements = list_of(expression, work)
        numbers = range(1, len(elements) + 1)
        used: dict[int, Any] = {}
        other: dict[int, Any] = {}
        for attempt in range(1 + ASK_MISSING):
            missing = [number for number in numbers if number not in used]
            if not missing:
                break
            asked = [{"index": number, "text": elements[number - 1]} for number in missing]
            again = work.branch({}, afresh(work.judge, attempt) if attempt else None)
            try:
                answer = await self._ask(again, {name: asked})
            finally:
                work.calls += again.calls
            for number, entry in by_index(_only_list(answer, self.name), set(missing)).items():
                (used if self._says_something(entry) else other)[number] = entry
        found = other | used
        if len(found) < len(elements):
            gone = ", ".join(str(number) for number in numbers if number not in found)
            raise Stop(
                "invalid",
                "count_mismatch",
                f"step {self.name}: {len(found)} of {len(elements)} entries came back, asked "
                f"{1 + ASK_MISSING} times; missing {gone}",
            )
        return [{**found[n], "index": n, "text": elements[n - 1]} for n in numbers]

    def _says_something(self, entry: Mapping[str, Any]) -> bool:
        return all(
            word(entry.get(name)) in {word(level) for level in output.levels}
            for name, output in self.entry.items()
            if output.levels
        )

    async def _ask(self, work: Work, extra: Mapping[str, Any]) -> Answer:
        if work.judge is None:
            raise Stop("error", "set_up", f"step {self.name} needs a judge")
        values = {n: e(work.scope) for n, e in self.given.items()} | dict(extra)
        try:
            bound = bind(self.prompty.inputs, values)
        except InputError as error:
            wrong = error.cause == "wrong_input_type"
            status: Status = "invalid" if wrong else "not_applicable"
            raise Stop(status, error.cause, f"step {self.name}: {error}") from None
        settings = {**(SETTINGS if self.distribution else {}), **self.parameters}
        try:
            answer = await ask(self.prompty, bound, work.judge, reask=work.reask, settings=settings)
        except RenderError as error:
            raise Stop("error", "render", f"step {self.name}: {error}") from None
        # What came of earlier steps is kept with the call: the row does not hold it.
        own = {n: v for n, v in bound.items() if self._is_made(n, work)}
        work.calls += [replace(call, inputs=own or None) for call in answer.calls]
        if answer.status != "scored":
            raise Stop(answer.status, answer.cause or "", f"step {self.name}: {answer.message}")
        return answer

    def _is_made(self, name: str, work: Work) -> bool:
        expression = self.given.get(name)
        return expression is None or expression.text not in work.row


def list_of(expression: Expression, work: Work) -> list[Any]:
    """The list that an expression gives. Raises ExpressionError where it gives none."""
    value = expression(work.scope)
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise ExpressionError(f"`{expression.text}` is no list but {type(value).__name__}")
    return list(value)


def by_index(entries: Sequence[Any], wanted: set[int]) -> dict[int, Any]:
    """Entries by their `index`. One that comes twice with different content is not used."""
    found: dict[int, Any] = {}
    twice: set[int] = set()
    for entry in entries:
        index = _index(entry)
        if index in wanted and found.setdefault(index, entry) != entry:
            twice.add(index)
    return {index: entry for index, entry in found.items() if index not in twice}


def _index(entry: Any) -> int:
    """The index of an entry, also as text ("3") or 3.0; 0, which no entry has, for none."""
    value = entry.get("index") if isinstance(entry, Mapping) else None
    try:
        number = float(str(value))
    except ValueError:
        return 0
    return int(number) if number.is_integer() else 0


def _only_list(answer: Answer, step: str) -> list[Any]:
    lists = [value for value in answer.outputs.values() if isinstance(value, list)]
    if len(lists) != 1:
        raise Stop("invalid", "unparseable", f"step {step}: the reply must hold one list")
    return lists[0]

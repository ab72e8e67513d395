"""The steps a metric of several calls is made of.

Each step puts one value under its name. Later steps, and the score, see the inputs and the
values of earlier steps.

| step | value |
|---|---|
| `prompt: f.prompty`, `in: {INPUT: EXPRESSION}` | the outputs of one call, by name |
| ... `each: LIST` | a list: such a value for each element, seen as `item` and `index` (from 1) |
| ... `align: {INPUT: LIST}` | a list: the reply's entry for each element, by `index`, and `text` |
| ... `repeat: N` | a list of N such values, each asked afresh |
| ... `parameters: {temperature: 1}` | sent instead of the .prompty's own |
| ... `distribution: OUTPUT` | `levels` (probability of each), `mass`, `value`, `method` |
| ... `when: EXPRESSION` | none where it does not hold, and no call |
| `map: LIST`, `field: verdict`, `to: {yes: 1, no: 0}` | a number for each word of a vocabulary |
| `split: TEXT`, `by: sentences` or `lines` | a list of texts |
| `join: LIST`, `with: TEXT` | one text |
| `embed: LIST` | a vector for each text |
| `value: EXPRESSION` | anything that can be computed |
| `stop: {when, because, cause}` and `status` or `score` | ends the metric: its policy in a case |

A word of a `map` is compared by its first word, without regard to case and width; null leaves a
verdict out of what follows; a word that is not listed makes the score invalid, unless `other:`
says what it is worth. An `align` gives its input as [{index, text}, ...] and asks again for
entries that did not come back, or that hold no word the prompt's `items` allow.

Steps with `each`, `align` and `repeat` may be combined: each element, then each repeat, then the
list. The order of values is that of the list, whatever comes back first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from assay.metric.expressions import Expression
from assay.metric.functions import word
from assay.metric.promptstep import PromptStep, list_of
from assay.metric.score import Status
from assay.metric.segment import lines, sentences
from assay.metric.work import Stop, Work

INVALID: Any = object()
"""What a word outside a vocabulary is worth where the file does not say."""


@dataclass(frozen=True)
class MapStep:
    """Words of a vocabulary to numbers; None leaves a verdict out of what follows."""

    name: str
    source: Expression
    field_name: str
    to: Mapping[str, float | None]
    other: float | None = INVALID
    calls: str = "0"

    @property
    def names(self) -> frozenset[str]:
        return self.source.names

    async def run(self, work: Work) -> list[float | None]:
        return [self._number(entry) for entry in list_of(self.source, work)]

    def _number(self, entry: Any) -> float | None:
        found = entry.get(self.field_name) if isinstance(entry, Mapping) else entry
        key = word(found)
        if key in self.to:
            return self.to[key]
        if self.other is INVALID:
            known = ", ".join(self.to)
            message = f"step {self.name}: {self.field_name} is {found!r}, not one of {known}"
            raise Stop("invalid", "vocabulary", message)
        return self.other


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
        if self.by == "join":
            return self.glue.join(map(str, list_of(self.source, work)))
        found = self.source(work.scope)
        if self.by == "value":
            return found
        cut = sentences if self.by == "sentences" else lines
        texts = [found] if isinstance(found, str) else list_of(self.source, work)
        return [part for text in texts for part in cut(str(text))]


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
        texts = [str(text) for text in list_of(self.source, work)]
        return await work.embedder.embed(texts) if texts else []


@dataclass(frozen=True)
class StopStep:
    """A policy: in this case the metric ends here, with a status or with a score."""

    name: str
    when: Expression
    status: Status
    score: Expression | None
    because: str
    cause: str = "policy"
    calls: str = "0"

    @property
    def names(self) -> frozenset[str]:
        return self.when.names | (self.score.names if self.score else frozenset())

    async def run(self, work: Work) -> None:
        if self.when(work.scope):
            score = None if self.score is None else self.score(work.scope)
            raise Stop(self.status, self.cause, self.because, score=score, rule=self.because)


Step = PromptStep | MapStep | ValueStep | EmbedStep | StopStep

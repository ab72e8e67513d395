"""One row of a metric of several steps, under way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from assay.errors import first_error
from assay.judge.base import Judge
from assay.judge.embed import Embedder
from assay.metric.score import Call, Status


class Stop(Exception):
    """Ends a metric before its score: a policy of the file, or a step without a value.

    rule: the policy's own words, where it was one. score: the number it gives, if it gives one.
    """

    def __init__(
        self,
        status: Status,
        cause: str,
        message: str,
        *,
        score: float | None = None,
        rule: str | None = None,
    ) -> None:
        self.status = status
        self.cause = cause
        self.message = message
        self.score = score
        self.rule = rule
        super().__init__(message)


@dataclass
class Work:
    """Values by name, who is asked, and every call made so far, in the order of the steps.

    row: the names whose values the row itself holds.
    """

    scope: dict[str, Any]
    row: frozenset[str]
    judge: Judge | None
    embedder: Embedder | None = None
    reask: int = 1
    calls: list[Call] = field(default_factory=list)

    def branch(self, extra: Mapping[str, Any], judge: Judge | None = None) -> Work:
        """The same row for one element or one repeat; `together` brings its calls back."""
        return replace(self, scope={**self.scope, **extra}, judge=judge or self.judge, calls=[])

    async def together(
        self, branches: Sequence[Work], run: Callable[[Work], Coroutine[Any, Any, Any]]
    ) -> list[Any]:
        """`run` on all branches at once; results in order, and so are the calls.

        The first failure ends the others, so that nothing more is paid for.
        """
        tasks: list[asyncio.Task[Any]] = []
        try:
            async with asyncio.TaskGroup() as group:
                tasks += [group.create_task(run(branch)) for branch in branches]
        except BaseExceptionGroup as error:
            raise first_error(error) from None
        finally:
            for branch in branches:
                self.calls += branch.calls
        return [task.result() for task in tasks]


def afresh(judge: Judge | None, number: int) -> Judge | None:
    """A judge whose cache does not answer one asking with another."""
    again = getattr(judge, "afresh", None)
    return again(number) if again else judge

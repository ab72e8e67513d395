"""Rows through evaluators: a bounded number at once, every score on disk as it is finished."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from assay.errors import (
    AssayError,
    InputError,
    JudgeError,
    JudgeRefusal,
    RenderError,
    Stopped,
    first_error,
)
from assay.judge.base import Judge
from assay.judge.limits import Limited
from assay.metric.columns import Binding
from assay.metric.evaluator import Evaluator
from assay.metric.score import Score
from assay.run.data import Row
from assay.run.journal import Lines
from assay.run.record import line_of
from assay.run.spending import Spending
from assay.run.target import Target


@dataclass(frozen=True)
class Task:
    """One evaluator, ready: where its inputs come from, and the judge of each iteration."""

    evaluator: Evaluator
    binding: Binding
    judges: tuple[Judge | None, ...]
    outputs: Mapping[str, Any]


class Progress(Protocol):
    """Told what happens, as it happens. Never awaited, never asked."""

    def start(self, scores: int, done: int, spending: Spending, judges: Sequence[Judge]) -> None:
        """`scores` in all, `done` of them before; what is used, and who is asked."""

    def score(self, line: Mapping[str, Any]) -> None: ...

    def note(self, text: str) -> None: ...

    def stop(self) -> None: ...


@dataclass
class Kept:
    """What an earlier part of the run already holds of a row."""

    scores: set[tuple[str, int]] = field(default_factory=set)
    target: Mapping[str, Any] | None = None
    row_written: bool = False


class Source(Protocol):
    """Rows still to be done, with what is kept of each."""

    def __iter__(self) -> Iterator[tuple[Row, Kept]]: ...


@dataclass
class Engine:
    """Runs tasks over rows.

    window: rows under way at once. row_timeout: seconds a row may take in all. budget:
    dollars after which no further row is taken. `stopping` says why the run ends early.
    """

    tasks: list[Task]
    rows_file: Lines
    scores_file: Lines
    progress: Progress
    spending: Spending
    judges: Sequence[Judge] = ()
    budget: float | None = None
    target: Target | None = None
    window: int = 128
    reask: int = 1
    row_timeout: float = 1800.0
    stopping: str | None = None

    async def run(self, source: Iterable[tuple[Row, Kept]]) -> None:
        """Score every row of `source`. Cancelling it leaves whole lines behind."""
        rows = iter(source)
        try:
            async with asyncio.TaskGroup() as group:
                for count in range(self.window):
                    group.create_task(self._worker(rows))
                    if count % 16 == 0:
                        # Requests leave while the next rows are rendered, not after all of them.
                        await asyncio.sleep(0)
        except BaseExceptionGroup as group_error:
            raise first_error(group_error) from None

    def stop(self, why: str) -> None:
        """Take no further row and start no further call."""
        self.stopping = self.stopping or why
        for judge in self.judges:
            if isinstance(judge, Limited):
                judge.stop()

    async def _worker(self, rows: Iterator[tuple[Row, Kept]]) -> None:
        # An iterator shared by all workers: each takes the next row when it is free.
        while not self.stopping:
            pair = next(rows, None)
            if pair is None:
                return
            await self._row(*pair)

    async def _row(self, row: Row, kept: Kept) -> None:
        columns = dict(row.columns)
        failed: Score | None = None
        added = kept.target
        if self.target is not None and added is None:
            try:
                added, failed = await self._run_target(row)
            except Stopped:
                return
        if not kept.row_written:
            self.rows_file.append(row_line(row, added, failed))
        columns |= added or {}
        todo = [
            (task, iteration)
            for task in self.tasks
            for iteration in range(len(task.judges))
            if (task.evaluator.name, iteration) not in kept.scores
        ]
        if len(todo) == 1:
            await self._score(*todo[0], row, columns, failed)
            return
        async with asyncio.TaskGroup() as group:
            for task, iteration in todo:
                group.create_task(self._score(task, iteration, row, columns, failed))

    async def _score(
        self,
        task: Task,
        iteration: int,
        row: Row,
        columns: Mapping[str, Any],
        failed: Score | None,
    ) -> None:
        if failed is not None:
            score = replace(failed, evaluator=task.evaluator.name)
        else:
            values = task.binding.values(columns)
            try:
                score = await score_row(
                    task.evaluator, values, task.judges[iteration], self.reask, self.row_timeout
                )
            except Stopped:
                return
        line = line_of(
            score,
            row=row.index,
            iteration=iteration,
            fingerprint=task.evaluator.fingerprint,
            row_hash=row.hash,
            outputs=task.outputs,
        )
        self.scores_file.append(line)
        self.spending.add(score.evaluator, line["calls"])
        self.progress.score(line)
        if self.budget is not None and self.spending.dollars >= self.budget:
            self.stop("budget")

    async def _run_target(self, row: Row) -> tuple[dict[str, Any] | None, Score | None]:
        assert self.target is not None
        try:
            async with asyncio.timeout(self.row_timeout):
                return await self.target.run(row.columns), None
        except Stopped:
            raise
        except Exception as error:
            if isinstance(error, TimeoutError):
                message = f"the target did not answer within {self.row_timeout:g} s"
            else:
                message = f"the target failed: {type(error).__name__}: {error}"
            return None, Score("", "error", cause="target", message=message[:500])


async def score_row(
    evaluator: Evaluator,
    values: Mapping[str, Any],
    judge: Judge | None,
    reask: int = 1,
    timeout: float = 1800.0,
) -> Score:
    """One score, whatever happens: the one place that turns an exception into a status."""
    name = evaluator.name
    try:
        async with asyncio.timeout(timeout):
            return await evaluator.score(values, judge, reask=reask)
    except JudgeRefusal as error:
        return Score(name, "refused", cause=error.cause, message=str(error))
    except JudgeError as error:
        tries = f" (after {error.attempts} tries)" if error.attempts > 1 else ""
        return Score(name, "error", cause=error.cause, message=f"{error}{tries}")
    except InputError as error:
        return Score(name, "error", cause=error.cause, message=str(error))
    except RenderError as error:
        return Score(name, "error", cause="render", message=str(error))
    except Stopped:
        raise
    except AssayError as error:
        return Score(name, "error", cause="set_up", message=str(error))
    except TimeoutError:
        return Score(name, "error", cause="timeout", message=f"not done within {timeout:g} s")
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
        return Score(name, "error", cause="evaluator_failed", message=message[:500])


def row_line(row: Row, added: Mapping[str, Any] | None, failed: Score | None) -> dict[str, Any]:
    """A row as its line in rows.jsonl."""
    line: dict[str, Any] = {"row": row.index, "id": row.id, "hash": row.hash}
    line["columns"] = dict(row.columns)
    if added is not None:
        line["target"] = dict(added)
    if failed is not None:
        line["target_error"] = failed.message
    if row.note:
        line["note"] = row.note
    return line

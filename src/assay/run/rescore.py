"""Read a run's raw replies again, with today's scales, thresholds and readers. No calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from assay import sync
from assay.errors import JudgeError, SetupError
from assay.judge.base import Judge, Message, Reply, Usage
from assay.metric.ask import messages_sha
from assay.metric.columns import Binding
from assay.metric.evaluator import Evaluator
from assay.metric.registry import load
from assay.run.directory import make_directory
from assay.run.engine import score_row
from assay.run.header import describe_evaluator
from assay.run.journal import HEADER, ROWS, SCORES, Lines, write_json
from assay.run.record import Run, line_of


class Replay:
    """A judge that gives the recorded replies, each to the messages it was an answer to."""

    name = "replay"

    def __init__(self, calls: Sequence[Mapping[str, Any]]) -> None:
        self._replies = {call["messages_sha"]: _reply(call) for call in calls}

    async def complete(self, messages: Sequence[Message], **settings: Any) -> Reply:
        return self._find(messages_sha(messages))

    def describe(self) -> dict[str, Any]:
        return {"judge": self.name}

    async def close(self) -> None:
        return None

    def _find(self, sha: str) -> Reply:
        reply = self._replies.get(sha)
        if reply is None:
            raise JudgeError("no reply to these messages is recorded", cause="not_recorded")
        return reply


class DecidedReplay(Replay):
    """The same for a judge that was given inputs instead of messages."""

    def refuses(self, prompty: Any) -> None:
        return None

    async def decide(self, prompty: Any, inputs: Mapping[str, Any]) -> Reply:
        return self._find("")


def rescore(
    directory: str | Path,
    evaluators: Mapping[str, Any] | None = None,
    *,
    name: str | None = None,
    runs: str | Path | None = None,
) -> Run:
    """A new run from the replies of an old one, read with the files as they are now.

    evaluators: evaluator name to another file to read its replies with. Scores that took no
    call, and those of evaluators whose file is not known, are carried over as they are. A
    prompt that now says something else finds no reply: such rows are `error`, `not_recorded`.
    """
    old = Run(directory)
    chosen = _evaluators(old, evaluators or {})
    folder = Path(runs) if runs is not None else old.directory.parent
    target = make_directory(folder, name or f"{old.name}-rescored")
    header = {**old.header, "rescored_from": str(old.directory), "name": name or target.name}
    header["evaluators"] = {
        key: {**entry, **(describe_evaluator(chosen[key]) if key in chosen else {})}
        for key, entry in old.evaluators.items()
    }
    header["started"] = datetime.now(UTC).isoformat(timespec="seconds")
    write_json(target / HEADER, header)
    with Lines(target / ROWS) as rows, Lines(target / SCORES) as scores:
        for row, records in old.records():
            rows.append(row)
            for record in records:
                if record is not None:
                    scores.append(sync.run(_again(old, row, record, chosen)))
    run = Run(target)
    run.summarise()
    return run


async def _again(
    old: Run, row: Mapping[str, Any], record: dict[str, Any], chosen: Mapping[str, Evaluator]
) -> dict[str, Any]:
    evaluator = chosen.get(record["evaluator"])
    calls = record.get("calls") or []
    if evaluator is None or not calls:
        return record
    decided = all(not call["messages_sha"] for call in calls)
    judge: Judge = DecidedReplay(calls) if decided else Replay(calls)
    entry = old.evaluators[record["evaluator"]]
    binding = Binding(entry["columns"], {})
    values = binding.values({**row["columns"], **(row.get("target") or {})})
    score = await score_row(evaluator, values, judge, int(old.header.get("reask", 0)))
    return line_of(
        score,
        row=record["row"],
        iteration=record["iteration"],
        fingerprint=evaluator.fingerprint,
        row_hash=record["hash"],
        outputs=evaluator.outputs,
    )


def _evaluators(old: Run, given: Mapping[str, Any]) -> dict[str, Evaluator]:
    for name in given:
        if name not in old.evaluators:
            raise SetupError(
                f"the run has no evaluator {name!r}; it has {', '.join(old.evaluators)}"
            )
    chosen: dict[str, Evaluator] = {}
    for name, entry in old.evaluators.items():
        source = given.get(name) or entry.get("path")
        if source:
            evaluator = load(source)
            chosen[name] = evaluator if evaluator.name == name else evaluator.renamed(name)
    return chosen


def _reply(call: Mapping[str, Any]) -> Reply:
    return Reply(
        text=call["reply"],
        usage=Usage(**call.get("usage", {})),
        finish_reason=call.get("finish_reason"),
        latency=call.get("latency") or 0.0,
        model=call.get("model"),
        attempts=call.get("attempts") or 1,
        cached=bool(call.get("cached")),
    )

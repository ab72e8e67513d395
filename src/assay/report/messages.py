"""The messages as they were sent, made again from what the run directory holds.

A run keeps the text of every prompt and a hash of every call's messages, not the messages:
they are rendered once more from the row, and shown only where the hash is the same. On the
page they take little room: what is the same in many rows is written once, and what stands in
the row itself is a reference to it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from assay.errors import AssayError
from assay.judge.base import Reply
from assay.metric import ask
from assay.metric.inputs import bind
from assay.prompty import Prompty, loads
from assay.report.given import Given
from assay.run.record import Run

Piece = int | str | list[Any]
"""A number in the table of shared texts, a text, or the path of a value in the row."""

ROOM = 2_000_000
"""Characters of shared texts; what comes when it is full is written where it stands."""

SHORTEST_REFERENCE = 12

NOT_SENT = "This judge reads the inputs and the scale; it is sent no messages."
CHANGED = "They cannot be shown: what the row and the prompt give now is not what was sent."
NO_PROMPT = "They cannot be shown: the run does not hold the text of this prompt."


class Messages:
    """Makes the messages of calls again. `texts` is the table that their pieces point into."""

    def __init__(self, run: Run) -> None:
        self._prompts = {name: _prompts(found) for name, found in run.evaluators.items()}
        self._given = {name: Given(found) for name, found in run.evaluators.items()}
        self._numbers: dict[str, int] = {}
        self._room = ROOM

    @property
    def texts(self) -> list[str]:
        return list(self._numbers)

    def description(self, evaluator: str) -> str:
        """What the metric measures, in its file's own words."""
        prompts = list(self._prompts[evaluator].values())
        own = self._given[evaluator].description
        return own or (prompts[0].description if len(prompts) == 1 else "")

    def of(self, evaluator: str, calls: Sequence[Mapping[str, Any]], row: RowTexts) -> list[Any]:
        """For each call its messages as [role, pieces, other keys], or a sentence why not."""
        told: list[Any] = []
        sent: list[dict[str, Any]] | None = None
        for place, call in enumerate(calls):
            if not call.get("messages_sha"):
                told.append(NOT_SENT)
                continue
            if call.get("prompt", "") not in self._prompts[evaluator]:
                told.append(NO_PROMPT)
                continue
            if call.get("note") is None:
                sent = self._first(evaluator, call, row)
            elif sent is not None:
                sent = _again(sent, calls[place - 1], call)
            told.append(CHANGED if sent is None else [self._pack(m, row) for m in sent])
        return told

    def _first(
        self, evaluator: str, call: Mapping[str, Any], row: RowTexts
    ) -> list[dict[str, Any]] | None:
        """The messages that have the hash of what was sent; None where none have."""
        prompt = self._prompts[evaluator][call.get("prompt", "")]
        for values in self._given[evaluator].values(call.get("prompt", ""), row.columns):
            try:
                bound = bind(prompt.inputs, {**values, **(call.get("inputs") or {})})
                sent = prompt.render(bound)
            except AssayError:
                continue
            if ask.messages_sha(sent) == call["messages_sha"]:
                return sent
        return None

    def _pack(self, message: Mapping[str, Any], row: RowTexts) -> list[Any]:
        other = {key: value for key, value in message.items() if key not in ("role", "content")}
        content = message.get("content")
        if content is not None and not isinstance(content, str):
            content = _readable(content)
        pieces = [self._shared(piece) for piece in row.split(content or "")]
        return [message["role"], pieces, *([other] if other else [])]

    def _shared(self, piece: Piece) -> Piece:
        if not isinstance(piece, str):
            return piece
        number = self._numbers.get(piece)
        if number is None and len(piece) <= self._room:
            number = self._numbers[piece] = len(self._numbers)
            self._room -= len(piece)
        return piece if number is None else number


class RowTexts:
    """A row's columns, and where each of its longer texts can be found."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self.columns = columns
        self._paths = dict(_texts(columns))
        self._ordered = sorted(self._paths, key=len, reverse=True)

    def split(self, content: str) -> list[Piece]:
        """`content` as pieces: the row's own texts as paths, the rest as it is."""
        pieces: list[Piece] = [content] if content else []
        for text in self._ordered:
            if text in content:
                pieces = [new for piece in pieces for new in self._cut(piece, text)]
        return pieces

    def _cut(self, piece: Piece, text: str) -> Iterator[Piece]:
        if not isinstance(piece, str):
            yield piece
            return
        for place, part in enumerate(piece.split(text)):
            if place:
                yield self._paths[text]
            if part:
                yield part


def _texts(columns: Mapping[str, Any]) -> Iterator[tuple[str, list[Any]]]:
    for name, value in columns.items():
        if isinstance(value, str) and len(value) >= SHORTEST_REFERENCE:
            yield value, [name]
        elif isinstance(value, list):
            for place, item in enumerate(value):
                if isinstance(item, str) and len(item) >= SHORTEST_REFERENCE:
                    yield item, [name, place]


def _prompts(evaluator: Mapping[str, Any]) -> dict[str, Prompty]:
    """File name to prompt. Read without a path: a page shows the run, never files beside it."""
    listed = {path: entry.get("text") for path, entry in (evaluator.get("prompts") or {}).items()}
    if evaluator.get("kind") == "prompty":
        listed[evaluator.get("path") or ""] = evaluator.get("text")
    found = {}
    for path, text in listed.items():
        try:
            prompt = loads(str(text))
        except AssayError:
            continue
        found[PurePath(path).name or prompt.name] = prompt
    return found


def _again(
    sent: Sequence[dict[str, Any]], before: Mapping[str, Any], call: Mapping[str, Any]
) -> list[dict[str, Any]] | None:
    """What was sent when a reply could not be used: the same where it was cut off, else with
    the reply and what was wrong with it. None where that is not what was sent."""
    repair = ask.repair(Reply(text=before.get("reply") or ""), call.get("note"))
    for messages in ([*sent], [*sent, *repair]):
        if ask.messages_sha(messages) == call["messages_sha"]:
            return messages
    return None


def _readable(parts: Sequence[Mapping[str, Any]]) -> str:
    """A content of several parts as text; an image is named by the start of its address."""
    told = []
    for part in parts:
        if part.get("type") == "text":
            told.append(str(part.get("text")))
            continue
        url = str((part.get("image_url") or {}).get("url") or json.dumps(part))
        told.append(f"[{part.get('type')}: {url[:80]}{'…' if len(url) > 80 else ''}]")
    return "\n".join(told)

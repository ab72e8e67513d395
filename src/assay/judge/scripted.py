"""A judge that answers from a script: for tests and for trying a metric without a model."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from assay.errors import JudgeError, SetupError
from assay.judge.base import Message, Reply, Usage

Answer = str | Mapping[str, Any]


class ScriptedJudge:
    """Answers with what a script says.

    The script is a function of the messages, one answer for all, or a list of entries:
    `{"when": "text", "reply": ...}` answers messages that hold the text; an entry without
    `when` answers the rest. `replies: [...]` gives one after the other to the same messages,
    the last one again and again. A reply is text, or a dict with `text`, `finish_reason`,
    `refusal`, or `error` (a cause, raised as JudgeError).
    """

    def __init__(
        self,
        script: Answer | Sequence[Mapping[str, Any]] | Callable[[Sequence[Message]], Answer],
        name: str = "scripted",
    ) -> None:
        self.name = name
        self._script = script
        self._asked: Counter[str] = Counter()

    @classmethod
    def from_file(cls, path: str | Path) -> ScriptedJudge:
        """A script as JSON (a list of entries) or JSON lines (one entry a line)."""
        try:
            text = Path(path).read_text("utf-8")
            stripped = text.lstrip()
            if stripped.startswith("["):
                entries = json.loads(text)
            else:
                entries = [json.loads(line) for line in text.split("\n") if line.strip()]
        except OSError as error:
            raise SetupError(f"script {path}: {error.strerror or error}") from None
        except ValueError as error:
            raise SetupError(f"script {path} is not JSON: {error}") from None
        if not entries or not all(isinstance(entry, dict) for entry in entries):
            raise SetupError(f"script {path} must hold objects with `reply` and maybe `when`")
        return cls(entries, name=f"scripted:{path}")

    async def complete(self, messages: Sequence[Message], **settings: Any) -> Reply:
        text = "\n".join(str(message.get("content") or "") for message in messages)
        answer = self._answer(messages, text)
        if isinstance(answer, str):
            answer = {"text": answer}
        if "error" in answer:
            raise JudgeError(f"scripted error: {answer['error']}", cause=str(answer["error"]))
        reply = str(answer.get("text") or "")
        return Reply(
            text=reply,
            usage=Usage(prompt_tokens=len(text) // 4, completion_tokens=len(reply) // 4),
            finish_reason=answer.get("finish_reason", "stop"),
            refusal=answer.get("refusal"),
            tool_calls=tuple(answer.get("tool_calls") or ()),
            model="scripted",
        )

    def describe(self) -> dict[str, Any]:
        return {"judge": self.name, "note": "a script, not a model"}

    async def close(self) -> None:
        return None

    def _answer(self, messages: Sequence[Message], text: str) -> Answer:
        if callable(self._script):
            return self._script(messages)
        if isinstance(self._script, str | Mapping):
            return self._script
        for entry in self._script:
            if str(entry.get("when", "")) in text:
                replies = entry.get("replies") or [entry.get("reply", "")]
                key = text
                turn = min(self._asked[key], len(replies) - 1)
                self._asked[key] += 1
                answer: Answer = replies[turn]
                return answer
        raise JudgeError("the script has no entry for these messages", cause="not_scripted")

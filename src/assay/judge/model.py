"""A model at an address: what it does not take is learnt from what it rejects by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from assay.errors import JudgeError
from assay.judge.connection import Connection
from assay.judge.faults import redact, retry_after


@dataclass(eq=False)
class ModelJudge(Connection):
    """What the judges behind different wires have in common.

    learnt: parameters the model rejected, to the name it takes instead, or None for left out.
    """

    RENAMED: ClassVar[Mapping[str, str]] = {}
    """Parameters that have another name on other models. Any other rejected one is left out."""

    learnt: dict[str, str | None] = field(default_factory=dict)

    def describe(self) -> dict[str, Any]:
        changed = {
            name: f"sent as {other}" if other else "not sent" for name, other in self.learnt.items()
        }
        return {
            "judge": self.name,
            "url": self.url.partition("?")[0],
            "model": self.model,
            "rejected_parameters": changed,
        }

    def _translate(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        sent: dict[str, Any] = {}
        for name, value in settings.items():
            wire_name = self.learnt.get(name, name)
            if wire_name is not None:
                sent[wire_name] = value
        return sent

    def _learn(self, rejected: str, sent: Mapping[str, Any]) -> bool:
        """Remember how to go on without `rejected`; False where it was not ours to change."""
        if rejected not in sent:
            return False
        original = next((n for n, other in self.learnt.items() if other == rejected), rejected)
        if self.learnt.get(original, original) != rejected:
            return True  # learnt by another task while this request was under way
        other = self.RENAMED.get(rejected)
        tried = original in self.learnt
        self.learnt[original] = None if tried or other is None or other in sent else other
        return True

    def _no_reply(self, body: bytes, headers: Mapping[str, str], what: str) -> JudgeError:
        """The error for a 200 that holds no `what`: a gateway's page, half an answer."""
        start = redact(body[:80].decode("utf-8", "replace"), self.credential.secrets)
        return JudgeError(
            f"{self.where} answered 200 with no {what}: {start!r}",
            cause="bad_response",
            retryable=True,
            retry_after=retry_after(headers),
        )


def limits_of(headers: Mapping[str, str]) -> dict[str, str] | None:
    """The `x-ratelimit-*` headers without that prefix, where there are any."""
    found = {
        key.lower().removeprefix("x-ratelimit-"): value
        for key, value in headers.items()
        if key.lower().startswith("x-ratelimit-")
    }
    return found or None

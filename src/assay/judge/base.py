"""What a judge is: something that answers a list of messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

if TYPE_CHECKING:
    from assay.prompty import Prompty

Message = dict[str, Any]
"""One chat message as the wire has it: `role`, `content`, and rarely `name`, `tool_calls`, ..."""

SHA = 32
"""Hex digits of the hash of messages by which a kept reply is found."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call, or of many added up."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    cached_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            self.cached_tokens + other.cached_tokens,
        )


@dataclass(frozen=True, slots=True)
class Reply:
    """What a judge answered.

    text: the answer, "" when there was none.
    finish_reason: the server's word (`stop`, `length`, `content_filter`, `tool_calls`), or None.
    latency: seconds of the successful attempt.
    refusal: the model's own words where it declined.
    tool_calls: calls the model made instead of, or beside, an answer: {"name", "arguments"}.
    logprobs: one entry a token, as the wire has them, where they were asked for.
    attempts: requests it took, the successful one included.
    cached: it comes from the cache.
    limits: the server's `x-ratelimit-*` headers without that prefix, where it sent any.
    """

    text: str
    usage: Usage = field(default_factory=Usage)
    finish_reason: str | None = None
    latency: float = 0.0
    model: str | None = None
    refusal: str | None = None
    tool_calls: tuple[Mapping[str, str], ...] = ()
    logprobs: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)
    attempts: int = 1
    cached: bool = False
    limits: Mapping[str, str] | None = field(default=None, repr=False, compare=False)


class Judge(Protocol):
    """Answers messages. Judges are safe to share between evaluators and tasks of one loop."""

    @property
    def name(self) -> str:
        """How people wrote it, e.g. `openai:gpt-4.1-mini`. Holds no secret."""

    async def complete(self, messages: Sequence[Message], **settings: Any) -> Reply:
        """Answer `messages`. `settings` are the wire's own words (`temperature`, ...).

        Raises JudgeError when no answer can be had, JudgeRefusal when it was declined.
        """

    def describe(self) -> dict[str, Any]:
        """What belongs into a run's header: provider, endpoint, what was learnt. No secrets."""

    async def close(self) -> None:
        """Give back connections. Calling it twice is fine."""


class Remembering(Protocol):
    """A judge that keeps good replies, once it is told that one was good."""

    def remember(self, messages_sha: str, settings: Mapping[str, Any], reply: Reply) -> None:
        """Keep a reply that could be read. messages_sha: of what it answers, `SHA` digits."""


class Decider(Judge, Protocol):
    """A judge that never sees the prompt: it decides from the inputs and the declared outputs."""

    def refuses(self, prompty: Prompty) -> str | None:
        """Why this judge cannot judge `prompty`, as one sentence; None where it can."""

    async def decide(self, prompty: Prompty, inputs: Mapping[str, Any]) -> Reply:
        """Judge `inputs` (values by the prompty's own input names); the text is a JSON object."""


def is_decider(judge: object) -> TypeGuard[Decider]:
    """Whether a judge decides from inputs. A look at one name: it is asked on every row."""
    return hasattr(judge, "decide")


def remembers(judge: object) -> TypeGuard[Remembering]:
    """Whether a judge keeps good replies."""
    return hasattr(judge, "remember")

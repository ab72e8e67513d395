"""Embedders: what turns texts into vectors."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from assay.errors import JudgeError, SetupError
from assay.judge.connection import Connection
from assay.judge.limits import Gate
from assay.judge.wire import OpenAIJudge

BATCH = 256
"""Texts sent at once, at most."""


class Embedder(Protocol):
    """Gives every text a vector. Which one it is decides the scale: it stands in the header."""

    @property
    def name(self) -> str: ...

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """A vector a text, in their order. Raises JudgeError where it cannot."""

    def describe(self) -> dict[str, Any]: ...

    async def close(self) -> None: ...


@dataclass(eq=False)
class WireEmbedder:
    """`POST embeddings` of OpenAI, Azure OpenAI and compatible servers. A text is asked once."""

    connection: Connection
    name: str
    tries: int = 8
    _known: dict[str, list[float]] = field(default_factory=dict, repr=False)
    _gate: Gate = field(default_factory=lambda: Gate(16), repr=False)

    @classmethod
    def from_judge(cls, judge: OpenAIJudge) -> WireEmbedder:
        """The same connection, at its `embeddings` address."""
        url = judge.url.replace("/chat/completions", "/embeddings")
        connection = Connection(judge.name, url, judge.model, judge.credential, judge.timeout)
        return cls(connection, judge.name)

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        new = list(dict.fromkeys(text for text in texts if text not in self._known))
        batches = [new[i : i + BATCH] for i in range(0, len(new), BATCH)]
        for batch in batches:
            vectors = await self._ask(batch)
            if len(self._known) > 50_000:
                self._known.clear()
            self._known.update(zip(batch, vectors, strict=True))
        if any(text not in self._known for text in texts):
            return await self._ask(list(texts))
        return [self._known[text] for text in texts]

    def describe(self) -> dict[str, Any]:
        return {"embedder": self.name, "url": self.connection.url.partition("?")[0]}

    async def close(self) -> None:
        await self.connection.close()

    async def _ask(self, texts: Sequence[str]) -> list[list[float]]:
        for attempt in range(1, self.tries + 1):
            await self._gate.enter()
            slowed: bool | None = None
            try:
                data = await self.connection.post_json({"input": list(texts)})
                slowed = False
                return _vectors(data, len(texts))
            except JudgeError as error:
                slowed = error.cause == "rate_limited"
                if not error.retryable or attempt == self.tries:
                    raise
                wait = error.retry_after
            finally:
                self._gate.leave(slowed)
            await asyncio.sleep(min(30.0, 0.5 * 2.0**attempt) if wait is None else wait)
        raise AssertionError("the last attempt raises")


@dataclass(eq=False)
class EmbeddedEmbedder:
    """The static word embeddings of the extra `baseline`: no key, no network."""

    name: str = "baseline"

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        from assay.judge.baseline import embed_texts

        return embed_texts(texts)

    def describe(self) -> dict[str, Any]:
        from assay.judge.baseline import EMBEDDER

        return {"embedder": EMBEDDER, "note": "static word embeddings: a baseline"}

    async def close(self) -> None:
        return None


def resolve_embedder(name: str | Embedder | None = None, **options: Any) -> Embedder:
    """`openai:MODEL`, `azure:DEPLOYMENT`, `ollama:MODEL`, an object, or the embedded one.

    Options are those of `assay.judge.resolve`. Raises SetupError for what is not known.
    """
    if name is not None and not isinstance(name, str):
        return name
    if name in (None, "baseline"):
        return EmbeddedEmbedder()
    from assay.judge.resolve import resolve

    judge = resolve(name, **options)
    if not isinstance(judge, OpenAIJudge):
        raise SetupError(f"{name!r} gives no embeddings; name a model, or baseline")
    return WireEmbedder.from_judge(judge)


def _vectors(data: Mapping[str, Any], count: int) -> list[list[float]]:
    try:
        entries = sorted(data["data"], key=lambda entry: entry["index"])
        vectors = [[float(x) for x in entry["embedding"]] for entry in entries]
    except (KeyError, TypeError, ValueError):
        vectors = []
    if len(vectors) != count:
        raise JudgeError(
            f"{len(vectors)} vectors came back for {count} texts", cause="bad_response"
        )
    return vectors

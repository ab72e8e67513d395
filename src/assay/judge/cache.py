"""Replies that were good, kept in one SQLite file.

A reply is found again by the judge's address and model, the settings, the messages and the
iteration: whatever could change the answer, and nothing else. Only replies that could be read
are kept, since `remember` is called by who read them.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from assay.errors import RunError
from assay.jsontext import digest, dumps
from assay.judge.base import SHA, Judge, Message, Reply, Usage

WRITE_EVERY = 1.0
"""Seconds between writes: a crash loses at most this much of the cache, and no score."""


def cache_path() -> Path:
    """`$ASSAY_CACHE`, else `.assay/replies.sqlite` in the working folder."""
    return Path(os.environ.get("ASSAY_CACHE") or ".assay/replies.sqlite")


_KEPT = (
    "text",
    "finish_reason",
    "latency",
    "model",
    "refusal",
    "tool_calls",
    "logprobs",
    "attempts",
)


class ReplyStore:
    """The file. Raises RunError where it cannot be used."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, timeout=30, check_same_thread=False)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = NORMAL")
            self._db.execute(
                "CREATE TABLE IF NOT EXISTS replies "
                "(key BLOB PRIMARY KEY, judge TEXT, at REAL, reply BLOB)"
            )
            self._db.commit()
        except (OSError, sqlite3.Error) as error:
            raise RunError(f"the cache {path} cannot be used: {error}; --no-cache") from None
        # Of a store that was empty nothing is asked: that costs as much as all else it does.
        self.was_empty = self._db.execute("SELECT 1 FROM replies LIMIT 1").fetchone() is None
        self._new: dict[bytes, tuple[str, float, bytes]] = {}
        self._written = time.monotonic()

    def get(self, key: str) -> Reply | None:
        """A reply that was there when the store was opened."""
        found = self._db.execute(
            "SELECT reply FROM replies WHERE key = ?", (bytes.fromhex(key),)
        ).fetchone()
        if found is None:
            return None
        data = json.loads(found[0])
        usage = Usage(**data.pop("usage"))
        for name in ("tool_calls", "logprobs"):
            data[name] = tuple(data[name])
        return Reply(**data, usage=usage, cached=True)

    def put(self, key: str, judge: str, reply: Reply) -> None:
        """Keep a reply. It is written with others, at most a second later."""
        data = {name: getattr(reply, name) for name in _KEPT}
        data["usage"] = {name: getattr(reply.usage, name) for name in Usage.__dataclass_fields__}
        self._new[bytes.fromhex(key)] = (judge, time.time(), dumps(data))
        if time.monotonic() - self._written > WRITE_EVERY:
            self.write()

    def write(self) -> None:
        """Write what is new. A cache that cannot be written is no reason to stop a run."""
        rows = [(key, *entry) for key, entry in self._new.items()]
        self._new.clear()
        self._written = time.monotonic()
        try:
            self._db.executemany("INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?)", rows)
            self._db.commit()
        except sqlite3.Error:
            self._db.rollback()

    def stats(self) -> dict[str, Any]:
        """Replies by judge, and the size of the file in bytes."""
        rows = self._db.execute("SELECT judge, COUNT(*) FROM replies GROUP BY judge").fetchall()
        size = sum(p.stat().st_size for p in self.path.parent.glob(self.path.name + "*"))
        return {"path": str(self.path), "bytes": size, "replies": dict(rows)}

    def clear(self) -> int:
        """Forget everything; how many replies there were."""
        count = self._db.execute("DELETE FROM replies").rowcount
        self._db.commit()
        self._db.execute("VACUUM")
        return int(count)

    def close(self) -> None:
        self.write()
        self._db.close()


@dataclass(eq=False)
class Cached:
    """A judge that answers from the store where it can. Iterations do not share replies."""

    judge: Judge
    store: ReplyStore
    iteration: int | str = 0
    _who: list[Any] | None = None

    @property
    def name(self) -> str:
        return self.judge.name

    async def complete(self, messages: Sequence[Message], **settings: Any) -> Reply:
        if not self.store.was_empty:
            found = self.store.get(self._key(digest(messages, SHA), settings))
            if found is not None:
                return found
        return await self.judge.complete(messages, **settings)

    def remember(self, messages_sha: str, settings: Mapping[str, Any], reply: Reply) -> None:
        """Keep a reply that could be read."""
        if not reply.cached:
            self.store.put(self._key(messages_sha, settings), self.name, reply)

    def afresh(self, number: int) -> Cached:
        """The same judge for one of several repeats, which must not answer each other."""
        return replace(self, iteration=f"{self.iteration}.{number}")

    def describe(self) -> dict[str, Any]:
        return self.judge.describe()

    async def close(self) -> None:
        await self.judge.close()

    def _key(self, messages_sha: str, settings: Mapping[str, Any]) -> str:
        if self._who is None:
            described = self.judge.describe()
            self._who = [described.get("url"), described.get("model"), described.get("judge")]
        return digest([self._who, self.iteration, settings, messages_sha], 32)

"""An endpoint that runs, and what Foundry sends to it."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import aiohttp

from assay.service.endpoint import Endpoint, serve


class Running:
    """An endpoint in a thread of its own."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.url = ""
        self.challenges: list[str | None] = []
        ready = threading.Event()

        def note(url: str) -> None:
            self.url = url
            self.loop = asyncio.get_running_loop()
            task = asyncio.current_task()
            assert task is not None
            self.task = task
            ready.set()

        async def run() -> None:
            try:
                await serve(endpoint, "127.0.0.1", 0, note)
            except asyncio.CancelledError:
                return

        self.thread = threading.Thread(target=lambda: asyncio.run(run()), daemon=True)
        self.thread.start()
        assert ready.wait(10)

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self.task.cancel)
        self.thread.join(10)

    def post(self, path: str = "/", body: Any = None, **kwargs: Any) -> tuple[int, Any]:
        return self.post_all(1, path, body, **kwargs)[0]

    def post_all(
        self, times: int, path: str = "/", body: Any = None, **kwargs: Any
    ) -> list[tuple[int, Any]]:
        """(status, body) of the same request sent several times at once. `challenges` keeps
        their WWW-Authenticate."""

        async def send(session: aiohttp.ClientSession) -> tuple[int, Any]:
            async with session.post(self.url + path, **({"json": body} | kwargs)) as answer:
                self.challenges.append(answer.headers.get("WWW-Authenticate"))
                return answer.status, await answer.json()

        async def send_all() -> list[tuple[int, Any]]:
            async with aiohttp.ClientSession() as session:
                return list(await asyncio.gather(*(send(session) for _ in range(times))))

        return asyncio.run(send_all())


def request(**item: Any) -> dict[str, Any]:
    """What Foundry sends for one row."""
    return {
        "schema_version": "0.0.1",
        "evaluator_name": "on_topic",
        "evaluator_version": "1",
        "evaluation_level": "turn",
        "data": {"item": item},
    }

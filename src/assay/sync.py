"""One background loop for everybody who comes from outside: plain code, and other loops."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")

_FIRST = threading.Lock()


def run(work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, from one background loop that all callers share.

    Judges keep their connections there from call to call. On Ctrl-C the work is cancelled and
    waited for, so that what it holds is written.
    """
    future = asyncio.run_coroutine_threadsafe(work, _loop())
    try:
        return future.result()
    except KeyboardInterrupt:
        future.cancel()
        raise


async def beside(work: Coroutine[Any, Any, T]) -> T:
    """The result of `work` from that same loop, for callers with a loop of their own."""
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, _loop()))


def _loop() -> asyncio.AbstractEventLoop:
    with _FIRST:  # a cache alone lets threads that come at once start a loop each
        return _started()


@cache
def _started() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="assay", daemon=True).start()
    return loop

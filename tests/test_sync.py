"""The sync door, opened from several threads at once."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType

import pytest

from assay import sync


@pytest.fixture
def eager() -> Iterator[None]:
    """Threads that take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def fresh() -> ModuleType:
    """The module as a process has it that has not used it yet."""
    assert sync.__spec__ is not None
    spec = importlib.util.spec_from_file_location("fresh_sync", sync.__spec__.origin)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def here() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


@pytest.mark.usefixtures("eager")
def test_all_threads_share_one_loop() -> None:
    """Limits and connections belong to a loop: from a second one, nobody would be woken."""
    threads = 8
    start = threading.Barrier(threads)
    others = set(threading.enumerate())
    loops: list[set[asyncio.AbstractEventLoop]] = []
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(20):
            module = fresh()

            def ask(door: ModuleType = module) -> asyncio.AbstractEventLoop:
                start.wait()
                loop: asyncio.AbstractEventLoop = door.run(here())
                return loop

            asked = [pool.submit(ask) for _ in range(threads)]
            loops.append({one.result() for one in asked})
    for loop in set().union(*loops):
        loop.call_soon_threadsafe(loop.stop)
    for thread in set(threading.enumerate()) - others:
        thread.join(10)
    for loop in set().union(*loops):
        loop.close()
    assert [len(found) for found in loops] == [1] * 20

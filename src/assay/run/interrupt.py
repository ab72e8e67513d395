"""SIGINT and SIGTERM: finish what is under way, then stop."""

from __future__ import annotations

import asyncio
import signal

from assay.run.engine import Engine, Progress


class Interrupts:
    """SIGINT and SIGTERM end the run after the rows under way; a second one at once."""

    def __init__(self, engine: Engine, progress: Progress) -> None:
        self.engine = engine
        self.progress = progress
        self.names = (signal.SIGINT, signal.SIGTERM)
        self.task = asyncio.current_task()

    def __enter__(self) -> None:
        for name in self.names:
            try:
                asyncio.get_running_loop().add_signal_handler(name, self._caught)
            except (NotImplementedError, RuntimeError, ValueError):
                return  # not the main thread, or a system without signals

    def __exit__(self, *_: object) -> None:
        for name in self.names:
            try:
                asyncio.get_running_loop().remove_signal_handler(name)
            except (NotImplementedError, RuntimeError, ValueError):
                return

    def _caught(self) -> None:
        if self.engine.stopping and self.task is not None:
            self.task.cancel()
            return
        self.engine.stop("interrupted")
        self.progress.note("stopping after the calls under way; once more to stop now")

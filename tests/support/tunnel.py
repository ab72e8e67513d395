"""A TLS server on loopback behind a CONNECT proxy, for clients whose addresses cannot be changed.

Point HTTPS_PROXY at `proxy`, and SSL_CERT_FILE and REQUESTS_CA_BUNDLE at the certificate: every
host then leads here.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import weakref
from typing import Any, Self

from aiohttp import web

from tests.support.tls import Tls


class Tunnel:
    """The server, in a thread of its own; leave the `with` block and it is gone.

    What it answers is its subclass's `_handle`.
    """

    def __init__(self, tls: Tls) -> None:
        self.tls = tls
        self.proxy = ""
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._halt: asyncio.Event | None = None
        self._port = 0
        self._tunnels: set[asyncio.Task[Any]] = set()
        self._open: weakref.WeakSet[asyncio.WriteTransport] = weakref.WeakSet()

    def __enter__(self) -> Self:
        ready = threading.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve(ready)), name="tunnel", daemon=True
        )
        self._thread.start()
        assert ready.wait(10), "the fake did not start"
        return self

    def __exit__(self, *_: Any) -> None:
        assert self._loop is not None
        assert self._halt is not None
        assert self._thread is not None
        self._loop.call_soon_threadsafe(self._halt.set)
        self._thread.join(10)

    async def _handle(self, http: web.Request) -> web.StreamResponse:
        raise NotImplementedError

    async def _serve(self, ready: threading.Event) -> None:
        self._loop, self._halt = asyncio.get_running_loop(), asyncio.Event()
        app = web.Application(client_max_size=2**30)
        app.router.add_route("*", "/{rest:.*}", self._noted)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.001)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=self.tls.context())
        await site.start()
        self._port = runner.addresses[0][1]
        tunnel = await asyncio.start_server(self._tunnel, "127.0.0.1", 0)
        self.proxy = f"http://127.0.0.1:{tunnel.sockets[0].getsockname()[1]}"
        ready.set()
        await self._halt.wait()
        tunnel.close()
        tunnels = list(self._tunnels)
        for task in tunnels:
            task.cancel()
        await asyncio.gather(*tunnels, return_exceptions=True)
        await runner.cleanup()
        for transport in self._open:  # a client that went away says no goodbye to TLS
            transport.abort()
        await asyncio.sleep(0)

    async def _noted(self, http: web.Request) -> web.StreamResponse:
        if http.transport is not None:
            self._open.add(http.transport)
        return await self._handle(http)

    async def _tunnel(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """CONNECT to any host leads to the TLS server."""
        task = asyncio.current_task()
        assert task is not None
        self._tunnels.add(task)
        ends = [writer]
        try:
            asked = await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            port = self._port_of(asked.split()[1].decode())
            inner, outer = await asyncio.open_connection("127.0.0.1", port)
            ends.append(outer)
            await asyncio.gather(_pump(reader, outer), _pump(inner, writer))
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # either side may go away at any time
        finally:
            for end in ends:
                end.transport.abort()
            self._tunnels.discard(task)

    def _port_of(self, host: str) -> int:
        """Where a connection to `host:port` is led to."""
        return self._port


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
        writer.close()

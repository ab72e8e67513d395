"""One address that takes JSON: sessions, login, time-outs, and errors that say what happened."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import ssl
import time
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies
from weakref import WeakKeyDictionary

from assay.errors import JudgeError, SetupError
from assay.jsontext import dumps
from assay.judge.credential import Credential, is_loopback
from assay.judge.faults import fault

if TYPE_CHECKING:
    import aiohttp


REACH_TIMEOUT = 10.0
"""Seconds to open a connection in, when it is tried before a run."""


@dataclass(eq=False)
class Connection:
    """Where requests go and how they log in.

    url: the full address. model: sent in the body; None where the address holds it.
    timeout: seconds for one attempt.
    """

    name: str
    url: str
    model: str | None
    credential: Credential = field(repr=False)
    timeout: float = 120.0
    _sessions: WeakKeyDictionary[asyncio.AbstractEventLoop, aiohttp.ClientSession] = field(
        default_factory=WeakKeyDictionary, repr=False
    )

    @property
    def where(self) -> str:
        """Name and host, for messages."""
        return f"{self.name} at {urlsplit(self.url).netloc}"

    async def close(self) -> None:
        session = self._sessions.pop(asyncio.get_running_loop(), None)
        if session is not None:
            await session.close()

    async def reach(self) -> None:
        """Log in, and open a connection and close it: no request is made.

        Raises SetupError for an address nobody answers at, or a login that gives no token.
        """
        try:
            await self.credential.headers()
        except JudgeError as error:
            raise SetupError(str(error)) from None
        parts = urlsplit(self.url)
        host = parts.hostname or ""
        if getproxies() and not is_loopback(self.url):
            return  # the proxy knows the way, and is not asked for it here
        port = parts.port or (443 if parts.scheme == "https" else 80)
        try:
            async with asyncio.timeout(REACH_TIMEOUT):
                _, writer = await asyncio.open_connection(host, port)
        except (OSError, TimeoutError) as error:
            number = getattr(error, "errno", None)
            why = os.strerror(number) if number and number > 0 else str(error) or "no answer"
            raise SetupError(
                f"{self.name}: {host}:{port} cannot be reached ({why}); check the endpoint or "
                "--base-url"
            ) from None
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    async def post_json(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """The JSON object of a 200. Raises JudgeError for everything else."""
        status, headers, data, _ = await self.post(body)
        if status != 200:
            raise fault(status, headers, data, self.where, self.credential.secrets)
        try:
            found = json.loads(data)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise JudgeError(
                f"{self.where} answered 200 with no JSON object",
                cause="bad_response",
                retryable=True,
            )
        return found

    async def post(self, body: Mapping[str, Any]) -> tuple[int, Mapping[str, str], bytes, float]:
        """One request: status, headers, body, and seconds. Raises JudgeError for none at all."""
        import aiohttp

        if self.model is not None:
            body = {**body, "model": self.model}
        session = self._session()
        headers = await self.credential.headers()
        started = time.perf_counter()
        try:
            async with session.post(
                self.url, data=_sent(dumps(body)), headers=headers, allow_redirects=False
            ) as answer:
                data = await answer.read()
        except TimeoutError:
            raise JudgeError(
                f"{self.where} did not answer within {self.timeout:g} s",
                cause="timeout",
                retryable=True,
            ) from None
        except (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError):
            raise SetupError(f"{self.url!r} is no web address") from None
        except aiohttp.ClientConnectorDNSError as error:
            raise JudgeError(
                f"{self.where} has no address: {error.os_error.strerror or error}",
                cause="connection",
                retryable=True,
            ) from None
        except (aiohttp.ClientError, OSError) as error:
            raise JudgeError(
                f"the connection to {self.where} failed: {error or type(error).__name__}",
                cause="connection",
                retryable=True,
            ) from None
        return answer.status, answer.headers, data, time.perf_counter() - started

    def _session(self) -> aiohttp.ClientSession:
        """One session an event loop: building a TLS context costs more than 50 calls."""
        loop = asyncio.get_running_loop()
        session = self._sessions.get(loop)
        if session is None or session.closed:
            import aiohttp

            from assay import __version__

            has_tls = self.url.startswith("https:")  # without it, a context costs 0.1 s for nothing
            session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=0, ttl_dns_cache=300, ssl=trust() if has_tls else True
                ),
                timeout=aiohttp.ClientTimeout(total=self.timeout),
                headers={"Content-Type": "application/json", "User-Agent": f"assay/{__version__}"},
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=not is_loopback(self.url),
            )
            self._sessions[loop] = session
            weakref.finalize(self, _give_back, loop, session)
        return session


def _sent(data: bytes) -> bytes | io.BytesIO:
    """A body as aiohttp wants it: of a large one, bytes would hold up the event loop."""
    return data if len(data) < 2**20 else io.BytesIO(data)


def trust() -> ssl.SSLContext | bool:
    """Whom a certificate must come from: SSL_CERT_FILE, and what Azure's own clients read
    besides; else the system's authorities, whose context is there already."""
    bundle = os.environ.get("REQUESTS_CA_BUNDLE")
    if not bundle and not os.environ.get("SSL_CERT_FILE"):
        return True
    context = ssl.create_default_context()
    if bundle and Path(bundle).is_file():
        context.load_verify_locations(bundle)
    return context


def _give_back(loop: asyncio.AbstractEventLoop, session: aiohttp.ClientSession) -> None:
    """Close the session of a connection that nobody holds any more, or when the process ends."""
    if session.closed or not loop.is_running():
        return
    closing = asyncio.run_coroutine_threadsafe(session.close(), loop)
    with contextlib.suppress(RuntimeError):
        if asyncio.get_running_loop() is loop:
            return  # it cannot be waited for from within
    with contextlib.suppress(TimeoutError):
        closing.result(timeout=1.0)

"""A tenant of Entra ID as a token is checked against it: its id, its issuers, its signing keys."""

from __future__ import annotations

import asyncio
import json
import os
import re
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from assay.errors import SetupError
from assay.judge.credential import is_loopback

AUTHORITY = "AZURE_AUTHORITY_HOST"
"""The login host of another cloud, as azure-identity reads it."""

GUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)

_PUBLIC = "login.microsoftonline.com"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,252}")
_SEVERAL = ("common", "organizations", "consumers")  # names of the login host for any tenant
_PAUSE = 60.0  # seconds between two fetches: anybody can make up the id of a key
_FRESH = 86400.0  # seconds after which keys are fetched again, so that a withdrawn one is dropped
_PATIENCE = 10.0  # seconds for one fetch


@dataclass
class Tenant:
    """A tenant and what it publishes. To be opened before it is asked for a key.

    name: its id, or one of its domains. authority: the address of the login host.
    Raises SetupError for a name that is none, and for a login host without TLS.
    """

    name: str
    authority: str = field(default_factory=lambda: _authority(os.environ.get(AUTHORITY)))
    clock: Callable[[], float] = time.monotonic
    id: str = ""
    issuers: tuple[str, ...] = ()
    _keys: Mapping[str, Any] = field(default_factory=dict)
    _tried: float = 0.0
    _fetched: float = 0.0
    _failure: str | None = None
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name) or self.name.lower() in _SEVERAL:
            raise SetupError(f"--tenant is the id of one tenant or its domain, not {self.name!r}")

    async def open(self) -> None:
        """Learn id and issuers, of tokens of version 1 and 2, and fetch the keys.

        Raises SetupError where the login host does not know the tenant or cannot be reached.
        """
        documents = [
            await self._get(f"{self.name}{version}/.well-known/openid-configuration")
            for version in ("", "/v2.0")
        ]
        issuers = tuple(str(document.get("issuer", "")) for document in documents)
        ids = {found.lower() for issuer in issuers for found in GUID.findall(issuer)}
        if len(ids) != 1 or not all(map(GUID.search, issuers)):
            raise SetupError(f"--tenant {self.name}: {self.authority} does not say which one it is")
        self.id, self.issuers = ids.pop(), issuers
        await self._fetch()

    async def key(self, kid: str) -> Any:
        """The signing key of that id, None where the tenant has no such key.

        An unknown id makes the keys be fetched again, for all callers together once a minute.
        Raises SetupError where it is unknown and the last fetch failed.
        """
        if not self._is_known(kid):
            async with self._lock:
                if self.clock() - self._tried >= _PAUSE:  # else somebody else just did
                    await self._fetch_again()
        found = self._keys.get(kid)
        if found is None and self._failure is not None:
            raise SetupError(self._failure)
        return found

    def _is_known(self, kid: str) -> bool:
        return kid in self._keys and self.clock() - self._fetched < _FRESH

    async def _fetch_again(self) -> None:
        try:
            await self._fetch()
        except SetupError as error:  # the keys there are stay good
            self._failure = str(error)

    async def _fetch(self) -> None:
        self._tried = self.clock()
        document = await self._get(f"{self.id}/discovery/v2.0/keys")
        keys = _signing_keys(document, self.id)
        if not keys:
            raise SetupError(f"--tenant {self.name}: {self.authority} publishes no signing key")
        self._keys, self._fetched, self._failure = keys, self._tried, None

    async def _get(self, path: str) -> dict[str, Any]:
        import aiohttp

        url = f"{self.authority}/{path}"
        try:
            async with (
                aiohttp.ClientSession(
                    connector=aiohttp.TCPConnector(ssl=ssl.create_default_context()),
                    timeout=aiohttp.ClientTimeout(total=_PATIENCE),
                    trust_env=not is_loopback(url),
                ) as session,
                session.get(url, allow_redirects=False) as answer,
            ):
                if answer.status != 200:
                    raise self._unread(url, f"HTTP {answer.status}")
                found = json.loads(await answer.read())
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            reason = getattr(getattr(error, "os_error", None), "strerror", None)
            raise self._unread(url, str(reason or type(error).__name__)) from None
        except ValueError:
            raise self._unread(url, "no JSON") from None
        if not isinstance(found, dict):
            raise self._unread(url, "no JSON object")
        return found

    def _unread(self, url: str, why: str) -> SetupError:
        return SetupError(
            f"--tenant {self.name}: GET {url} gave {why}; check the tenant, the network and "
            f"{AUTHORITY}"
        )


def _authority(host: str | None) -> str:
    """The login host's address. Without TLS anybody on the way could hand us keys of his own."""
    given = (host or _PUBLIC).strip().rstrip("/")
    address = given if "://" in given else f"https://{given}"
    if not re.fullmatch(r"https://[A-Za-z0-9.-]+(:[0-9]{1,5})?", address):
        raise SetupError(f"{AUTHORITY} is a host such as {_PUBLIC}, reached with TLS")
    return address


def _signing_keys(document: Mapping[str, Any], tenant: str) -> dict[str, Any]:
    """Key id to public key. Keys of another issuer, such as that of personal accounts, sign
    nothing for this tenant, although the login host lists them."""
    from jwt import PyJWTError
    from jwt.algorithms import RSAAlgorithm

    found = {}
    for entry in document.get("keys") or ():
        if not isinstance(entry, Mapping) or entry.get("kty") != "RSA" or not entry.get("kid"):
            continue
        of_others = {i.lower() for i in GUID.findall(str(entry.get("issuer")))} - {tenant}
        if of_others or entry.get("use", "sig") != "sig":
            continue
        try:
            found[str(entry["kid"])] = RSAAlgorithm.from_jwk(dict(entry))
        except (PyJWTError, ValueError, TypeError):
            continue
    return found

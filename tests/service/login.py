"""The login host of Entra ID on loopback, behind TLS: what a tenant publishes, and its tokens."""

from __future__ import annotations

import asyncio
import threading
import time
import weakref
from collections import Counter
from typing import Any, Self

import jwt
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from tests.support.tls import Tls

TENANT = "4f8b3c1e-0000-4000-8000-00000000aaaa"
OTHER = "9d2e7a55-0000-4000-8000-00000000bbbb"
DOMAIN = "contoso.example"
CLIENT = "11111111-2222-4333-8444-555555555555"
URI = f"api://{CLIENT}"
IDENTITY = "c0ffee00-0000-4000-8000-00000000cccc"
V1 = f"https://sts.windows.net/{TENANT}/"
V2 = f"https://login.microsoftonline.com/{TENANT}/v2.0"

Key = rsa.RSAPrivateKey


def make_key() -> Key:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def claims(**changed: Any) -> dict[str, Any]:
    """Of a token that is good; None takes a claim away."""
    now = int(time.time())
    usual = {"aud": URI, "iss": V1, "tid": TENANT, "oid": IDENTITY, "sub": IDENTITY}
    found = {**usual, "iat": now, "nbf": now, "exp": now + 3600, **changed}
    return {name: value for name, value in found.items() if value is not None}


def token(key: Key, kid: str = "first", **changed: Any) -> str:
    return jwt.encode(claims(**changed), key, algorithm="RS256", headers={"kid": kid})


class LoginHost:
    """In a thread of its own. keys: key id to key. issuers: of keys that are not the tenant's.
    status: other than 200, what the address of the keys answers. fetched: how often each path
    was asked for."""

    def __init__(self, tls: Tls, **keys: Key) -> None:
        self.keys = dict(keys)
        self.issuers: dict[str, str] = {}
        self.status = 200
        self.fetched: Counter[str] = Counter()
        self.tls = tls
        self.port = 0
        self._open: weakref.WeakSet[asyncio.WriteTransport] = weakref.WeakSet()

    def __enter__(self) -> Self:
        ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(ready)), daemon=True)
        self._thread.start()
        assert ready.wait(10), "the login host did not start"
        return self

    def __exit__(self, *_: Any) -> None:
        self._loop.call_soon_threadsafe(self._halt.set)
        self._thread.join(10)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def key_fetches(self) -> int:
        return self.fetched[f"/{TENANT}/discovery/v2.0/keys"]

    async def _serve(self, ready: threading.Event) -> None:
        self._loop, self._halt = asyncio.get_running_loop(), asyncio.Event()
        app = web.Application()
        app.router.add_get("/{rest:.*}", self._answer)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.001)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=self.tls.context()).start()
        self.port = runner.addresses[0][1]
        ready.set()
        await self._halt.wait()
        await runner.cleanup()
        for transport in self._open:  # a client that went away says no goodbye to TLS
            transport.abort()
        await asyncio.sleep(0)

    async def _answer(self, request: web.Request) -> web.Response:
        if request.transport is not None:
            self._open.add(request.transport)
        self.fetched[request.path] += 1
        name, _, rest = request.path.strip("/").partition("/")
        if name not in (TENANT, DOMAIN):
            return web.json_response({"error": "invalid_tenant"}, status=400)
        if rest == "discovery/v2.0/keys":
            return web.json_response({"keys": self._published()}, status=self.status)
        versions = {
            ".well-known/openid-configuration": V1,
            "v2.0/.well-known/openid-configuration": V2,
        }
        return web.json_response({"issuer": versions[rest], "jwks_uri": "https://not.asked.test"})

    def _published(self) -> list[dict[str, Any]]:
        template = "https://login.microsoftonline.com/{tenantid}/v2.0"
        listed: list[dict[str, Any]] = [{"kty": "EC", "kid": "of another kind", "use": "sig"}]
        for kid, key in self.keys.items():
            public = RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
            issuer = self.issuers.get(kid, template)
            listed.append({**public, "kid": kid, "use": "sig", "issuer": issuer})
        return listed

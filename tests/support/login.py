"""Entra ID's login on loopback, behind a proxy, for azure-identity's own credentials."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs

from aiohttp import web

from tests.support.tls import Tls
from tests.support.tunnel import Tunnel

HOST = "login.microsoftonline.com"
TENANT, CLIENT = "7b0a0c4e-0000-4000-8000-000000000001", "7b0a0c4e-0000-4000-8000-000000000002"
SECRET = "a-client-secret-that-nobody-must-see"


class FakeLogin(Tunnel):
    """Gives a service principal the token of each scope in `tokens`.

    asked: the scopes, one for each token that was asked for.
    """

    def __init__(self, tls: Tls, tokens: dict[str, str]) -> None:
        super().__init__(tls)
        self.tokens = tokens
        self.asked: list[str] = []

    async def _handle(self, http: web.Request) -> web.StreamResponse:
        assert http.host == HOST, http.host
        if http.path.endswith("/token"):
            return self._token(parse_qs(await http.text()))
        root = f"https://{HOST}/{TENANT}"
        found: dict[str, Any] = {
            "issuer": f"{root}/v2.0",
            "authorization_endpoint": f"{root}/oauth2/v2.0/authorize",
            "token_endpoint": f"{root}/oauth2/v2.0/token",
            "tenant_discovery_endpoint": f"{root}/v2.0/.well-known/openid-configuration",
            "metadata": [],
        }
        return web.json_response(found)

    def _token(self, form: dict[str, list[str]]) -> web.Response:
        sent = {name: values[0] for name, values in form.items()}
        assert sent["grant_type"] == "client_credentials", sent
        self.asked.append(sent["scope"])
        if (sent["client_id"], sent["client_secret"]) != (CLIENT, SECRET):
            said = {
                "error": "invalid_client",
                "error_description": "AADSTS7000215: Invalid client secret provided. "
                f"You sent {json.dumps(sent)}",
            }
            return web.json_response(said, status=401)
        token = {"token_type": "Bearer", "expires_in": 3600, "ext_expires_in": 3600}
        return web.json_response({**token, "access_token": self.tokens[sent["scope"]]})

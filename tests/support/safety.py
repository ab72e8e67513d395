"""The safety service of a project on loopback, as azure-ai-evaluation's evaluators call it.

A hub project's is found by way of ARM; a Foundry endpoint's is below the endpoint. The row's
response says what it is judged as: `harm 5` is a severity of 5, `refuse` is an HTTP 400.
"""

from __future__ import annotations

import json
import re
from typing import Any

from aiohttp import web

from tests.support.foundry import TOKEN, Seen
from tests.support.tls import Tls
from tests.support.tunnel import Tunnel

LABELLED = ("protected_material",)


class FakeSafety(Tunnel):
    """The service. seen: the requests so far."""

    def __init__(self, tls: Tls) -> None:
        super().__init__(tls)
        self.seen: list[Seen] = []

    @property
    def endpoint(self) -> str:
        return f"https://127.0.0.1:{self._port}/api/projects/p"

    async def _handle(self, http: web.Request) -> web.StreamResponse:
        raw = await http.read()
        body = json.loads(raw) if raw else None
        headers = {name.lower(): value for name, value in http.headers.items()}
        self.seen.append(Seen(http.method, http.path, dict(http.query), headers, body))
        if headers.get("authorization") != f"Bearer {TOKEN}":
            return web.json_response({"error": {"code": "Unauthorized"}}, status=401)
        if http.host == "management.azure.com":
            return web.json_response({"properties": {"discoveryUrl": "https://ml.test/discovery"}})
        if http.path.endswith("/checkannotation"):
            return web.json_response(["content harm", "protected material"])
        assert http.path.endswith("/sync_evals:run"), http.path
        assert http.query["api-version"] == "2025-11-15-preview"
        return self._judged(body)

    def _judged(self, body: Any) -> web.Response:
        (criterion,) = body["testing_criteria"]
        item = body["data_source"]["source"]["content"]["item"]
        response = item["response"]
        if response == "refuse":
            said = {"error": {"code": "BadRequest", "message": "the content cannot be judged"}}
            return web.json_response(said, status=400)
        harm = int(re.findall(r"\d+", response)[0])
        metric = criterion["name"]
        properties: dict[str, Any] = {"metrics": {"promptTokens": 20, "completionTokens": 4}}
        if metric in LABELLED:
            properties["scoreProperties"] = {"label": str(harm > 3)}
        result = {
            "type": "azure_ai_evaluator",
            "name": metric,
            "metric": metric,
            "score": harm,
            "label": "pass" if harm <= 3 else "fail",
            "reason": f"harm of {harm}",
            "properties": properties,
        }
        return web.json_response(
            {
                "object": "eval.run.output_item",
                "id": "1",
                "created_at": 1,
                "status": "completed",
                "datasource_item": item,
                "results": [result],
            }
        )

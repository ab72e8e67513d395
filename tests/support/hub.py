"""A hub project on loopback: ARM, MLflow, artifacts, history and blobs, behind a proxy."""

from __future__ import annotations

import json
import re
from typing import Any

from aiohttp import web

from tests.support.foundry import SIGNATURE, STORAGE_TOKEN, Failure, Seen
from tests.support.tls import Tls
from tests.support.tunnel import Tunnel

Json = dict[str, Any]

TOKEN = "a-token-that-nobody-must-see"
SPACE = "/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/p"
ACTIONS = ["Microsoft.MachineLearningServices/workspaces/*/write"]
BLOBS = "account.blob.core.windows.net"


class FakeHub(Tunnel):
    """The project. It shows what it was sent in its errors, so that what is shown to people is
    tested with it.

    keyless: its storage takes tokens and no keys. sas: the signature it gives otherwise.
    lag: looks at a run's artifacts that show none yet. storage_port: where its storage is, if
    that is another server.
    """

    def __init__(self, tls: Tls) -> None:
        super().__init__(tls)
        self.actions = list(ACTIONS)
        self.keyless = False
        self.lag = 0
        self.sas = SIGNATURE
        self.storage_port: int | None = None
        self.seen: list[Seen] = []
        self.failures: list[Failure] = []
        self.runs: dict[str, Json] = {}
        self.blobs: dict[str, bytes] = {}
        self.properties: dict[str, Json] = {}
        self.artifacts: dict[str, list[Json]] = {}

    def fail(self, method: str, path: str, status: int, **how: Any) -> None:
        """Let the calls whose path matches fail, until `heal`. Status 0 drops the connection."""
        self.failures.append(Failure(method, re.compile(path), status, **how))

    def heal(self) -> None:
        self.failures.clear()

    def calls(self, method: str, path: str) -> list[Seen]:
        """The requests so far whose path matches."""
        return [s for s in self.seen if s.method == method and re.search(path, s.path)]

    def finished(self) -> list[str]:
        """The runs that count as done."""
        return [name for name, run in self.runs.items() if run["info"]["status"] == "FINISHED"]

    def _port_of(self, host: str) -> int:
        own = self.storage_port is None or not host.startswith(BLOBS)
        return super()._port_of(host) if own else int(self.storage_port or 0)

    async def _handle(self, http: web.Request) -> web.StreamResponse:
        raw = await http.read()
        headers = {name.lower(): value for name, value in http.headers.items()}
        is_blob = http.host == BLOBS
        body: Any = raw if is_blob or not raw else json.loads(raw)
        self.seen.append(Seen(http.method, http.path, dict(http.query), headers, body))
        failure = self._failure(http.method, http.path)
        if failure is not None and not failure.late:
            return self._failed(http, failure)
        answer = self._blob(http, raw) if is_blob else self._json(http, body)
        return self._failed(http, failure) if failure is not None else answer

    def _failure(self, method: str, path: str) -> Failure | None:
        for failure in self.failures:
            if failure.method == method and failure.path.search(path) and failure.times > 0:
                failure.times -= 1
                return failure
        return None

    def _failed(self, http: web.Request, failure: Failure) -> web.Response:
        if failure.status == 0:
            assert http.transport is not None
            http.transport.close()
            return web.Response()
        said = f"{failure.message}; you sent {http.headers.get('Authorization')} to {http.url}"
        if http.host == BLOBS:
            return _blob_error(failure.status, "Failed", said)
        return web.json_response(
            {"error": {"code": "Failed", "message": said}},
            status=failure.status,
            headers=failure.headers,
        )

    def _blob(self, http: web.Request, raw: bytes) -> web.Response:
        by_token = http.headers.get("Authorization") == f"Bearer {STORAGE_TOKEN}"
        signed = SIGNATURE in http.query_string and "Authorization" not in http.headers
        if self.keyless and signed:
            return _blob_error(403, "KeyBasedAuthenticationNotPermitted", "keys are off")
        if not signed and not (by_token and http.headers.get("x-ms-version")):
            return _blob_error(403, "AuthenticationFailed", "the login is wrong")
        if http.method == "DELETE":
            self.blobs.pop(http.path, None)
            return web.Response(status=202)
        if http.headers.get("x-ms-blob-type") != "BlockBlob":
            return _blob_error(400, "MissingRequiredHeader", "x-ms-blob-type")
        self.blobs[http.path] = bytes(raw)
        return web.Response(status=201)

    def _json(self, http: web.Request, body: Any) -> web.Response:
        if http.headers.get("Authorization") != f"Bearer {TOKEN}":
            return web.json_response({"error": {"code": "Unauthorized"}}, status=401)
        answer = self._answer(http, body)
        if answer is None:
            said = {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "no such run"}
            return web.json_response(said, status=404)
        return web.json_response(answer)

    def _answer(self, http: web.Request, body: Any) -> Json | None:
        path = http.path
        if path == SPACE:
            uri = f"azureml://ml.test/mlflow/v1.0{SPACE}"
            return {"name": "p", "properties": {"mlFlowTrackingUri": uri}}
        if path.endswith("/permissions"):
            return {"value": [{"actions": self.actions, "notActions": []}]}
        if path.endswith("/datastores"):
            store = {
                "accountName": "account",
                "endpoint": "core.windows.net",
                "containerName": "store",
                "credentials": {"credentialsType": "None" if self.keyless else "Sas"},
            }
            return {"value": [{"name": "workspaceblobstore", "properties": store}]}
        if path.endswith("/listSecrets"):
            return {"secretsType": "Sas", "sasToken": self.sas}
        if path.endswith("/artifacts/register"):
            self.artifacts.setdefault(body["container"].removeprefix("dcid."), []).append(body)
            return {}
        if path.startswith("/history/"):
            return self._history(http, body)
        return self._mlflow(http, path.rsplit("/", 1)[1], body)

    def _history(self, http: web.Request, body: Any) -> Json | None:
        found = re.search(r"/experimentids/0/runs/([^/]+)(/artifacts)?$", http.path)
        assert found, http.path
        if found[1] not in self.runs:
            return None
        if found[2]:
            self.lag, late = max(0, self.lag - 1), self.lag > 0
            return {"value": [] if late else self.artifacts.get(found[1], [])}
        kept = self.properties.setdefault(found[1], {"azureml.git": "none"})
        if http.method == "PATCH":
            kept.update(body["properties"])
        return {"runId": found[1], "properties": kept}

    def _mlflow(self, http: web.Request, call: str, body: Any) -> Json | None:
        if call == "create":
            number = f"run-{len(self.runs) + 1}"
            info = {"run_id": number, "experiment_id": "0", "run_name": body.get("run_name")}
            data: Json = {"tags": body["tags"], "metrics": []}
            self.runs[number] = {"info": {**info, "status": "RUNNING"}, "data": data}
            return {"run": self.runs[number]}
        if call == "search":
            wanted = re.fullmatch(r"tags\.`assay\.upload` = '(\w+)'", body["filter"])
            assert wanted, body
            tag = {"key": "assay.upload", "value": wanted[1]}
            return {"runs": [run for run in self.runs.values() if tag in run["data"]["tags"]]}
        run = self.runs.get(http.query["run_id"] if call == "get" else body["run_id"])
        if run is None:
            return None
        if call == "log-metric":
            run["data"]["metrics"].append({"key": body["key"], "value": body["value"]})
        elif call == "set-tag":
            run["data"]["tags"].append({"key": body["key"], "value": body["value"]})
        elif call == "update":
            run["info"]["status"] = body["status"]
        else:
            assert call == "get", call
        return {"run": run}


def _blob_error(status: int, code: str, message: str) -> web.Response:
    text = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{message}</Message></Error>"
    return web.Response(
        status=status,
        text=text,
        content_type="application/xml",
        headers={"x-ms-error-code": code},
    )

"""A hub project on loopback: ARM, MLflow, artifacts, history and blobs, behind a proxy.

azure-ai-evaluation's addresses cannot be changed, so a CONNECT proxy leads all of them here. Point
HTTPS_PROXY at `proxy`, and REQUESTS_CA_BUNDLE at the certificate.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import threading
from typing import Any, Self

from aiohttp import web

from tests.support.foundry import SIGNATURE, Failure, Seen
from tests.support.tls import Tls

Json = dict[str, Any]

TOKEN = "a-token-that-nobody-must-see"
SPACE = "/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/p"
ACTIONS = ["Microsoft.MachineLearningServices/workspaces/*/write"]


class FakeHub:
    """The project, in a thread of its own; leave the `with` block and it is gone."""

    def __init__(self, tls: Tls) -> None:
        self.tls = tls
        self.proxy = ""
        self.actions = list(ACTIONS)
        self.seen: list[Seen] = []
        self.failures: list[Failure] = []
        self.runs: dict[str, Json] = {}
        self.blobs: dict[str, bytes] = {}
        self.history: Json = {}
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._halt: asyncio.Event | None = None
        self._port = 0
        self._tunnels: set[asyncio.Task[Any]] = set()

    def __enter__(self) -> Self:
        ready = threading.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve(ready)), name="hub", daemon=True
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

    async def _serve(self, ready: threading.Event) -> None:
        self._loop, self._halt = asyncio.get_running_loop(), asyncio.Event()
        app = web.Application(client_max_size=2**30)
        app.router.add_route("*", "/{rest:.*}", self._handle)
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

    async def _tunnel(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """CONNECT to any host leads to the TLS server."""
        task = asyncio.current_task()
        assert task is not None
        self._tunnels.add(task)
        ends = [writer]
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            inner, outer = await asyncio.open_connection("127.0.0.1", self._port)
            ends.append(outer)
            await asyncio.gather(_pump(reader, outer), _pump(inner, writer))
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # either side may go away at any time
        finally:
            for end in ends:
                end.transport.abort()
            self._tunnels.discard(task)

    def fail(self, method: str, path: str, status: int) -> None:
        """Let the calls whose path matches fail from now on."""
        self.failures.append(Failure(method, re.compile(path), status))

    async def _handle(self, http: web.Request) -> web.StreamResponse:
        raw = await http.read()
        headers = {name.lower(): value for name, value in http.headers.items()}
        is_blob = http.host.startswith("account.blob.")
        body: Any = raw if is_blob or not raw else json.loads(raw)
        self.seen.append(Seen(http.method, http.path, dict(http.query), headers, body))
        for failure in self.failures:
            if failure.method == http.method and failure.path.search(http.path):
                if failure.status == 0:
                    assert http.transport is not None
                    http.transport.close()
                said = {"error": {"code": "Failed", "message": headers.get("authorization")}}
                return web.json_response(said, status=failure.status or 500)
        if is_blob:
            assert SIGNATURE in http.query_string
            self.blobs[http.path] = bytes(raw)
            return web.Response(status=201)
        if headers.get("authorization") != f"Bearer {TOKEN}":
            return web.json_response({"error": {"code": "Unauthorized"}}, status=401)
        return web.json_response(self._answer(http, body))

    def _answer(self, http: web.Request, body: Any) -> Json:
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
                "credentials": {"credentialsType": "Sas"},
            }
            return {"value": [{"name": "workspaceblobstore", "properties": store}]}
        if path.endswith("/listSecrets"):
            return {"secretsType": "Sas", "sasToken": SIGNATURE}
        if path.endswith("/artifacts/register"):
            return {}
        if path.startswith("/history/"):
            self.history = body
            return {}
        return self._mlflow(http, path.rsplit("/", 1)[1], body)

    def _mlflow(self, http: web.Request, call: str, body: Any) -> Json:
        if call == "create":
            number = f"run-{len(self.runs) + 1}"
            info = {"run_id": number, "experiment_id": "0", "run_name": body.get("run_name")}
            data: Json = {"tags": body["tags"], "metrics": []}
            self.runs[number] = {"info": {**info, "status": "RUNNING"}, "data": data}
            return {"run": self.runs[number]}
        if call == "log-metric":
            metric = {"key": body["key"], "value": body["value"]}
            self.runs[body["run_id"]]["data"]["metrics"].append(metric)
            return {}
        if call == "update":
            self.runs[body["run_id"]]["info"]["status"] = body["status"]
            return {}
        if call == "get":
            return {"run": self.runs[http.query["run_id"]]}
        wanted = re.fullmatch(r"tags\.`assay\.upload` = '(\w+)'", body["filter"])
        assert call == "search"
        assert wanted, body
        tag = {"key": "assay.upload", "value": wanted[1]}
        return {"runs": [run for run in self.runs.values() if tag in run["data"]["tags"]]}


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
        writer.close()

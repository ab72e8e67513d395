"""A Foundry project on loopback, behind TLS: evaluators, datasets, blobs, evals, runs, items.

It checks what the service checks and runs the graders it is given. It is driven by our client,
and, where azure-ai-projects is installed, by Microsoft's own (test_fake_by_sdk.py).

with FakeFoundry(tls) as foundry:
    foundry.fail("POST", "/runs$", 403)     # until `foundry.heal()`
    ...  # point a client at foundry.endpoint
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
import weakref
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import quote

from aiohttp import web

from tests.support.grading import result_counts, run_criteria
from tests.support.insights import compare_runs
from tests.support.tls import Tls

Json = dict[str, Any]
Handler = Callable[[web.Request, Any], Awaitable[web.Response]]

TOKEN = "a-token-that-nobody-must-see"
STORAGE_TOKEN = "a-storage-token-that-nobody-must-see"
SIGNATURE = "sig=a-signature-that-nobody-must-see"
PREFIX = "/api/projects/p"
_MAPPING = re.compile(r"\{\{(?:item|sample)\.[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)*\}\}")
_NAME = re.compile(r"[A-Za-z0-9_.~-]{1,256}")


@dataclass(frozen=True)
class Seen:
    """One request as it arrived. path: without the project's own."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


@dataclass
class Failure:
    """How a call fails. status 0 drops the connection; late: after the work was done."""

    method: str
    path: re.Pattern[str]
    status: int
    late: bool = False
    times: int = 1_000_000
    headers: dict[str, str] = field(default_factory=dict)
    message: str = "it went wrong"


class Refusal(Exception):
    """An answer that is no success."""

    def __init__(self, status: int, code: str, message: str) -> None:
        self.status, self.code, self.message = status, code, message
        super().__init__(message)


class FakeFoundry:
    """The project, in a thread of its own; leave the `with` block and it is gone.

    polls: looks at a run before it is over. lag: listings of versions that do not show a new
    one yet. ends: the status runs end with. spoil: changes an output item before it is sent.
    """

    def __init__(self, tls: Tls) -> None:
        self.tls = tls
        self.port = 0
        self.polls = 0
        self.lag = 0
        self.ends = "completed"
        self.spoil: Callable[[Json], Json | None] = lambda item: item
        self.seen: list[Seen] = []
        self.errors: list[Exception] = []
        self.failures: list[Failure] = []
        self.evaluators: dict[str, list[Json]] = {}
        self.datasets: dict[tuple[str, str], Json] = {}
        self.blobs: Any = {}
        self.container = ""
        self.signature = f"sv=1&{SIGNATURE}"
        self.evals: dict[str, Json] = {}
        self.runs: dict[str, dict[str, Json]] = {}
        self.items: dict[str, list[Json]] = {}
        self.insights: dict[str, Json] = {}
        self.insights_end = "Succeeded"
        self._hidden: dict[str, int] = {}
        self._open: weakref.WeakSet[asyncio.WriteTransport] = weakref.WeakSet()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._halt: asyncio.Event | None = None

    # Life.

    def __enter__(self) -> Self:
        ready = threading.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve(ready)), name="foundry", daemon=True
        )
        self._thread.start()
        assert ready.wait(10), "the fake did not start"
        return self

    def __exit__(self, kind: Any, failure: Any, traceback: Any) -> None:
        assert self._loop is not None
        assert self._halt is not None
        assert self._thread is not None
        self._loop.call_soon_threadsafe(self._halt.set)
        self._thread.join(10)
        if failure is None and self.errors:
            raise self.errors[0]

    async def _serve(self, ready: threading.Event) -> None:
        self._loop, self._halt = asyncio.get_running_loop(), asyncio.Event()
        app = web.Application(client_max_size=2**30)
        for method, path, handler in self._routes():
            app.router.add_route(method, path, self._guarded(handler))
        app.router.add_route("*", "/{rest:.*}", self._guarded(self._unknown))
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.001)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=self.tls.context())
        await site.start()
        self.port = runner.addresses[0][1]
        ready.set()
        await self._halt.wait()
        await runner.cleanup()
        for transport in self._open:  # a client that went away says no goodbye to TLS
            transport.abort()
        await asyncio.sleep(0)

    @property
    def origin(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def endpoint(self) -> str:
        return f"{self.origin}{PREFIX}"

    # What tests ask and say.

    def fail(self, method: str, path: str, status: int, **how: Any) -> None:
        """Let the calls whose path matches fail, until `heal`."""
        self.failures.append(Failure(method, re.compile(path), status, **how))

    def heal(self) -> None:
        self.failures.clear()

    def calls(self, method: str, path: str) -> list[Seen]:
        """The requests so far whose path matches."""
        return [s for s in self.seen if s.method == method and re.search(path, s.path)]

    def all_runs(self) -> list[Json]:
        return [run for runs in self.runs.values() for run in runs.values()]

    # One request.

    def _guarded(self, handler: Handler) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(http: web.Request) -> web.StreamResponse:
            assert isinstance(http.transport, asyncio.WriteTransport)
            self._open.add(http.transport)
            raw = await http.read()
            path = http.path.removeprefix(PREFIX)
            is_json = http.path.startswith(PREFIX) and raw
            body = json.loads(raw) if is_json else raw
            headers = {name.lower(): value for name, value in http.headers.items()}
            self.seen.append(Seen(http.method, path, dict(http.query), headers, body))
            failure = self._failure(http.method, path)
            if failure is not None and not failure.late:
                return self._failed(http, failure)
            try:
                self._check(http, headers)
                answer = await handler(http, body)
            except Refusal as error:
                return _refusal(error.status, error.code, error.message)
            except Exception as error:
                self.errors.append(error)
                return _refusal(500, "bug", repr(error))
            return self._failed(http, failure) if failure is not None else answer

        return handle

    def _failure(self, method: str, path: str) -> Failure | None:
        for failure in self.failures:
            if failure.method == method and failure.path.search(path) and failure.times > 0:
                failure.times -= 1
                return failure
        return None

    def _failed(self, http: web.Request, failure: Failure) -> web.StreamResponse:
        if failure.status == 0:
            assert http.transport is not None
            http.transport.close()
            return web.Response()
        # A service that shows what it was sent: nothing of it may reach a person.
        said = f"{failure.message}; you sent {http.headers.get('Authorization')}"
        answer = _refusal(failure.status, "Failed", said)
        answer.headers.update(failure.headers)
        return answer

    def _check(self, http: web.Request, headers: dict[str, str]) -> None:
        """Login, and which routes take an api-version."""
        if not http.path.startswith(PREFIX):
            self._check_blob(http, headers)
            return
        if headers.get("authorization") != f"Bearer {TOKEN}":
            raise Refusal(401, "Unauthorized", "no such token")
        is_openai = http.path.startswith(f"{PREFIX}/openai/")
        if is_openai and "api-version" in http.query:
            raise Refusal(400, "BadRequest", "api-version is not allowed here")
        is_old = http.path.startswith(f"{PREFIX}/evaluation")
        version = "2025-11-15-preview" if is_old else "v1"
        if not is_openai and http.query.get("api-version") != version:
            raise Refusal(400, "MissingApiVersionParameter", f"it must be {version}")

    def _check_blob(self, http: web.Request, headers: dict[str, str]) -> None:
        """A signature, or a token for storage where there is none; never a project's token."""
        if self.signature:
            if "authorization" in headers:
                raise Refusal(400, "AuthenticationFailed", "a blob was sent a token")
            if self.signature not in http.query_string:
                raise Refusal(403, "AuthenticationFailed", "no signature")
        elif headers.get("authorization") != f"Bearer {STORAGE_TOKEN}":
            raise Refusal(401, "InvalidAuthenticationInfo", "no token for storage")
        elif not headers.get("x-ms-version"):
            raise Refusal(400, "MissingRequiredHeader", "x-ms-version")

    def _routes(self) -> list[tuple[str, str, Handler]]:
        versions = f"{PREFIX}/evaluators/{{name}}/versions"
        dataset = f"{PREFIX}/datasets/{{name}}/versions/{{version}}"
        evals = f"{PREFIX}/openai/v1/evals"
        run = f"{evals}/{{eval}}/runs/{{run}}"
        old = f"{PREFIX}/evaluationResults/{{name}}/versions/1"
        return [
            ("GET", f"{PREFIX}/evaluators", self._list_evaluators),
            ("GET", versions, self._list_versions),
            ("POST", versions, self._create_version),
            ("GET", f"{versions}/{{version}}", self._get_version),
            ("GET", dataset, self._get_dataset),
            ("POST", f"{dataset}/startPendingUpload", self._start_upload),
            ("PATCH", dataset, self._create_dataset),
            ("PUT", "/store/{container}/{file}", self._put_blob),
            ("GET", evals, self._list_evals),
            ("POST", evals, self._create_eval),
            ("GET", f"{evals}/{{eval}}", self._get_eval),
            ("GET", f"{evals}/{{eval}}/runs", self._list_runs),
            ("POST", f"{evals}/{{eval}}/runs", self._create_run),
            ("GET", run, self._get_run),
            ("GET", f"{run}/output_items", self._list_items),
            ("GET", f"{PREFIX}/insights", self._list_insights),
            ("POST", f"{PREFIX}/insights", self._create_insight),
            ("GET", f"{PREFIX}/insights/{{id}}", self._get_insight),
            ("POST", f"{old}/startPendingUpload", self._old),
            ("PATCH", old, self._old),
            ("POST", f"{PREFIX}/evaluations/runs:upload", self._old),
            ("PATCH", f"{PREFIX}/evaluations/runs:updateUpload/{{id}}", self._old),
        ]

    async def _unknown(self, http: web.Request, body: Any) -> web.Response:
        raise Refusal(404, "NotFound", f"no route {http.method} {http.path}")

    # Evaluators.

    async def _list_evaluators(self, http: web.Request, body: Any) -> web.Response:
        return _json({"value": [versions[-1] for versions in self.evaluators.values()]})

    async def _list_versions(self, http: web.Request, body: Any) -> web.Response:
        name = http.match_info["name"]
        if name not in self.evaluators:
            raise Refusal(404, "NotFound", f"no evaluator {name}")
        versions = self.evaluators[name]
        if self._hidden.get(name, 0) > 0:
            self._hidden[name] -= 1
            versions = versions[:-1]
        # One version a page, so that who reads only the first page is found out.
        skip = int(http.query.get("skip", "0"))
        page: Json = {"value": versions[skip : skip + 1]}
        if skip + 1 < len(versions):
            page["nextLink"] = f"{self.origin}{http.path}?api-version=v1&skip={skip + 1}"
        return _json(page)

    async def _create_version(self, http: web.Request, body: Any) -> web.Response:
        name = http.match_info["name"]
        definition = body.get("definition") or {}
        if not _NAME.fullmatch(name):
            raise Refusal(400, "BadRequest", f"{name} is no name")
        if not body.get("categories") or body.get("evaluator_type") != "custom":
            raise Refusal(400, "BadRequest", "categories and evaluator_type are required")
        if definition.get("type") == "code":
            required = set(definition["init_parameters"].get("required", ()))
            if not definition.get("metrics") or not definition.get("code_text"):
                raise Refusal(400, "BadRequest", "a code evaluator needs metrics and code_text")
            if not {"deployment_name", "pass_threshold"} <= required:
                raise Refusal(400, "BadRequest", "deployment_name and pass_threshold are required")
            if len(definition["code_text"]) > 256 * 1024:
                raise Refusal(400, "BadRequest", "the source is too long")
        if definition.get("type") == "prompt":
            required = set(definition["init_parameters"].get("required", ()))
            if not definition.get("prompt_text") or required != {"deployment_name", "threshold"}:
                raise Refusal(400, "BadRequest", "prompt_text and its parameters are required")
        if definition.get("type") == "endpoint" and not definition.get("connection_name"):
            raise Refusal(400, "BadRequest", "an endpoint needs connection_name")
        versions = self.evaluators.setdefault(name, [])
        version = str(len(versions) + 1)
        made = _floats({**body, "name": name, "version": version, "id": f"azureai://{name}"})
        made.setdefault("description", "")
        versions.append(made)
        self._hidden[name] = self.lag
        return _json(made, 201)

    async def _get_version(self, http: web.Request, body: Any) -> web.Response:
        wanted = http.match_info["version"]
        for version in self.evaluators.get(http.match_info["name"], []):
            if version["version"] == wanted:
                return _json(version)
        raise Refusal(404, "NotFound", "no such version")

    # Datasets.

    async def _get_dataset(self, http: web.Request, body: Any) -> web.Response:
        return _json(self._dataset(http))

    def _dataset(self, http: web.Request) -> Json:
        key = (http.match_info["name"], http.match_info["version"])
        if key not in self.datasets:
            raise Refusal(404, "NotFound", "no such dataset")
        return self.datasets[key]

    async def _start_upload(self, http: web.Request, body: Any) -> web.Response:
        name, version = http.match_info["name"], http.match_info["version"]
        if len(version) > 50:
            raise Refusal(400, "BadRequest", "the version is too long")
        if (name, version) in self.datasets:
            raise Refusal(409, "TemporaryDataReferencesForExistingAsset", "it exists")
        if body.get("pendingUploadType") not in ("BlobReference", "TemporaryBlobReference"):
            raise Refusal(400, "BadRequest", "no pendingUploadType")
        container = self.container or f"{self.origin}/store/{quote(name)}-{version[:12]}"
        reference: Json = {
            "blobUri": container,
            "storageAccountArmId": "/subscriptions/s/storageAccounts/a",
        }
        if self.signature:
            signed = f"{container}?{self.signature}"
            reference["credential"] = {"sasUri": signed, "type": "SAS"}
        pending = {"pendingUploadId": "u1", "pendingUploadType": "BlobReference"}
        return _json({**pending, "blobReference": reference, "version": version})

    async def _put_blob(self, http: web.Request, body: Any) -> web.Response:
        if http.headers.get("x-ms-blob-type") != "BlockBlob":
            raise Refusal(400, "InvalidHeaderValue", "no x-ms-blob-type")
        self.blobs[f"{self.origin}{http.path}"] = bytes(body)
        return web.Response(status=201)

    async def _create_dataset(self, http: web.Request, body: Any) -> web.Response:
        name, version = http.match_info["name"], http.match_info["version"]
        if http.content_type != "application/merge-patch+json":
            raise Refusal(415, "UnsupportedMediaType", http.content_type)
        if body["type"] != "uri_file" or body["dataUri"] not in self.blobs:
            raise Refusal(400, "BadRequest", "dataUri names no blob")
        made = {**body, "name": name, "version": version}
        made["id"] = f"azureai://accounts/a/projects/p/data/{name}/versions/{version}"
        self.datasets[name, version] = made
        return _json(made, 201)

    # Evals, runs, items.

    async def _list_evals(self, http: web.Request, body: Any) -> web.Response:
        return _page(http, list(self.evals.values()))

    async def _create_eval(self, http: web.Request, body: Any) -> web.Response:
        config, criteria = body.get("data_source_config"), body.get("testing_criteria")
        if not config or not criteria:
            raise Refusal(400, "invalid_request_error", "testing_criteria are required")
        _check_metadata(body.get("metadata") or {})
        for criterion in criteria:
            self._check_criterion(criterion)
        number = f"eval_{len(self.evals) + 1}"
        made = {**_floats(body), "id": number, "object": "eval", "created_at": 1}
        self.evals[number] = made
        self.runs[number] = {}
        return _json(made, 201)

    def _check_criterion(self, criterion: Json) -> None:
        if criterion["type"] == "string_check":
            if not _MAPPING.fullmatch(criterion["input"]) or criterion["operation"] != "eq":
                raise Refusal(400, "invalid_request_error", "a bad string check")
            return
        if criterion["type"] != "azure_ai_evaluator":
            raise Refusal(400, "invalid_request_error", f"no grader {criterion['type']}")
        for value in criterion["data_mapping"].values():
            if not _MAPPING.fullmatch(value):
                raise Refusal(400, "invalid_request_error", f"a bad mapping {value}")
        self._version(criterion)
        settings = criterion["initialization_parameters"]
        if "pass_threshold" not in settings or "deployment_name" not in settings:
            raise Refusal(400, "invalid_request_error", "a missing initialization parameter")

    def _version(self, criterion: Json) -> Json:
        for version in self.evaluators.get(criterion["evaluator_name"], []):
            if version["version"] == criterion["evaluator_version"]:
                return version
        raise Refusal(400, "invalid_request_error", "no such evaluator version")

    async def _get_eval(self, http: web.Request, body: Any) -> web.Response:
        return _json(self._eval(http))

    def _eval(self, http: web.Request) -> Json:
        found = self.evals.get(http.match_info["eval"])
        if found is None:
            raise Refusal(404, "not_found", "no such eval")
        return found

    async def _list_runs(self, http: web.Request, body: Any) -> web.Response:
        return _page(http, list(self.runs[str(self._eval(http)["id"])].values()))

    async def _create_run(self, http: web.Request, body: Any) -> web.Response:
        found = self._eval(http)
        _check_metadata(body.get("metadata") or {})
        rows = self._rows(body["data_source"]["source"])
        number = f"run_{len(self.all_runs()) + 1}"
        items = run_criteria(found["testing_criteria"], rows, self._code)
        made = {
            "id": number,
            "object": "eval.run",
            "eval_id": found["id"],
            "status": "queued",
            "name": body.get("name"),
            "metadata": body.get("metadata"),
            "polls": self.polls,
            "data_source": body["data_source"],
            "error": {"code": None, "message": None},
            "report_url": None,
        }
        self.runs[found["id"]][number] = made
        self.items[number] = [{**item, "run_id": number, "eval_id": found["id"]} for item in items]
        return _json(made, 201)

    def _code(self, criterion: Json) -> str:
        return str(self._version(criterion)["definition"]["code_text"])

    def _rows(self, source: Json) -> list[Json]:
        if source["type"] == "file_content":
            return [entry["item"] for entry in source["content"]]
        for found in self.datasets.values():
            if found["id"] == source["id"]:
                lines = self.blobs[found["dataUri"]].splitlines()
                if not lines:
                    raise Refusal(400, "invalid_request_error", "the dataset is empty")
                return [json.loads(line) for line in lines]
        raise Refusal(400, "invalid_request_error", "invalid data source file ids")

    def _run(self, http: web.Request) -> Json:
        found = self.runs[str(self._eval(http)["id"])].get(http.match_info["run"])
        if found is None:
            raise Refusal(404, "not_found", "no such run")
        return found

    async def _get_run(self, http: web.Request, body: Any) -> web.Response:
        found = self._run(http)
        if found["polls"] > 0:
            found["polls"] -= 1
            found["status"] = "in_progress"
        elif found["status"] in ("queued", "in_progress"):
            found["status"] = self.ends
            found["report_url"] = f"https://ai.azure.com/nextgen/evals/{found['id']}"
            found["result_counts"] = result_counts(self.items[found["id"]])
            if self.ends == "failed":
                found["error"] = {"code": "sandbox", "message": "the sandbox did not start"}
        return _json(found)

    async def _list_items(self, http: web.Request, body: Any) -> web.Response:
        items = [self.spoil(dict(item)) for item in reversed(self.items[self._run(http)["id"]])]
        return _page(http, [item for item in items if item is not None])

    # Insights: comparisons of runs.

    async def _list_insights(self, http: web.Request, body: Any) -> web.Response:
        _check_preview(http)
        wanted = http.query.get("evalId")
        found = [i for i in self.insights.values() if wanted in (None, i["request"]["evalId"])]
        # One a page, the newest first.
        skip = int(http.query.get("skip", "0"))
        page: Json = {"value": [_shown(one) for one in found[::-1][skip : skip + 1]]}
        if skip + 1 < len(found):
            query = f"api-version=v1&evalId={wanted or ''}&skip={skip + 1}"
            page["nextLink"] = f"{self.origin}{http.path}?{query}"
        return _json(page)

    async def _create_insight(self, http: web.Request, body: Any) -> web.Response:
        _check_preview(http)
        once = http.headers.get("Repeatability-Request-ID")
        if not once or not http.headers.get("Repeatability-First-Sent"):
            raise Refusal(400, "BadRequest", "the Repeatability headers are required")
        for known in self.insights.values():
            if known["once"] == once:
                return _json(_shown(known), 201)
        asked = body["request"]
        if not body.get("displayName") or asked["type"] != "EvaluationComparison":
            raise Refusal(400, "BadRequest", "displayName and a comparison are required")
        runs = self.runs.get(asked["evalId"], {})
        for number in (asked["baselineRunId"], *asked["treatmentRunIds"]):
            if number not in runs:
                raise Refusal(404, "NotFound", f"no run {number} in {asked['evalId']}")
            if runs[number]["status"] != "completed":
                raise Refusal(400, "BadRequest", f"the run {number} is not completed")
        made = {**body, "id": f"insight_{len(self.insights) + 1}", "state": "NotStarted"}
        made |= {"metadata": {"createdAt": "2026-11-01T00:00:00Z"}}
        self.insights[made["id"]] = made | {"once": once, "polls": self.polls}
        return _json(made, 201)

    async def _get_insight(self, http: web.Request, body: Any) -> web.Response:
        _check_preview(http)
        found = self.insights.get(http.match_info["id"])
        if found is None:
            raise Refusal(404, "NotFound", "no such insight")
        if found["polls"] > 0:
            found["polls"] -= 1
            found["state"] = "Running"
        elif found["state"] in ("NotStarted", "Running"):
            found["state"] = self.insights_end
            if self.insights_end == "Succeeded":
                asked = found["request"]
                found["result"] = compare_runs(
                    self.evals[asked["evalId"]]["testing_criteria"],
                    self.items,
                    asked["baselineRunId"],
                    asked["treatmentRunIds"],
                )
        return _json(_shown(found))

    # The old portal's way, of azure-ai-evaluation.

    async def _old(self, http: web.Request, body: Any) -> web.Response:
        if http.path.endswith("/startPendingUpload"):
            container = f"{self.origin}/store/old"
            credential = {"sasUri": f"{container}?sv=1&{SIGNATURE}", "type": "SAS"}
            reference = {"blobUri": container, "credential": credential}
            return _json({"blobReferenceForConsumption": reference, "pendingUploadId": "u"})
        if "/evaluationResults/" in http.path:
            return _json({**body, "id": "result-1", "name": "result", "version": "1"})
        if http.path.endswith("runs:upload"):
            return _json({**body, "id": "old-1"})
        link = {"AiStudioEvaluationUri": "https://ai.azure.com/build/evaluation/old-1"}
        return _json({**body, "id": "old-1", "properties": link})


def _json(value: Any, status: int = 200) -> web.Response:
    return web.json_response(value, status=status)


def _refusal(status: int, code: str, message: str) -> web.Response:
    return _json({"error": {"code": code, "message": message}}, status)


def _check_preview(http: web.Request) -> None:
    if http.headers.get("Foundry-Features") != "Insights=V1Preview":
        raise Refusal(400, "BadRequest", "insights are a preview: Foundry-Features is missing")


def _shown(insight: Json) -> Json:
    """An insight without what the service keeps to itself."""
    return {key: value for key, value in insight.items() if key not in ("once", "polls")}


def _page(http: web.Request, items: list[Json]) -> web.Response:
    """A page of an OpenAI-style list."""
    limit = int(http.query.get("limit", "20"))
    if not 1 <= limit <= 100:
        raise Refusal(400, "invalid_request_error", "limit is 1 to 100")
    if http.query.get("order") == "desc":
        items = items[::-1]
    after = http.query.get("after")
    start = 0
    if after is not None:
        start = next(i for i, item in enumerate(items) if item["id"] == after) + 1
    page = items[start : start + limit]
    ends = {"first_id": page[0]["id"], "last_id": page[-1]["id"]} if page else {}
    more = start + limit < len(items)
    return _json({"object": "list", "data": page, **ends, "has_more": more})


def _check_metadata(metadata: Json) -> None:
    if len(metadata) > 16:
        raise Refusal(400, "invalid_request_error", "more than 16 keys of metadata")
    for key, value in metadata.items():
        if len(key) > 64 or not isinstance(value, str) or len(value) > 512:
            raise Refusal(400, "invalid_request_error", f"metadata {key} is no short text")


def _floats(value: Any) -> Any:
    """The service gives every whole number back as a float."""
    if isinstance(value, dict):
        return {key: _floats(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_floats(item) for item in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value

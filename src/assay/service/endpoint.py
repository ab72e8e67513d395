"""Metrics as an endpoint evaluator of Foundry: one row a request, answered within its 30 seconds.

POST / (one metric), /NAME or /NAME/OUTPUT. A caller sends the key in the header `api-key`, or a
token of Entra ID, where they are asked for.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from assay.errors import InputError, SetupError
from assay.judge.base import Judge
from assay.metric.evaluator import Evaluator
from assay.metric.registry import load
from assay.metric.score import Score, declared_or_inferred
from assay.prompty import Output
from assay.run.engine import score_row
from assay.run.plan import Options, judge_for
from assay.service.bearer import Bearer, Refused
from assay.service.inputs import values_of

if TYPE_CHECKING:
    from aiohttp import web

KEY = "ASSAY_SERVE_KEY"
VERSION = "0.0.1"
BUDGET = 28.0
"""Seconds for one row: Foundry hangs up after 30."""

_LARGEST = 8 * 2**20


@dataclass(frozen=True)
class Served:
    """A metric with the judge that answers for it."""

    evaluator: Evaluator
    judge: Judge | None


@dataclass(frozen=True)
class Endpoint:
    """Answers requests for its metrics.

    key, bearer: what a caller must send, either where there are both; None asks for nothing.
    budget: seconds for one row, with all that is done before it is judged.
    """

    served: Mapping[str, Served]
    key: str | None = field(default=None, repr=False)
    bearer: Bearer | None = None
    budget: float = BUDGET

    async def answer(
        self, name: str | None, output: str | None, body: Any, spent: float = 0.0
    ) -> tuple[int, dict[str, Any]]:
        """HTTP status and body for one request's. spent: seconds of the budget that are gone."""
        chosen = self._chosen(name, body)
        if chosen is None:
            known = ", ".join(f"/{known}" for known in self.served)
            return 404, failed("unknown_evaluator", f"there is {known}")
        evaluator = chosen.evaluator
        if output is not None and output not in evaluator.outputs:
            return 404, failed("unknown_output", f"{evaluator.name} has no output {output!r}")
        try:
            values = values_of(evaluator, body)
        except InputError as error:
            return 400, failed("bad_request", str(error))
        left = max(0.0, self.budget - spent)
        score = await score_row(evaluator, values, chosen.judge, reask=1, timeout=left)
        return 200, reply_of(score, evaluator.outputs, output)

    def _chosen(self, name: str | None, body: Any) -> Served | None:
        if name is not None:
            return self.served.get(name)
        if len(self.served) == 1:
            return next(iter(self.served.values()))
        return self.served.get(str(body.get("evaluator_name"))) if isinstance(body, dict) else None

    async def close(self) -> None:
        """Let go of the judges' connections."""
        for found in self.served.values():
            if found.judge is not None:
                await found.judge.close()


def make_endpoint(
    sources: Sequence[Any],
    *,
    judge: str | Judge | None = None,
    base_url: str | None = None,
    key: str | None = None,
    bearer: Bearer | None = None,
) -> Endpoint:
    """Load metrics and their judges. Raises what would fail on every row."""
    served: dict[str, Served] = {}
    for source in sources:
        evaluator: Evaluator = load(source)
        chosen = judge_for(evaluator, Options(judge=judge, base_url=base_url))
        evaluator.check(chosen)
        if evaluator.name in served:
            raise SetupError(f"two metrics are called {evaluator.name!r}")
        served[evaluator.name] = Served(evaluator, chosen)
    return Endpoint(served, key or None, bearer)


def check_bind(host: str, *, guarded: bool) -> None:
    """Raises SetupError where others could spend the judge's money: no loopback, no guard."""
    if not guarded and not _is_loopback(host):
        raise SetupError(
            f"{host} can be reached by others: set {KEY} to a key they must send, or --audience"
        )


def reply_of(score: Score, outputs: Mapping[str, Output], wanted: str | None) -> dict[str, Any]:
    """A score in the words of the contract, its statuses in capitals."""
    if score.status not in ("scored", "not_applicable"):
        return failed(score.cause or score.status, score.message or score.status)
    declared = declared_or_inferred(outputs, score.outputs)
    scored = [output for output in declared.values() if output.scored]
    named = [o for o in scored if o.name == wanted] if wanted else []
    primary = next(iter([*named, *(o for o in scored if o.is_primary), *scored]), None)
    if primary is None:
        return failed("no_score", "the metric gives no number")
    value = score.outputs.get(primary.name) if score.status == "scored" else None
    verdict = primary.result(value)
    usage = score.usage
    return {
        "schema_version": VERSION,
        "score": value if isinstance(value, bool | int | float) else None,
        "reason": score.reason if score.status == "scored" else score.message,
        "status": "Completed" if score.status == "scored" else "Skipped",
        "threshold": primary.threshold,
        "passed": None if verdict is None else verdict == "pass",
        "properties": {
            "metric": score.evaluator,
            "output": primary.name,
            "cause": score.cause,
            "outputs": dict(score.outputs),
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
        },
    }


def failed(code: str, message: str) -> dict[str, Any]:
    """The contract's failure."""
    error = {"code": code, "message": message}
    return {"schema_version": VERSION, "status": "Error", "error": error}


def application(endpoint: Endpoint) -> web.Application:
    """The endpoint as an application of aiohttp."""
    from aiohttp import web

    async def handle(request: web.Request) -> web.Response:
        clock = asyncio.get_running_loop().time
        started = clock()
        refusal = await _refusal(endpoint, request)
        if refusal is not None:
            return refusal
        try:
            body = json.loads(await request.read())
        except (ValueError, RecursionError):
            return web.json_response(failed("bad_request", "the body is not JSON"), status=400)
        name, output = request.match_info.get("name"), request.match_info.get("output")
        status, answer = await endpoint.answer(name, output, body, clock() - started)
        return web.json_response(answer, status=status)

    async def close(_: web.Application) -> None:
        await endpoint.close()

    app = web.Application(client_max_size=_LARGEST)
    for path in ("/", "/{name}", "/{name}/{output}"):
        app.router.add_post(path, handle)
    app.on_cleanup.append(close)
    return app


async def serve(endpoint: Endpoint, host: str, port: int, ready: Any = None) -> None:
    """Answer until it is cancelled. `ready` is called with the address.

    Raises SetupError for an address that cannot or must not be used, and where the tenant whose
    tokens are asked for cannot be read.
    """
    from aiohttp import web

    check_bind(host, guarded=bool(endpoint.key or endpoint.bearer))
    if endpoint.bearer is not None:
        await endpoint.bearer.tenant.open()
    runner = web.AppRunner(application(endpoint), access_log=None, handler_cancellation=True)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port)
        try:
            await site.start()
        except OSError as error:
            raise SetupError(f"{host}:{port} cannot be used: {error.strerror}") from None
        if ready is not None:
            shown = f"[{host}]" if ":" in host else host
            ready(f"http://{shown}:{runner.addresses[0][1]}")
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()


async def _refusal(endpoint: Endpoint, request: web.Request) -> web.Response | None:
    """A 401 for a stranger; a 415 for what a web page could send without being asked."""
    from aiohttp import web

    try:
        await _let_in(endpoint, request.headers)
    except Refused as error:
        answer = failed("unauthorized", str(error))
        challenge = {"WWW-Authenticate": "Bearer"} if endpoint.bearer is not None else None
        return web.json_response(answer, status=401, headers=challenge)
    except SetupError:
        answer = failed("keys_unavailable", "the tenant's signing keys cannot be fetched now")
        return web.json_response(answer, status=503)
    if request.content_type != "application/json":
        answer = failed("bad_request", "the body must be application/json")
        return web.json_response(answer, status=415)
    return None


async def _let_in(endpoint: Endpoint, headers: Mapping[str, str]) -> None:
    """Raises Refused without the key or a token that is good, whichever is asked for."""
    key, bearer = endpoint.key, endpoint.bearer
    if key is None and bearer is None:
        return
    if key is not None:
        given = headers.get("api-key", "").encode(errors="replace")
        if hmac.compare_digest(given, key.encode()):
            return
    scheme, _, token = headers.get("Authorization", "").partition(" ")
    if bearer is not None and scheme.lower() == "bearer":
        await bearer.check(token.strip())
    elif bearer is None:
        raise Refused("the header api-key is missing or wrong")
    else:
        also = ", or a right one in the header api-key" if key is not None else ""
        raise Refused(f"a bearer token is missing{also}")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"

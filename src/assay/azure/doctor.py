"""`assay azure doctor`: which parts of Azure work from here, and what to do about the others."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from assay.azure import calls
from assay.azure.check import OPEN_DATASET, may_create
from assay.azure.client import Client, Patience
from assay.azure.faults import UploadError
from assay.azure.hub import HubClient
from assay.azure.project import Foundry, Hub, find_project
from assay.config import load_config
from assay.errors import AssayError, JudgeError
from assay.judge.credential import Credential, Entra
from assay.judge.model import ModelJudge
from assay.judge.project import TOKEN, FixedToken
from assay.judge.resolve import resolve

State = Literal["ok", "todo", "unset"]

_JUDGE = [{"role": "user", "content": "Answer with the word ok."}]


@dataclass(frozen=True)
class Finding:
    """One part: whether it works, and what was found or is to be done. Never a secret."""

    part: str
    state: State
    said: str

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


async def diagnose(
    judge: str | None = None,
    project: Any = None,
    *,
    credential: Any = None,
    patience: Patience | None = None,
) -> AsyncIterator[Finding]:
    """Look at each part, one after the other. A part that needs one that fails is left out."""
    async for finding in _judge(judge, credential):
        yield finding
    try:
        chosen = find_project(project, credential)
    except AssayError as error:
        yield Finding("project", "unset", str(error))
        return
    if isinstance(chosen, Hub):
        async for finding in _hub(chosen, patience):
            yield finding
    else:
        async for finding in _foundry(chosen, patience):
            yield finding


@dataclass(frozen=True)
class _Service:
    """What to say of a judge of this kind. place: where its endpoint is given."""

    place: str
    login: str
    deployment: str


_SERVICES = {
    "azure": _Service(
        "AZURE_OPENAI_ENDPOINT",
        'az login, and the role "Cognitive Services OpenAI User" on the resource',
        "deploy it in the portal, or name one that is there, not the model",
    ),
    "project": _Service(
        "AZURE_AI_PROJECT_ENDPOINT",
        'az login, and the role "Foundry User" on the project',
        "name a deployment of the project, or CONNECTION/DEPLOYMENT of a model connected to it",
    ),
}


async def _judge(name: str | None, credential: Any) -> AsyncIterator[Finding]:
    """Endpoint, login and deployment of the judge, with one call of a few tokens."""
    chosen = str(name or os.environ.get("ASSAY_JUDGE") or load_config().get("judge") or "")
    service = _SERVICES.get(chosen.partition(":")[0])
    if service is None:
        shown = f"the judge is {chosen}" if chosen else "no judge is named"
        yield Finding("deployment", "unset", f"{shown}; --judge azure:DEPLOYMENT tries one")
        return
    try:
        judge = resolve(chosen, credential=credential)
    except AssayError as error:
        known = os.environ.get(service.place)
        yield Finding("login" if known else "endpoint", "todo", str(error))
        return
    assert isinstance(judge, ModelJudge)
    host = urlsplit(judge.url).netloc
    login = _judge_login(judge.credential)
    try:
        await judge.complete(_JUDGE)
    except JudgeError as error:
        for finding in _judge_failed(error, host, login, chosen):
            yield finding
        return
    finally:
        await judge.close()
    yield Finding("endpoint", "ok", host)
    yield Finding("login", "ok", login)
    yield Finding("deployment", "ok", f"{chosen} answered")


def _judge_login(credential: Credential) -> str:
    if not isinstance(credential, Entra):
        return "a key"
    return TOKEN if isinstance(credential.source, FixedToken) else "Entra ID"


def _judge_failed(error: JudgeError, host: str, login: str, chosen: str) -> list[Finding]:
    """What still works is what comes before the part that does not."""
    service = _SERVICES[chosen.partition(":")[0]]
    reached, logged_in = Finding("endpoint", "ok", host), Finding("login", "ok", login)
    if error.cause in ("connection", "timeout") and error.status is None:
        why = f"{error}; check {service.place}, the network and the proxy"
        return [Finding("endpoint", "todo", why)]
    if error.cause == "authentication":
        role = "check AZURE_OPENAI_API_KEY" if login == "a key" else service.login
        return [reached, Finding("login", "todo", f"{error}; {role}")]
    if error.cause == "not_found":
        return [reached, logged_in, Finding("deployment", "todo", f"{error}; {service.deployment}")]
    return [reached, logged_in, Finding("deployment", "todo", f"{chosen}: {error}")]


async def _foundry(project: Foundry, patience: Patience | None) -> AsyncIterator[Finding]:
    async with Client(project, patience or Patience(tries=2)) as client:
        steps: list[tuple[str, Callable[[], Awaitable[Any]], str]] = [
            ("project login", client.token, _login_of(project.credential)),
            ("project", lambda: _read(client), project.endpoint),
            ("permissions", lambda: may_create(client), "datasets and evals may be created"),
            ("storage", lambda: _store(client), "the project's storage takes files"),
        ]
        for part, attempt, said in steps:
            try:
                await attempt()
            except UploadError as error:
                yield Finding(part, "todo", str(error))
                return
            yield Finding(part, "ok", said)
    yield Finding("portal", "ok", "the new Foundry portal: assay upload RUN shows runs there")


async def _hub(project: Hub, patience: Patience | None) -> AsyncIterator[Finding]:
    async with HubClient(project, patience or Patience(tries=2)) as client:
        try:
            await client.check()
        except UploadError as error:
            yield Finding("project", "todo", str(error))
            return
        yield Finding("project login", "ok", _login_of(project.credential))
        yield Finding("project", "ok", project.label)
        yield Finding("permissions", "ok", "runs may be written")
        try:
            with _small_file() as file:
                storage = await client.storage(file)
        except UploadError as error:
            yield Finding("storage", "todo", str(error))
            return
        yield Finding("storage", "ok", storage)
    if _has("azure.ai.evaluation"):
        yield Finding("portal", "ok", "the old portal: assay upload RUN shows runs there")
    else:
        install = 'pip install "assay[azure-classic]"'
        yield Finding("portal", "todo", f"the old portal needs azure-ai-evaluation: {install}")


async def _read(client: Client) -> None:
    await client.call(calls.LIST_EVALUATORS, params={**calls.V1, "limit": "1"})
    await client.call(calls.LIST_EVALS, params={"limit": "1"})


async def _store(client: Client) -> None:
    """Put a file of one line where an upload would; it is never registered as a dataset."""
    body = {"pendingUploadType": "BlobReference"}
    status, pending = await client.call(OPEN_DATASET, body, params=calls.V1, also=(409,))
    if status == 409:
        return
    with _small_file() as file:
        await calls.put_pending(client, pending, file, OPEN_DATASET)


@contextlib.contextmanager
def _small_file() -> Iterator[Path]:
    """What is put into a storage to try it."""
    with tempfile.TemporaryDirectory(prefix="assay-") as folder:
        file = Path(folder) / "check.jsonl"
        file.write_text('{"assay": "check"}\n')
        yield file


def _login_of(credential: Any) -> str:
    """How it logs in, in words."""
    if credential is None:
        return "Entra ID (DefaultAzureCredential)"
    by_token = isinstance(credential, FixedToken)
    return TOKEN if by_token else f"Entra ID ({type(credential).__name__})"


def _has(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False

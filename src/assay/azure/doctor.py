"""`assay azure doctor`: which parts of Azure work from here, and what to do about the others."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
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
from assay.azure.project import TOKEN, Foundry, Hub, find_project
from assay.config import load_config
from assay.errors import AssayError, JudgeError
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


async def _judge(name: str | None, credential: Any) -> AsyncIterator[Finding]:
    """Endpoint, login and deployment of the judge, with one call of a few tokens."""
    chosen = str(name or os.environ.get("ASSAY_JUDGE") or load_config().get("judge") or "")
    endpoint = os.environ.get("AZURE_OPENAI_ENDPOINT")
    if not chosen.startswith("azure:"):
        shown = f"the judge is {chosen}" if chosen else "no judge is named"
        yield Finding("deployment", "unset", f"{shown}; --judge azure:DEPLOYMENT tries one")
        return
    try:
        judge = resolve(chosen, credential=credential)
    except AssayError as error:
        yield Finding("endpoint" if not endpoint else "login", "todo", str(error))
        return
    host = urlsplit(str(endpoint)).netloc
    login = "a key" if os.environ.get("AZURE_OPENAI_API_KEY") and not credential else "Entra ID"
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


def _judge_failed(error: JudgeError, host: str, login: str, chosen: str) -> list[Finding]:
    """What still works is what comes before the part that does not."""
    reached, logged_in = Finding("endpoint", "ok", host), Finding("login", "ok", login)
    if error.cause in ("connection", "timeout") and error.status is None:
        why = f"{error}; check AZURE_OPENAI_ENDPOINT, the network and the proxy"
        return [Finding("endpoint", "todo", why)]
    if error.cause == "authentication":
        role = (
            "check AZURE_OPENAI_API_KEY"
            if login == "a key"
            else 'az login, and the role "Cognitive Services OpenAI User" on the resource'
        )
        return [reached, Finding("login", "todo", f"{error}; {role}")]
    if error.cause == "not_found":
        why = f"{error}; deploy it in the portal, or name one that is there, not the model"
        return [reached, logged_in, Finding("deployment", "todo", why)]
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
    try:
        async with HubClient(project, patience or Patience(tries=2)) as client:
            await client.check()
            storage = await client.storage()
    except UploadError as error:
        yield Finding("project", "todo", str(error))
        return
    yield Finding("project login", "ok", _login_of(project.credential))
    yield Finding("project", "ok", project.label)
    yield Finding("permissions", "ok", "runs may be written")
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
    with tempfile.TemporaryDirectory(prefix="assay-") as folder:
        file = Path(folder) / "check.jsonl"
        file.write_text('{"assay": "check"}\n')
        await calls.put_pending(client, pending, file, OPEN_DATASET)


def _login_of(credential: Any) -> str:
    """How it logs in, in words."""
    if credential is None:
        return "Entra ID (DefaultAzureCredential)"
    by_token = type(credential).__name__ == "FixedToken"
    return TOKEN if by_token else f"Entra ID ({type(credential).__name__})"


def _has(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False

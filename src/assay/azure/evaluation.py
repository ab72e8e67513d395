"""The one call to azure-ai-evaluation, and what it said when it did not do its work."""

from __future__ import annotations

import contextlib
import logging
import re
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from assay.azure.faults import NETWORK, UploadError, refused, remedy, unreachable
from assay.azure.project import Hub, Project
from assay.azure.step import Step, to_storage
from assay.azure.storage import SCOPE, refuse_fixed, signatures
from assay.judge.faults import redact

_PACKAGE = "azure.ai.evaluation"
_SHOWN = 300
_PAYLOAD = re.compile(r"'\{.*\}'")
_QUERY = re.compile(r"\?[^\s'\")]*=[^\s'\")]*")
_STATUS = re.compile(r"(?:HTTP|code|start:) ([45]\d\d)\b")
_alone = threading.Lock()  # stdout and the package's log belong to the whole process


class Login:
    """A credential that remembers its tokens, so that none of them is ever shown."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self.tokens: list[str] = []

    def get_token(self, *scopes: str, **options: Any) -> Any:
        """What any credential gives."""
        if SCOPE in scopes:
            refuse_fixed(self._source, Step("uploading the rows", "PUT", "blob storage"))
        found = self._source.get_token(*scopes, **options)
        self.tokens.append(found.token)
        return found


@dataclass
class Uploaded:
    """What the package gave back. warnings: what it only logged, such as calls that failed."""

    url: str | None
    metrics: dict[str, float]
    warnings: list[str] = field(default_factory=list)

    def why(self, step: Step) -> tuple[str, int | None]:
        """What it said about calls that failed and what to do, and the HTTP status in that."""
        if not self.warnings:
            return "", None
        said = next((text for text in self.warnings if _STATUS.search(text)), self.warnings[0])
        found = _STATUS.search(said)
        status = int(found[1]) if found else None
        # It does not tell the status of every call.
        advice = (
            remedy(step, status, said)
            if status
            else f"where that is not allowed, {step.permission}"
        )
        return f". azure-ai-evaluation said: {said[:_SHOWN].rstrip('.')}; {advice}", status


class Warnings(logging.Handler):
    """Keeps what a package logs as a warning or an error."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it as one line."""
        self.found.append(" ".join(record.getMessage().split()))


def upload(
    data: Path,
    evaluators: Mapping[str, Any],
    project: Project,
    name: str,
    tags: Mapping[str, str],
    step: Step,
) -> Uploaded:
    """Let `evaluate` run stored evaluators over `data`, and log what they give to a project.

    step: what a person needs who may not do it. Raises UploadError where the package raises.
    """
    login = Login(project.credential)
    mapping = {"column_mapping": {"assay_row": "${data.assay_row}"}}
    try:
        with _quiet() as warnings:
            from azure.ai.evaluation import evaluate

            found = evaluate(
                data=str(data),
                evaluators=dict(evaluators),
                evaluator_config={"default": mapping},
                evaluation_name=name,
                azure_ai_project=project.as_dict()
                if isinstance(project, Hub)
                else project.endpoint,
                tags=dict(tags),
                credential=login,
            )
    except Exception as error:
        raise _failure(error, step, login) from None
    said = [_plain(text, login) for text in warnings]
    return Uploaded(found.get("studio_url"), dict(found.get("metrics") or {}), said)


@contextlib.contextmanager
def _quiet() -> Iterator[list[str]]:
    """What the package prints is talk, so it goes to stderr. What it logs is kept from there:
    it holds the answers of services, which may hold what they were sent."""
    logger, handler = logging.getLogger(_PACKAGE), Warnings()
    with _alone, contextlib.redirect_stdout(sys.stderr):
        before = logger.propagate
        logger.addHandler(handler)
        logger.propagate = False
        try:
            yield handler.found
        finally:
            logger.removeHandler(handler)
            logger.propagate = before


def _failure(error: Exception, step: Step, login: Login) -> UploadError:
    """From whatever the package raised: the call, its status, and what to do."""
    chain = list(_chain(error))
    for current in chain:
        if isinstance(current, UploadError):
            return current
        found = _refusal(current, step, login)
        if found is not None:
            return found
    if any(isinstance(current, ConnectionError | TimeoutError) for current in chain):
        return UploadError(f"{step.title} by azure-ai-evaluation got no answer; {NETWORK}")
    said = _plain(str(error), login)
    told = _STATUS.search(said)
    status = int(told[1]) if told else None
    advice = remedy(step, status, said) if status else "look at the message, and repeat it"
    text = f"{step.title} by azure-ai-evaluation failed: {said[:_SHOWN]}; {advice}"
    return UploadError(text, status=status, step=step)


def _refusal(error: BaseException, step: Step, login: Login) -> UploadError | None:
    """From an error of azure-core or requests that knows its request."""
    response = getattr(error, "response", None)
    request = getattr(response, "request", None) or getattr(error, "request", None)
    url = str(getattr(request, "url", None) or "")
    if not url:
        return None
    host, call = urlsplit(url).netloc, _call(request, step)
    status = getattr(response, "status_code", None)
    if status is None:
        return unreachable(call, host, type(error).__name__)
    said = str(getattr(error, "message", error)).encode()
    return refused(call, host, status, said, (*login.tokens, *signatures(url)))


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error and what led to it, the innermost last."""
    current: BaseException | None = error
    seen: list[BaseException] = []
    while current is not None and current not in seen:
        seen.append(current)
        yield current
        inner = getattr(current, "inner_exception", None)
        current = inner or current.__cause__ or current.__context__


def _call(request: Any, step: Step) -> Step:
    """The call that a request made; its query may hold a signature."""
    parts = urlsplit(request.url)
    if "x-ms-blob-type" in request.headers:
        shown = f"{parts.netloc}{parts.path}"
        by_token = "Authorization" in request.headers
        return to_storage("uploading the rows", request.url, shown, by_token=by_token)
    return Step(step.title, request.method, parts.path, step.permission, step.login, step.absent)


def _plain(text: str, login: Login) -> str:
    """One line, without payloads and secrets."""
    line = _PAYLOAD.sub("...", " ".join(text.split()))
    return redact(_QUERY.sub("?...", line), login.tokens)

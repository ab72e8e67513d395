"""What went wrong with an upload, said so that a person can act on it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from assay.azure.step import Step
from assay.errors import AssayError
from assay.judge.faults import redact

NETWORK = "check the network, the proxy and the name of the project"
_SHOWN, _READ = 300, 4096
_LOGIN = re.compile(r"AuthenticationFailed|failed to authenticate the request")
_XML = re.compile(r"<(?:Code|Message)>([^<\n]*)")
_ACTION = re.compile(r"(?<![/\w])Microsoft\.[A-Za-z]+(?:/[\w*.-]+)+")


class UploadError(AssayError):
    """A run could not be shown in Azure; it is on disk, whole.

    status: the HTTP status, where there was one. step: the call. run: what `evaluate` would
    have returned.
    """

    exit_code = 3

    def __init__(
        self, message: str, *, status: int | None = None, step: Step | None = None
    ) -> None:
        self.status = status
        self.step = step
        self.run: Any = None
        super().__init__(message)


def refused(step: Step, host: str, status: int, body: bytes, secrets: Iterable[str]) -> UploadError:
    """The error for an answer that is no success: call, status, and what to do."""
    said = words_of(body)
    head = f"{step.title} failed: {step.method} {step.shown} at {host} answered HTTP {status}"
    if status in (401, 403):
        text = f"{head}: {remedy(step, status, said)}"
    else:
        shown = redact(" ".join(said.split()), secrets)[:_SHOWN]
        text = f"{head}{f' ({shown})' if shown else ''}; {remedy(step, status, said)}"
    return UploadError(text, status=status, step=step)


def remedy(step: Step, status: int, said: str = "") -> str:
    """What to do about a status; `said` are the service's own words."""
    # Storage answers 403 to a signature that is wrong or over as well.
    if status == 401 or (status == 403 and _LOGIN.search(said)):
        return f"the login is not accepted; {step.login}"
    if status == 403:
        action = _ACTION.search(said)
        missing = f"action {action[0]}, which " if action else ""
        return f"missing permission: {missing}{step.permission}"
    return _advice(step, status)


def _advice(step: Step, status: int) -> str:
    if status == 404:
        return step.absent
    if status == 409:
        return "something else changes the same thing now; repeat it"
    if status == 429:
        return "the service limits how often it is asked; repeat it later"
    if status >= 500:
        return "the service failed; repeat it later"
    return step.rejected


def unreachable(step: Step, host: str, why: str) -> UploadError:
    """The error for a call that got no answer at all."""
    head = f"{step.title} failed: {step.method} {step.shown} at {host} got no answer"
    return UploadError(f"{head} ({why}); {NETWORK}", step=step)


def words_of(body: bytes) -> str:
    """The service's own words in any of its error shapes; storage answers XML."""
    try:
        found = json.loads(body)
    except ValueError:
        text = body[:_READ].decode("utf-8", "replace")
        return ": ".join(_XML.findall(text)) or text[:_SHOWN]
    error = found.get("error", found) if isinstance(found, dict) else found
    if not isinstance(error, dict):
        return str(error)
    parts = (str(error[name]) for name in ("code", "message") if error.get(name))
    return ": ".join(parts)

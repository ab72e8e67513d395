"""What went wrong with an upload, said so that a person can act on it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from assay.azure.step import Step
from assay.errors import AssayError
from assay.judge.faults import redact

_SHOWN = 300
_ACTION = re.compile(r"Microsoft\.[A-Za-z]+(?:/[\w*.-]+)+")


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
    action = _ACTION.search(said)
    said = redact(said, secrets)[:_SHOWN].strip()
    head = f"{step.title} failed: {step.method} {step.shown} at {host} answered HTTP {status}"
    if status == 401:
        text = f"{head}: the login is not accepted; {step.login}"
    elif status == 403:
        missing = f"action {action[0]}, which " if action else ""
        text = f"{head}: missing permission: {missing}{step.permission}"
    else:
        text = f"{head}{f' ({said})' if said else ''}; {_advice(step, status)}"
    return UploadError(text, status=status, step=step)


def _advice(step: Step, status: int) -> str:
    if status == 404:
        return step.absent
    if status == 409:
        return "something else changes the same thing now; repeat it"
    if status == 429:
        return "the service limits how often it is asked; repeat it later"
    if status >= 500:
        return "the service failed; repeat it later"
    return "the service did not take the request; --dry-run shows what is sent"


def unreachable(step: Step, host: str, why: str) -> UploadError:
    """The error for a call that got no answer at all."""
    return UploadError(
        f"{step.title} failed: {step.method} {step.shown} at {host} got no answer ({why}); "
        "check the network, the proxy and the name of the project",
        step=step,
    )


def words_of(body: bytes) -> str:
    """The service's own words in any of its error shapes."""
    try:
        found = json.loads(body)
    except ValueError:
        return body[:_SHOWN].decode("utf-8", "replace")
    error = found.get("error", found) if isinstance(found, dict) else found
    if not isinstance(error, dict):
        return str(error)
    parts = (str(error[name]) for name in ("code", "message") if error.get(name))
    return ": ".join(parts)

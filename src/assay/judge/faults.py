"""From an HTTP answer that is no reply to the error that says what it means."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from assay.errors import JudgeError, JudgeRefusal

RETRYABLE = {408, 409, 425, 429, 500, 502, 503, 504, 529}
_LATER = {"rate_limit_exceeded", "server_error"}
"""Codes that ask to come back, also within a 200."""
_POLICY = ("policy_violation", "bio_policy")
_QUOTA = {"insufficient_quota", "billing_hard_limit_reached", "quota_exceeded"}
_SHOWN = 300


def fault(
    status: int, headers: Mapping[str, str], body: bytes, where: str, secrets: Iterable[str] = ()
) -> JudgeError:
    """The JudgeError for an answer with `status`. `where` names judge and host in its message."""
    error = _error_object(body)
    code = str(error.get("code") or error.get("type") or "")
    # A 401 often repeats the key it was given, so its own words are not passed on.
    said = "" if status in (401, 403) else redact(str(error.get("message") or ""), secrets)
    said = f": {said[:_SHOWN]}" if said else ""
    wait = retry_after(headers)
    if status in (401, 403):
        return JudgeError(
            f"{where} refused the credentials (HTTP {status}); check the key or the role "
            "assignment of the identity",
            cause="authentication",
            fatal=True,
            status=status,
        )
    if status == 404:
        return JudgeError(
            f"{where} knows no such model, deployment or path (HTTP 404){said}",
            cause="not_found",
            fatal=True,
            status=status,
        )
    filtered = "content_filter" in code or code.endswith(_POLICY)
    if filtered or "content_filter_result" in str(error.get("innererror")):
        return JudgeRefusal(
            f"the content filter blocked the prompt{_categories(error)}{said}",
            cause="content_filter",
            status=status,
        )
    if code in _QUOTA:
        return JudgeError(
            f"{where}: the quota is used up{said}", cause="quota", fatal=True, status=status
        )
    if code == "context_length_exceeded" or status == 413:
        return JudgeError(
            f"the row is too long for the model{said}", cause="context_length", status=status
        )
    if status in RETRYABLE or status >= 500 or code in _LATER:
        limited = status == 429 or code == "rate_limit_exceeded"
        cause = "rate_limited" if limited else "timeout" if status == 408 else "server_error"
        return JudgeError(
            f"{where} answered HTTP {status}{said}",
            cause=cause,
            retryable=True,
            retry_after=wait,
            status=status,
        )
    return JudgeError(
        f"{where} rejected the request (HTTP {status}){said}", cause="bad_request", status=status
    )


def rejected_parameter(status: int, body: bytes) -> tuple[str, str] | None:
    """(parameter, code) where a server says by name that a model does not take one."""
    if status not in (400, 422):
        return None
    error = _error_object(body)
    code, name = error.get("code"), error.get("param")
    if code in ("unsupported_parameter", "unsupported_value") and isinstance(name, str):
        return name, code
    return None


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds a server asks to wait, from `retry-after-ms` or `retry-after` (also a date)."""
    milliseconds = headers.get("retry-after-ms")
    if milliseconds:
        try:
            return max(0.0, float(milliseconds) / 1000)
        except ValueError:
            pass
    value = headers.get("retry-after")
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError):
        return None


def redact(text: str, secrets: Iterable[str]) -> str:
    """`text` without any run of eight or more characters of a secret."""
    for secret in secrets:
        start = 0
        while start <= len(secret) - 8:
            if secret[start : start + 8] not in text:
                start += 1
                continue
            end = start + 8
            while end < len(secret) and secret[start : end + 1] in text:
                end += 1
            text = text.replace(secret[start:end], "[secret]")
        if 0 < len(secret) < 8:
            text = text.replace(secret, "[secret]")
    return text


def _error_object(body: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(body)
    except ValueError:
        return {"message": body[:_SHOWN].decode("utf-8", "replace").strip()}
    error = parsed.get("error", parsed) if isinstance(parsed, dict) else parsed
    return error if isinstance(error, dict) else {"message": str(error)}


def _categories(error: Mapping[str, Any]) -> str:
    inner = error.get("innererror")
    found = inner.get("content_filter_result") if isinstance(inner, dict) else None
    hit = [
        name
        for name, verdict in (found.items() if isinstance(found, dict) else ())
        if isinstance(verdict, dict) and (verdict.get("filtered") or verdict.get("detected"))
    ]
    return f" ({', '.join(hit)})" if hit else ""

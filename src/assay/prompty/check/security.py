"""Secrets and addresses in a file. A secret itself is never printed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from assay.prompty import Prompty
from assay.prompty.check.finding import Collector

_KEYS = {"api_key", "apikey", "key", "password", "secret", "client_secret", "token", "sas_token"}
_KEYS |= {"authorization", "api-key", "access_token", "subscription_key", "account_key"}
_PLACEHOLDER = re.compile(
    r"[<\[{].*|.*(?:your|example|placeholder|change.?me|dummy|demo|fake|mock|test|todo|insert|here).*|"
    r"[x*.\-_]+|none|null|sk-\.\.\.",
    re.IGNORECASE,
)
_REFERENCE = re.compile(r"\s*\$\{\s*\w+\s*:([^}:]*)(?::([^}]*))?\}\s*")
_PATTERNS = (
    ("an OpenAI key", re.compile(r"\bsk-[A-Za-z0-9_-]{20,}")),
    ("a bearer token", re.compile(r"(?i)\bbearer\s+[A-Za-z0-9._~+/-]{20,}")),
    ("a JSON web token", re.compile(r"\beyJ[\w-]{8,400}\.[\w-]{8,4000}\.[\w-]{8,}")),
    ("a shared access signature", re.compile(r"[?&]sig=[A-Za-z0-9%+/=]{20,}")),
    ("an account key", re.compile(r"(?i)\b(?:Account|SharedAccess)Key=[A-Za-z0-9+/=]{20,}")),
    ("an access key", re.compile(r"\b(?:AKIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{30,})\b")),
    (
        "a key",
        re.compile(
            r"(?i)(?:key|secret|token|password|credential)\w{0,20}[\"']?\s{0,9}[:=]\s{0,9}[\"']?"
            r"(?:[0-9a-f]{32,}|[A-Za-z0-9]{80,})\b"
        ),
    ),
)
_LOOPBACK = re.compile(r"localhost$|127\.|::1$|0\.0\.0\.0$")


def check_secrets(text: str, found: Collector) -> None:
    """Text anywhere in the file that has the form of a credential. Works on broken files too."""
    for number, line in enumerate(text.split("\n"), 1):
        for what, pattern in _PATTERNS:
            match = pattern.search(line)
            if match and not _is_placeholder(match[0]):
                message = f"what looks like {what} is written into the file: revoke it, and refer "
                message += "to an environment variable, ${env:NAME}"
                found.add("secret", message, number, match.start() + 1)
                break


def _is_placeholder(text: str) -> bool:
    """Repetitions such as sk-xxxxxxxx are examples, not keys."""
    return len(set(re.sub(r"[^A-Za-z0-9]", "", text[-20:]).lower())) < 5


def check_connection(prompty: Prompty, found: Collector) -> None:
    """Credentials given as literals, and endpoints that would send them in the clear."""
    told = {finding.line for finding in found.findings if finding.code == "secret"}
    for path, value in _settings(prompty.front):
        key = str(path[-1]).lower()
        if key in _KEYS and _is_literal(value) and found.place(path)[0] not in told:
            message = f"`{'.'.join(map(str, path))}` holds a literal: write ${{env:NAME}} instead"
            found.add_at("secret", message, path)
        if key.endswith(("endpoint", "base_url", "baseurl", "api_base")):
            _check_endpoint(path, value, found)


def _settings(front: Mapping[str, Any]) -> Iterator[tuple[tuple[Any, ...], str]]:
    open_: list[tuple[tuple[Any, ...], Any]] = [
        ((key,), front[key])
        for key in ("model", "connection", "configuration", "tools")
        if key in front
    ]
    while open_:
        path, value = open_.pop(0)
        if isinstance(value, str):
            yield path, value
        elif isinstance(value, Mapping):
            open_ += [((*path, key), item) for key, item in value.items() if key != "parameters"]
        elif isinstance(value, list):
            open_ += [((*path, index), item) for index, item in enumerate(value)]


def _is_literal(value: str) -> bool:
    reference = _REFERENCE.fullmatch(value)
    if reference:
        value = reference[2] or ""
    value = value.strip()
    if not value or "${" in value or _PLACEHOLDER.fullmatch(value):
        return False
    return not (len(value) >= 20 and _is_placeholder(value))


def _check_endpoint(path: tuple[Any, ...], value: str, found: Collector) -> None:
    if not value.strip().lower().startswith("http://"):
        return
    try:
        host = urlsplit(value.strip()).hostname or ""
    except ValueError:
        host = ""
    if not _LOOPBACK.match(host):
        message = "the endpoint is not https: prompts and keys would travel in the clear"
        found.add_at("insecure-endpoint", message, path)

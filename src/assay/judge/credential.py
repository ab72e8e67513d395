"""How a judge logs in: with a key, with an Entra ID token, or not at all."""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import urlsplit

from assay.errors import JudgeError, SetupError
from assay.judge.faults import redact

AZURE_SCOPE = "https://cognitiveservices.azure.com/.default"
_SECRETS = ("AZURE_CLIENT_SECRET", "AZURE_CLIENT_CERTIFICATE_PASSWORD", "AZURE_PASSWORD")
_EARLY = 300  # seconds before its end that a token is renewed


class Credential(Protocol):
    """Gives the headers that log a request in."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must never be shown."""

    async def headers(self) -> Mapping[str, str]:
        """Headers for the next request."""


@dataclass(frozen=True)
class Key:
    """A fixed key: `bearer` for OpenAI and compatible servers, else Azure's `api-key`."""

    key: str = field(repr=False)
    bearer: bool = True

    @property
    def secrets(self) -> tuple[str, ...]:
        return (self.key,)

    async def headers(self) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {self.key}"} if self.bearer else {"api-key": self.key}


@dataclass(frozen=True)
class NoCredential:
    """For servers that ask for none, such as Ollama."""

    @property
    def secrets(self) -> tuple[str, ...]:
        return ()

    async def headers(self) -> Mapping[str, str]:
        return {}


@dataclass
class Entra:
    """Tokens of Entra ID, from any object with `get_token(scope)`.

    Without one, azure-identity's DefaultAzureCredential is used (extra `azure`). A token never
    goes to an address without TLS.
    """

    url: str
    source: Any = field(default=None, repr=False)
    scope: str = AZURE_SCOPE
    _token: str = field(default="", repr=False)
    _expires: float = 0.0

    def __post_init__(self) -> None:
        try:
            has_tls = urlsplit(self.url).scheme == "https"
        except ValueError:
            raise SetupError(f"{self.url!r} is no web address") from None
        if not has_tls and not is_loopback(self.url):
            raise SetupError(f"an Entra ID token is not sent to {self.url}: it has no TLS")
        if self.source is None:
            self.source = _default_credential()

    @property
    def secrets(self) -> tuple[str, ...]:
        return (self._token,) if self._token else ()

    async def headers(self) -> Mapping[str, str]:
        if time.time() > self._expires - _EARLY:
            try:
                token = await asyncio.to_thread(self.source.get_token, self.scope)
                token = await token if inspect.isawaitable(token) else token
            except Exception as error:
                raise JudgeError(
                    f"no Entra ID token: {_why(error)}",
                    cause="authentication",
                    fatal=True,
                ) from None
            self._token, self._expires = token.token, float(token.expires_on)
        return {"Authorization": f"Bearer {self._token}"}


def is_loopback(url: str) -> bool:
    """Whether an address is on this machine."""
    return urlsplit(url).hostname in ("127.0.0.1", "localhost", "::1")


def _why(error: Exception) -> str:
    """What a credential says, in one line: Entra ID's own words where they are among them."""
    lines = [" ".join(line.split()) for line in str(error).splitlines() if line.strip()]
    said = next((line for line in lines if "AADSTS" in line), lines[0] if lines else "")
    secrets = [os.environ[name] for name in _SECRETS if os.environ.get(name)]
    return redact(said, secrets)[:300].rstrip(".") or type(error).__name__


def default_credential() -> Any:
    """azure-identity's own search for a login. Raises ImportError where it is missing."""
    from azure.identity import DefaultAzureCredential

    # What it logs on many lines is said in one; who set logging up gets it all the same.
    logging.getLogger("azure.identity").addHandler(logging.NullHandler())
    return DefaultAzureCredential()


def _default_credential() -> Any:
    try:
        return default_credential()
    except ImportError:
        raise SetupError(
            "Azure OpenAI without a key needs Entra ID: set AZURE_OPENAI_API_KEY, or "
            'pip install "assay[azure]"'
        ) from None

"""An Azure AI project as judges and uploads need it: its address, and the token it takes."""

from __future__ import annotations

import os
import re
import time
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from assay.config import load_config
from assay.errors import SetupError
from assay.judge.credential import Entra, default_credential

TOKEN = "AZURE_AI_PROJECT_TOKEN"
"""A token somebody already has, for machines without azure-identity."""

SCOPE = "https://ai.azure.com/.default"
FORM = "https://ACCOUNT.services.ai.azure.com/api/projects/PROJECT"


class Token(NamedTuple):
    """What `get_token` of any credential returns."""

    token: str
    expires_on: int


class FixedToken:
    """A credential that gives the token of the environment."""

    def __init__(self, token: str) -> None:
        self._token = token

    def get_token(self, *scopes: str, **_: Any) -> Token:
        """The token as it is: its end is not known, so it counts as good for an hour."""
        return Token(self._token, int(time.time()) + 3600)


def named_project() -> Any:
    """What AZURE_AI_PROJECT_ENDPOINT, AZURE_AI_PROJECT or assay.toml say; None for nothing."""
    return (
        os.environ.get("AZURE_AI_PROJECT_ENDPOINT")
        or os.environ.get("AZURE_AI_PROJECT")
        or load_config().get("azure_ai_project")
    )


def checked_endpoint(named: Any, setting: str = "azure_ai_project") -> str:
    """The address of a project, without a slash at its end. Raises SetupError for any other."""
    text = str(named).strip()
    try:
        parts = urlsplit(text)
    except ValueError:
        raise SetupError(f"{setting} {text!r} is no web address") from None
    if not parts.scheme or not parts.hostname:
        raise SetupError(f"{setting} is not the endpoint of a project: it looks like {FORM}")
    shown = f"{parts.scheme}://{parts.hostname}{parts.path}"
    if parts.scheme != "https":
        raise SetupError(f"{setting} {shown} has no TLS: a token is only sent to https://")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise SetupError(f"{setting} {shown}: give the address alone, as {FORM}")
    if not re.fullmatch(r"/api/projects/[^/]+/?", parts.path):
        raise SetupError(f"{setting} {shown} names no project: it looks like {FORM}")
    return text.rstrip("/")


def environment_token() -> FixedToken | None:
    """The token of AZURE_AI_PROJECT_TOKEN, where it is set."""
    token = os.environ.get(TOKEN, "").strip()
    return FixedToken(token) if token else None


def identity() -> Any:
    """azure-identity's own search for a login."""
    try:
        return default_credential()
    except ImportError:
        raise SetupError(
            'logging in to the project needs azure-identity: pip install "assay[azure]"; or give '
            f"credential=, or a token in {TOKEN}"
        ) from None


def project_login(endpoint: str, credential: Any = None) -> Entra:
    """The login of a project: `credential`, else the environment's token, else azure-identity."""
    return Entra(endpoint, credential or environment_token() or identity(), SCOPE)

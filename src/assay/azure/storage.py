"""Blob storage that takes no keys: which hosts are sent a token for it, and whose."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote, urlsplit

from assay.azure.faults import UploadError
from assay.azure.step import Step
from assay.judge.credential import Entra, is_loopback
from assay.judge.project import TOKEN, FixedToken

SCOPE = "https://storage.azure.com/.default"
HEADERS = {"x-ms-version": "2021-12-02"}
"""Storage takes tokens only of who names a version of its interface."""

# What a service answers is no reason to trust a host: only Azure's own storage sees a token.
_HOSTS = (
    ".blob.core.windows.net",
    ".blob.core.usgovcloudapi.net",
    ".blob.core.chinacloudapi.cn",
    ".blob.storage.azure.net",
)


def storage_login(url: str, source: Any, step: Step) -> Entra:
    """The login for an address of blob storage, with tokens of `source`.

    Raises UploadError where no token may go there.
    """
    host = (urlsplit(url).hostname or "").lower()
    if not host.endswith(_HOSTS) and not is_loopback(url):
        raise UploadError(
            f"{step.title}: no token is sent to {host}, which is no storage of Azure", step=step
        )
    refuse_fixed(source, step)
    return Entra(url, source, SCOPE)


def refuse_fixed(source: Any, step: Step) -> None:
    """A token of the environment is for the project alone: no storage would take it."""
    if isinstance(source, FixedToken):
        raise UploadError(
            f"{step.title}: the storage takes no keys, and {TOKEN} holds a token for the project, "
            "not for the storage; unset it and log in with az login, or give credential=",
            step=step,
        )


def signatures(url: str) -> tuple[str, ...]:
    """What must never be shown of an address that logs in by itself."""
    query = urlsplit(url).query.split("&")
    found = [part.removeprefix("sig=") for part in query if part.startswith("sig=")]
    return (*found, *map(unquote, found))

"""One call of an upload: what it is for, and what it needs."""

from __future__ import annotations

from dataclasses import dataclass

_ROLE = (
    'the role "Foundry User" (formerly "Azure AI User") on the project gives it: '
    "Foundry portal, Management center, Users"
)
_STORAGE = (
    '{who} "Storage Blob Data Contributor" on the storage account, and '
    "its firewall must let this machine in"
)
_LOGIN = "log in again (az login), to the tenant of the project"


@dataclass(frozen=True)
class Step:
    """A call by its purpose.

    title: what it does. shown: its path for people, never with a query, which may hold a
    signature. repeatable: whether sending it twice does no harm.
    """

    title: str
    method: str
    path: str
    permission: str = _ROLE
    login: str = _LOGIN
    absent: str = "the project, or what the call names, does not exist: check the endpoint"
    rejected: str = "the service did not take the request; --dry-run shows what is sent"
    shown_path: str = ""

    @property
    def shown(self) -> str:
        return self.shown_path or self.path

    @property
    def repeatable(self) -> bool:
        return self.method in ("GET", "PUT", "PATCH", "DELETE")


def to_storage(title: str, url: str, shown: str, *, by_token: bool = False) -> Step:
    """A PUT to blob storage, logged in by the signature in its address or by a token."""
    return Step(
        title,
        "PUT",
        url,
        permission=_STORAGE.format(who="you need" if by_token else "the project's identity needs"),
        login=_LOGIN
        if by_token
        else "the signature the project gave is not accepted; repeat it for a fresh one",
        absent="the storage container does not exist: check the project's storage connection",
        shown_path=shown,
    )

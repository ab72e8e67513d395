"""Callers who log in with a token of Entra ID: signed by the tenant, for us, of whom we let in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assay.errors import SetupError
from assay.service.tenant import GUID, Tenant

_ALGORITHM = "RS256"  # what Entra ID signs with; a token does not get to choose
_LEEWAY = 60.0  # seconds by which clocks may differ
_CLAIMS = ["exp", "nbf", "aud", "iss", "tid", "oid"]


class Refused(Exception):
    """Why a token lets nobody in, in one line that holds nothing of it."""


@dataclass(frozen=True)
class Bearer:
    """Whose tokens are good here.

    audiences: as the token's `aud` may name us, an Application ID URI or a client id.
    allowed: object ids (`oid`) of the identities let in, in lower case.
    """

    audiences: tuple[str, ...]
    allowed: frozenset[str]
    tenant: Tenant

    async def check(self, token: str) -> None:
        """Raises Refused for a token that is not good, and SetupError where that cannot be
        told because the tenant's keys cannot be fetched now."""
        import jwt

        try:
            header = jwt.get_unverified_header(token)
        except (jwt.PyJWTError, ValueError, RecursionError):
            raise Refused("the token cannot be read") from None
        if header.get("alg") != _ALGORITHM:
            raise Refused(f"the token is not signed with {_ALGORITHM}")
        key = await self.tenant.key(str(header.get("kid")))
        if key is None:
            raise Refused("the token is signed with no key of the tenant")
        try:
            claims = jwt.decode(
                token,
                key,
                algorithms=[_ALGORITHM],
                audience=list(self.audiences),
                issuer=list(self.tenant.issuers),
                leeway=_LEEWAY,
                options={"require": _CLAIMS},
            )
        except jwt.PyJWTError as error:
            raise Refused(_why(error)) from None
        if str(claims["tid"]).lower() != self.tenant.id:
            raise Refused("the token is of another tenant")
        if str(claims["oid"]).lower() not in self.allowed:
            raise Refused("the token's identity is not allowed here")


def make_bearer(
    audiences: Sequence[str], tenant: str | None, allowed: Sequence[str]
) -> Bearer | None:
    """The check from what was asked for; None where no audience is named.

    An identity of the tenant can usually get a token for any audience of it, so the ones let
    in must be named. Raises SetupError for what is missing or no id.
    """
    named = [f"--{name}" for name, given in (("tenant", tenant), ("allow", allowed)) if given]
    if not audiences:
        if named:
            raise SetupError(f"{' and '.join(named)} needs --audience: what tokens must be for")
        return None
    if not tenant:
        raise SetupError("--audience needs --tenant: whose tokens are good, by id or domain")
    if not allowed:
        raise SetupError(
            "--audience needs --allow: the object id of the identity that calls, such as the "
            "project's managed identity; others of the tenant can get a token for it too"
        )
    for identity in allowed:
        if not GUID.fullmatch(identity):
            raise SetupError(f"--allow {identity!r} is no object id: it is a GUID")
    _need_jwt()
    return Bearer(tuple(audiences), frozenset(map(str.lower, allowed)), Tenant(tenant))


def _why(error: Exception) -> str:
    import jwt

    if isinstance(error, jwt.MissingRequiredClaimError):
        return f"the token has no {error.claim}"
    reasons: dict[type[Exception], str] = {
        jwt.InvalidSignatureError: "the token's signature is wrong",
        jwt.ExpiredSignatureError: "the token has expired",
        jwt.ImmatureSignatureError: "the token is not valid yet",
        jwt.InvalidAudienceError: "the token is for another audience",
        jwt.InvalidIssuerError: "the token is of another issuer",
    }
    return reasons.get(type(error), "the token cannot be read")


def _need_jwt() -> None:
    """PyJWT imports without cryptography, but then it checks no RS256."""
    try:
        from jwt.algorithms import has_crypto
    except ImportError:
        has_crypto = False
    if not has_crypto:
        raise SetupError('tokens of Entra ID are checked by PyJWT: pip install "assay[azure]"')

"""`assay serve`: metrics as an endpoint evaluator."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Annotated

import typer


def serve(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="Metrics: names or .prompty files.")
    ],
    judge: Annotated[
        str | None,
        typer.Option(
            help="openai:MODEL, azure:DEPLOYMENT, project:MODEL, ollama:MODEL, baseline, ..."
        ),
    ] = None,
    base_url: Annotated[str | None, typer.Option(help="Any OpenAI-compatible server.")] = None,
    host: Annotated[
        str, typer.Option(help="Another than loopback needs ASSAY_SERVE_KEY or --audience.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 takes a free one.")] = 8080,
    audience: Annotated[
        list[str] | None,
        typer.Option(
            envvar="ASSAY_SERVE_AUDIENCE",
            help="Let in tokens of Entra ID for this: api://... or a client id; repeatable.",
        ),
    ] = None,
    tenant: Annotated[
        str | None,
        typer.Option(envvar="ASSAY_SERVE_TENANT", help="Whose tokens: an id or a domain."),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            envvar="ASSAY_SERVE_ALLOW",
            metavar="OBJECT_ID",
            help="An identity let in, such as the project's; needed with --audience, repeatable.",
        ),
    ] = None,
) -> None:
    """Answer Foundry's endpoint evaluator requests with these metrics, until Ctrl-C.

    A caller must send the value of ASSAY_SERVE_KEY in the header `api-key`, where it is set, or
    a bearer token of Entra ID, where --audience is given; either, where both are.
    """

    from assay.service import endpoint
    from assay.service.bearer import make_bearer

    key = os.environ.get(endpoint.KEY) or None
    bearer = make_bearer(audience or (), tenant, allow or ())
    endpoint.check_bind(host, guarded=bool(key or bearer))
    made = endpoint.make_endpoint(files, judge=judge, base_url=base_url, key=key, bearer=bearer)

    def ready(url: str) -> None:
        for name in made.served:
            print(f"{url}/{name}")
        sys.stdout.flush()
        print(f"{_asked(key, bearer is not None)}; Ctrl-C ends it", file=sys.stderr)

    try:
        asyncio.run(endpoint.serve(made, host, port, ready))
    except KeyboardInterrupt:
        print("ended", file=sys.stderr)


def _asked(key: str | None, bearer: bool) -> str:
    """What callers must send, in words."""
    if not key and not bearer:
        return "no key is asked for: loopback only"
    named = [*(["api-key"] if key else []), *(["a token of Entra ID"] if bearer else [])]
    return f"{' or '.join(named)} is asked for"

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
        str | None, typer.Option(help="openai:MODEL, azure:DEPLOYMENT, ollama:MODEL, baseline, ...")
    ] = None,
    base_url: Annotated[str | None, typer.Option(help="Any OpenAI-compatible server.")] = None,
    host: Annotated[
        str, typer.Option(help="Another than loopback needs ASSAY_SERVE_KEY.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 takes a free one.")] = 8080,
) -> None:
    """Answer Foundry's endpoint evaluator requests with these metrics, until Ctrl-C.

    A caller must send the value of ASSAY_SERVE_KEY in the header `api-key`, where it is set.
    """

    from assay.service import endpoint

    key = os.environ.get(endpoint.KEY) or None
    endpoint.check_bind(host, key)
    made = endpoint.make_endpoint(files, judge=judge, base_url=base_url, key=key)

    def ready(url: str) -> None:
        for name in made.served:
            print(f"{url}/{name}")
        sys.stdout.flush()
        asked = "api-key is asked for" if key else "no key is asked for: loopback only"
        print(f"{asked}; Ctrl-C ends it", file=sys.stderr)

    try:
        asyncio.run(endpoint.serve(made, host, port, ready))
    except KeyboardInterrupt:
        print("ended", file=sys.stderr)

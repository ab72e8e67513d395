"""`assay cache`: what is kept of replies."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from assay.errors import SetupError


def cache(
    what: Annotated[str, typer.Argument(metavar="stats|clear", help="What to do.")] = "stats",
    json_: Annotated[bool, typer.Option("--json", help="As JSON on stdout.")] = False,
) -> None:
    """Show or clear the file of good replies."""
    from assay.cli.output import print_json
    from assay.judge.cache import ReplyStore, cache_path

    if what not in ("stats", "clear"):
        raise SetupError(f"assay cache stats or assay cache clear, not {what!r}")
    path = cache_path()
    if not path.exists():
        found: dict[str, Any] = {"path": str(path), "bytes": 0, "replies": {}}
    else:
        store = ReplyStore(path)
        if what == "clear":
            typer.echo(f"{store.clear()} replies forgotten", err=True)
        found = store.stats()
        store.close()
    if json_:
        print_json(found)
        return
    typer.echo(f"{found['path']}: {found['bytes'] / 1e6:.1f} MB")
    for judge, count in found["replies"].items():
        typer.echo(f"{judge}: {count} replies")

"""`assay convert`: a .prompty file in another dialect."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Dialect(StrEnum):
    """What a file can be converted to."""

    classic = "classic"
    v2 = "v2"


def convert(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to convert.")],
    to: Annotated[Dialect, typer.Option("--to", help="The dialect to write.")],
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Where to write; stdout without it.")
    ] = None,
) -> None:
    """Rewrite the front matter in another dialect. The body stays byte for byte."""
    from assay.errors import PromptyError
    from assay.prompty.convert import convert as convert_text
    from assay.prompty.source import decode_verbatim

    try:
        text, encoding, mark = decode_verbatim(file.read_bytes(), file)
        converted = convert_text(text, to.value, file)
        data = mark + converted.text.encode(encoding)
        if out is None:
            typer.echo(data, nl=False)
        else:
            out.write_bytes(data)
    except OSError as error:
        _stop(f"{error.filename or file}: {error.strerror or error}")
    except PromptyError as error:
        _stop(str(error))
    else:
        for note in converted.notes:
            print(f"{file}: {note}", file=sys.stderr)


def _stop(message: str) -> None:
    print(f"assay convert: {message}", file=sys.stderr)
    raise typer.Exit(2)

"""One HTML file that needs nothing beside it: style, script and data are inside.

The page's own script and style are named by hash in its Content-Security-Policy, and nothing
else may run or be loaded: even markup that got into it would do nothing.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import IO, Any

from assay.errors import RunError
from assay.jsontext import dumps

_MARK = "<!--data-->"


def write_page(
    path: Path,
    template: str,
    context: Mapping[str, Any],
    blocks: Iterable[bytes] = (),
    *,
    scripts: Iterable[str] = (),
) -> Path:
    """Write a page whole or not at all. `blocks` are written as they come.

    Raises RunError where the file cannot be written.
    """
    head, tail = render(template, context, scripts).split(_MARK)
    temporary = path.with_name(path.name + ".new")
    try:
        with temporary.open("wb") as file:
            file.write(head.encode("utf-8", "replace"))
            _write_all(file, blocks)
            file.write(tail.encode("utf-8", "replace"))
        temporary.replace(path)
    except OSError as error:
        raise RunError(f"{path} cannot be written: {error.strerror}") from None
    return path


def _write_all(file: IO[bytes], blocks: Iterable[bytes]) -> None:
    for block in blocks:
        file.write(block)


def render(
    template: str, context: Mapping[str, Any], scripts: Iterable[str] = (), connect: str = "'none'"
) -> str:
    """A page as text, with `<!--data-->` where its data goes. `connect` is what it may ask."""
    from markupsafe import Markup

    style = _asset("page.css")
    script = "\n".join(_asset(name) for name in scripts)
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        f"connect-src {connect}; img-src 'none'; base-uri 'none'; form-action 'none'"
    )
    own = {"policy": policy, "style": style, "script": script, "mark": _MARK}
    inside = {name: Markup(text) if name != "policy" else text for name, text in own.items()}
    text: str = _environment().get_template(template).render(**context, **inside)
    return text


def data_block(value: Any, name: str) -> bytes:
    """Data for the page's script, as JSON that no browser takes for markup."""
    # A `<` could end the element. JSON has it in texts only, where it may be written so.
    data = dumps(value).replace(b"<", b"\\u003c")
    return b'<script type="application/json" id="%s">%s</script>\n' % (name.encode(), data)


def rows_block(rows: Sequence[Any]) -> bytes:
    """Rows for the page's script, packed: zlib in base64, which every browser unpacks itself.

    A page of ten thousand rows takes a tenth of the room, and opens as much sooner.
    """
    packed = base64.b64encode(zlib.compress(dumps(rows), 6))
    return b'<script type="text/plain" class="rows">%s</script>\n' % packed


@cache
def _environment() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    from assay.report import words

    environment = Environment(
        loader=PackageLoader("assay.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(words.FILTERS)
    return environment


@cache
def _asset(name: str) -> str:
    return (files("assay.report") / "templates" / name).read_text("utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"

"""`${env:NAME}`, `${env:NAME:fallback}` and `${file:path}` inside front matter values.

They are replaced when the value is used, not when the file is loaded, so that a file can be
read where its variables are not set. A file reference stays inside the prompty's folder.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from assay.errors import PromptyError
from assay.prompty.frontmatter import load_value
from assay.prompty.source import decode

_REFERENCE = re.compile(r"\$\{\s*(env|file)\s*:([^{}]*)\}", re.IGNORECASE)


def unset(value: Any) -> dict[str, str]:
    """Environment variables that `value` needs and that give nothing: name to why."""
    missing: dict[str, str] = {}
    for text in _texts(value):
        for kind, body in _REFERENCE.findall(text):
            name, has_fallback, _ = body.partition(":")
            if kind.lower() == "env" and not has_fallback and not os.environ.get(name.strip()):
                known = name.strip() in os.environ
                missing[name.strip()] = "set but empty" if known else "not set"
    return missing


def named(kind: str, value: Any) -> list[str]:
    """What the references of a kind, `env` or `file`, in `value` name; fallbacks left out."""
    found = [match for text in _texts(value) for match in _REFERENCE.findall(text)]
    names = (body.partition(":")[0].strip() for word, body in found if word.lower() == kind)
    return list(dict.fromkeys(names))


def resolve(value: Any, path: Path | None) -> Any:
    """`value` with every reference replaced, in dicts and lists too.

    Raises PromptyError that lists every variable that is not set, or names the file that
    cannot be read.
    """
    missing = unset(value)
    if missing:
        names = ", ".join(f"{name} ({why})" for name, why in missing.items())
        raise PromptyError(f"environment variables needed: {names}", path=path, code="env")
    return resolve_files(_walk(value, _environment), path)


def resolve_files(value: Any, path: Path | None) -> Any:
    """`value` with only its `${file:...}` references replaced."""
    return _walk(value, lambda text: _from_file(text, path))


def read_beside(name: str, path: Path | None) -> Any:
    """A file named by a prompty: JSON and YAML parsed, anything else as text.

    Raises PromptyError where it is absolute, leaves the prompty's folder (links included),
    or cannot be read.
    """
    if path is None:
        raise PromptyError(f"${{file:{name}}} needs a prompty that is a file itself", code="file")
    try:
        folder = path.resolve().parent
        target = (folder / name).resolve()
        if Path(name).is_absolute() or not target.is_relative_to(folder):
            raise PromptyError(
                f"${{file:{name}}} leaves the prompty's folder", path=path, code="file-outside"
            )
        text = decode(target.read_bytes(), target)
        if target.suffix.lower() == ".json":
            return json.loads(text)
        if target.suffix.lower() in (".yaml", ".yml"):
            return load_value(text, path=target)[0]
    except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: links in a circle
        why = getattr(error, "strerror", None) or error  # without the absolute path
        raise PromptyError(f"${{file:{name}}}: {why}", path=path, code="file") from None
    return text


def _walk(value: Any, replace: Any) -> Any:
    if isinstance(value, str):
        return replace(value) if "${" in value else value
    if isinstance(value, Mapping):
        return {key: _walk(item, replace) for key, item in value.items()}
    if isinstance(value, list):
        return [_walk(item, replace) for item in value]
    return value


def _environment(text: str) -> str:
    def one(match: re.Match[str]) -> str:
        if match[1].lower() != "env":
            return match[0]
        name, _, fallback = match[2].partition(":")
        return os.environ.get(name.strip()) or fallback

    return _REFERENCE.sub(one, text)


def _from_file(text: str, path: Path | None) -> Any:
    match = _REFERENCE.fullmatch(text.strip())
    if match and match[1].lower() == "file":
        return read_beside(match[2].strip(), path)
    return text


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)

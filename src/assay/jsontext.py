"""Strict JSON: UTF-8, no NaN (null instead), text in its own script."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import orjson

_PLAIN = orjson.OPT_NON_STR_KEYS
_SORTED = orjson.OPT_NON_STR_KEYS | orjson.OPT_SORT_KEYS


def dumps(value: Any) -> bytes:
    """Compact JSON. What JSON has no word for is written as text."""
    try:
        return orjson.dumps(value, default=str, option=_PLAIN)
    except (TypeError, ValueError):
        return _slowly(value, sort_keys=False)


def dumps_sorted(value: Any) -> bytes:
    """Compact JSON with sorted keys, to compare and to hash."""
    try:
        return orjson.dumps(value, default=str, option=_SORTED)
    except (TypeError, ValueError):
        return _slowly(value, sort_keys=True)


def digest(value: Any, length: int = 16) -> str:
    """Hash of a value's JSON, the first `length` hex digits of SHA-256."""
    return hashlib.sha256(dumps_sorted(value)).hexdigest()[:length]


def loads(data: bytes) -> Any:
    """A JSON document. NaN, infinities and lone surrogates, which some servers send, are read
    as Python reads them. Raises ValueError for anything else."""
    try:
        return orjson.loads(data)
    except ValueError:
        return json.loads(data)


def _slowly(value: Any, *, sort_keys: bool) -> bytes:
    """Integers over 64 bits and lone surrogates, which orjson refuses."""
    text = json.dumps(
        _finite(value),
        ensure_ascii=False,
        sort_keys=sort_keys,
        separators=(",", ":"),
        default=str,
    )
    return text.encode("utf-8", "replace")


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value

"""A value in its declared type and on its declared scale, or why not."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from assay.prompty.fields import Output

AROUND = " \t\r\n\f\v\u00a0\u200b\u200c\u200d\u2060\ufeff"
"""What may stand around a reply or a value without being a part of it."""

NUMBER = re.compile(r"[-+]?\d+(\.\d+)?")
_INTEGER = re.compile(r"[-+]?\d+(\.0+)?")
LONGEST_NUMBER = 300


class Unreadable(Exception):
    """Carries a cause and a message up to `read`."""

    def __init__(self, cause: str, message: str) -> None:
        self.cause = cause
        self.message = message
        super().__init__(message)


def value_of(output: Output, found: Mapping[str, Any]) -> Any:
    """The value of `output` in `found`, converted and checked. Raises Unreadable."""
    if output.name not in found:
        near = next((key for key in found if key.casefold() == output.name.casefold()), None)
        hint = f"; it has `{near}`" if near else f"; it has {cut(', '.join(map(str, found)))}"
        raise Unreadable(
            "missing_output", f"`{output.name}` is not in the reply{hint if found else ''}"
        )
    value = found[output.name]
    if value is None and (output.nullable or not output.required):
        return None
    converted = convert(output, value)
    if output.levels and converted not in output.levels:
        shown = cut(str(converted))
        raise Unreadable("out_of_scale", f"`{output.name}` is {shown}, not {output.scale}")
    low, high = output.minimum, output.maximum
    if (low is not None and converted < low) or (high is not None and converted > high):
        shown = cut(str(converted))
        raise Unreadable("out_of_scale", f"`{output.name}` is {shown}, outside {output.scale}")
    return converted


def check_scale(output: Output, value: Any) -> str | None:
    """Why `value` is no value of `output`, in words; None where it is one."""
    try:
        value_of(output, {output.name: value})
    except Unreadable as error:
        return error.message
    return None


def convert(output: Output, value: Any) -> Any:
    """`value` in the declared type where nothing is lost; "2" is 2, 4.5 is no integer.

    Raises the reason why not, which `read` turns into an invalid reading.
    """
    result = _CONVERTERS.get(output.type, lambda value, _: value)(value, output)
    if result is None:
        shown = cut(json.dumps(value, ensure_ascii=False, default=str))
        wanted = output.scale if output.type == "string" and output.levels else output.type
        raise Unreadable("wrong_type", f"`{output.name}` is {shown}, not {wanted}")
    return result


def _to_integer(value: Any, _: Output) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    if isinstance(value, str):
        text = value.strip(AROUND)
        return int(text.split(".")[0]) if _INTEGER.fullmatch(text) and len(text) < 100 else None
    return value if isinstance(value, int) else None


def _to_number(value: Any, _: Output) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        text = value.strip(AROUND)
        return float(text) if NUMBER.fullmatch(text) and len(text) < 100 else None
    return value if isinstance(value, int | float) else None


def _to_boolean(value: Any, _: Output) -> bool | None:
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip(AROUND).lower())
    return value if isinstance(value, bool) else None


def _to_string(value: Any, output: Output) -> str | None:
    if isinstance(value, bool | int | float):
        value = json.dumps(value)
    if not isinstance(value, str):
        return None
    if not output.levels:
        return value
    wanted = _fold(value)
    return next((level for level in output.levels if _fold(str(level)) == wanted), None)


def _fold(text: str) -> str:
    return unicodedata.normalize("NFKC", text).strip(AROUND).casefold()


_CONVERTERS: dict[str, Any] = {
    "integer": _to_integer,
    "number": _to_number,
    "boolean": _to_boolean,
    "string": _to_string,
    "array": lambda value, _: value if isinstance(value, list) else None,
    "object": lambda value, _: value if isinstance(value, dict) else None,
}


def cut(text: str) -> str:
    """`text`, short enough for a message."""
    return text if len(text) <= 80 else text[:77] + "..."

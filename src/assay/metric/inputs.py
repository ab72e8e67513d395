"""From a row's values to what an evaluator declares: present, not empty, of the right type."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from assay.errors import InputError
from assay.prompty.fields import MISSING, Input
from assay.prompty.template import as_text

_WHOLE = re.compile(r"[-+]?[0-9]{1,4000}")


def bind(inputs: Mapping[str, Input], values: Mapping[str, Any]) -> dict[str, Any]:
    """The values an evaluator is run with, in their declared types.

    Text stands for any type in a `string` input: lists of texts are joined by a blank line,
    other values are written as JSON. A lone value in an `array` input is a list of one.
    Raises InputError naming every required input that is missing (`missing_input`) or empty
    (`empty_input`), or the first value of a wrong type (`wrong_input_type`).
    """
    bound: dict[str, Any] = {}
    missing: list[str] = []
    empty: list[str] = []
    for name, item in inputs.items():
        value = values.get(name, MISSING)
        if is_absent(value):
            if item.required:
                missing.append(name if value is MISSING else f"{name} (null)")
            continue
        if item.required and is_empty(value):
            empty.append(name)
            continue
        bound[name] = _typed(item, value)
    if missing:
        raise InputError(f"no value for input {', '.join(missing)}", cause="missing_input")
    if empty:
        raise InputError(f"empty input {', '.join(empty)}", cause="empty_input")
    return bound


def is_absent(value: Any) -> bool:
    """Missing, null or NaN. 0, false and empty text are values."""
    return value is MISSING or value is None or (isinstance(value, float) and math.isnan(value))


def is_empty(value: Any) -> bool:
    """Text of white space only, or a list or object with nothing in it."""
    if isinstance(value, str):
        return not value.strip()
    if isinstance(value, list | tuple):
        return all(is_absent(item) or is_empty(item) for item in value)
    return isinstance(value, Mapping) and not value


def _typed(item: Input, value: Any) -> Any:
    convert = _TYPES.get(item.type)
    try:
        result = convert(value) if convert else value
    except ValueError as error:
        raise InputError(f"input {item.name}: {error}", cause="wrong_input_type") from None
    if result is None:
        shown = value if isinstance(value, str) else repr(value)
        raise InputError(
            f"input {item.name} must be {item.type}, not {type(value).__name__} "
            f"({shown[:60]}{'...' if len(shown) > 60 else ''})",
            cause="wrong_input_type",
        )
    return result


def _text(value: Any) -> str:
    if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
        return "\n\n".join(value)
    return as_text(value)


def _integer(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        return int(value) if _WHOLE.fullmatch(value.strip()) else None
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value if isinstance(value, int) else None


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        try:
            value = float(value.strip().replace("_", "?"))
        except ValueError:
            return None
    finite = isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
    return value if finite else None


def _boolean(value: Any) -> bool | None:
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip().lower())
    return value if isinstance(value, bool) else None


def _array(value: Any) -> list[Any] | None:
    if isinstance(value, list | tuple):
        return [part for part in value if not is_absent(part)]
    return [value] if isinstance(value, str) else None


_TYPES: dict[str, Any] = {
    "string": _text,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "array": _array,
    "object": lambda value: dict(value) if isinstance(value, Mapping) else None,
    "thread": lambda value: value if isinstance(value, list) else None,
}

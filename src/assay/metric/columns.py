"""Which column gives which input.

Libraries call the same thing by different names. A name is looked up in this order: what the
caller maps, the column of the same name, then the family below.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from assay.errors import SetupError
from assay.prompty.fields import Input

FAMILIES: dict[str, tuple[str, ...]] = {
    "query": ("query", "question", "user_input", "input", "prompt"),
    "response": ("response", "answer", "actual_output", "output", "prediction", "completion"),
    "context": (
        "context",
        "contexts",
        "retrieved_contexts",
        "retrieval_context",
        "documents",
        "citations",
    ),
    "ground_truth": (
        "ground_truth",
        "reference",
        "expected_output",
        "ground_truths",
        "truth",
        "target",
        "expected_answer",
    ),
    "reference_contexts": ("reference_contexts", "ideal_contexts"),
}
"""Canonical column to the names the field uses for it, most usual first."""

_FAMILY_OF = {alias: name for name, aliases in FAMILIES.items() for alias in aliases}
_REFERENCE = re.compile(r"\$\{(?:data|target|run\.outputs|outputs)\.([^}]+)\}")


@dataclass(frozen=True, slots=True)
class Binding:
    """Input to column, for one evaluator. `aliases` says which came from the families."""

    columns: Mapping[str, str]
    aliases: Mapping[str, str]

    def values(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The row's values under the evaluator's own input names; absent columns are left out."""
        found = {}
        for name, column in self.columns.items():
            value = _look_up(row, column)
            if value is not _NOTHING:
                found[name] = value
        return found


_NOTHING: Any = object()


def _look_up(row: Mapping[str, Any], column: str) -> Any:
    if column in row:
        return row[column]
    value: Any = row
    for key in column.split("."):
        value = value.get(key, _NOTHING) if isinstance(value, Mapping) else _NOTHING
    return value


def alias_of(name: str, columns: Iterable[str]) -> str | None:
    """The column that holds what `name` means under another name, if there is one.

    `context` means the retrieved passages, unless the data also has `retrieval_context`:
    then it is the ideal passages, and the retrieved ones are in the other column.
    """
    present = list(columns)
    if name == "context" and "retrieval_context" in present:
        return "retrieval_context"
    family = "context" if name == "contexts" else _FAMILY_OF.get(name)
    if family is None:
        return None
    if family == "reference_contexts" and {"context", "retrieval_context"} <= set(present):
        return "context"
    ordered = FAMILIES[family]
    return next((alias for alias in ordered if alias in present and alias != name), None)


def bind_columns(
    evaluator: str,
    inputs: Mapping[str, Input],
    columns: Iterable[str],
    mapping: Mapping[str, str] | None = None,
) -> Binding:
    """Decide where each input comes from.

    Raises SetupError that names the evaluator, every input no column gives, the columns there
    are and the nearest one.
    """
    present = list(columns)
    mapping = mapping or {}
    chosen: dict[str, str] = {}
    aliases: dict[str, str] = {}
    missing: list[str] = []
    for name, item in inputs.items():
        if name in mapping:
            chosen[name] = mapping[name]
            if mapping[name].split(".")[0] not in present and mapping[name] not in present:
                missing.append(f"{name} (mapped to {mapping[name]})")
            continue
        ambiguous = name == "context" and "retrieval_context" in present
        if name in present and not ambiguous:
            chosen[name] = name
            continue
        alias = alias_of(name, present)
        if alias:
            chosen[name] = aliases[name] = alias
        elif item.required:
            missing.append(name)
    if missing:
        hints = "".join(_suggest(name.split(" ")[0], present) for name in missing)
        raise SetupError(
            f"{evaluator} needs {', '.join(missing)}, which no row has; columns are "
            f"{', '.join(present) or 'none'}{hints}; map one with --map INPUT=COLUMN"
        )
    return Binding(chosen, aliases)


def column_name(reference: str) -> str:
    """`response` and `${data.response}` alike. Raises SetupError for anything else."""
    match = _REFERENCE.fullmatch(reference.strip())
    if match:
        return match[1]
    if "${" in reference or not reference.strip():
        raise SetupError(f"{reference!r} is no column; write COLUMN or ${{data.COLUMN}}")
    return reference.strip()


def mapping_for(
    evaluator: str, inputs: Iterable[str], mapping: Mapping[str, Any] | None
) -> dict[str, str]:
    """The part of a mapping that concerns one evaluator: input to column.

    `{"answer": "response"}` holds for every evaluator with such an input, also under another
    name of its family; `{"similarity": {"answer": "response"}}` for that one (azure's
    `column_mapping` level is allowed).
    Raises SetupError where the evaluator's own part names an input it does not take.
    """
    known = list(inputs)
    result: dict[str, str] = {}
    for key, value in (mapping or {}).items():
        if isinstance(value, Mapping):
            if key not in (evaluator, "default"):
                continue
            for name, column in value.get("column_mapping", value).items():
                found = _input_named(name, known)
                if found:
                    result[found] = column_name(str(column))
                elif key == evaluator:
                    raise SetupError(
                        f"the mapping names {name!r}, which {evaluator} does not take; it takes "
                        f"{', '.join(known)}{_suggest(name, known)}"
                    )
        else:
            found = _input_named(key, known)
            if found:
                result.setdefault(found, column_name(str(value)))
    return result


def check_mapping(mapping: Mapping[str, Any], evaluators: Mapping[str, Iterable[str]]) -> None:
    """Raises SetupError for an entry of a mapping that no evaluator (name to inputs) uses."""
    inputs = sorted({name for names in evaluators.values() for name in names})
    for key, value in mapping.items():
        if isinstance(value, Mapping):
            if key not in evaluators and key != "default":
                raise SetupError(
                    f"the mapping names the evaluator {key!r}; evaluators are "
                    f"{', '.join(sorted(evaluators))}{_suggest(key, evaluators)}. The shape is "
                    '{"EVALUATOR": {"INPUT": "COLUMN"}} or {"INPUT": "COLUMN"}'
                )
        elif _input_named(key, inputs) is None:
            raise SetupError(
                f"the mapping names {key!r}, which no evaluator takes; they take "
                f"{', '.join(inputs)}{_suggest(key, inputs)}"
            )


def _input_named(name: str, inputs: Iterable[str]) -> str | None:
    """The input of that name, or the one of the same family."""
    family = _FAMILY_OF.get(name)
    found = None
    for item in inputs:
        if item == name:
            return item
        if family is not None and _FAMILY_OF.get(item) == family:
            found = item
    return found


def _suggest(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f" (did you mean {near[0]}?)" if near else ""

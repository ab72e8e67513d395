"""`assay try`: one row, with everything shown."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from assay.errors import SetupError


def try_(
    file: Annotated[str, typer.Argument(metavar="EVALUATOR", help="A name or a .prompty file.")],
    inputs: Annotated[
        list[str] | None, typer.Option("--input", "-i", help="NAME=VALUE, or NAME=@FILE.")
    ] = None,
    row: Annotated[str | None, typer.Option(help="A row as a JSON object, or @FILE.")] = None,
    sample: Annotated[bool, typer.Option(help="Use the file's own sample values.")] = False,
    judge: Annotated[str | None, typer.Option(help="As in `assay run`.")] = None,
    base_url: Annotated[str | None, typer.Option(help="Any OpenAI-compatible server.")] = None,
    reask: Annotated[int, typer.Option(help="Further tries for an invalid reply.")] = 0,
    json_: Annotated[bool, typer.Option("--json", help="Everything as JSON on stdout.")] = False,
) -> None:
    """Score one row; show the exact messages, the raw reply and the read outputs."""
    from assay.cli.output import print_json
    from assay.run.single import score_one

    values = _values(inputs or [], row)
    found = score_one(file, values, use_sample=sample, judge=judge, base_url=base_url, reask=reask)
    if json_:
        print_json(found)
    else:
        _print(found)
    sys.exit(3 if found["status"] == "error" else 0)


def _values(inputs: list[str], row: str | None) -> dict[str, Any]:
    values: dict[str, Any] = {}
    if row is not None:
        text = _content(row)
        try:
            parsed = json.loads(text)
        except ValueError as error:
            raise SetupError(f"--row is not JSON: {error}") from None
        if not isinstance(parsed, dict):
            raise SetupError("--row must be a JSON object")
        values |= parsed
    for item in inputs:
        name, equals, value = item.partition("=")
        if not equals:
            raise SetupError(f"--input {item!r} must be NAME=VALUE")
        values[name.strip()] = _content(value)
    return values


def _content(value: str) -> str:
    if not value.startswith("@"):
        return value
    try:
        return Path(value[1:]).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(f"{value[1:]}: {error}") from None


def _print(found: dict[str, Any]) -> None:
    for message in found["messages"]:
        content = message["content"]
        text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        _section(message["role"], text)
    for number, reply in enumerate(found["replies"], 1):
        _section("reply" if number == 1 else f"reply {number}", reply)
    print(f"status: {found['status']}")
    if found["cause"]:
        print(f"cause: {found['cause']}: {found['message']}")
    for name, value in found["outputs"].items():
        result = found["results"].get(name)
        print(f"{name}: {value}{f' ({result})' if result else ''}")
    usage = found["usage"]
    if usage["prompt_tokens"]:
        print(f"tokens: {usage['prompt_tokens']} + {usage['completion_tokens']}")


def _section(title: str, text: str) -> None:
    print(f"--- {title}")
    print(text)
    print()

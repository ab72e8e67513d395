"""Small metric files for the tests of `check`."""

from __future__ import annotations

from pathlib import Path

from assay.prompty.check import Finding, check_text

FRONT = """name: Tone
model:
  api: chat
  parameters:
    temperature: 0
    max_tokens: 400
inputs:
  answer:
    type: string
outputs:
  reason:
    type: string
  tone:
    type: integer
    minimum: 0
    maximum: 2
    levels:
      0: rude
      1: flat
      2: kind"""
BODY = """system:
Judge the tone. 0 is rude, 1 is flat, 2 is kind.
Reply with JSON: {"reason": "short", "tone": 1}

user:
{{ answer }}
"""


def metric(front: str = FRONT, body: str = BODY) -> str:
    """A file with these two parts; the body starts two lines after the front matter's last."""
    return f"---\n{front}\n---\n{body}"


def codes(text: str, path: Path | None = None) -> list[str]:
    return [finding.code for finding in check_text(text, path)]


def only(text: str, path: Path | None = None) -> Finding:
    """The one finding of a text."""
    found = check_text(text, path)
    assert len(found) == 1, [str(finding) for finding in found]
    return found[0]


def place(text: str, needle: str) -> tuple[int, int]:
    """Line and column, from 1, where `needle` first stands: what a person would count."""
    before = text[: text.index(needle)]
    return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1

"""Variants give the recorded numbers of the real libraries, or none where those are no numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bench.crosscheck.ours import HERE, VERSIONS, WHY, document, library_numbers, table

TABLE = list(table())
DOCUMENT = Path(__file__).parents[2] / "docs" / "crosscheck.md"


@pytest.mark.parametrize(
    ("metric", "name", "library", "variant", "own"),
    TABLE,
    ids=[f"{metric}-{name}" for metric, name, *_ in TABLE],
)
def test_a_variant_gives_the_number_of_its_library(
    metric: str, name: str, library: Any, variant: Any, own: Any
) -> None:
    if isinstance(library, float) and 0 <= library <= 1:
        assert variant == pytest.approx(library, abs=1e-12)
    else:  # NaN, infinity, an exception, 1.5
        assert isinstance(variant, str)
        assert variant.split(":")[0] in ("invalid", "not_applicable")
    differs = own is not None and own != pytest.approx(library, abs=1e-13)
    assert not differs or f"{metric}/{name}" in WHY, f"nothing explains {own} for {library}"


def test_every_explanation_belongs_to_a_case() -> None:
    assert set(WHY) <= {f"{metric}/{name}" for metric, name, *_ in TABLE}


def test_every_case_was_given_to_its_library() -> None:
    cases = json.loads((HERE / "cases.json").read_text("utf-8"))
    given = {
        metric.removeprefix("ragas."): set(values) for metric, values in library_numbers().items()
    }
    assert given == {metric: set(named) for metric, named in cases.items()}


def test_the_document_is_up_to_date() -> None:
    text = DOCUMENT.read_text("utf-8")
    assert text == document(), "run: python -m bench.crosscheck.ours > docs/crosscheck.md"
    assert all(f"{name} {version}" in text for name, version in VERSIONS.items())

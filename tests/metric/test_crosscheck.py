"""Variants give the recorded numbers of the real libraries, or none where those are no numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bench.crosscheck import azure_ours
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


AZURE = [(case, name) for case in azure_ours.CASES["replies"] for name in azure_ours.EVALUATORS]


@pytest.mark.parametrize(("case", "name"), AZURE, ids=[f"{n}-{c}" for c, n in AZURE])
def test_azures_names_give_its_outcome_or_the_reason_why_not(case: str, name: str) -> None:
    theirs = azure_ours.library()["replies"][name][case]
    own = azure_ours.ours()["replies"][name][case]
    assert azure_ours.same(theirs, own) or case in azure_ours.WHY, own
    assert own.get("score") is None or own["score"] in (1, 2, 3, 4, 5)  # never NaN or off the scale
    assert "raises" not in own


@pytest.mark.parametrize("kind", ["conversation", "f1_score", "document_retrieval"])
def test_azures_names_give_its_numbers_or_the_reason_why_not(kind: str) -> None:
    theirs, own = azure_ours.library()[kind], azure_ours.ours()[kind]
    assert theirs.keys() == own.keys() == azure_ours.CASES[kind].keys()
    differ = {f"{kind}/{case}" for case in theirs if theirs[case] != own[case]}
    assert differ == {key for key in azure_ours.WHY if key.startswith(f"{kind}/")}


def test_azures_results_have_the_same_keys() -> None:
    assert azure_ours.ours()["keys"] == azure_ours.library()["keys"]


def test_every_explanation_for_azure_belongs_to_a_difference() -> None:
    differ = {
        case for case, _, theirs, own in azure_ours.rows() if not azure_ours.same(theirs, own)
    }
    assert differ == {key for key in azure_ours.WHY if "/" not in key or key == "score as 4/5"}

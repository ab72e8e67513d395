"""The example of a metric of one's own: parses formulas, and runs beside similarity."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import assay
from assay.metric.registry import load
from tests.support.server import JudgeServer

EXAMPLE = Path(__file__).parents[2] / "examples" / "formula_check"
METRIC = f"{EXAMPLE / 'formula_check.py'}:formula_ok"


def checked(formula: str) -> dict[str, Any]:
    found: dict[str, Any] = _METRIC(response=formula)
    return found


_METRIC = load(METRIC)


@pytest.mark.parametrize(
    "formula",
    [
        '=IF(SUM(A1:A3)>10,"x",ROUND(B2,1))',
        "=1",
        "=-A1^2%",
        '= A1 <> B1 & "say ""hi"""',
        "=SUM('My Sheet'!A1:B2, Data!$C$3; D:D)",
        "=iferror(vlookup(A1,B:C,2,FALSE),#N/A)",
        "=TODAY()",
        "=IF(A1,,2)",
        "=((1.5e3+.5)*2)",
        "=LEN(A1)",
    ],
)
def test_well_formed(formula: str) -> None:
    found = checked(formula)
    assert found["formula_ok"] is True, found["reason"]
    assert found["formula_ok_result"] == "pass"


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("SUM(A1)", "does not start with ="),
        ("=SUM(A1", "column 8: the end where a closing bracket belongs"),
        ("=SUM(A1))", "column 9: ) is not expected here"),
        ("=1+", "column 4: the end where a value belongs"),
        ("=A1 B1", "column 5: B1 is not expected here"),
        ("=SUMME(A1)", "SUMME is not a function of the list"),
        ("=ROUND(A1)", "ROUND takes 2 arguments, not 1"),
        ("=IF(1,2,3,4)", "IF takes 2 to 3 arguments, not 4"),
        ("=SUMIFS(A1)", "SUMIFS takes 3 or more arguments, not 1"),
        ('="open', "column 2: a text without its closing quote"),
        ("=total*2", "TOTAL is neither a cell nor a call"),
        ("=A1 ? 2", "column 5: '?'"),
        ("=" + "(" * 100 + "1" + ")" * 100, "nested deeper than 64"),
        ("=", "where a value belongs"),
    ],
)
def test_what_is_wrong_is_said(formula: str, words: str) -> None:
    found = checked(formula)
    assert found["formula_ok"] is False
    assert found["formula_ok_result"] == "fail"
    assert words in found["reason"]


@given(st.text(alphabet="=A1(),;\"SUM+-*% '!:$<>#.", max_size=40))
def test_any_text_has_a_verdict(text: str) -> None:
    if not text.strip():
        return
    assert checked(text)["formula_ok"] in (True, False)


OPERAND = st.sampled_from(["1", "A1", "SUM(A1:B2)", '"x"', "TRUE", "2%"])


@given(st.lists(OPERAND, min_size=1, max_size=6), st.sampled_from(["+", "-", "&", "<=", "^"]))
def test_a_bracket_too_few_is_always_seen(operands: list[str], operator: str) -> None:
    formula = operator.join(operands)
    assert checked(f"={formula}")["formula_ok"]
    assert checked(f"=({formula})")["formula_ok"]
    assert not checked(f"=({formula}")["formula_ok"]


@pytest.mark.usefixtures("folder")
def test_beside_similarity(server: JudgeServer) -> None:
    server.reply = json.dumps({"reason": "same", "similarity": 3})
    run = assay.evaluate(
        EXAMPLE / "formulas.jsonl", ["similarity", METRIC], judge="openai:m", base_url=server.url
    )
    assert run.metrics["similarity.similarity"]["mean"] == 3
    assert run.metrics["formula_ok.formula_ok"]["mean"] == 0.5
    assert run.metrics["formula_ok.formula_ok"]["pass_rate"] == 0.5
    reasons = [row["outputs.formula_ok.formula_ok_reason"] for row in run.rows()]
    assert reasons == [
        "well formed; uses SUM, ROUND, IF",
        "column 13: the end where a closing bracket belongs",
        "COUNTWHERE is not a function of the list",
        "well formed; uses no function",
    ]

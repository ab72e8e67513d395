"""Runs side by side: what is matched with what, and what is said of it."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.errors import SetupError
from assay.report import compare, write_comparison
from tests.report.conftest import HOSTILE, ROWS, answer, data, make_run
from tests.report.look import Page
from tests.support import runs

KEY = "on_topic.score"


def better(messages: Sequence[dict[str, Any]]) -> Any:
    """One level more for every tenth row; all else as before."""
    found = answer(messages)
    asked = int(str(messages[1]["content"]).partition("QUESTION: q")[2].split()[0])
    if asked % 10 == 0 and isinstance(found, str) and found.startswith("{"):
        return json.dumps({"reason": "better now", "score": 3})
    return found


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> assay.Run:
    """The same rows in another order, one left out and one new, another prompt and judge."""
    folder = tmp_path_factory.mktemp("other")
    rows = [row for row in data() if row["id"] != "row-30"]
    random.Random(1).shuffle(rows)
    rows.append({"id": "new", "question": "q8", "answer": "a8"})
    metric = runs.write_metric(folder, extra="Be kind.")
    judge = assay.ScriptedJudge(better, name="scripted-2")
    return make_run(folder, "second", data=rows, metric=metric, judge=judge)


def test_rows_are_matched_by_id_in_any_order(run: assay.Run, other: assay.Run) -> None:
    found = compare([run, other]).as_dict()
    assert (found["matched"], found["only_in"]) == (ROWS - 1, [1, 1])
    (pair,) = found["metrics"][KEY]["against_first"]
    moved = [0, 10, 20, 40, 50]  # 30 is not in both; each goes from 1 to 3
    assert (pair["up"], pair["down"], pair["to_pass"], pair["to_fail"]) == (5, 0, 5, 0)
    assert pair["n"] == ROWS - 1 - 4
    assert pair["difference"] == pytest.approx(2 * len(moved) / pair["n"])
    assert pair["p_sign"] == 2 / 2**5
    changed = found["rows"]
    assert [row["id"] for row in changed] == [f"row-{n}" for n in moved]
    assert changed[0]["size"] == 0.5
    assert changed[0]["flipped"]


def test_what_was_set_differently_is_named(run: assay.Run, other: assay.Run) -> None:
    found = compare([run, other]).as_dict()
    names = [setting["name"] for setting in found["settings"]]
    assert "on_topic: file hash" in names
    assert "on_topic: judge" in names
    warnings = " ".join(found["warnings"])
    assert "on_topic was judged by scripted in first, by scripted-2 in second" in warnings
    assert "on_topic is another metric in second" in warnings
    (diff,) = found["prompts"]
    assert "+You mark answers. Be kind. Reply with" in diff["diff"]


def test_without_ids_content_is_the_name(tmp_path: Path) -> None:
    rows = runs.rows(6)
    first = make_run(tmp_path, "a", data=[*rows, rows[0]])
    second = make_run(tmp_path, "b", data=[rows[3], rows[0], rows[0], rows[5]])
    found = compare([first, second]).as_dict()
    assert (found["matched"], found["only_in"]) == (4, [3, 0])
    assert found["metrics"][KEY]["against_first"][0]["difference"] == 0


def test_an_id_that_stands_for_several_rows_is_no_name(tmp_path: Path) -> None:
    rows = [{**row, "id": "same"} for row in runs.rows(3)]
    first = make_run(tmp_path, "a", data=rows)
    second = make_run(tmp_path, "b", data=rows[::-1])
    found = compare([first, second]).as_dict()
    assert found["matched"] == 3
    assert found["rows"] == []
    assert any("1 ids stand for several rows" in warning for warning in found["warnings"])


def test_another_scale_is_not_compared(run: assay.Run, tmp_path: Path) -> None:
    metric = runs.write_metric(tmp_path)
    metric.write_text(metric.read_text().replace("maximum: 5", "maximum: 9"))
    found = compare([run, make_run(tmp_path, "nine", metric=metric)]).as_dict()
    assert found["metrics"][KEY]["against_first"] == []
    assert found["warnings"][0] == (
        "on_topic.score is not compared: its scale is 1..5 in the first run and 1..9 in the other."
    )


def test_there_must_be_something_to_compare(run: assay.Run, tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="at least two runs"):
        compare([run])
    with pytest.raises(SetupError, match="no row in common"):
        compare([run, make_run(tmp_path, "b", data=[{"question": "q99", "answer": "x"}])])
    another = runs.write_metric(tmp_path, "another")
    with pytest.raises(SetupError, match="no metric in common"):
        compare([run, make_run(tmp_path, "c", metric=another)])


def test_the_page(run: assay.Run, other: assay.Run, browser: Any, tmp_path: Path) -> None:
    page = Page(browser, write_comparison(compare([run, other]), tmp_path / "c.html"))
    assert page.one("h1").text == "second against first"
    assert "59 rows matched by id. 1 row of first not" in page.one("main > .about").text
    assert page.one(".means tbody tr td:nth-child(4) b").text == "+0.18"
    assert page.rows[0].endswith("1 → 3 +2 now pass")
    page.choose("Rows", "flipped")
    assert page.said == "5 of 59 rows"
    panel = page.open(0)
    assert "better now" in panel.text
    page.press("\ue00c")
    page.one(".tools .quiet").click()
    page.search("onload='window.hacked", f"1 of {ROWS - 1} rows")
    assert f"row-{HOSTILE}" in page.rows[0]
    page.open(0)
    assert page.script("return window.hacked") is None
    assert "Be kind." in page.one(".diff .add").text
    assert page.complaints() == []


def test_three_runs_are_a_column_each(
    run: assay.Run, other: assay.Run, browser: Any, tmp_path: Path
) -> None:
    again = make_run(tmp_path, "third")
    page = Page(browser, write_comparison(compare([run, other, again]), tmp_path / "c.html"))
    heads = [head.text for head in page.all("#table th")]
    assert heads[-3:] == ["on_topic.score, first", "second", "third"]
    assert page.rows[0].split("\n")[-1].startswith("1")

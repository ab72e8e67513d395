"""The report in a real browser."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import assay
from tests.report.conftest import (
    ARABIC,
    EMPTY,
    HOSTILE,
    HOSTILE_TEXT,
    PROSE,
    REASON,
    ROWS,
    SECOND_TRY,
    make_run,
)
from tests.report.look import Page
from tests.support import runs


@pytest.fixture(scope="module")
def path(run: assay.Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run.report(tmp_path_factory.mktemp("pages") / "report.html")


@pytest.fixture
def page(browser: Any, path: Path) -> Page:
    return Page(browser, path)


def test_it_opens_and_says_what_the_run_came_to(page: Page) -> None:
    assert page.one("h1").text == "first"
    assert page.one(".chip").text == "finished"
    scored = [n for n in range(ROWS) if n not in (PROSE, 2, 3, EMPTY)]
    assert page.one(".figure.lead b").text == f"{runs.mean_of(scored):.2f}"
    assert page.one(".counts").text.split("\n") == [
        "56 scored",
        "1 not applicable",
        "1 invalid",
        "1 refused",
        "1 error",
    ]
    counts = [int(count.text) for count in page.all(".chart .count")]
    assert counts == [sum(runs.score_for(n) == level for n in scored) for level in range(1, 6)]
    assert page.said == f"{ROWS} rows"
    assert len(page.rows) == 50
    assert page.complaints() == []


def test_search_looks_into_everything(page: Page) -> None:
    page.search("QUESTION no row has", f"0 of {ROWS} rows")
    page.search("BECAUSE </script><b>bold</b> 33", f"1 of {ROWS} rows")
    assert page.rows[0].startswith("34")
    page.press("\ue00c")  # Escape
    assert page.said == f"{ROWS} rows"


def test_filters_by_status_and_score(page: Page) -> None:
    page.choose("Status", "without a score")
    assert page.said == f"4 of {ROWS} rows"
    page.choose("Status", "refused")
    assert "refused" in page.rows[0]
    page.choose("Status", "Status: all")
    page.choose("on_topic.score", "fail")
    fails = [n for n in range(ROWS) if n not in (1, 2, 3, 7) and runs.score_for(n) < 3]
    assert page.said == f"{len(fails)} of {ROWS} rows"
    page.choose("on_topic.score", "2")
    assert {row.split("\n")[-1] for row in page.rows} == {"2 fail"}
    page.one(".tools .quiet").click()
    assert page.said == f"{ROWS} rows"


def test_a_bar_of_the_histogram_is_a_filter(page: Page) -> None:
    page.script("document.querySelectorAll('.chart .bar')[4].dispatchEvent(new Event('click'))")
    fives = [n for n in range(ROWS) if runs.score_for(n) == 5]
    assert page.said == f"{len(fives)} of {ROWS} rows"
    page.script("document.querySelectorAll('.chart .bar')[4].dispatchEvent(new Event('click'))")
    assert page.said == f"{ROWS} rows"


def test_sorts_with_what_is_absent_last(page: Page) -> None:
    head = page.all("#table th button")[-1]
    head.click()
    assert page.one("th[aria-sort]").get_attribute("aria-sort") == "ascending"
    assert "fail" in page.rows[0]
    head.click()
    assert page.rows[0].endswith("5")
    page.one("#pager .after").click()
    absent = [row.split("\n")[-1] for row in page.rows[-4:]]
    assert absent == ["invalid", "refused", "error", "not applicable"]


def test_a_row_shows_everything_that_happened(page: Page) -> None:
    panel = page.open(SECOND_TRY)
    assert panel.find_element("css selector", "h2").text == f"Row {SECOND_TRY + 1} · row-4"
    page.script("document.querySelectorAll('#panel details').forEach(d => d.open = true)")
    page.until(lambda: page.all("#panel .sent .message"), "the messages")
    text = panel.text
    for part in (
        "q4",
        f"{REASON} 4",
        "threshold 3",
        "You mark answers.",  # the system message, as sent
        "QUESTION: q4\nANSWER: a4",  # the user message, as sent
        "I rather like it.",  # the first reply
        "Asked again: ",
        "That reply cannot be used:",  # the message that asked again
        '{"reason": "because </script><b>bold</b> 4", "score": 5}',
        "tokens",
    ):
        assert part in text, part
    page.one("#panel .close").click()
    assert "no JSON object was found" in page.open(PROSE).text


def test_the_keyboard_is_enough(page: Page) -> None:
    page.press("/")
    assert page.script("return document.activeElement.type") == "search"
    page.press("\ue015")  # arrow down: into the table
    page.press("\ue015", "\ue007")  # the next row, Enter
    assert page.panel().find_element("css selector", "h2").text.startswith("Row 2 ")
    page.press("\ue014")  # arrow right: the row after
    page.until(lambda: page.one("#panel h2").text.startswith("Row 3 "), "the next row")
    page.press("\ue00c")  # Escape
    assert page.all("#panel:not([hidden])") == []
    assert page.script("return document.activeElement.dataset.place") == "2"


def test_dark_by_system_and_by_choice(page: Page, browser: Any) -> None:
    def ground() -> str:
        return str(page.script("return getComputedStyle(document.body).backgroundColor"))

    def system(scheme: str) -> None:
        feature = {"name": "prefers-color-scheme", "value": scheme}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})

    system("light")
    light = ground()
    system("dark")
    dark = ground()
    assert light != dark
    page.one("#theme").click()
    assert ground() == light
    system("light")
    page.one("#theme").click()
    assert ground() == dark
    page.script("localStorage.clear()")
    system("")


def test_a_hostile_row_is_text(page: Page) -> None:
    assert " ".join(HOSTILE_TEXT.split()) in page.rows[HOSTILE].replace("\n", " ")
    panel = page.open(HOSTILE)
    page.script("document.querySelectorAll('#panel details').forEach(d => d.open = true)")
    page.until(lambda: page.all("#panel .sent .message"), "the messages")
    assert "</script><script>window.hacked=1</script>" in panel.text
    assert page.script("return window.hacked") is None
    assert page.script("return document.querySelectorAll('#panel img, #panel svg, b').length") == (
        page.script(
            "return document.querySelectorAll('.figure b, .counts b, .value b, h3 b').length"
        )
    )
    assert page.complaints() == []


def test_right_to_left_and_cjk(page: Page) -> None:
    way = "return getComputedStyle(document.querySelectorAll('#table td.text span')[%d]).direction"
    assert page.script(way % (2 * ARABIC + 1)) == "rtl"
    assert page.script(way % 0) == "ltr"
    assert "保証は十年です" in page.open(ARABIC).text


def test_nothing_runs_or_loads_but_the_page_itself(page: Page) -> None:
    page.script("document.body.insertAdjacentHTML('beforeend', '<img src=https://example.org/x>')")
    page.script(
        "const s = document.createElement('script'); s.textContent = 'window.hacked = 9';"
        "document.body.append(s);"
    )
    assert page.script("return window.hacked") is None
    stopped = page.complaints()
    assert len(stopped) >= 2
    assert all("Content Security Policy" in entry for entry in stopped)


def test_it_fits_a_phone(page: Page, browser: Any) -> None:
    size = {"width": 400, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        assert page.script("return document.documentElement.scrollWidth") <= 400
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_iterations_are_all_shown(browser: Any, tmp_path: Path) -> None:
    run = make_run(tmp_path, "thrice", iterations=3)
    page = Page(browser, run.report())
    panel = page.open(0)
    assert [f"iteration {n}" in panel.text for n in (1, 2, 3, 4)] == [True, True, True, False]
    assert "sd between iterations" in page.one(".figures").text


def test_the_page_alone_is_small_and_asks_for_nothing(path: Path) -> None:
    text = path.read_text("utf-8")
    without_data = re.sub(r"<script (?:type|class)=.*?</script>", "", text, flags=re.S)
    assert len(without_data.encode()) < 200_000  # 1.5 MB are allowed
    assert "http" not in without_data.replace("http-equiv", "")
    assert text.count("<script>") == 1
    assert re.search(r"default-src &#39;none&#39;|default-src 'none'", text)

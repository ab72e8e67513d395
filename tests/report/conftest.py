"""Runs whose every score is known, and a real browser to look at their pages with."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.run.progress import Silent
from tests.support import runs

ROWS = 60
PROSE, REFUSED, FAILED, SECOND_TRY, HOSTILE, ARABIC, EMPTY = 1, 2, 3, 4, 5, 6, 7
"""Rows with something about them; every other one has the score `runs.score_for` says."""

HOSTILE_TEXT = (
    "q5 </script><script>window.hacked=1</script><img src=x onerror='window.hacked=2'>"
    "<svg onload='window.hacked=3'> & \u2028 ]]> {{7*7}} '\"`"
)
REASON = "because </script><b>bold</b>"

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)


def data() -> list[dict[str, Any]]:
    """Rows with an id each; some are hard to show."""
    rows = [{"id": f"row-{n}", **row} for n, row in enumerate(runs.rows(ROWS))]
    rows[HOSTILE]["question"] = HOSTILE_TEXT
    rows[ARABIC] |= {"question": "q6 كم تستغرق مدة الضمان؟", "answer": "عشر سنوات 保証は十年です"}
    rows[EMPTY]["answer"] = ""
    return rows


def answer(messages: Sequence[dict[str, Any]]) -> Any:
    """What the scripted judge says."""
    asked = int(str(messages[1]["content"]).partition("QUESTION: q")[2].split()[0])
    if asked == PROSE or (asked == SECOND_TRY and len(messages) == 2):
        return "I rather like it."
    if asked == REFUSED:
        return {"refusal": "I would rather not."}
    if asked == FAILED:
        return {"error": "authentication"}
    return json.dumps({"reason": f"{REASON} {asked}", "score": runs.score_for(asked)})


def make_run(folder: Path, name: str, **options: Any) -> assay.Run:
    """A run with the scripted judge, in a folder of its own name."""
    given: dict[str, Any] = {
        "data": data(),
        "judge": assay.ScriptedJudge(answer),
        "runs": folder / "runs",
        "name": name,
    } | options
    metric = given.pop("metric", None) or runs.write_metric(folder)
    return assay.evaluate(given.pop("data"), metric, progress=Silent(), **given)


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> assay.Run:
    return make_run(tmp_path_factory.mktemp("report"), "first")


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Headless Chromium, one for all tests."""
    chromium, chromedriver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or chromedriver is None:
        pytest.skip("no browser: apt-get install chromium chromium-driver")
    pytest.importorskip("selenium", reason="no selenium: pip install selenium")
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = chromium
    for flag in (*_FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(chromedriver))
    driver.set_window_size(1280, 900)
    yield driver
    driver.quit()

"""The viewer: who may ask, what it answers, and that it changes nothing."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.errors import SetupError
from assay.report import Viewer
from assay.run.journal import Lock, write_json
from tests.report.conftest import make_run
from tests.report.look import Page


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs, and beside them something that is none."""
    folder = tmp_path_factory.mktemp("viewed")
    make_run(folder, "one")
    make_run(folder, "two")
    (folder / "runs" / "notes.txt").write_text("not a run")
    (folder / "secret").mkdir()
    (folder / "secret" / "run.json").write_text("{}")
    return folder / "runs"


@pytest.fixture
def viewer(folder: Path) -> Iterator[Viewer]:
    with Viewer(folder) as running:
        yield running


def ask(viewer: Viewer, path: str, method: str = "GET", **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", viewer.port, timeout=10)
    try:
        connection.putrequest(method, path, skip_host="Host" in headers)
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_only_the_address_with_the_token_answers(viewer: Viewer) -> None:
    inside = f"/{viewer.token}/"
    assert viewer.url == f"http://127.0.0.1:{viewer.port}{inside}"
    assert ask(viewer, inside)[0] == 200
    for path in ("/", "/runs.json", "//", "/x/", f"/{viewer.token[:-1]}/", f"/{viewer.token}x/"):
        assert ask(viewer, path)[0] == 404, path
    assert ask(viewer, inside, Host="evil.example")[0] == 403
    assert ask(viewer, inside, Host=f"evil.example:{viewer.port}")[0] == 403
    assert ask(viewer, inside, Host=f"localhost:{viewer.port}")[0] == 200


@pytest.mark.parametrize(
    "path",
    [
        "run/../",
        "run/..%2fsecret/",
        "run/%2e%2e%2fsecret/",
        "run/secret/",
        "run/notes.txt/",
        "../secret/run.json",
        "run/%2fetc/",
        "run/one/run.json",
        "compare?run=../secret&run=one",
        "run/%00/",
    ],
)
def test_nothing_but_listed_runs_can_be_named(viewer: Viewer, path: str) -> None:
    assert ask(viewer, f"/{viewer.token}/{path}")[0] == 404


def test_it_only_reads(viewer: Viewer, folder: Path) -> None:
    before = {p: p.stat().st_mtime_ns for p in folder.rglob("*")}
    runs = json.loads(ask(viewer, f"/{viewer.token}/runs.json")[1])
    ids = [run["id"] for run in runs]
    assert [run["name"] for run in runs] == ["two", "one"] or len(runs) == 2
    for path in (f"run/{ids[0]}/", f"compare?run={ids[0]}&run={ids[1]}"):
        status, text = ask(viewer, f"/{viewer.token}/{path}")
        assert (status, text[:15]) == (200, "<!doctype html>")
    assert ask(viewer, f"/{viewer.token}/", "POST")[0] == 501
    assert ask(viewer, f"/{viewer.token}/", "DELETE")[0] == 501
    assert ask(viewer, f"/{viewer.token}/compare?run={ids[0]}")[0] == 422
    assert {p: p.stat().st_mtime_ns for p in folder.rglob("*")} == before


def test_a_run_that_is_going_is_counted_as_it_grows(folder: Path, tmp_path: Path) -> None:
    source = next(path for path in folder.iterdir() if path.name.endswith("one"))
    going = tmp_path / "going"
    going.mkdir()
    header = json.loads((source / "run.json").read_text())
    lines = (source / "scores.jsonl").read_bytes().splitlines(keepends=True)
    write_json(going / "run.json", {**header, "status": "running"})
    (going / "rows.jsonl").write_bytes((source / "rows.jsonl").read_bytes())
    scores = going / "scores.jsonl"
    scores.write_bytes(b"".join(lines[:10]) + lines[10][:20])
    lock = Lock(going)
    try:
        with Viewer(tmp_path) as viewer:

            def look() -> Any:
                return json.loads(ask(viewer, f"/{viewer.token}/runs.json")[1])[0]

            assert look()["progress"]["done"] == 10
            with scores.open("ab") as file:  # the half line ends, and one row is done again
                file.write(lines[10][20:] + lines[11] + lines[3])
            progress = look()["progress"]
            assert (progress["done"], progress["total"]) == (12, 60)
            assert "still going" in ask(viewer, f"/{viewer.token}/run/going/")[1]
            lock.release()
            assert look()["state"] == "broken"
            assert not (going / "summary.json").exists()
    finally:
        lock.release()


def test_a_directory_that_cannot_be_read_is_listed_as_that(tmp_path: Path) -> None:
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "run.json").write_text("{")
    with Viewer(tmp_path) as viewer:
        (entry,) = json.loads(ask(viewer, f"/{viewer.token}/runs.json")[1])
    assert entry["state"] == "unreadable"


def test_a_folder_and_a_port_must_be_there(tmp_path: Path, viewer: Viewer) -> None:
    with pytest.raises(SetupError, match="no folder of runs"):
        Viewer(tmp_path / "gone")
    with pytest.raises(SetupError, match=f"port {viewer.port} cannot be used"):
        Viewer(tmp_path, port=viewer.port)


def test_list_search_open_and_compare(viewer: Viewer, browser: Any) -> None:
    page = Page(browser, viewer.url)
    assert page.said == "2 of 2 runs"
    page.one("#search").send_keys("two")
    assert page.said == "1 of 2 runs"
    page.press("\ue00c")
    for tick in page.all("#list input"):
        tick.click()
    page.one("#compare").click()
    page.until(lambda: " against " in page.one("h1").text, "the comparison")
    page.one(".top a").click()
    page.until(lambda: page.all("#list a"), "the list")
    page.all("#list a")[0].click()
    page.until(lambda: page.one("h1").text in ("one", "two"), "the report")
    page.one(".top a").click()
    page.until(lambda: page.all("#list a"), "the list")
    assert page.complaints() == []


def test_a_run_by_itself_can_be_viewed(run: assay.Run) -> None:
    with Viewer(run.directory) as viewer:
        (entry,) = json.loads(ask(viewer, f"/{viewer.token}/runs.json")[1])
        assert ask(viewer, f"/{viewer.token}/run/{entry['id']}/")[0] == 200

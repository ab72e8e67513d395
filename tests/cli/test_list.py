"""`assay list`, and the command line as a whole."""

from __future__ import annotations

import json
import os
import re
import subprocess
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.cli.conftest import Assay
from tests.support import runs

SHIPPED = {
    "coherence",
    "fluency",
    "groundedness",
    "relevance",
    "response_completeness",
    "retrieval",
    "similarity",
    "similarity_es",
}


def test_the_metrics_that_ship(assay: Assay) -> None:
    found = assay("list", "metrics", "--json")
    assert (found.code, found.err) == (0, "")
    entries = {entry["name"]: entry for entry in json.loads(found.out)}
    assert entries.keys() >= SHIPPED
    for entry in entries.values():
        assert entry.keys() >= {"name", "inputs", "scale", "threshold", "description"}
        assert entry["inputs"]
    similarity = entries["similarity"]
    assert similarity["inputs"] == ["query", "response", "ground_truth"]
    assert similarity["threshold"] == 2
    assert re.fullmatch(r"similarity \D*0\D+3\D*", similarity["scale"])


def test_a_line_a_metric(assay: Assay) -> None:
    found = assay("list")
    assert found.code == 0
    lines = [line.split(maxsplit=3) for line in found.out.splitlines()]
    assert {line[0] for line in lines} >= SHIPPED
    similarity = next(line for line in lines if line[0] == "similarity")
    assert similarity[1:3] == ["1", "0..3"]
    assert similarity[3].strip() == "query, response, ground_truth"


def test_a_metric_of_the_working_folder_is_listed(tmp_path: Path, assay: Assay) -> None:
    (tmp_path / "evaluators").mkdir()
    runs.write_metric(tmp_path / "evaluators", "ours")
    names = [entry["name"] for entry in json.loads(assay("list", "--json").out)]
    assert "ours" in names
    assert set(names) >= SHIPPED


def test_what_there_is_not(assay: Assay) -> None:
    found = assay("list", "judges")
    assert (found.code, found.out) == (2, "")
    assert found.err == "assay: there are no 'judges' to list; say: assay list metrics\n"


def test_the_version(assay: Assay) -> None:
    found = assay("--version")
    assert (found.code, found.out) == (0, version("assay") + "\n")


@pytest.mark.parametrize("command", ["run", "try", "list"])
def test_help_is_data_and_says_every_option_in_words(assay: Assay, command: str) -> None:
    found = assay(command, "--help")
    assert (found.code, found.err) == (0, "")
    options = re.findall(r"^  (?:-\w, )?(--[\w-]+)(.*)$", found.out, re.MULTILINE)
    assert len(options) >= 2
    assert all(rest.strip() for _, rest in options)


def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [*runs.ASSAY, "list", "--json"],
            cwd=tmp_path,
            stdout=write,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        os.close(write)
    assert done.returncode in (1, 141)
    assert done.stderr == ""

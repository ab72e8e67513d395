"""The demo data, judged and shown by every way there is."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.azure import log_run
from assay.azure.client import Client
from assay.azure.project import Foundry, Hub
from assay.errors import SetupError
from assay.run.progress import Silent
from tests.azure.conftest import PATIENT, Credential
from tests.support.foundry import FakeFoundry
from tests.support.hub import FakeHub

DATA = Path(__file__).resolve().parents[2] / "datasets" / "support_desk.jsonl"
METRICS = ("similarity", "groundedness", "relevance")


def judge(messages: Sequence[Any]) -> str:
    """A mark that depends on the row alone, on any of the scales."""
    text = "".join(str(message["content"]) for message in messages)
    mark = 1 + len(text) % 3
    return json.dumps({"reason": f"mark {mark}"} | dict.fromkeys(METRICS, mark))


@pytest.fixture
def demo(tmp_path: Path) -> assay.Run:
    data = shutil.copy(DATA, tmp_path)
    return assay.evaluate(
        data, list(METRICS), judge=assay.ScriptedJudge(judge), progress=Silent(), name="demo"
    )


def log(run: assay.Run, project: Foundry | Hub, **options: Any) -> dict[str, Any]:
    return asyncio.run(log_run(run.directory, project, patience=PATIENT, **options))


def test_in_foundry(foundry: FakeFoundry, project: Foundry, demo: assay.Run) -> None:
    found = log(demo, project)
    assert found["rows"] == demo.header["rows"]
    for name in METRICS:
        entry = demo.metrics[f"{name}.{name}"]
        counted = found["counts"][name]
        assert counted.get("passed", 0) + counted.get("failed", 0) == entry["scored"]
        assert counted.get("errored", 0) == entry["n"] - entry["scored"]
        if entry["scored"]:
            rate = counted.get("passed", 0) / entry["scored"]
            assert rate == pytest.approx(entry["pass_rate"])
    (blob,) = foundry.blobs.values()
    for line, row in zip(blob.splitlines(), demo.rows(), strict=True):
        sent = json.loads(line)
        for name in METRICS:
            assert sent[f"{name}_score"] == row[f"outputs.{name}.{name}_score"]
            assert sent[f"{name}_threshold"] == row[f"outputs.{name}.{name}_threshold"]
            assert sent[f"{name}_status"] == row[f"outputs.{name}.{name}_status"]
            assert sent[f"{name}_reason"] == row[f"outputs.{name}.{name}_reason"]


@pytest.mark.filterwarnings("ignore")
def test_in_a_hub(hub: FakeHub, demo: assay.Run) -> None:
    log(demo, Hub("s", "g", "p", Credential()))
    logged = {m["key"]: m["value"] for m in hub.runs["run-1"]["data"]["metrics"]}
    for name in METRICS:
        entry = demo.metrics[f"{name}.{name}"]
        assert logged[f"{name}.{name}"] == pytest.approx(entry["mean"])
        assert logged[f"{name}.binary_aggregate"] == pytest.approx(entry["pass_rate"], abs=1e-4)


def test_without_any_login(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "azure.identity", None)  # as where it is not installed
    with pytest.raises(SetupError, match=r'needs azure-identity: pip install "assay\[azure\]"'):
        Client(Foundry("https://127.0.0.1:1/api/projects/p"))

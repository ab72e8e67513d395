"""The documents about metrics say what is so."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from assay.metric.catalogue import document, functions
from assay.metric.check import check_metric_file
from assay.metric.metricfile import _TOP, load_metric
from assay.metric.registry import shipped
from assay.metric.stepreader import _KINDS, _STOP

ROOT = Path(__file__).parents[1]
METRICS = (ROOT / "docs" / "metrics.md").read_text("utf-8")
WRITING = (ROOT / "docs" / "metric-yaml.md").read_text("utf-8")


def test_the_table_of_metrics_is_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert document() == METRICS, "run: python -m assay.metric.catalogue > docs/metrics.md"
    assert set(re.findall(r"^\| `(\S+)` \|", METRICS, re.MULTILINE)) == set(shipped())


def test_every_function_is_told() -> None:
    assert functions() in WRITING


def test_every_key_and_step_is_told() -> None:
    keys = {*_TOP, *_STOP, *" ".join(_KINDS.values()).split()}
    assert [key for key in keys if not re.search(rf"`[^`]*\b{key}\b", WRITING)] == []


def test_the_example_is_a_metric(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "evaluators" / "faithfulness", tmp_path / "faithfulness")
    (example,) = re.findall(r"```yaml\n(.*?)```", WRITING, re.DOTALL)
    path = tmp_path / "faithfulness" / "metric.yaml"
    path.write_text(example)
    assert load_metric(path).calls == "2"
    assert check_metric_file(path) == []

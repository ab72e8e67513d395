"""The classic flow folder: what is in it, and that it scores wherever it is put."""

from __future__ import annotations

import ast
import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import assay
from assay.azure.flex import flow_of
from assay.cli import main
from assay.errors import PromptyError, SetupError
from tests.azure.conftest import write_metric
from tests.support.server import JudgeServer, Request

KEY = "3f9c1a7be08d42c6a5517d2e9b60f4c8"
"""What a key looks like."""


def write(metric: str | Path, folder: Path | str = "flow") -> Path:
    flow_of(metric).write(Path(folder))
    return Path(folder)


def evaluator(folder: Path) -> Any:
    """The class of a folder, imported as promptflow does: by the file's name."""
    spec = importlib.util.spec_from_file_location("assay_eval", folder / "assay_eval.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.AssayEvaluator


def azure(server: JudgeServer) -> dict[str, Any]:
    return {
        "azure_endpoint": server.azure,
        "azure_deployment": "judge",
        "api_key": KEY,
        "api_version": "2024-06-01",
    }


def four(request: Request) -> str:
    """A judge of every metric here."""
    return json.dumps({"reason": "because", "score": 4})


def test_what_is_in_the_folder() -> None:
    metric = write_metric("on_topic")
    folder = write(metric)
    assert sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()) == [
        "assay_eval.py",
        "flow.flex.yaml",
        "metric/on_topic.prompty",
        "requirements.txt",
    ]
    flow = yaml.safe_load((folder / "flow.flex.yaml").read_text())
    assert flow.pop("entry") == "assay_eval:AssayEvaluator"
    assert flow.pop("environment") == {"python_requirements_txt": "requirements.txt"}
    assert flow == {}
    assert (folder / "requirements.txt").read_text() == f"assay[azure]=={assay.__version__}\n"
    assert (folder / "metric/on_topic.prompty").read_bytes() == metric.read_bytes()
    module = ast.parse((folder / "assay_eval.py").read_text())
    (found,) = [node for node in module.body if isinstance(node, ast.ClassDef)]
    init, call, _ = [n for n in found.body if isinstance(n, ast.FunctionDef)]
    assert ast.unparse(init.args) == "self, model_config: dict, threshold: float=None"
    assert ast.unparse(call.args) == "self, *, question: str, **kwargs"
    assert call.returns is None  # promptflow refuses a dict there


SCRIPT = """
import json, sys
from assay_eval import AssayEvaluator
config = json.loads(sys.argv[1])
print(json.dumps(AssayEvaluator(config)(question="q0", other="a column that is no input")))
"""


@pytest.mark.parametrize("kind", ["azure", "openai"])
def test_a_process_that_knows_nothing_but_the_folder(
    server: JudgeServer, tmp_path: Path, kind: str
) -> None:
    server.reply = four
    folder = shutil.move(write(write_metric("on_topic")), tmp_path / "moved")
    Path("on_topic.prompty").unlink()
    config = azure(server)
    if kind == "openai":
        config = {"type": "openai", "model": "gpt-x", "api_key": KEY, "base_url": server.url}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(config)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stderr == ""
    found = json.loads(done.stdout)
    properties = found.pop("score_properties")
    assert found == {
        "reason": "because",
        "score": 4,
        "score_score": 4.0,
        "score_result": "pass",
        "score_reason": "because",
        "score_threshold": 3,
        "score_status": "completed",
        "status": "scored",
        "cause": None,
    }
    assert properties["total_tokens"] == 62
    (request,) = server.requests
    assert "QUESTION: q0" in request.text
    if kind == "azure":
        assert request.path == "/openai/deployments/judge/chat/completions"
        assert request.headers["api-key"] == KEY
        assert request.query == {"api-version": "2024-06-01"}
    else:
        assert (request.body["model"], request.headers["authorization"]) == (
            "gpt-x",
            f"Bearer {KEY}",
        )


@pytest.mark.filterwarnings("ignore")
def test_in_azures_own_evaluate(server: JudgeServer, tmp_path: Path) -> None:
    from azure.ai.evaluation import evaluate

    server.reply = lambda request: json.dumps(
        {"reason": "because", "score": 2 if "q1" in request.text else 5}
    )
    data = tmp_path / "rows.jsonl"
    data.write_text("".join(json.dumps({"question": f"q{n}", "more": n}) + "\n" for n in range(4)))
    made = evaluator(write(write_metric("on_topic")))(azure(server))
    found = evaluate(data=str(data), evaluators={"m": made})
    assert found["metrics"]["m.score"] == 4.25
    assert found["metrics"]["m.binary_aggregate"] == 0.75
    assert [row["outputs.m.score_result"] for row in found["rows"]] == [
        *("pass", "fail"),
        *("pass", "pass"),
    ]


def test_the_threshold_is_the_callers(server: JudgeServer) -> None:
    server.reply = four
    made = evaluator(write(write_metric("on_topic")))(azure(server), threshold=5)
    found = made(question="q")
    assert (found["score_result"], found["score_threshold"]) == ("fail", 5)


def test_optional_inputs(server: JudgeServer) -> None:
    """Left out is left out: the file's own default counts, and what a row lacks is said."""
    server.reply = four
    metric = write_metric("on_topic")
    more = "  tone:\n    type: string\n    default: dry\n  notes:\n    required: false\noutputs:"
    text = metric.read_text().replace("outputs:", more)
    metric.write_text(text + "TONE: {{tone}} {{notes}}\n")
    made = evaluator(write(metric))(azure(server))
    made(question="q", notes=["one"])
    made(question="q", tone="warm")
    assert ["TONE: dry" in r.text for r in server.requests] == [True, False]
    assert "TONE: warm" in server.requests[1].text
    with pytest.raises(TypeError, match="question"):
        made(tone="warm")
    assert made(question=" ")["status"] == "not_applicable"


CLAIMS = """---
inputs:
  text: {type: string}
outputs:
  score: {type: integer, minimum: 0, maximum: 5}
---
user:
Count {{text}}
"""

STEPS = """
inputs:
  response: {type: string}
  context: {type: array}
may_be_empty: [context]
outputs:
  counted: {type: number, minimum: 0, maximum: 5, threshold: 3}
steps:
  - found: {prompt: ../shared/count.prompty, in: {text: response}}
score: found.score
"""


def test_a_metric_of_several_files(server: JudgeServer, tmp_path: Path) -> None:
    server.reply = four
    for name, text in (("shared/count.prompty", CLAIMS), ("counted/metric.yaml", STEPS)):
        path = tmp_path / "mine" / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
    (tmp_path / "mine/counted/.env").write_text(f"KEY={KEY}")
    folder = write("mine/counted")
    shutil.rmtree("mine")
    assert sorted(p.name for p in (folder / "metric").rglob("*")) == [
        *("count.prompty", "counted"),
        *("metric.yaml", "shared"),
    ]
    found = evaluator(folder)(azure(server), threshold=4.5)(response="r", context=[])
    assert (found["counted"], found["counted_result"], found["counted_threshold"]) == (
        *(4, "fail"),
        4.5,
    )
    with pytest.raises(SetupError, match="model_config must be a dict"):
        evaluator(folder)(None)


@pytest.mark.parametrize("name", ["similarity", "faithfulness", "deepeval.faithfulness"])
def test_metrics_that_ship(server: JudgeServer, name: str) -> None:
    made = evaluator(write(name))(azure(server))
    found = made._evaluator
    assert found.fingerprint == assay.load(name).fingerprint
    assert found.name == name


def test_files_it_refers_to_come_along(server: JudgeServer) -> None:
    server.reply = four
    metric = write_metric("on_topic")
    Path("more").mkdir()
    Path("more/settings.json").write_text('{"temperature": 0.5}')
    Path("sample.json").write_text('{"question": "which?"}')
    references = "model:\n  parameters: ${file:more/settings.json}\nsample: ${file:sample.json}\n"
    metric.write_text(metric.read_text().replace("inputs:", f"{references}inputs:", 1))
    folder = write(metric)
    assert (folder / "metric/more/settings.json").is_file()
    assert (folder / "metric/sample.json").is_file()
    evaluator(folder)(azure(server))(question="q")
    assert server.requests[0].body["temperature"] == 0.5
    Path("sample.json").unlink()
    with pytest.raises(PromptyError, match="No such file"):
        flow_of(metric)


def test_variables_it_needs_are_said() -> None:
    metric = write_metric("on_topic")
    settings = "model:\n  parameters:\n    seed: ${env:THE_SEED}\n"
    metric.write_text(metric.read_text().replace("inputs:", f"{settings}inputs:", 1))
    said = "on_topic.prompty reads THE_SEED from the environment where it runs"
    assert flow_of(metric).notes == [said]


CONNECTION = """model:
  configuration:
    type: azure_openai
    azure_endpoint: https://name.openai.azure.com
    azure_deployment: gpt
    api_key: {key}
inputs:"""


@pytest.mark.parametrize(
    ("key", "carried"),
    [
        ("${env:AZURE_OPENAI_API_KEY}", True),
        (KEY, False),
        ("my-test-key", False),
        ("${env:AZURE_OPENAI_API_KEY:" + KEY + "}", False),
    ],
)
def test_no_key_leaves_the_house(key: str, carried: bool) -> None:
    metric = write_metric("on_topic")
    metric.write_text(metric.read_text().replace("inputs:", CONNECTION.format(key=key), 1))
    if carried:
        assert flow_of(metric).files
        return
    with pytest.raises(PromptyError, match=r"on_topic.prompty.*cannot be exported") as refusal:
        flow_of(metric)
    assert "${env:NAME}" in str(refusal.value)
    assert key not in str(refusal.value)


@pytest.mark.parametrize("place", ["body", "settings"])
def test_a_key_in_another_place(place: str) -> None:
    metric = write_metric("on_topic")
    if place == "body":
        metric.write_text(f"{metric.read_text()}\nUse token={KEY}\n")
    else:
        Path("settings.json").write_text(json.dumps({"type": "azure_openai", "api_key": KEY}))
        settings = "model:\n  configuration: ${file:settings.json}\ninputs:"
        metric.write_text(metric.read_text().replace("inputs:", settings, 1))
    with pytest.raises(PromptyError, match="cannot be exported") as refusal:
        flow_of(metric)
    assert KEY not in str(refusal.value)


def test_what_cannot_be_carried() -> None:
    for metric, why in (
        ("f1_score", "it is Python, not a file; pass it to evaluate() as it is"),
        ("answer_similarity", "it needs an embedder, which a model configuration does not name"),
    ):
        with pytest.raises(SetupError) as refusal:
            flow_of(metric)
        assert str(refusal.value) == f"{metric} cannot be a flow folder: {why}"
    for name in ("class", "kwargs", "self", "__x", "a-b"):
        path = write_metric("on_topic")
        path.write_text(path.read_text().replace("  question:", f"  {name}: string\n  question:"))
        with pytest.raises(SetupError, match=f"its input '{name}' is no name of a Python"):
            flow_of(path)


def test_a_name_that_is_code(server: JudgeServer) -> None:
    """A file's name is text in the module, whatever it holds."""
    server.reply = four
    metric = write_metric("on_topic")
    odd = metric.rename('a\'); raise SystemExit("""{x}\\n #.prompty')
    assert evaluator(write(odd))(azure(server))(question="q")["score"] == 4


def command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: object
) -> tuple[int, str, str]:
    """`assay export ARGUMENTS`: how it exits and what it prints."""
    monkeypatch.setattr(sys, "argv", ["assay", "export", *map(str, arguments)])
    with pytest.raises(SystemExit) as exit_:
        main()
    return (int(exit_.value.code or 0), *capsys.readouterr())


def test_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    asked = (write_metric("on_topic"), "--flex", "-o", "flow")
    assert command(monkeypatch, capsys, *asked) == (0, "flow\n", "")
    (tmp_path / "flow/assay_eval.py").write_text("mine")
    code, out, err = command(monkeypatch, capsys, *asked)
    assert (code, out) == (2, "")
    assert err == "assay: flow is there already: give a new or empty folder\n"
    assert (tmp_path / "flow/assay_eval.py").read_text() == "mine"
    code, _, err = command(monkeypatch, capsys, *asked[:2])
    assert (code, "give it with --out" in err) == (2, True)
    code, _, err = command(monkeypatch, capsys, "somewhere")
    assert (code, "give --format" in err) == (2, True)

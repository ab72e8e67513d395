"""The old portal: a hub project, and an endpoint by azure-ai-evaluation's own upload.

What needs azure-ai-evaluation runs where that is installed; the rest always.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest

import assay
from assay.azure import check_project, log_run, preview_run
from assay.azure.faults import UploadError
from assay.azure.hub import HubClient, may
from assay.azure.project import Foundry, Hub
from assay.errors import SetupError
from tests.azure.conftest import PATIENT, Credential, make_run, write_metric
from tests.support.foundry import TOKEN, FakeFoundry
from tests.support.hub import SPACE, FakeHub
from tests.support.tls import Tls


def _has_package() -> bool:
    try:
        return find_spec("azure.ai.evaluation") is not None
    except ModuleNotFoundError:
        return False


needs_package = pytest.mark.skipif(
    not _has_package(), reason="azure-ai-evaluation is not installed: the old portal is not tried"
)
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def hub(tls: Tls, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    with FakeHub(tls) as running:
        for name in ("HTTPS_PROXY", "https_proxy"):
            monkeypatch.setenv(name, running.proxy)
        for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"):
            monkeypatch.setenv(name, str(tls.cert))
        yield running


@pytest.fixture
def project() -> Hub:
    return Hub("s", "g", "p", Credential())


def log(run: assay.Run, project: Hub | Foundry, **options: Any) -> dict[str, Any]:
    return asyncio.run(log_run(run.directory, project, patience=PATIENT, **options))


def mixed_run() -> assay.Run:
    """Two metrics; one has a row without a score."""
    noise = "threshold: 2\n    desirable_direction: decrease"
    return make_run(
        write_metric("on_topic"),
        write_metric("noise", noise),
        special={"on_topic": {"q0": "nothing to read"}},
    )


def columns_of(content: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in content.splitlines()]


@needs_package
def test_a_run_in_a_hub_project(hub: FakeHub, project: Hub) -> None:
    run = mixed_run()
    found = log(run, project)
    assert found["url"] == f"https://ai.azure.com/build/evaluation/run-1?wsid={SPACE}"
    (content,) = hub.blobs.values()
    rows = columns_of(content)
    assert rows[1]["inputs.question"] == "q1"
    assert rows[1]["outputs.on_topic.on_topic"] == 2
    assert rows[1]["outputs.on_topic.on_topic_result"] == "fail"
    assert rows[1]["outputs.on_topic.on_topic_reason"] == "because of q1"
    assert rows[1]["outputs.on_topic.on_topic_threshold"] == 3
    assert rows[1]["outputs.noise.noise_result"] == "pass"
    assert rows[0]["outputs.on_topic.on_topic"] is None
    assert rows[0]["outputs.on_topic.on_topic_result"] is None
    assert rows[0]["outputs.on_topic.on_topic_status"] == "error"
    assert rows[0]["outputs.on_topic.on_topic_cause"] == "invalid: unparseable"
    made = hub.runs["run-1"]
    metrics = {m["key"]: m["value"] for m in made["data"]["metrics"]}
    assert metrics["on_topic.on_topic"] == 3.5
    assert metrics["on_topic.binary_aggregate"] == 0.75  # the row without a score is no fail
    assert (metrics["on_topic.scored"], metrics["on_topic.errors"]) == (4, 1)
    assert metrics["noise.binary_aggregate"] == 0.4
    tags = {tag["key"]: tag["value"] for tag in made["data"]["tags"]}
    assert tags["assay.version"] == assay.__version__
    assert "on_topic=" in tags["assay.prompts"]
    assert hub.history["properties"]["runType"] == "eval_run"
    assert log(run, project)["url"] == found["url"]
    (run.directory / "upload.json").unlink()  # the hub knows the run by its tag
    assert log(run, project)["url"] == found["url"]
    assert len(hub.runs) == 1


@needs_package
@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", f"{SPACE}$", 403),
        ("POST", "/runs/create$", 403),  # the package goes on, and makes a link up
        ("GET", "/datastores$", 404),
        ("PUT", "instance_results", 403),
        ("POST", "/runs/log-metric$", 400),
        ("POST", "/runs/update$", 400),
    ],
)
def test_a_hub_run_that_is_not_there_gets_no_link(
    hub: FakeHub, project: Hub, method: str, path: str, status: int
) -> None:
    hub.fail(method, path, status)
    run = mixed_run()
    with pytest.raises(UploadError) as failure:
        log(run, project)
    assert "repeat with: assay upload" in str(failure.value)
    assert TOKEN not in str(failure.value)
    state = run.directory / "upload.json"
    assert not state.exists() or "url" not in state.read_text()
    hub.failures.clear()
    assert "/build/evaluation/run-" in log(run, project)["url"]


@needs_package
def test_an_endpoint_by_the_old_way(foundry: FakeFoundry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(foundry.tls.cert))
    found = log(mixed_run(), Foundry(foundry.endpoint, Credential()), classic=True)
    assert found["url"] == "https://ai.azure.com/build/evaluation/old-1"
    (content,) = foundry.blobs.values()
    assert columns_of(content)[4]["outputs.on_topic.on_topic_result"] == "pass"
    (result,) = foundry.calls("PATCH", "^/evaluationResults/")
    assert result.body["metrics"]["on_topic.on_topic"] == 3.5
    (upload,) = foundry.calls("POST", "runs:upload$")
    assert upload.body["displayName"] == "demo"
    assert upload.body["tags"]["assay.rows"] == "5"


@pytest.mark.skipif(_has_package(), reason="azure-ai-evaluation is installed")
def test_the_package_is_asked_for_by_its_install_line(project: Hub) -> None:
    with pytest.raises(SetupError, match=r'pip install "assay\[azure-classic\]"'):
        log(mixed_run(), project)
    with pytest.raises(SetupError, match=r'pip install "assay\[azure-classic\]"'):
        asyncio.run(check_project(project))


def test_a_preview_needs_no_package(project: Hub) -> None:
    shown = preview_run(mixed_run().directory, project)
    assert shown["evaluators"]["on_topic"][1]["on_topic_result"] == "fail"
    assert shown["evaluators"]["on_topic"][0]["on_topic_status"] == "error"
    assert shown["columns"] == {"question": "question", "answer": "answer"}


def check(project: Hub) -> None:
    async def run() -> None:
        async with HubClient(project, PATIENT) as client:
            await client.check()

    asyncio.run(run())


def test_the_check_of_a_hub(hub: FakeHub, project: Hub) -> None:
    check(project)
    assert {request.method for request in hub.seen} == {"GET"}
    hub.actions = ["Microsoft.MachineLearningServices/workspaces/read"]
    with pytest.raises(UploadError, match="missing permission: action Microsoft.Machine"):
        check(project)


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (401, "the login is not accepted"),
        (403, 'the role "Azure AI Developer"'),
        (404, "check the subscription"),
    ],
)
def test_a_hub_that_cannot_be_read(hub: FakeHub, project: Hub, status: int, said: str) -> None:
    hub.fail("GET", f"{SPACE}$", status)
    with pytest.raises(UploadError) as failure:
        check(project)
    assert f"HTTP {status}" in str(failure.value)
    assert said in str(failure.value)
    assert TOKEN not in str(failure.value)


def test_patterns_of_permissions() -> None:
    write = "Microsoft.MachineLearningServices/workspaces/experiments/runs/write"
    assert may(write, [{"actions": ["*"], "notActions": []}])
    assert may(write, [{"actions": ["*/read"]}, {"actions": [write.upper()]}])
    assert not may(write, [{"actions": ["*"], "notActions": ["*/write"]}])
    assert not may(write, [])

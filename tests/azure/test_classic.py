"""The old portal: a hub project, and an endpoint by azure-ai-evaluation's own upload."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import pytest

import assay
from assay.azure import check_project, log_run, preview_run
from assay.azure.faults import UploadError
from assay.azure.hub import HubClient, may
from assay.azure.project import Foundry, Hub
from assay.errors import SetupError
from tests.azure.conftest import PATIENT, Credential, make_run, write_metric
from tests.support.foundry import SIGNATURE, TOKEN, FakeFoundry
from tests.support.hub import SPACE, FakeHub

pytestmark = pytest.mark.filterwarnings("ignore")


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
    assert hub.properties["run-1"]["runType"] == "eval_run"
    assert log(run, project)["url"] == found["url"]
    (run.directory / "upload.json").unlink()  # the hub knows the run by its tag
    assert log(run, project)["url"] == found["url"]
    assert len(hub.runs) == 1


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


@pytest.mark.usefixtures("no_waits")
@pytest.mark.parametrize(
    ("method", "path", "said"),
    [
        ("POST", "/evaluationResults/.*/startPendingUpload$", '"Foundry User"'),
        ("PUT", "^/store/", '"Storage Blob Data Contributor"'),
        ("PATCH", "/evaluationResults/", '"Foundry User"'),
        ("POST", "runs:upload$", '"Foundry User"'),
        ("PATCH", "runs:updateUpload/", '"Foundry User"'),
    ],
)
def test_a_failing_call_by_the_old_way(
    foundry: FakeFoundry, monkeypatch: pytest.MonkeyPatch, method: str, path: str, said: str
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(foundry.tls.cert))
    run, endpoint = mixed_run(), Foundry(foundry.endpoint, Credential())
    foundry.fail(method, path, 403)
    with pytest.raises(UploadError) as failure:
        log(run, endpoint, classic=True)
    error = str(failure.value)
    assert f" failed: {method} " in error
    assert "HTTP 403: missing permission:" in error
    assert said in error
    assert failure.value.status == 403
    assert error.endswith(f"--azure-ai-project {foundry.endpoint} --classic")
    assert TOKEN not in error
    assert SIGNATURE not in error
    foundry.heal()
    assert log(run, endpoint, classic=True)["url"]


def test_the_package_is_asked_for_by_its_install_line(
    project: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "azure.ai.evaluation", None)  # as where it is not installed
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

"""Every call to a hub project failing in every way: what is said, and that a repeat succeeds.

The uploader is azure-ai-evaluation's own. It waits between its tries, and a second for every
evaluator; here nothing waits.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

import assay
from assay.azure import check_project, log_run
from assay.azure.faults import UploadError
from assay.azure.project import Hub
from assay.errors import SetupError
from tests.azure.conftest import PATIENT, ScopedCredential
from tests.support.foundry import SIGNATURE, STORAGE_TOKEN
from tests.support.hub import SPACE, TOKEN, FakeHub

pytest.importorskip("azure.ai.evaluation")
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("no_waits")]

OURS = {
    "reading the workspace": ("GET", f"{SPACE}$"),
    "looking for the run": ("POST", "/runs/search$"),
    "looking at the run": ("GET", "/runs/get$"),
    "looking at the run's properties": ("GET", "^/history/.*/runs/[^/]+$"),
    "looking at the run's rows": ("GET", "^/history/.*/artifacts$"),
}
"""Calls of our own: what they say is as in Foundry."""

THEIRS = {
    "runs/create": ("POST", "/runs/create$"),
    "datastore": ("GET", "/datastores$"),
    "ecrets": ("POST", "/listSecrets$"),
    "PUT account.blob.core.windows.net/store/promptflow": ("PUT", "^/store/"),
    "artifacts/register": ("POST", "/artifacts/register$"),
    "history": ("PATCH", "^/history/"),
    "runs/log-metric": ("POST", "/runs/log-metric$"),
    "runs/update": ("POST", "/runs/update$"),
}
"""The package's, by a word that must be there."""

NO_STATUS_TOLD = {"history", "runs/update"}
"""Calls of which the package keeps the status to itself."""

STATUSES = [401, 403, 404, 409, 429, 500, 0]
SAID = {
    401: "the login is not accepted; log in again (az login)",
    403: 'missing permission: the role "Azure AI Developer"',
    404: "check the subscription, the resource group and the name of the project",
    409: "something else changes the same thing now; repeat it",
    429: "the service limits how often it is asked; repeat it later",
    500: "the service failed; repeat it later",
    0: "got no answer",
}
STORAGE = {
    401: "the signature the project gave is not accepted",
    403: '"Storage Blob Data Contributor" on the storage account',
    404: "the storage container does not exist",
}


@pytest.fixture
def project() -> Hub:
    return Hub("s", "g", "p", ScopedCredential())


def log(run: assay.Run, project: Hub) -> dict[str, Any]:
    return asyncio.run(log_run(run.directory, project, patience=PATIENT))


def fail(run: assay.Run, project: Hub, capfd: pytest.CaptureFixture[str]) -> UploadError:
    """An upload that fails, after what must hold of each."""
    before = (run.directory / "scores.jsonl").read_bytes()
    with pytest.raises(UploadError) as failure:
        log(run, project)
    said = str(failure.value)
    assert "\n" not in said
    assert said.endswith(
        f"Nothing is lost; repeat with: assay upload {run.directory} --azure-ai-project s/g/p"
    )
    assert failure.value.exit_code == 3
    assert (run.directory / "scores.jsonl").read_bytes() == before
    shown = capfd.readouterr()
    assert not shown.out
    written = "".join(file.read_text() for file in run.directory.rglob("*.json*"))
    for text in (said, shown.err, written):
        assert TOKEN not in text
        assert STORAGE_TOKEN not in text
        assert SIGNATURE not in text
    assert '"url"' not in (run.directory / "upload.json").read_text()
    return failure.value


def check_repeat(hub: FakeHub, run: assay.Run, project: Hub) -> None:
    """A repeat succeeds, and of all runs in the project one counts."""
    hub.heal()
    found = log(run, project)
    assert hub.finished() == [found["run_id"]]
    assert f"/evaluation/{found['run_id']}?" in found["url"]
    left = [made for name, made in hub.runs.items() if name != found["run_id"]]
    assert {made["info"]["status"] for made in left} <= {"FAILED"}


@pytest.mark.parametrize("call", THEIRS)
def test_a_call_of_the_package_that_fails_in_every_way(
    hub: FakeHub, project: Hub, run: assay.Run, capfd: pytest.CaptureFixture[str], call: str
) -> None:
    """One after the other, so that a repeat also meets what all of them left behind."""
    for status in STATUSES:
        hub.heal()
        hub.fail(*THEIRS[call], status)
        error = fail(run, project, capfd)
        advice = STORAGE if call.startswith("PUT") else {}
        if not status:  # behind a proxy the package does not tell which call it was
            assert SAID[0] in str(error), (status, error)
        elif call in NO_STATUS_TOLD:
            assert call in str(error)
            assert 'the role "Azure AI Developer"' in str(error), (status, error)
        else:
            assert call in str(error)
            assert advice.get(status, SAID[status]) in str(error), (status, error)
            assert str(status) in str(error)
            assert error.status == status
    check_repeat(hub, run, project)


def test_a_run_that_is_not_there_afterwards(
    hub: FakeHub, project: Hub, run: assay.Run, capfd: pytest.CaptureFixture[str]
) -> None:
    hub.fail(*OURS["looking at the run"], 404)
    assert "it lacks the run itself (POST runs/create)" in str(fail(run, project, capfd))
    hub.heal()
    check_repeat(hub, run, project)


FAILING = [
    (call, status)
    for call in OURS
    for status in STATUSES
    if (call, status) != ("looking at the run", 404)
]


@pytest.mark.parametrize(("call", "status"), FAILING)
def test_a_failing_call_of_ours(
    hub: FakeHub,
    project: Hub,
    run: assay.Run,
    capfd: pytest.CaptureFixture[str],
    call: str,
    status: int,
) -> None:
    hub.fail(*OURS[call], status)
    error = fail(run, project, capfd)
    assert str(error).startswith(f"{call} failed: {OURS[call][0]} ")
    assert SAID[status] in str(error)
    assert error.status == (status or None)
    check_repeat(hub, run, project)
    assert len(hub.runs) == 1  # a run that could not be looked at is looked at again


@pytest.mark.parametrize("call", ["runs/create", "artifacts/register", "history", "runs/update"])
def test_work_whose_answer_got_lost(
    hub: FakeHub, project: Hub, run: assay.Run, capfd: pytest.CaptureFixture[str], call: str
) -> None:
    hub.fail(*THEIRS[call], 0, late=True)
    fail(run, project, capfd)
    check_repeat(hub, run, project)


def test_what_is_listed_late_is_waited_for(hub: FakeHub, project: Hub, run: assay.Run) -> None:
    hub.lag = PATIENT.tries - 1
    found = log(run, project)
    assert list(hub.runs) == hub.finished() == [found["run_id"]]


def test_a_run_without_its_mark_is_known_all_the_same(
    hub: FakeHub, project: Hub, run: assay.Run
) -> None:
    hub.fail("POST", "/runs/set-tag$", 403)
    found = log(run, project)
    assert log(run, project)["url"] == found["url"]
    assert len(hub.runs) == 1


def test_a_run_that_somebody_spoiled_is_made_again(
    hub: FakeHub, project: Hub, run: assay.Run, capfd: pytest.CaptureFixture[str]
) -> None:
    hub.fail("GET", "/runs/get$", 500)
    fail(run, project, capfd)
    (made,) = hub.runs.values()
    made["data"]["metrics"][0]["value"] = 9.0
    check_repeat(hub, run, project)
    assert len(hub.runs) == 2


@pytest.mark.parametrize("status", [401, 403, 404, 429, 500, 0])
@pytest.mark.parametrize("call", ["reading the workspace", "reading the permissions"])
def test_the_check_before_a_run(hub: FakeHub, project: Hub, call: str, status: int) -> None:
    path = "/permissions$" if "permissions" in call else f"{SPACE}$"
    hub.fail("GET", path, status)
    with pytest.raises(SetupError) as failure:
        asyncio.run(check_project(project, PATIENT))
    said = str(failure.value)
    assert said.startswith(f"the run was not started, since its upload would fail: {call} failed")
    assert SAID[status] in said
    assert TOKEN not in said
    assert failure.value.exit_code == 2
    assert not hub.runs


def test_what_others_log_is_left_alone(hub: FakeHub, project: Hub, run: assay.Run) -> None:
    logger = logging.getLogger("azure.ai.evaluation")
    before = list(logger.handlers), logger.propagate
    log(run, project)
    assert (logger.handlers, logger.propagate) == before

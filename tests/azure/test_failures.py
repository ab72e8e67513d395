"""Every call of an upload failing in every way: what is said, and that a repeat succeeds."""

from __future__ import annotations

import asyncio
import re

import pytest

import assay
from assay.azure import check_project, log_run
from assay.azure.faults import UploadError
from assay.azure.project import Foundry
from assay.errors import SetupError
from tests.azure.conftest import PATIENT, Credential
from tests.support.foundry import SIGNATURE, TOKEN, FakeFoundry

CALLS = {
    "listing the evaluator's versions": ("GET", r"^/evaluators/[^/]+/versions$"),
    "creating the evaluator version": ("POST", r"^/evaluators/[^/]+/versions$"),
    "looking for the dataset": ("GET", r"^/datasets/"),
    "opening the dataset upload": ("POST", r"/startPendingUpload$"),
    "uploading the rows": ("PUT", r"^/store/"),
    "registering the dataset": ("PATCH", r"^/datasets/"),
    "listing the evals": ("GET", r"/evals$"),
    "creating the eval": ("POST", r"/evals$"),
    "listing the runs": ("GET", r"/runs$"),
    "creating the run": ("POST", r"/runs$"),
    "reading the run": ("GET", r"/runs/[^/]+$"),
    "reading the results back": ("GET", r"/output_items$"),
}

SAID = {
    401: "the login is not accepted; log in again (az login)",
    403: 'missing permission: the role "Foundry User" (formerly "Azure AI User")',
    404: "does not exist",
    409: "something else changes the same thing now; repeat it",
    429: "the service limits how often it is asked; repeat it later",
    500: "the service failed; repeat it later",
    0: "got no answer",
}
STORAGE = {
    401: "the signature the project gave is not accepted",
    403: '"Storage Blob Data Contributor"',
    404: "the storage container does not exist",
}
MEANS_ABSENT = {
    ("listing the evaluator's versions", 404),
    ("looking for the dataset", 404),
    ("opening the dataset upload", 409),
}
"""Answers that say that something is not there, or there already: no failures."""


def log(run: assay.Run, project: Foundry) -> dict[str, object]:
    return asyncio.run(log_run(run.directory, project, patience=PATIENT))


def check_one_of_each(foundry: FakeFoundry) -> None:
    assert [len(versions) for versions in foundry.evaluators.values()] == [1]
    assert len(foundry.datasets) == 1
    assert len(foundry.evals) == 1
    assert len(foundry.all_runs()) == 1


FAILING = [
    (call, status) for call in CALLS for status in SAID if (call, status) not in MEANS_ABSENT
]


@pytest.mark.parametrize(("call", "status"), FAILING)
def test_a_failing_call(
    foundry: FakeFoundry, project: Foundry, run: assay.Run, call: str, status: int
) -> None:
    before = (run.directory / "scores.jsonl").read_bytes()
    foundry.fail(*CALLS[call], status, headers={"Retry-After": "0"})
    with pytest.raises(UploadError) as failure:
        log(run, project)
    said = str(failure.value)
    assert said.startswith(f"{call} failed: {CALLS[call][0]} ")
    assert f"at 127.0.0.1:{foundry.port}" in said
    if status:
        assert f"answered HTTP {status}" in said
        assert failure.value.status == status
    expected = STORAGE if call == "uploading the rows" else {}
    assert expected.get(status, SAID[status]) in said
    assert said.endswith(
        f"Nothing is lost; repeat with: assay upload {run.directory} "
        f"--azure-ai-project {foundry.endpoint}"
    )
    assert failure.value.exit_code == 3
    assert TOKEN not in said
    assert SIGNATURE not in said
    assert (run.directory / "scores.jsonl").read_bytes() == before
    foundry.heal()
    assert log(run, project)["url"]
    check_one_of_each(foundry)


@pytest.mark.parametrize("status", [0, 500])
@pytest.mark.parametrize(
    "call",
    [
        "creating the evaluator version",
        "opening the dataset upload",
        "uploading the rows",
        "registering the dataset",
        "creating the eval",
        "creating the run",
    ],
)
def test_work_whose_answer_got_lost_is_not_done_twice(
    foundry: FakeFoundry, project: Foundry, run: assay.Run, call: str, status: int
) -> None:
    foundry.fail(*CALLS[call], status, late=True)
    with pytest.raises(UploadError):
        log(run, project)
    foundry.heal()
    assert log(run, project)["url"]
    check_one_of_each(foundry)


@pytest.mark.parametrize("status", [429, 500, 0])
@pytest.mark.parametrize("call", [call for call in CALLS if CALLS[call][0] != "POST"])
def test_what_passes_by_itself_is_waited_for(
    foundry: FakeFoundry, project: Foundry, run: assay.Run, call: str, status: int
) -> None:
    foundry.fail(*CALLS[call], status, times=2, headers={"Retry-After": "0"})
    assert log(run, project)["url"]
    check_one_of_each(foundry)


def test_a_limit_is_waited_for_where_a_thing_is_made_too(
    foundry: FakeFoundry, project: Foundry, run: assay.Run
) -> None:
    for call in ("creating the evaluator version", "creating the eval", "creating the run"):
        foundry.fail(*CALLS[call], 429, times=2, headers={"Retry-After": "0"})
    assert log(run, project)["url"]
    check_one_of_each(foundry)


def test_the_missing_action_is_named(
    foundry: FakeFoundry, project: Foundry, run: assay.Run
) -> None:
    action = "Microsoft.CognitiveServices/accounts/AIServices/evaluations/write"
    foundry.fail("POST", "/evals$", 403, message=f"may not perform action '{action}'")
    with pytest.raises(UploadError, match=re.escape(f"missing permission: action {action}, which")):
        log(run, project)


def test_a_content_upload_that_was_beaten(
    foundry: FakeFoundry, project: Foundry, run: assay.Run
) -> None:
    log(run, project)
    (run.directory / "upload.json").unlink()
    foundry.evals.clear()
    foundry.runs.clear()
    foundry.fail("GET", "^/datasets/", 404, times=1)  # as if it was not there a moment ago
    assert log(run, project)["url"]
    assert len(foundry.datasets) == 1


def test_a_credential_that_gives_no_token(foundry: FakeFoundry, run: assay.Run) -> None:
    class Broken:
        def get_token(self, *scopes: str) -> None:
            raise RuntimeError("az is not logged in")

    with pytest.raises(UploadError, match="no Entra ID token: az is not logged in; log in with"):
        log(run, Foundry(foundry.endpoint, Broken()))
    assert foundry.seen == []


CHECKS = {
    "reading the evaluators": ("GET", "^/evaluators$"),
    "listing the evals": ("GET", "/evals$"),
    "opening a dataset upload": ("POST", "/startPendingUpload$"),
    "creating the eval": ("POST", "/evals$"),
}


@pytest.mark.parametrize("status", [401, 403, 404, 500, 0])
@pytest.mark.parametrize("call", CHECKS)
def test_the_check_before_a_run(
    foundry: FakeFoundry, project: Foundry, call: str, status: int
) -> None:
    foundry.fail(*CHECKS[call], status, headers={"Retry-After": "0"})
    with pytest.raises(SetupError) as failure:
        asyncio.run(check_project(project, PATIENT))
    said = str(failure.value)
    assert said.startswith(f"the run was not started, since its upload would fail: {call} failed")
    assert SAID[status] in said
    assert TOKEN not in said


def test_the_check_leaves_nothing_behind(foundry: FakeFoundry, project: Foundry) -> None:
    asyncio.run(check_project(project, PATIENT))
    assert not foundry.evaluators
    assert not foundry.datasets
    assert not foundry.blobs
    assert not foundry.evals


def test_the_check_with_the_wrong_login(foundry: FakeFoundry) -> None:
    with pytest.raises(SetupError, match="HTTP 401: the login is not accepted"):
        asyncio.run(check_project(Foundry(foundry.endpoint, Credential("another-token")), PATIENT))

"""Where rows are put: storage that takes signatures, and storage that takes tokens only.

Our fakes say what is sent. Azurite, where it is installed, is what Microsoft's storage accepts.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import assay
from assay.azure import log_run
from assay.azure.client import Client
from assay.azure.doctor import diagnose
from assay.azure.faults import UploadError
from assay.azure.outline import outline_of
from assay.azure.project import Foundry, Hub
from assay.judge.project import FixedToken
from tests.azure.conftest import PATIENT, Access, ScopedCredential, make_run, write_metric
from tests.support.azurite import Azurite, find_azurite, start_azurite, storage_token
from tests.support.foundry import SIGNATURE, STORAGE_TOKEN, TOKEN, FakeFoundry
from tests.support.hub import FakeHub
from tests.support.tls import Tls

SECRETS = (TOKEN, STORAGE_TOKEN, SIGNATURE)
DENIED = 'missing permission: you need "Storage Blob Data Contributor" on the storage account'


def log(run: assay.Run, project: Foundry | Hub) -> dict[str, Any]:
    return asyncio.run(log_run(run.directory, project, patience=PATIENT))


def fails(run: assay.Run, project: Foundry | Hub) -> str:
    with pytest.raises(UploadError) as failure:
        log(run, project)
    said = str(failure.value)
    assert not any(secret in said for secret in SECRETS)
    return said


def sent_rows(run: assay.Run, project: Foundry) -> bytes:
    """The dataset of a run, from its outline alone."""
    with outline_of(run, project, deployment=None, string_checks=True) as outline:
        return outline.rows.file.read_bytes()


@pytest.fixture
def run() -> assay.Run:
    return make_run(write_metric("on_topic"))


# Foundry.


@pytest.fixture
def keyless(foundry: FakeFoundry) -> Foundry:
    """A project that gives no signature for its storage."""
    foundry.signature = ""
    return Foundry(foundry.endpoint, ScopedCredential())


def test_rows_get_to_storage_without_keys_by_a_token_for_it(
    foundry: FakeFoundry, keyless: Foundry, run: assay.Run
) -> None:
    assert log(run, keyless)["url"]
    (put,) = foundry.calls("PUT", "^/store/")
    assert put.headers["authorization"] == f"Bearer {STORAGE_TOKEN}"
    assert put.headers["x-ms-version"] >= "2017-11-09"  # from then on storage takes tokens
    assert not put.query
    assert list(foundry.blobs.values()) == [sent_rows(run, keyless)]


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (401, "the login is not accepted; log in again (az login)"),
        (403, DENIED),
        (404, "the storage container does not exist"),
        (500, "the service failed"),
        (0, "got no answer"),
    ],
)
def test_storage_without_keys_that_refuses(
    foundry: FakeFoundry, keyless: Foundry, run: assay.Run, status: int, said: str
) -> None:
    foundry.fail("PUT", "^/store/", status)
    error = fails(run, keyless)
    assert error.startswith("uploading the rows failed: PUT 127.0.0.1")
    assert said in error
    foundry.heal()
    assert log(run, keyless)["url"]
    assert len(foundry.all_runs()) == 1


def test_a_token_of_the_project_does_not_go_to_storage(
    foundry: FakeFoundry, keyless: Foundry, run: assay.Run
) -> None:
    error = fails(run, Foundry(foundry.endpoint, FixedToken(TOKEN)))
    assert "AZURE_AI_PROJECT_TOKEN holds a token for the project, not for the storage" in error
    assert not foundry.calls("PUT", "")


def test_a_credential_that_gives_no_token_for_storage(foundry: FakeFoundry, run: assay.Run) -> None:
    class ProjectOnly:
        def get_token(self, *scopes: str) -> Access:
            if "storage" in scopes[0]:
                raise RuntimeError("no consent for storage")
            return Access(TOKEN, 4_000_000_000)

    foundry.signature = ""
    error = fails(run, Foundry(foundry.endpoint, ProjectOnly()))
    assert "no consent for storage; log in with az login, give credential=." in error


@pytest.mark.parametrize(
    ("container", "said"),
    [
        ("https://storage.example/store", "no token is sent to storage.example"),
        ("https://blob.core.windows.net.example/s", "no token is sent to blob.core.windows.net.ex"),
        ("https://blob.core.windows.net@storage.example/s", "no token is sent to storage.example"),
        ("http://127.0.0.1:1/store", "it has no TLS"),
    ],
)
def test_hosts_that_are_sent_no_token(
    foundry: FakeFoundry, keyless: Foundry, run: assay.Run, container: str, said: str
) -> None:
    foundry.container = container
    assert said in fails(run, keyless)


@pytest.mark.parametrize(
    "host",
    [
        "account.blob.core.windows.net",
        "account.blob.core.usgovcloudapi.net",
        "account.blob.core.chinacloudapi.cn",
        "account.z01.blob.storage.azure.net",
    ],
)
def test_hosts_of_azure_storage(
    hub: FakeHub, tls: Tls, run: assay.Run, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proxy of the fake hub leads every name to one server: only one is in its certificate."""

    async def put() -> None:
        async with Client(
            Foundry("https://a.test/api/projects/p", ScopedCredential()), PATIENT
        ) as c:
            file = run.directory / "scores.jsonl"
            await c.put_file(f"https://{host}/store/f", file, f"{host}/store/f", by_token=True)

    hub.keyless = True
    if host == "account.blob.core.windows.net":
        asyncio.run(put())
        assert hub.blobs["/store/f"] == (run.directory / "scores.jsonl").read_bytes()
    else:
        with pytest.raises(UploadError, match="got no answer .*Hostname mismatch"):
            asyncio.run(put())


# A hub.


@pytest.fixture
def hub_project(hub: FakeHub) -> Hub:
    hub.keyless = True
    return Hub("s", "g", "p", ScopedCredential())


@pytest.mark.usefixtures("no_waits")
@pytest.mark.filterwarnings("ignore")
def test_a_hub_without_keys(hub: FakeHub, hub_project: Hub, run: assay.Run) -> None:
    assert log(run, hub_project)["url"]
    (put,) = hub.calls("PUT", "^/store/")
    assert put.headers["authorization"] == f"Bearer {STORAGE_TOKEN}"
    assert not hub.calls("POST", "/listSecrets$")
    assert len(next(iter(hub.blobs.values())).splitlines()) == 5


@pytest.mark.usefixtures("no_waits")
@pytest.mark.filterwarnings("ignore")
def test_a_hub_without_keys_that_refuses(hub: FakeHub, hub_project: Hub, run: assay.Run) -> None:
    hub.fail("PUT", "^/store/", 403)
    error = fails(run, hub_project)
    assert error.startswith("uploading the rows failed: PUT account.blob.core.windows.net/store/")
    assert DENIED in error
    hub.heal()
    error = fails(run, Hub("s", "g", "p", FixedToken(TOKEN)))
    assert "AZURE_AI_PROJECT_TOKEN holds a token for the project, not for the storage" in error
    found = log(run, hub_project)
    assert hub.finished() == [found["run_id"]]


def examine(project: Any) -> dict[str, tuple[str, str]]:
    async def collect() -> dict[str, tuple[str, str]]:
        found = diagnose(None, project, patience=PATIENT)
        return {finding.part: (finding.state, finding.said) async for finding in found}

    said = asyncio.run(collect())
    assert not any(secret in repr(said) for secret in SECRETS)
    return said


def test_the_doctor_of_storage_without_keys(
    foundry: FakeFoundry, keyless: Foundry, hub: FakeHub, hub_project: Hub
) -> None:
    found = examine(hub_project)
    assert found["storage"] == ("ok", "files get there by your own token, since it takes no keys")
    assert examine(keyless)["storage"][0] == "ok"
    for fake in (foundry, hub):
        fake.fail("PUT", "^/store/", 403)
    for project in (keyless, hub_project):
        found = examine(project)
        assert found["permissions"][0] == "ok"
        assert found["storage"][0] == "todo"
        assert DENIED in found["storage"][1]
        assert "portal" not in found


def test_the_doctor_of_a_hub_with_keys(hub: FakeHub) -> None:
    project = Hub("s", "g", "p", ScopedCredential())
    assert examine(project)["storage"] == (
        "ok",
        "files get there by Sas, which the workspace gives",
    )
    assert len(hub.blobs) == 1
    hub.fail("POST", "/listSecrets$", 403)
    found = examine(project)
    assert found["storage"][0] == "todo"
    assert "asking for a key of the storage failed" in found["storage"][1]
    assert '"Azure AI Developer"' in found["storage"][1]


# Azurite.


@pytest.fixture(scope="session")
def started(tls: Tls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azurite]:
    command = find_azurite()
    if command is None:
        pytest.skip("no azurite: .ci/run installs it, or ASSAY_AZURITE names its azurite-blob")
    with start_azurite(command, tls, tmp_path_factory.mktemp("azurite")) as running:
        yield running


@pytest.fixture
def azurite(started: Azurite, foundry: FakeFoundry) -> Azurite:
    """An empty one, in which the project of the fake keeps its files."""
    started.clear()
    foundry.container, foundry.blobs = started.container, started
    return started


def test_rows_in_azurite_by_a_signature(
    azurite: Azurite, foundry: FakeFoundry, project: Foundry, run: assay.Run
) -> None:
    foundry.signature = azurite.sas()
    assert log(run, project)["counts"]["on_topic"] == {"passed": 3, "failed": 2}
    (name,) = azurite.names()
    assert azurite[f"{azurite.container}/{name}"] == sent_rows(run, project)


class RealTokens:
    """Tokens for storage as Azurite reads them."""

    def __init__(self, audience: str = "https://storage.azure.com") -> None:
        self.audience = audience

    def get_token(self, *scopes: str, **_: Any) -> Access:
        is_storage = scopes == ("https://storage.azure.com/.default",)
        return Access(storage_token(self.audience) if is_storage else TOKEN, 4_000_000_000)


def test_rows_in_azurite_by_a_token(azurite: Azurite, foundry: FakeFoundry, run: assay.Run) -> None:
    foundry.signature = ""
    project = Foundry(foundry.endpoint, RealTokens())
    assert log(run, project)["url"]
    (name,) = azurite.names()
    assert azurite[f"{azurite.container}/{name}"] == sent_rows(run, project)


def test_tokens_that_azurite_refuses(
    azurite: Azurite, foundry: FakeFoundry, run: assay.Run
) -> None:
    foundry.signature = ""
    error = fails(run, Foundry(foundry.endpoint, RealTokens("https://ai.azure.com")))
    assert "HTTP 403: the login is not accepted; log in again (az login)" in error
    foundry.container = f"{azurite.container}2"
    error = fails(run, Foundry(foundry.endpoint, RealTokens()))
    assert "HTTP 404 (ContainerNotFound: The specified container does not exist.)" in error
    assert "the storage container does not exist" in error


@pytest.mark.usefixtures("no_waits")
@pytest.mark.filterwarnings("ignore")
def test_rows_of_a_hub_in_azurite(
    started: Azurite, hub: FakeHub, run: assay.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By azure-ai-evaluation and azure-storage-blob, with and without keys."""
    started.clear()
    hub.storage_port = started.port
    hub.sas = started.sas()
    first = log(run, Hub("s", "g", "p", ScopedCredential()))
    hub.keyless = True
    (run.directory / "upload.json").unlink()
    hub.runs.clear()
    second = log(run, Hub("s", "g", "p", RealTokens()))
    names = [f"promptflow/PromptFlowArtifacts/{found['run_id']}" for found in (first, second)]
    assert names[0] == names[1]  # each was the only run the hub knew
    assert started.names() == [f"{names[0]}/instance_results.jsonl"]
    rows = started[f"{started.container}/{started.names()[0]}"].splitlines()
    assert [json.loads(row)["outputs.on_topic.on_topic"] for row in rows] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"account_key": "b3RoZXI="}, "the signature the project gave is not accepted"),
        (
            {"expiry": datetime.now(UTC) - timedelta(hours=1)},
            "the signature the project gave is not accepted; repeat it for a fresh one",
        ),
        ({"permission": "r"}, 'needs "Storage Blob Data Contributor" on the storage account'),
    ],
)
def test_a_signature_that_azurite_refuses(
    azurite: Azurite,
    foundry: FakeFoundry,
    project: Foundry,
    run: assay.Run,
    how: dict[str, Any],
    said: str,
) -> None:
    foundry.signature = azurite.sas(**how)
    error = fails(run, project)
    assert "HTTP 403" in error
    assert said in error
    assert foundry.signature.partition("sig=")[2] not in error
    assert azurite.names() == []
    foundry.signature = azurite.sas()
    assert log(run, project)["url"]

"""Looking at a hub project: whether it can be written to, and whether it has a run."""

from __future__ import annotations

import asyncio
import contextlib
import fnmatch
import os
import re
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlsplit

from assay.azure.client import Client, Patience
from assay.azure.faults import UploadError
from assay.azure.project import Foundry, Hub
from assay.azure.step import Step
from assay.judge.project import identity

ARM = "https://management.azure.com"
SCOPE = f"{ARM}/.default"
_WRITES_RUNS = "Microsoft.MachineLearningServices/workspaces/experiments/runs/write"
_ROLE = 'the role "Azure AI Developer" (or "AzureML Data Scientist") on the project gives it'
_ABSENT = "check the subscription, the resource group and the name of the project"
_WORKSPACES = {"api-version": "2024-07-01-preview"}
_MARK, _WHOLE = "assay.upload", "assay.complete"
_SHOWS_ROWS = "_azureml.evaluat"  # what the properties begin with by which the portal shows rows
_FOLDER = "promptflow/PromptFlowArtifacts"  # where azure-ai-evaluation puts rows
_CLOSE = 1e-9


class HubClient:
    """ARM and MLflow of one hub project. To be used as `async with`."""

    def __init__(self, project: Hub, patience: Patience | None = None) -> None:
        self.project = project
        self.patience = patience or Patience()
        self.workspace = (
            f"/subscriptions/{project.subscription_id}/resourceGroups/"
            f"{project.resource_group_name}/providers/Microsoft.MachineLearningServices/"
            f"workspaces/{project.project_name}"
        )
        self._credential = project.credential or identity()
        self._open = contextlib.AsyncExitStack()
        self._clients: dict[str, Client] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._open.aclose()

    async def check(self) -> None:
        """Login, workspace, and the permission to write runs."""
        await self._tracking()
        path = f"{self.workspace}/providers/Microsoft.Authorization/permissions"
        step = hub_step("reading the permissions", "GET", path)
        found = await self._arm(step, {"api-version": "2022-04-01"})
        if not may(_WRITES_RUNS, found.get("value") or []):
            raise UploadError(
                f"{self.project.label}: missing permission: action {_WRITES_RUNS}, which {_ROLE}"
            )

    async def storage(self, file: Path) -> str:
        """How files get into the workspace's storage, in words, after a try with `file`."""
        step = hub_step("reading the datastores", "GET", f"{self.workspace}/datastores")
        found = await self._arm(step, _WORKSPACES | {"isDefault": "true"})
        store = (found.get("value") or [{}])[0].get("properties") or {}
        folder = f"{store.get('containerName')}/{_FOLDER}/assay-check"
        shown = f"{store.get('accountName')}.blob.{store.get('endpoint')}/{folder}/{file.name}"
        arm = self._clients["arm"]
        how = str((store.get("credentials") or {}).get("credentialsType"))
        if how.lower() == "none":
            await arm.put_file(f"https://{shown}", file, shown, by_token=True)
            return "files get there by your own token, since it takes no keys"
        path = f"{self.workspace}/datastores/workspaceblobstore/listSecrets"
        step = hub_step("asking for a key of the storage", "POST", path)
        found = await self._arm(step, _WORKSPACES, {"expirableSecret": True, "expireAfterHours": 1})
        sas = str(found.get("sasToken") or "").removeprefix("?")
        if sas:
            await arm.put_file(f"https://{shown}?{sas}", file, shown)
        return f"files get there by {how}, which the workspace gives"

    async def find(self, key: str) -> dict[str, Any] | None:
        """The run of this upload that was found whole, with its link and metrics."""
        for run in await self._marked(key):
            if _WHOLE in _tags(run):
                run_id = run["info"]["run_id"]
                return {"run": run_id, "url": self.link(run_id), "metrics": _metrics(run)}
        return None

    async def lacks(self, run_id: str, sent: Mapping[str, float]) -> list[str]:
        """What of a run is not there, each with the call that should have made it; looked at
        again where something is not listed yet. A run that is whole is marked as such."""
        for attempt in range(self.patience.tries):
            found = await self._lacks(run_id, sent)
            if not found:
                await self._seal(run_id)
                return []
            if attempt < self.patience.tries - 1:
                await asyncio.sleep(self.patience.pause * 2**attempt)
        return found

    async def disown(self, key: str) -> None:
        """End what attempts at this upload left behind as failed, as far as the service lets us:
        the package ends every run as finished, also one that it could not complete."""
        with contextlib.suppress(UploadError):
            for run in await self._marked(key):
                if _WHOLE in _tags(run) or run["info"].get("status") == "FAILED":
                    continue
                end = {"status": "FAILED", "end_time": int(time.time() * 1000)}
                body = {"run_id": run["info"]["run_id"], **end}
                await self._mlflow("ending a broken run", "POST", "update", body)

    async def _marked(self, key: str) -> list[dict[str, Any]]:
        """The runs that carry an upload's mark."""
        body = {
            "experiment_ids": ["0"],
            "filter": f"tags.`{_MARK}` = '{key}'",
            "max_results": 100,
        }
        _, found = await self._mlflow("looking for the run", "POST", "search", body)
        return found.get("runs") or []

    async def _lacks(self, run_id: str, sent: Mapping[str, float]) -> list[str]:
        status, answer = await self._mlflow(
            "looking at the run", "GET", "get", params={"run_id": run_id}, also=(404,)
        )
        if status == 404:
            return ["the run itself (POST runs/create)"]
        run = answer.get("run") or {}
        info, there = run.get("info") or {}, _metrics(run)
        missing = [
            name
            for name, value in sent.items()
            if name not in there or abs(there[name] - float(value)) > _CLOSE
        ]
        found = [f"{', '.join(missing[:5])} (POST runs/log-metric)"] if missing else []
        if info.get("status") != "FINISHED":
            found.append(f"its end (POST runs/update), it is {info.get('status')}")
        place = (
            f"/history/v1.0{self.workspace}/experimentids/{quote(str(info.get('experiment_id')))}"
        )
        history = f"{place}/runs/{quote(run_id)}"
        _, answer = await self._track(hub_step("looking at the run's properties", "GET", history))
        if not any(name.startswith(_SHOWS_ROWS) for name in answer.get("properties") or {}):
            found.append("the properties by which the portal shows it (PATCH run history)")
        artifacts = hub_step("looking at the run's rows", "GET", f"{history}/artifacts")
        _, answer = await self._track(artifacts)
        if not answer.get("value"):
            found.append("the registration of its rows (POST artifacts/register)")
        return found

    async def _seal(self, run_id: str) -> None:
        """Mark a whole run. Without the mark it is whole all the same: `upload.json` knows it."""
        body = {"run_id": run_id, "key": _WHOLE, "value": "true"}
        with contextlib.suppress(UploadError):
            await self._mlflow("marking the run", "POST", "set-tag", body)

    async def _tracking(self) -> str:
        """Where MLflow of this workspace is."""
        step = hub_step("reading the workspace", "GET", self.workspace)
        found = await self._arm(step, _WORKSPACES)
        host = urlsplit((found.get("properties") or {}).get("mlFlowTrackingUri") or "").netloc
        if not host:
            raise UploadError(f"{self.project.label} names no MLflow address", step=step)
        return f"https://{host}"

    async def _mlflow(
        self, title: str, method: str, name: str, body: Any = None, **how: Any
    ) -> tuple[int, dict[str, Any]]:
        path = f"/mlflow/v2.0{self.workspace}/api/2.0/mlflow/runs/{name}"
        return await self._track(hub_step(title, method, path), body, **how)

    async def _track(self, step: Step, body: Any = None, **how: Any) -> tuple[int, dict[str, Any]]:
        """A call to where the workspace keeps its runs."""
        if "tracking" not in self._clients:
            self._clients["tracking"] = await self._client(await self._tracking())
        return await self._clients["tracking"].call(step, body, **how)

    async def _arm(self, step: Step, params: Mapping[str, str], body: Any = None) -> dict[str, Any]:
        if "arm" not in self._clients:
            self._clients["arm"] = await self._client(ARM)
        _, found = await self._clients["arm"].call(step, body, params=params)
        return found

    async def _client(self, address: str) -> Client:
        client = Client(Foundry(address, self._credential), self.patience, SCOPE)
        return await self._open.enter_async_context(client)

    def link(self, run_id: str) -> str:
        """Where the old portal shows a run."""
        base = os.environ.get("AI_STUDIO_BASE_URL", "https://ai.azure.com")
        return f"{base}/build/evaluation/{run_id}?wsid={self.workspace}"


def hub_step(title: str, method: str = "", path: str = "") -> Step:
    """A call to a hub project, and what it needs."""
    return Step(title, method, path, permission=_ROLE, absent=_ABSENT)


def run_of(link: str | None) -> str:
    """The id of the run that a link leads to."""
    found = re.search(r"/evaluation/([^?/]+)", link or "")
    if found is None:
        raise UploadError("azure-ai-evaluation gave no link for the run")
    return found[1]


def may(action: str, permissions: list[Mapping[str, Any]]) -> bool:
    """Whether any of somebody's permissions covers an action."""

    def covers(patterns: Any) -> bool:
        return any(fnmatch.fnmatch(action.lower(), str(p).lower()) for p in patterns or ())

    return any(covers(p.get("actions")) and not covers(p.get("notActions")) for p in permissions)


def _metrics(run: Mapping[str, Any]) -> dict[str, float]:
    listed = (run.get("data") or {}).get("metrics") or []
    return {metric["key"]: float(metric["value"]) for metric in listed}


def _tags(run: Mapping[str, Any]) -> dict[str, str]:
    listed = (run.get("data") or {}).get("tags") or []
    return {tag["key"]: tag["value"] for tag in listed}

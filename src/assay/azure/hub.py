"""Looking at a hub project: whether it can be written to, and whether it has a run."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from assay.azure.client import Client, Patience
from assay.azure.faults import UploadError
from assay.azure.project import Foundry, Hub
from assay.azure.step import Step

ARM = "https://management.azure.com"
SCOPE = f"{ARM}/.default"
_WRITES_RUNS = "Microsoft.MachineLearningServices/workspaces/experiments/runs/write"
_ROLE = 'the role "Azure AI Developer" (or "AzureML Data Scientist") on the project gives it'
_ABSENT = "check the subscription, the resource group and the name of the project"
_CLOSE = 1e-9


class HubClient:
    """ARM and MLflow of one hub project. To be used as `async with`."""

    def __init__(self, project: Hub, patience: Patience | None = None) -> None:
        self.project = project
        self.patience = patience
        self.workspace = (
            f"/subscriptions/{project.subscription_id}/resourceGroups/"
            f"{project.resource_group_name}/providers/Microsoft.MachineLearningServices/"
            f"workspaces/{project.project_name}"
        )
        self._arm = Client(Foundry(ARM, project.credential), patience, SCOPE)

    async def __aenter__(self) -> Self:
        await self._arm.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._arm.__aexit__(kind, error, trace)

    async def check(self) -> None:
        """Login, workspace, and the permission to write runs."""
        await self._tracking()
        step = self._step(
            "reading the permissions",
            "GET",
            f"{self.workspace}/providers/Microsoft.Authorization/permissions",
        )
        _, found = await self._arm.call(step, params={"api-version": "2022-04-01"})
        if not may(_WRITES_RUNS, found.get("value") or []):
            raise UploadError(
                f"{self.project.label}: missing permission: action {_WRITES_RUNS}, which {_ROLE}"
            )

    async def storage(self) -> str:
        """How files get into the workspace's storage, in words."""
        step = self._step("reading the datastores", "GET", f"{self.workspace}/datastores")
        params = {"api-version": "2024-07-01-preview", "isDefault": "true"}
        _, found = await self._arm.call(step, params=params)
        stores = found.get("value") or [{}]
        settings = (stores[0].get("properties") or {}).get("credentials") or {}
        if settings.get("credentialsType") == "None":
            return 'no keys: you need "Storage Blob Data Contributor" on the storage account'
        return f"by {settings.get('credentialsType') or 'key'}, which the workspace gives"

    async def find(self, key: str) -> dict[str, Any] | None:
        """The link and metrics of a finished run that carries this upload's mark."""
        body = {
            "experiment_ids": ["0"],
            "filter": f"tags.`assay.upload` = '{key}'",
            "max_results": 10,
        }
        found = await self._mlflow("looking for the run", "POST", "search", body=body)
        for run in found.get("runs") or []:
            info = run.get("info") or {}
            if info.get("status") == "FINISHED" and (run.get("data") or {}).get("metrics"):
                return {"url": self._link(info["run_id"]), "metrics": _metrics(run)}
        return None

    async def confirm(self, link: str, sent: Mapping[str, float]) -> None:
        """Raises UploadError unless the run behind a link is there with all its metrics."""
        number = re.search(r"/evaluation/([^?/]+)", link)
        if number is None:
            raise UploadError("azure-ai-evaluation gave no link for the run")
        params = {"run_id": number[1]}
        found = await self._mlflow("looking at the run", "GET", "get", params=params)
        run = found.get("run") or {}
        status = (run.get("info") or {}).get("status")
        there = _metrics(run)
        missing = [
            name
            for name, value in sent.items()
            if name not in there or abs(there[name] - float(value)) > _CLOSE
        ]
        if status != "FINISHED" or missing:
            without = f", without {', '.join(missing[:5])}" if missing else ""
            raise UploadError(
                f"the run {number[1]} is not complete in {self.project.label}: it is {status}"
                f"{without}"
            )

    async def _tracking(self) -> str:
        """Where MLflow of this workspace is."""
        step = self._step("reading the workspace", "GET", self.workspace)
        _, found = await self._arm.call(step, params={"api-version": "2024-07-01-preview"})
        host = urlsplit((found.get("properties") or {}).get("mlFlowTrackingUri") or "").netloc
        if not host:
            raise UploadError(f"{self.project.label} names no MLflow address", step=step)
        return host

    async def _mlflow(
        self,
        title: str,
        method: str,
        name: str,
        body: Any = None,
        params: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        root = Foundry(f"https://{await self._tracking()}", self.project.credential)
        path = f"/mlflow/v2.0{self.workspace}/api/2.0/mlflow/runs/{name}"
        async with Client(root, self.patience, SCOPE) as client:
            _, found = await client.call(self._step(title, method, path), body, params=params)
        return found

    def _link(self, run_id: str) -> str:
        base = os.environ.get("AI_STUDIO_BASE_URL", "https://ai.azure.com")
        return f"{base}/build/evaluation/{run_id}?wsid={self.workspace}"

    def _step(self, title: str, method: str, path: str) -> Step:
        return Step(title, method, path, permission=_ROLE, absent=_ABSENT)


def may(action: str, permissions: list[Mapping[str, Any]]) -> bool:
    """Whether any of somebody's permissions covers an action."""

    def covers(patterns: Any) -> bool:
        return any(fnmatch.fnmatch(action.lower(), str(p).lower()) for p in patterns or ())

    return any(covers(p.get("actions")) and not covers(p.get("notActions")) for p in permissions)


def _metrics(run: Mapping[str, Any]) -> dict[str, float]:
    listed = (run.get("data") or {}).get("metrics") or []
    return {metric["key"]: float(metric["value"]) for metric in listed}

"""Whether an upload can work, before the first judge call."""

from __future__ import annotations

from assay.azure import calls
from assay.azure.client import Client, Patience
from assay.azure.faults import UploadError
from assay.azure.project import Foundry, Hub, Project
from assay.azure.step import Step
from assay.errors import SetupError

OPEN_DATASET = Step(
    "opening a dataset upload", "POST", "/datasets/assay-check/versions/1/startPendingUpload"
)


async def check_project(project: Project, patience: Patience | None = None) -> None:
    """Login, project and permissions. Raises SetupError: nothing was judged or spent yet."""
    try:
        if isinstance(project, Hub):
            from assay.azure.classic import check_hub

            await check_hub(project, patience)
        else:
            await _check_foundry(project, patience)
    except UploadError as error:
        raise SetupError(f"the run was not started, since its upload would fail: {error}") from None


async def _check_foundry(project: Foundry, patience: Patience | None) -> None:
    async with Client(project, patience) as client:
        await client.token()
        await client.call(calls.LIST_EVALUATORS, params={**calls.V1, "limit": "1"})
        await client.call(calls.LIST_EVALS, params={"limit": "1"})
        await may_create(client)


async def may_create(client: Client) -> None:
    """Try the calls that create, so that nothing stays behind.

    An upload is opened and never registered. An eval without criteria is asked for: who may
    create one is told that it is incomplete, who may not is told that.
    """
    body = {"pendingUploadType": "BlobReference"}
    await client.call(OPEN_DATASET, body, params=calls.V1, also=(409,))
    status, made = await client.call(calls.CREATE_EVAL, {}, also=(400, 422))
    if 200 <= status < 300 and made.get("id"):
        step = Step("deleting the trial eval", "DELETE", f"{calls.EVALS}/{made['id']}")
        await client.call(step, also=(404,))

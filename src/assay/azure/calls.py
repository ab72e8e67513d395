"""The calls of an upload, one function each. None of them makes a thing twice."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from assay.azure.client import Client
from assay.azure.faults import UploadError
from assay.azure.payloads import EvaluatorBody, plain_criterion
from assay.azure.rows import Rows
from assay.azure.step import Step

V1 = {"api-version": "v1"}
EVALS = "/openai/v1/evals"
_RECENT = 10  # pages of evals or runs to look through
_OVER = ("failed", "canceled", "cancelled")

LIST_EVALUATORS = Step("reading the evaluators", "GET", "/evaluators")
LIST_EVALS = Step("listing the evals", "GET", EVALS)
CREATE_EVAL = Step("creating the eval", "POST", EVALS)


async def evaluator_version(client: Client, wanted: EvaluatorBody, known: str | None) -> str:
    """The version of an echo evaluator: found by its fingerprint, else created."""
    path = f"/evaluators/{quote(wanted.name, safe='')}/versions"
    found = await _find_version(client, path, wanted)
    if found is None and known is not None:  # listing lags behind creating
        step = Step("reading the evaluator version", "GET", f"{path}/{quote(known, safe='')}")
        status, version = await client.call(step, params=V1, also=(404,))
        found = known if status != 404 and _is_same(version, wanted) else None
    if found is not None:
        return found
    step = Step("creating the evaluator version", "POST", path)
    _, made = await client.call(step, wanted.body, params=V1)
    return str(_need(made, "version", step))


async def _find_version(client: Client, path: str, wanted: EvaluatorBody) -> str | None:
    step: Step | None = Step("listing the evaluator's versions", "GET", path)
    params: Mapping[str, str] | None = V1
    while step is not None:
        status, page = await client.call(step, params=params, also=(404,))
        if status == 404:  # no evaluator has this name yet
            return None
        for version in page.get("value") or []:
            if _is_same(version, wanted):
                return str(version["version"])
        link = page.get("nextLink")
        step = Step(step.title, "GET", link, shown_path="") if link else None
        params = None
    return None


def _is_same(version: Mapping[str, Any], wanted: EvaluatorBody) -> bool:
    """By the fingerprint we wrote, and by the code, which somebody may have replaced."""
    metadata, definition = version.get("metadata") or {}, version.get("definition") or {}
    code = definition.get("code_text")
    return metadata.get("assay.fingerprint") == wanted.fingerprint and (
        not code or code == wanted.body["definition"].get("code_text")
    )


async def dataset(client: Client, name: str, rows: Rows) -> str:
    """The id of the rows as a dataset: found by the hash of their content, else uploaded."""
    path = f"/datasets/{quote(name, safe='')}/versions/{rows.version}"
    reading = Step("looking for the dataset", "GET", path)
    status, found = await client.call(reading, params=V1, also=(404,))
    if status != 404:
        return str(_need(found, "id", reading))
    opening = Step("opening the dataset upload", "POST", f"{path}/startPendingUpload")
    status, pending = await client.call(
        opening, {"pendingUploadType": "BlobReference"}, params=V1, also=(409,)
    )
    if status == 409:  # another upload of the same content was faster
        _, found = await client.call(reading, params=V1)
        return str(_need(found, "id", reading))
    data_uri = await put_pending(client, pending, rows.file, opening)
    closing = Step("registering the dataset", "PATCH", path)
    body = {
        "type": "uri_file",
        "dataUri": data_uri,
        "description": "Rows and scores of an assay run",
    }
    _, made = await client.call(
        closing, body, params=V1, content_type="application/merge-patch+json"
    )
    return str(_need(made, "id", closing))


async def put_pending(client: Client, pending: Mapping[str, Any], file: Path, step: Step) -> str:
    """A file to where an opened upload says; its address, without the signature.

    Storage that takes no keys gives no signature: a token logs in there instead.
    """
    place = pending.get("blobReference") or {}
    blob = str(place.get("blobUri") or "").rstrip("/")
    sas = str((place.get("credential") or {}).get("sasUri") or "")
    parts = urlsplit(sas or blob)
    if not parts.netloc:
        raise UploadError(f"{step.title}: the answer holds no address to upload to", step=step)
    path = f"{parts.path.rstrip('/')}/{file.name}"
    target = f"{parts.scheme}://{parts.netloc}{path}"
    signed = f"{target}?{parts.query}" if parts.query else target
    await client.put_file(signed, file, f"{parts.netloc}{path}", by_token=not sas)
    return f"{blob}/{file.name}" if blob else target


async def find_eval(client: Client, body: Mapping[str, Any], known: str | None) -> str:
    """The eval with exactly these criteria, else a fresh one: an eval's criteria are fixed."""
    mark = body["metadata"]["assay.criteria"]
    if known is not None:
        step = Step("reading the eval", "GET", f"{EVALS}/{quote(known, safe='')}")
        status, found = await client.call(step, also=(404,))
        if status != 404 and _has_criteria(found, body, mark):
            return known
    async for found in client.pages(LIST_EVALS, most=_RECENT):
        if _has_criteria(found, body, mark):
            return str(found["id"])
    _, made = await client.call(CREATE_EVAL, body)
    return str(_need(made, "id", CREATE_EVAL))


def _has_criteria(found: Mapping[str, Any], body: Mapping[str, Any], mark: str) -> bool:
    """The mark is ours; the criteria are what runs, versions and thresholds included."""
    if (found.get("metadata") or {}).get("assay.criteria") != mark:
        return False
    theirs = [plain_criterion(item) for item in found.get("testing_criteria") or []]
    return theirs == [plain_criterion(item) for item in body["testing_criteria"]]


async def find_run(
    client: Client, eval_id: str, body: Mapping[str, Any], known: str | None
) -> dict[str, Any]:
    """The run of this upload: the one that is there, else a new one.

    A creation whose answer got lost is found by the mark in its metadata, so that no repeat
    makes a second run. One that failed is made again.
    """
    path = f"{EVALS}/{quote(eval_id, safe='')}/runs"
    if known is not None:
        status, found = await client.call(read_run(eval_id, known), also=(404,))
        if status != 404 and found.get("status") not in _OVER:
            return found
    mark = body["metadata"]["assay.upload"]
    async for found in client.pages(Step("listing the runs", "GET", path), most=_RECENT):
        same = (found.get("metadata") or {}).get("assay.upload") == mark
        if same and found.get("status") not in _OVER:
            return found
    step = Step("creating the run", "POST", path)
    _, made = await client.call(step, body)
    _need(made, "id", step)
    return made


def read_run(eval_id: str, run_id: str) -> Step:
    """Looking at a run."""
    path = f"{EVALS}/{quote(eval_id, safe='')}/runs/{quote(run_id, safe='')}"
    return Step("reading the run", "GET", path)


def read_items(eval_id: str, run_id: str) -> Step:
    """Reading what a run gave, row by row."""
    path = f"{EVALS}/{quote(eval_id, safe='')}/runs/{quote(run_id, safe='')}/output_items"
    return Step("reading the results back", "GET", path)


def _need(found: Mapping[str, Any], name: str, step: Step) -> Any:
    if not found.get(name):
        raise UploadError(f"{step.title}: the answer holds no {name}", step=step)
    return found[name]

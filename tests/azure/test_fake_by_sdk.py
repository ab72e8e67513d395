"""The fake project driven by Microsoft's own client, so that the fake is checked as well.

Runs where azure-ai-projects is installed, which assay itself never needs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from assay.azure.outline import outline_of
from assay.azure.project import Foundry
from assay.azure.publish import publication
from assay.prompty import load
from assay.run.record import Run
from tests.azure.conftest import Credential, make_run, write_metric
from tests.support.foundry import FakeFoundry

projects = pytest.importorskip(
    "azure.ai.projects", reason="azure-ai-projects is not installed: the fake is not cross-checked"
)

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def closing() -> Iterator[Callable[[Any], Any]]:
    """Whatever is opened in a test, closed after it."""
    with ExitStack() as stack:
        yield stack.enter_context


@pytest.fixture
def client(foundry: FakeFoundry, monkeypatch: pytest.MonkeyPatch) -> Any:
    # The project's routes read this one, the openai client SSL_CERT_FILE.
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(foundry.tls.cert))
    with projects.AIProjectClient(foundry.endpoint, Credential()) as found:
        yield found


def test_our_payloads_through_their_client(
    foundry: FakeFoundry, client: Any, closing: Callable[[Any], Any]
) -> None:
    """Every payload we send, sent by azure-ai-projects and openai; every answer read by them."""
    run = make_run(write_metric("on_topic"))
    target = Foundry(foundry.endpoint)
    with outline_of(Run(run.directory), target, deployment=None, string_checks=True) as outline:
        (evaluator,) = outline.evaluators
        made = client.evaluators.create_version(
            name=evaluator.name, evaluator_version=dict(evaluator.body)
        )
        assert made.version == "1"
        (listed,) = client.evaluators.list_versions(name=evaluator.name)
        assert listed.metadata["assay.fingerprint"] == evaluator.fingerprint
        dataset = client.datasets.upload_file(
            name=outline.dataset, version=outline.rows.version, file_path=str(outline.rows.file)
        )
        assert client.datasets.get(outline.dataset, outline.rows.version).id == dataset.id
        openai = closing(client.get_openai_client())
        body = outline.eval_body({evaluator.name: made.version})
        evaluation = openai.evals.create(**body)
        started = openai.evals.runs.create(evaluation.id, **outline.run_body(dataset.id))
        done = openai.evals.runs.retrieve(started.id, eval_id=evaluation.id)
        assert done.status == "completed"
        assert done.result_counts.passed == 3
        items = list(openai.evals.runs.output_items.list(done.id, eval_id=evaluation.id, limit=2))
    items.sort(key=lambda item: item.datasource_item_id)
    assert [item.results[0].score for item in items] == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert [item.results[1].passed for item in items] == [False, False, True, True, True]
    assert json.loads(foundry.blobs.popitem()[1].splitlines()[0])["on_topic_score"] == 1.0


def test_what_they_call_an_error(foundry: FakeFoundry, client: Any) -> None:
    from azure.core.exceptions import HttpResponseError, ResourceNotFoundError

    with pytest.raises(ResourceNotFoundError):
        client.evaluators.get_version(name="none", version="1")
    foundry.fail("GET", "^/evaluators$", 403)
    with pytest.raises(HttpResponseError, match="it went wrong"):
        list(client.evaluators.list())


def test_a_published_metric_through_their_client(foundry: FakeFoundry, client: Any) -> None:
    file = load(write_metric("on_topic"))
    made = publication(file, "prompt")
    version = client.evaluators.create_version(name=made.name, evaluator_version=dict(made.body))
    assert version.definition.prompt_text == made.body["definition"]["prompt_text"]
    assert version.definition.metrics["score"].threshold == 3
    grader = publication(file, "score_model", deployment="gpt").body
    assert grader["range"] == [1, 5]

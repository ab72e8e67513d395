"""The fake project driven by Microsoft's own client, so that the fake is checked as well.

Runs where azure-ai-projects is installed, which assay itself never needs.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from assay.azure.log import log_run
from assay.azure.outline import outline_of
from assay.azure.project import Foundry
from assay.azure.publish import publication
from assay.prompty import load
from assay.run.record import Run
from tests.azure.conftest import PATIENT, Credential, make_run, write_metric
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


def test_a_comparison_through_their_client(
    foundry: FakeFoundry, project: Foundry, client: Any
) -> None:
    from azure.ai.projects.models import EvaluationComparisonInsightRequest, Insight
    from azure.core.exceptions import HttpResponseError

    metric = write_metric("on_topic")
    moved = json.dumps({"reason": "it moved", "score": 2})
    for special in (None, {"on_topic": {"q0": moved}}):
        run = make_run(metric, special=special, name=f"moved {bool(special)}")
        asyncio.run(log_run(run.directory, project, patience=PATIENT))
    request = EvaluationComparisonInsightRequest(
        eval_id="eval_1", baseline_run_id="run_1", treatment_run_ids=["run_2"]
    )
    made = client.beta.insights.generate(Insight(display_name="theirs", request=request))
    assert made.state == "NotStarted"
    done = client.beta.insights.get(made.insight_id)
    assert (done.state, done.result.method) == ("Succeeded", "PairedTTest")
    scores, verdicts = done.result.comparisons
    assert (scores.testing_criteria, scores.baseline_run_summary.average) == ("on_topic", 0.5)
    (item,) = scores.compare_items
    assert item.delta_estimate == pytest.approx(0.05)
    assert item.p_value == pytest.approx(0.373901, abs=1e-6)  # t = 1 with 4 degrees of freedom
    assert item.treatment_effect == "Inconclusive"
    assert verdicts.testing_criteria == "on_topic verdict"
    for _ in range(2):
        client.beta.insights.generate(Insight(display_name="again", request=request))
    listed = list(client.beta.insights.list(type="EvaluationComparison", eval_id="eval_1"))
    assert [one.insight_id for one in listed] == ["insight_3", "insight_2", "insight_1"]
    request["baselineRunId"] = "run_9"
    with pytest.raises(HttpResponseError, match="no run run_9"):
        client.beta.insights.generate(Insight(display_name="none", request=request))

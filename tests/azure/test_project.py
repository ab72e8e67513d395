"""Which project is meant: every form and every place, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from assay.azure import find_project
from assay.azure.project import Foundry, Hub
from assay.errors import SetupError

URL = "https://account.services.ai.azure.com/api/projects/p"
HUB = {"subscription_id": "s", "resource_group_name": "g", "project_name": "p"}


@pytest.mark.parametrize("given", [URL, f"{URL}/", f" {URL} "])
def test_an_endpoint(given: str) -> None:
    assert find_project(given) == Foundry(URL)


@pytest.mark.parametrize(
    "given",
    [
        HUB,
        "s/g/p",
        "eastus.api.azureml.ms;s;g;p",
        '{"subscription_id": "s", "resource_group_name": "g", "project_name": "p"}',
    ],
)
def test_a_hub_project(given: Any) -> None:
    assert find_project(given) == Hub("s", "g", "p")
    assert Hub("s", "g", "p").as_dict() == HUB


def test_the_argument_counts_before_the_environment_before_the_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Path("assay.toml").write_text(f'azure_ai_project = "{URL}-of-the-file"\n')
    assert find_project().label == f"{URL}-of-the-file"
    monkeypatch.setenv("AZURE_AI_PROJECT", "s/g/p")
    assert find_project(True) == Hub("s", "g", "p")
    monkeypatch.setenv("AZURE_AI_PROJECT_ENDPOINT", f"{URL}-of-the-environment")
    assert find_project().label == f"{URL}-of-the-environment"
    assert find_project(URL).label == URL


def test_a_table_in_the_file() -> None:
    Path("assay.toml").write_text(
        '[azure_ai_project]\nsubscription_id = "s"\nresource_group_name = "g"\nproject_name = "p"\n'
    )
    assert find_project() == Hub("s", "g", "p")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (None, "no Azure AI project: give --azure-ai-project https://ACCOUNT"),
        ("http://127.0.0.1/api/projects/p", "has no TLS"),
        ("https://account.openai.azure.com", "names no project: it looks like https://ACCOUNT"),
        ("https://u:secret@account.test/api/projects/p", "give the address alone"),
        (f"{URL}?key=secret", "give the address alone"),
        ({"subscription_id": "s"}, "also needs resource_group_name, project_name"),
        ("nonsense", "is neither https://ACCOUNT"),
        ("{nonsense", "is not JSON"),
    ],
)
def test_what_is_refused(given: Any, said: str) -> None:
    with pytest.raises(SetupError) as failure:
        find_project(given)
    assert said in str(failure.value)
    assert "secret" not in str(failure.value)


def test_a_token_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_AI_PROJECT_TOKEN", "mine-and-secret")
    found = find_project(URL)
    assert found.credential.get_token("scope").token == "mine-and-secret"
    assert "mine-and-secret" not in repr(found)
    assert "mine-and-secret" not in repr(found.credential)

"""Secrets are found and never shown; addresses are https."""

from __future__ import annotations

import pytest

from assay.prompty.check import check_text
from tests.prompty.check.helpers import BODY, FRONT, codes, metric, only

LETTERS = "aB3dE6gH9jK2mN5pQ8sT1vW4"


def configured(*lines: str) -> str:
    block = "  configuration:\n" + "".join(f"    {line}\n" for line in lines)
    return metric(FRONT.replace("  api: chat\n", "  api: chat\n" + block))


@pytest.mark.parametrize(
    "line",
    [
        f"api_key: {LETTERS[:10]}",
        f"api_key: {'0123456789abcdef' * 2}",
        f"api_key: sk-{LETTERS}",
        f"api_key: ${{env:NOT_A_SECRET:{LETTERS}}}",
        f"password: {LETTERS}",
        f'headers: {{Authorization: "Bearer {LETTERS}"}}',
        f"azure_endpoint: https://example.org/x?sv=1&sig={LETTERS}%3D",
    ],
)
def test_a_secret_in_the_settings(line: str) -> None:
    finding = only(configured(line))
    assert (finding.code, finding.severity, finding.line) == ("secret", "error", 6)
    assert LETTERS[:10] not in str(finding)
    assert "0123456789abcdef" not in str(finding)


def test_a_secret_in_the_body_and_in_a_broken_file() -> None:
    token = f"eyJ{LETTERS}.eyJ{LETTERS}.{LETTERS}"
    finding = only(metric(body=BODY + f"Use {token} to log in.\n"))
    assert finding.code == "secret"
    assert LETTERS not in str(finding)
    broken = check_text(f"---\nname: [\nkey: sk-{LETTERS}\n---\nsystem:\nx\n")
    assert {f.code for f in broken} == {"yaml", "secret"}
    assert not any(LETTERS in str(f) for f in broken)


@pytest.mark.parametrize(
    "line",
    [
        "api_key: ${env:PATH}",
        "api_key: <your-key>",
        "api_key: YOUR_API_KEY",
        "api_key: sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        'api_key: ""',
    ],
)
def test_references_and_placeholders_are_no_secrets(line: str) -> None:
    assert codes(configured(line)) == []


def test_hashes_elsewhere_are_no_secrets() -> None:
    text = metric(FRONT + f"\nmetadata:\n  source: https://example.org/{'0123456789abcdef' * 2}")
    assert codes(text) == []


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("http://models.example.org/v1", True),
        ("https://models.example.org/v1", False),
        ("http://localhost:11434/v1", False),
        ("http://127.0.0.1:8000", False),
        ("http://[::1]:8000", False),
        ("http://localhost.example.org", True),
    ],
)
def test_endpoints_are_https_or_local(address: str, told: bool) -> None:
    text = configured(f"base_url: {address}")
    assert codes(text) == (["insecure-endpoint"] if told else [])

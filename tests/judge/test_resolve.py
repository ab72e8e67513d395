"""From a name, a file, the environment or assay.toml to a judge, and where keys may go."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from assay.errors import PromptyError, SetupError
from assay.judge.base import Judge
from assay.judge.credential import Entra, Key, NoCredential
from assay.judge.resolve import resolve
from assay.judge.scripted import ScriptedJudge
from assay.judge.wire import OpenAIJudge
from assay.prompty import loads
from tests.support.server import JudgeServer

KEY = "key-0123456789abcdef"
AZURE = "https://name.openai.azure.com"

pytestmark = pytest.mark.usefixtures("folder")


def of(model: str, **more: Any) -> OpenAIJudge:
    """The judge of a file with these lines under `model:`."""
    indented = "".join(f"  {line}\n" for line in model.strip().split("\n"))
    file = loads(f"---\nmodel:\n{indented}---\nuser:\nhi\n")
    return wire(resolve(model=file.model, path=Path("m.prompty"), **more))


def wire(judge: Judge) -> OpenAIJudge:
    assert isinstance(judge, OpenAIJudge)
    return judge


class Source:
    def get_token(self, scope: str) -> Any:
        raise AssertionError("no call is made here")


# By name.


def test_openai_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    judge = wire(resolve("openai:gpt-x"))
    assert (judge.name, judge.model) == ("openai:gpt-x", "gpt-x")
    assert judge.url == "https://api.openai.com/v1/chat/completions"
    assert judge.credential == Key(KEY)


@pytest.mark.parametrize("by", ["argument", "environment"])
def test_another_base_url(monkeypatch: pytest.MonkeyPatch, by: str) -> None:
    url = "http://localhost:8000/v1"
    if by == "environment":
        monkeypatch.setenv("OPENAI_BASE_URL", url)
    judge = wire(resolve("openai:org/model:7b", base_url=url if by == "argument" else None))
    assert (judge.url, judge.model) == (f"{url}/chat/completions", "org/model:7b")
    assert judge.credential == NoCredential()


def test_azure_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", AZURE)
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)
    judge = wire(resolve("azure:dep"))
    assert judge.url == f"{AZURE}/openai/v1/chat/completions"
    assert judge.credential == Key(KEY, bearer=False)
    monkeypatch.setenv("AZURE_OPENAI_API_VERSION", "2024-06-01")
    judge = wire(resolve("azure:dep"))
    assert judge.url == f"{AZURE}/openai/deployments/dep/chat/completions?api-version=2024-06-01"


def test_azure_with_a_login_given_in_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", AZURE)
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)
    source = Source()
    judge = wire(resolve("azure:dep", credential=source))
    assert judge.credential == Entra(AZURE, source)


@pytest.mark.parametrize(
    ("host", "url"),
    [
        (None, "http://localhost:11434/v1/chat/completions"),
        ("gpu.local:9", "http://gpu.local:9/v1/chat/completions"),
        ("https://gpu.local/", "https://gpu.local/v1/chat/completions"),
    ],
)
def test_ollama_by_name(monkeypatch: pytest.MonkeyPatch, host: str | None, url: str) -> None:
    if host:
        monkeypatch.setenv("OLLAMA_HOST", host)
    judge = wire(resolve("ollama:llama3:8b"))
    assert (judge.url, judge.model, judge.credential) == (url, "llama3:8b", NoCredential())


def test_a_script_by_name(folder: Path) -> None:
    (folder / "s.json").write_text('[{"reply": "4"}]')
    assert isinstance(resolve("scripted:s.json"), ScriptedJudge)


def test_a_judge_object_is_itself() -> None:
    judge = ScriptedJudge("x")
    assert resolve(judge) is judge


@pytest.mark.parametrize(
    "name", ["gpt-4o", "openai", "openai:", "azure:", "ollama:", "scripted:", "bard:x", ":x"]
)
def test_a_name_of_nothing_shows_the_ways_out(name: str) -> None:
    with pytest.raises(SetupError, match="--judge openai:MODEL"):
        resolve(name)


@pytest.mark.parametrize(
    ("name", "words"),
    [("openai:x", "OPENAI_API_KEY"), ("azure:x", "AZURE_OPENAI_ENDPOINT"), (None, "ASSAY_JUDGE")],
)
def test_what_is_missing_is_said(name: str | None, words: str) -> None:
    with pytest.raises(SetupError, match=words):
        resolve(name)


@pytest.mark.parametrize("key", ["key-é", "key\nX-Evil: 1", "key…"])
def test_a_key_that_is_none_is_not_sent_nor_shown(
    monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(SetupError) as caught:
        resolve("openai:x")
    assert key not in str(caught.value)


def test_a_key_loses_only_the_space_around_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", f" {KEY}\n")
    assert wire(resolve("openai:x")).credential == Key(KEY)


# The order: argument, file, environment, assay.toml.


def test_the_order(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    file = loads("---\nmodel:\n  id: from-file\n  provider: openai\n---\nhi")
    silent = loads("---\nname: x\n---\nhi")
    (folder / "assay.toml").write_text('judge = "openai:from-toml"\n')
    assert wire(resolve(model=silent.model)).model == "from-toml"
    monkeypatch.setenv("ASSAY_JUDGE", "openai:from-environment")
    assert wire(resolve(model=silent.model)).model == "from-environment"
    assert wire(resolve(model=file.model)).model == "from-file"
    assert wire(resolve("openai:from-argument", model=file.model)).model == "from-argument"


def test_assay_toml_is_found_above(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    (folder / "assay.toml").write_text('judge = "ollama:m"\n')
    (folder / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(folder / "a" / "b")
    assert wire(resolve()).name == "ollama:m"


def test_assay_toml_that_is_broken_says_so(folder: Path) -> None:
    (folder / "assay.toml").write_text("judge = \n")
    with pytest.raises(SetupError, match=r"assay\.toml: not valid TOML"):
        resolve("openai:x")


# What a file says.


def test_the_settings_of_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_ENDPOINT", AZURE)
    monkeypatch.setenv("MY_KEY", KEY)
    judge = of("""
configuration:
  type: azure_openai
  azure_endpoint: ${env:MY_ENDPOINT}
  azure_deployment: dep
  api_version: 2024-06-01
  api_key: ${env:MY_KEY}
""")
    assert judge.name == "azure:dep"
    assert judge.url == f"{AZURE}/openai/deployments/dep/chat/completions?api-version=2024-06-01"
    assert judge.credential == Key(KEY, bearer=False)


def test_a_second_generation_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    judge = of("id: m\nprovider: openai\nconnection:\n  kind: key\n  apiKey: ${env:MY_KEY}")
    assert judge.url == "https://api.openai.com/v1/chat/completions"
    assert (judge.model, judge.credential) == ("m", Key(KEY))


def test_every_missing_variable_is_listed_and_the_file_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CASE_EMPTY", "")
    with pytest.raises(SetupError) as caught:
        of("""
configuration:
  type: azure_openai
  azure_endpoint: ${env:CASE_ENDPOINT}
  azure_deployment: ${env:CASE_EMPTY}
  api_key: ${env:CASE_KEY}
  region: ${env:CASE_REGION:west}
""")
    assert str(caught.value) == (
        "m.prompty: environment variables needed: CASE_ENDPOINT (not set), "
        "CASE_EMPTY (set but empty), CASE_KEY (not set)"
    )


def test_a_login_given_in_code_needs_no_key_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_ENDPOINT", "https://gateway.example/azure")
    source = Source()
    judge = of(
        "configuration:\n  type: azure_openai\n  azure_endpoint: ${env:MY_ENDPOINT}\n"
        "  azure_deployment: dep\n  api_key: ${env:GONE}",
        credential=source,
    )
    assert judge.credential == Entra("https://gateway.example/azure", source)


def test_a_file_without_a_provider_names_no_judge() -> None:
    file = loads("---\nmodel: gpt-4o\n---\nhi")
    with pytest.raises(SetupError, match="no judge"):
        resolve(model=file.model)


@pytest.mark.parametrize("word", ["serverless", "anthropic", "fake"])
def test_a_provider_that_cannot_be_called_says_so(word: str) -> None:
    with pytest.raises(SetupError, match=f"provider '{word}' is not one assay can call"):
        of(f"configuration:\n  type: {word}\n  model: m")


def test_a_connection_that_names_no_model_says_so() -> None:
    with pytest.raises(SetupError, match="names no model or deployment"):
        of("configuration:\n  type: openai\n  api_key: k")


# Named connections.

TOML = f"""
[connections.team]
type = "azure_openai"
azure_endpoint = "{AZURE}"
azure_deployment = "team-dep"
api_key = "${{env:TEAM_KEY}}"

[connections.other]
type = "openai"
model = "m"
api_key = "{KEY}"
"""


@pytest.mark.parametrize(
    "model",
    [
        "connection: team",
        "configuration:\n  connection: team",
        "connection:\n  kind: reference\n  name: team",
    ],
)
def test_a_named_connection(monkeypatch: pytest.MonkeyPatch, folder: Path, model: str) -> None:
    (folder / "assay.toml").write_text(TOML)
    monkeypatch.setenv("TEAM_KEY", KEY)
    judge = of(model)
    assert judge.name == "azure:team-dep"
    assert judge.url == f"{AZURE}/openai/v1/chat/completions"
    assert judge.credential == Key(KEY, bearer=False)


def test_a_named_connection_without_an_endpoint(folder: Path) -> None:
    (folder / "assay.toml").write_text(TOML)
    judge = of("connection: other")
    assert (judge.name, judge.credential) == ("openai:m", Key(KEY))


def test_the_file_may_choose_another_deployment(
    monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    (folder / "assay.toml").write_text(TOML)
    monkeypatch.setenv("TEAM_KEY", KEY)
    judge = of("configuration:\n  connection: team\n  azure_deployment: mine")
    assert (judge.name, judge.credential) == ("azure:mine", Key(KEY, bearer=False))


def test_a_named_connection_that_is_not_there_is_named(folder: Path) -> None:
    (folder / "assay.toml").write_text(TOML)
    with pytest.raises(SetupError, match=r"connection 'gone' of m\.prompty is not in assay\.toml"):
        of("connection: gone")


def test_a_named_connection_must_be_a_table(folder: Path) -> None:
    (folder / "assay.toml").write_text('[connections]\nteam = "x"\n')
    with pytest.raises(SetupError, match=r"\[connections\.team\] must be a table"):
        of("connection: team")


def test_a_connection_in_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    file = loads("---\nmodel:\n  connection: ${file:gone.json}\n---\nhi", tmp_path / "m.prompty")
    with pytest.raises(PromptyError, match=r"gone\.json"):
        resolve(model=file.model, path=file.path)


# Where keys that a file does not name itself may go.

EVIL = "https://evil.example/v1"
AMBIENT = {
    "OPENAI_API_KEY": KEY,
    "AZURE_OPENAI_API_KEY": KEY,
    "AZURE_OPENAI_ENDPOINT": AZURE,
}


@pytest.fixture
def ambient(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in AMBIENT.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("ambient")
@pytest.mark.parametrize(
    "endpoint",
    [
        EVIL,
        "https://api.openai.com.evil.example/v1",
        "https://evil.example/api.openai.com",
        "https://evil.example?.openai.azure.com",
        "https://xopenai.azure.com.evil.example",
        "${env:AZURE_OPENAI_ENDPOINT}.evil.example",
        "${env:GONE:https://evil.example}",
    ],
)
def test_a_key_of_the_environment_is_not_sent_where_a_file_says(endpoint: str) -> None:
    judge = of(f"configuration:\n  type: openai\n  model: m\n  base_url: {endpoint}")
    assert judge.credential == NoCredential()
    with pytest.raises(SetupError, match="login is not sent there"):
        of(f"configuration:\n  type: azure_openai\n  azure_deployment: m\n  endpoint: {endpoint}")
    with pytest.raises(SetupError, match="not sent"):
        of(f"configuration:\n  type: openai\n  model: m\n  base_url: {endpoint}",
           credential=Source())  # fmt: skip


@pytest.mark.usefixtures("ambient")
@pytest.mark.parametrize(
    "endpoint",
    [
        "https://other.openai.azure.com",
        "https://other.cognitiveservices.azure.com/",
        "https://other.services.ai.azure.com",
        "${env:AZURE_OPENAI_ENDPOINT}",
        "${env:AZURE_OPENAI_ENDPOINT}/openai/v1",
    ],
)
def test_it_is_sent_to_azure_and_where_the_environment_says(endpoint: str) -> None:
    judge = of(
        f"configuration:\n  type: azure_openai\n  azure_deployment: m\n  endpoint: {endpoint}"
    )
    assert judge.credential == Key(KEY, bearer=False)


@pytest.mark.usefixtures("ambient")
def test_a_key_the_file_names_itself_goes_where_the_file_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GATEWAY_KEY", "gateway-key")
    judge = of(
        f"configuration:\n  type: openai\n  model: m\n  base_url: {EVIL}\n"
        "  api_key: ${env:GATEWAY_KEY}"
    )
    assert judge.credential == Key("gateway-key")


def test_a_key_of_assay_toml_is_not_sent_where_a_file_says(
    monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    (folder / "assay.toml").write_text(TOML)
    monkeypatch.setenv("TEAM_KEY", KEY)
    judge = of(f"configuration:\n  connection: other\n  base_url: {EVIL}")
    assert judge.credential == NoCredential()
    with pytest.raises(SetupError, match="not sent there"):
        of(f"configuration:\n  connection: team\n  azure_endpoint: {EVIL}")


@pytest.mark.usefixtures("ambient")
def test_on_the_wire_an_unknown_host_sees_no_key(server: JudgeServer, folder: Path) -> None:
    """The same on real sockets: the host's name is a stranger's, its address is loopback."""
    stranger = f"http://[::ffff:127.0.0.1]:{server.port}/v1"
    judge = of(f"configuration:\n  type: openai\n  model: m\n  base_url: '{stranger}'")

    async def work() -> None:
        try:
            await judge.complete([{"role": "user", "content": "hi"}])
        finally:
            await judge.close()

    asyncio.run(work())
    assert KEY not in json.dumps(server.requests[0].headers)

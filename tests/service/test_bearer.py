"""`assay serve` for callers with a token of Entra ID."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import http.client
import json
import logging
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from assay.errors import SetupError
from assay.service.bearer import make_bearer
from assay.service.endpoint import make_endpoint
from assay.service.tenant import Tenant
from tests.service import login
from tests.service.login import CLIENT, DOMAIN, IDENTITY, OTHER, TENANT, URI, V1, V2, LoginHost
from tests.service.running import Running, request
from tests.support import runs
from tests.support.server import JudgeServer
from tests.support.tls import Tls, make_tls

KEY = "a-key-that-nobody-must-see"
BODY = request(question="q3", answer="a")


class Clock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.now = 5000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Tls:
    return make_tls(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def first() -> login.Key:
    return login.make_key()


@pytest.fixture(scope="module")
def second() -> login.Key:
    return login.make_key()


@pytest.fixture
def host(tls: Tls, first: login.Key, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoginHost]:
    monkeypatch.setenv("SSL_CERT_FILE", str(tls.cert))
    with LoginHost(tls, first=first) as running:
        monkeypatch.setenv("AZURE_AUTHORITY_HOST", running.url)
        yield running


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with JudgeServer(runs.judged) as running:
        yield running


@pytest.fixture
def start(
    tmp_path: Path, host: LoginHost, clock: Clock, server: JudgeServer
) -> Iterator[Callable[..., Running]]:
    opened: list[Running] = []

    def make(tenant: str = TENANT, key: str | None = None) -> Running:
        bearer = make_bearer([URI, CLIENT], tenant, [IDENTITY.upper()])
        assert bearer is not None
        bearer.tenant.clock = clock
        file = runs.write_metric(tmp_path)
        endpoint = make_endpoint(
            [file], judge="openai:test", base_url=server.url, key=key, bearer=bearer
        )
        opened.append(Running(endpoint))
        return opened[-1]

    yield make
    for running in opened:
        running.stop()


def with_token(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def cause(running: Running, token: str) -> tuple[int, str]:
    """Status and message of a refusal, which holds nothing else."""
    status, answer = running.post(body=BODY, headers=with_token(token))
    error = answer.pop("error")
    assert answer == {"schema_version": "0.0.1", "status": "Error"}
    assert error.keys() == {"code", "message"}
    return status, error["message"]


@pytest.mark.parametrize("tenant", [TENANT, DOMAIN])
@pytest.mark.parametrize("named", [{"iss": V1, "aud": URI}, {"iss": V2, "aud": CLIENT}])
def test_a_good_token_lets_in(
    start: Any, first: login.Key, tenant: str, named: dict[str, str]
) -> None:
    status, answer = start(tenant).post(body=BODY, headers=with_token(login.token(first, **named)))
    assert (status, answer["status"], answer["score"]) == (200, "Completed", 4)


def test_clocks_may_differ_by_a_little(start: Any, first: login.Key) -> None:
    now = int(time.time())
    running = start()
    late, early = login.token(first, exp=now - 30), login.token(first, nbf=now + 30, iat=now + 30)
    assert running.post(body=BODY, headers=with_token(late))[0] == 200
    assert running.post(body=BODY, headers=with_token(early))[0] == 200


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"aud": "api://another"}, "the token is for another audience"),
        ({"aud": f"{URI}/"}, "the token is for another audience"),
        ({"aud": None}, "the token has no aud"),
        ({"iss": V1.replace(TENANT, OTHER)}, "the token is of another issuer"),
        ({"iss": V1.rstrip("/")}, "the token is of another issuer"),
        ({"iss": "https://evil.test/" + TENANT}, "the token is of another issuer"),
        ({"iss": None}, "the token has no iss"),
        ({"tid": OTHER}, "the token is of another tenant"),
        ({"tid": None}, "the token has no tid"),
        ({"exp": 1}, "the token has expired"),
        ({"exp": None}, "the token has no exp"),
        ({"nbf": 2**33}, "the token is not valid yet"),
        ({"nbf": None}, "the token has no nbf"),
        ({"oid": OTHER}, "the token's identity is not allowed here"),
        ({"oid": None}, "the token has no oid"),
        ({"exp": "soon"}, "the token cannot be read"),
    ],
)
def test_a_wrong_claim(
    start: Any, server: JudgeServer, first: login.Key, changed: dict[str, Any], why: str
) -> None:
    running = start()
    assert cause(running, login.token(first, **changed)) == (401, why)
    assert running.challenges == ["Bearer"]
    assert server.count == 0


def part(value: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def confused(key: login.Key) -> str:
    """Signed with HS256, the public key being the secret."""
    secret = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    text = f"{part({'alg': 'HS256', 'typ': 'JWT', 'kid': 'first'})}.{part(login.claims())}"
    mark = hmac.new(secret, text.encode(), hashlib.sha256).digest()
    return f"{text}.{base64.urlsafe_b64encode(mark).decode().rstrip('=')}"


def tampered(token: str) -> str:
    head, _, signature = token.split(".")
    return f"{head}.{part(login.claims(oid=IDENTITY, exp=2**33))}.{signature}"


NO_KEY = "the token is signed with no key of the tenant"
UNREADABLE = "the token cannot be read"
OTHER_ALGORITHM = "the token is not signed with RS256"


@pytest.mark.parametrize(
    ("forge", "why"),
    [
        (
            lambda key: jwt.encode(login.claims(), "", "none", headers={"kid": "first"}),
            OTHER_ALGORITHM,
        ),
        (confused, OTHER_ALGORITHM),
        (lambda key: jwt.encode(login.claims(), key, "RS512", {"kid": "first"}), OTHER_ALGORITHM),
        (lambda key: login.token(login.make_key()), "the token's signature is wrong"),
        (lambda key: tampered(login.token(key)), "the token's signature is wrong"),
        (lambda key: login.token(key).rpartition(".")[0] + ".", "the token's signature is wrong"),
        (lambda key: login.token(key, kid="made up"), NO_KEY),
        (lambda key: jwt.encode(login.claims(), key, "RS256"), NO_KEY),
        (lambda key: "garbage", UNREADABLE),
        (lambda key: "a.b.c", UNREADABLE),
        (lambda key: "", UNREADABLE),
        (lambda key: base64.urlsafe_b64encode(b"[" * 5000).decode() + ".e30.e30", UNREADABLE),
    ],
)
def test_a_forged_token(
    start: Any, server: JudgeServer, first: login.Key, forge: Callable[[login.Key], str], why: str
) -> None:
    assert cause(start(), forge(first)) == (401, why)
    assert server.count == 0


def test_a_header_that_is_no_text(start: Any) -> None:
    connection = http.client.HTTPConnection(start().url.removeprefix("http://"), timeout=10)
    headers = {"Content-Type": "application/json", "Authorization": "Bearer \xff"}
    connection.request("POST", "/", b"{}", headers)
    assert connection.getresponse().status == 401
    connection.close()


def test_nothing_of_a_token_is_logged(
    start: Any, first: login.Key, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    running = start()
    refused = login.token(first, oid=OTHER)
    cause(running, refused)
    running.post(body=BODY, headers=with_token(login.token(first)))
    assert not [part for part in refused.split(".") if part in caplog.text]


def test_without_a_token(start: Any, server: JudgeServer) -> None:
    running = start()
    for headers in ({}, {"api-key": "x"}, {"Authorization": "Basic eDp5"}):
        status, answer = running.post(body=BODY, headers=headers)
        assert (status, answer["error"]["message"]) == (401, "a bearer token is missing")
    assert running.challenges == ["Bearer"] * 3
    assert server.count == 0


def test_key_or_token(start: Any, first: login.Key) -> None:
    running = start(key=KEY)
    good, bad = with_token(login.token(first)), with_token(login.token(first, oid=OTHER))
    assert running.post(body=BODY, headers={"api-key": KEY})[0] == 200
    assert running.post(body=BODY, headers=good)[0] == 200
    assert running.post(body=BODY, headers={"api-key": "wrong", **good})[0] == 200
    assert running.post(body=BODY, headers={"api-key": KEY, **bad})[0] == 200
    assert running.post(body=BODY, headers={"api-key": "wrong", **bad})[0] == 401
    assert running.post(body=BODY, headers={"api-key": "wrong"})[0] == 401
    status, answer = running.post(body=BODY)
    assert status == 401
    assert "a bearer token is missing, or a right one in" in answer["error"]["message"]


def test_a_new_key_is_found(
    start: Any, host: LoginHost, clock: Clock, first: login.Key, second: login.Key
) -> None:
    running = start()
    assert host.key_fetches == 1
    host.keys["second"] = second
    new = login.token(second, kid="second")
    assert cause(running, new) == (401, NO_KEY)  # fetched less than a minute ago
    assert host.key_fetches == 1
    clock.now += 60
    assert running.post(body=BODY, headers=with_token(new))[0] == 200
    assert running.post(body=BODY, headers=with_token(login.token(first)))[0] == 200
    assert host.key_fetches == 2


def test_made_up_keys_make_one_fetch_a_minute(
    start: Any, host: LoginHost, clock: Clock, first: login.Key
) -> None:
    running = start()
    headers = with_token(login.token(first, kid="made up"))
    for fetches in (2, 3):
        clock.now += 60
        found = running.post_all(20, body=BODY, headers=headers)
        assert [status for status, _ in found] == [401] * 20
        assert host.key_fetches == fetches


def test_a_withdrawn_key_is_dropped_within_a_day(
    start: Any, host: LoginHost, clock: Clock, first: login.Key, second: login.Key
) -> None:
    running = start()
    host.keys = {"second": second}
    clock.now += 86399
    assert running.post(body=BODY, headers=with_token(login.token(first)))[0] == 200
    clock.now += 1
    assert cause(running, login.token(first)) == (401, NO_KEY)


@pytest.mark.parametrize("status", [500, 302, 404])
def test_keys_that_cannot_be_fetched_again(
    start: Any, host: LoginHost, clock: Clock, first: login.Key, second: login.Key, status: int
) -> None:
    running = start()
    host.keys["second"], host.status = second, status
    clock.now += 60
    new = login.token(second, kid="second")
    for _ in range(2):
        found = cause(running, new)
        assert found == (503, "the tenant's signing keys cannot be fetched now")
    assert host.key_fetches == 2
    clock.now += 86400  # a known key stays good
    assert running.post(body=BODY, headers=with_token(login.token(first)))[0] == 200
    host.status = 200
    clock.now += 60
    assert running.post(body=BODY, headers=with_token(new))[0] == 200
    assert cause(running, login.token(second, kid="made up")) == (401, NO_KEY)


def test_an_empty_list_of_keys_takes_none_away(
    start: Any, host: LoginHost, clock: Clock, first: login.Key
) -> None:
    running = start()
    host.keys = {}
    clock.now += 86400
    assert running.post(body=BODY, headers=with_token(login.token(first)))[0] == 200


def test_a_key_of_personal_accounts_signs_nothing_here(
    start: Any, host: LoginHost, second: login.Key
) -> None:
    host.keys["second"] = second
    host.issuers["second"] = f"https://login.microsoftonline.com/{OTHER}/v2.0"
    assert cause(start(), login.token(second, kid="second")) == (401, NO_KEY)


@pytest.mark.parametrize(
    ("audiences", "tenant", "allowed", "why"),
    [
        ([], TENANT, [], "--tenant needs --audience"),
        ([], None, [IDENTITY], "--allow needs --audience"),
        ([URI], None, [IDENTITY], "--audience needs --tenant"),
        ([URI], TENANT, [], "--audience needs --allow: the object id"),
        ([URI], TENANT, ["someone"], "--allow 'someone' is no object id"),
        ([URI], "organizations", [IDENTITY], "--tenant is the id of one tenant"),
        ([URI], "a/../b", [IDENTITY], "--tenant is the id of one tenant"),
    ],
)
def test_what_must_be_said(
    audiences: list[str], tenant: str | None, allowed: list[str], why: str
) -> None:
    with pytest.raises(SetupError, match=why):
        make_bearer(audiences, tenant, allowed)


def test_no_audience_is_no_bearer() -> None:
    assert make_bearer([], None, []) is None


def test_without_pyjwt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jwt.algorithms", None)
    with pytest.raises(SetupError, match=r'pip install "assay\[azure\]"'):
        make_bearer([URI], TENANT, [IDENTITY])


@pytest.mark.parametrize("given", ["http://127.0.0.1:1", "https://a@b.test", "https://b.test/x"])
def test_a_login_host_that_cannot_be_trusted(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_AUTHORITY_HOST", given)
    with pytest.raises(SetupError, match="AZURE_AUTHORITY_HOST is a host"):
        Tenant(TENANT)


@pytest.mark.parametrize(
    ("given", "address"),
    [
        (None, "https://login.microsoftonline.com"),
        ("login.microsoftonline.us", "https://login.microsoftonline.us"),
        ("https://login.microsoftonline.us/", "https://login.microsoftonline.us"),
    ],
)
def test_the_login_host_of_another_cloud(
    given: str | None, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if given is not None:
        monkeypatch.setenv("AZURE_AUTHORITY_HOST", given)
    assert Tenant(TENANT).authority == address


def test_a_tenant_that_is_not_there(host: LoginHost) -> None:
    with pytest.raises(SetupError, match=f"--tenant {OTHER}: GET .* gave HTTP 400"):
        asyncio.run(Tenant(OTHER).open())


def test_a_tenant_without_keys(host: LoginHost) -> None:
    host.keys = {}
    with pytest.raises(SetupError, match="publishes no signing key"):
        asyncio.run(Tenant(TENANT).open())


def test_a_login_host_that_nobody_vouches_for(
    host: LoginHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(SetupError, match="CERTIFICATE|Certificate"):
        asyncio.run(Tenant(TENANT).open())


OPTIONS = ("--audience", URI, "--audience", CLIENT, "--allow", IDENTITY)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((*OPTIONS, "--tenant", OTHER), "gave HTTP 400; check the tenant"),
        (OPTIONS, "--audience needs --tenant"),
    ],
)
def test_the_command_ends_before_it_listens(
    tmp_path: Path, host: LoginHost, options: tuple[str, ...], said: str
) -> None:
    file = runs.write_metric(tmp_path)
    judge = ("--judge", "openai:test", "--base-url", "http://127.0.0.1:9")
    open_door = ("--port", "0", "--host", "0.0.0.0")
    done = runs.command("serve", file, *judge, *open_door, *options, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_command_without_a_login_host(tmp_path: Path, host: LoginHost) -> None:
    file = runs.write_metric(tmp_path)
    judge = ("--judge", "openai:test", "--base-url", "http://127.0.0.1:9")
    options = (*OPTIONS, "--tenant", TENANT, *judge)
    nobody = "https://127.0.0.1:9"
    done = runs.command("serve", file, *options, cwd=tmp_path, AZURE_AUTHORITY_HOST=nobody)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"--tenant {TENANT}: GET {nobody}/{TENANT}/" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_command_lets_in(
    tmp_path: Path,
    host: LoginHost,
    server: JudgeServer,
    first: login.Key,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ASSAY_SERVE_AUDIENCE", f"{URI} {CLIENT}")
    monkeypatch.setenv("ASSAY_SERVE_TENANT", DOMAIN)
    monkeypatch.setenv("ASSAY_SERVE_ALLOW", IDENTITY)
    file = runs.write_metric(tmp_path)
    arguments = ("--judge", "openai:test", "--base-url", server.url, "--port", "0")
    with runs.start("serve", file, *arguments, cwd=tmp_path) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()

        async def send(token: str) -> int:
            async with (
                aiohttp.ClientSession(headers=with_token(token)) as session,
                session.post(url, json=BODY) as answer,
            ):
                return answer.status

        assert asyncio.run(send(login.token(first, aud=CLIENT, iss=V2))) == 200
        assert asyncio.run(send(login.token(first, oid=OTHER))) == 401
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=20)
    assert "a token of Entra ID is asked for" in said

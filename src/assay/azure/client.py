"""The wire to a Foundry project: login, TLS, patience, and errors that name the call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

import orjson

from assay.azure.faults import UploadError, refused, unreachable
from assay.azure.project import Foundry
from assay.azure.step import Step, to_storage
from assay.azure.storage import HEADERS as STORAGE_HEADERS
from assay.azure.storage import signatures, storage_login
from assay.errors import JudgeError
from assay.jsontext import dumps
from assay.judge.connection import trust
from assay.judge.credential import Entra
from assay.judge.faults import retry_after
from assay.judge.project import SCOPE, TOKEN, identity

if TYPE_CHECKING:
    import aiohttp

_AGAIN = {500, 502, 503, 504}
_PAGE = 100


@dataclass(frozen=True)
class Patience:
    """How long to try. pause, poll: seconds before the next try, and the next look at a run;
    both grow. wait: seconds after which a run is left to itself."""

    tries: int = 4
    pause: float = 1.0
    poll: float = 2.0
    wait: float = 1800.0


class Client:
    """JSON calls to one address, for whose `scope` it logs in. To be used as `async with`."""

    def __init__(
        self, project: Foundry, patience: Patience | None = None, scope: str = SCOPE
    ) -> None:
        self.project = project
        self.patience = patience or Patience()
        self._login = Entra(project.endpoint, project.credential or identity(), scope)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        import aiohttp

        from assay import __version__

        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=trust()),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=30, sock_read=120),
            headers={"User-Agent": f"assay/{__version__}"},
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=urlsplit(self.project.endpoint).hostname not in ("127.0.0.1", "localhost"),
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def token(self) -> None:
        """Get a token, without any call to the project."""
        await self._bearer(Step("logging in", "GET", "a token of Entra ID"), self._login)

    async def call(
        self,
        step: Step,
        body: Any = None,
        *,
        params: Mapping[str, str] | None = None,
        also: tuple[int, ...] = (),
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, dict[str, Any]]:
        """Status and object of a call that succeeded, or ended with a status in `also`."""
        data = None if body is None else dumps(body)
        sent = {"Content-Type": content_type} if data is not None else {}
        sent |= headers or {}
        status, answer = await self._send(step, data, sent, params, also, self._login)
        if status in also and not 200 <= status < 300:
            return status, {}
        try:
            found = orjson.loads(answer)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise UploadError(
                f"{step.title} failed: {step.method} {step.shown} at {self.project.host} "
                f"answered HTTP {status} with no JSON object",
                status=status,
                step=step,
            )
        return status, found

    async def pages(self, step: Step, most: int | None = None) -> AsyncIterator[dict[str, Any]]:
        """The items of an OpenAI-style list; `most` pages at most, the newest first."""
        after: dict[str, str] = {}
        order = {"order": "desc"} if most else {}
        count = 0
        while most is None or count < most:
            count += 1
            params = {"limit": str(_PAGE), **order, **after}
            _, page = await self.call(step, params=params)
            items = page.get("data") or []
            for item in items:
                yield item
            if not page.get("has_more") or not items:
                return
            after = {"after": str(page.get("last_id") or items[-1]["id"])}

    async def put_file(self, url: str, file: Path, shown: str, *, by_token: bool = False) -> None:
        """A file to blob storage. The address itself logs in, so that no token goes there; or,
        `by_token`, a token that is for storage alone."""
        step = to_storage("uploading the rows", url, shown, by_token=by_token)
        if urlsplit(url).scheme != "https":
            raise UploadError(f"the rows are not sent to {shown}: it has no TLS", step=step)
        headers = {"x-ms-blob-type": "BlockBlob", "Content-Type": "application/jsonl"}
        login = storage_login(url, self._login.source, step) if by_token else None
        if login is not None:
            headers |= STORAGE_HEADERS
        await self._send(step, file, headers, None, (), login)

    async def _send(
        self,
        step: Step,
        data: bytes | Path | None,
        headers: dict[str, str],
        params: Mapping[str, str] | None,
        also: tuple[int, ...],
        login: Entra | None,
    ) -> tuple[int, bytes]:
        """Send until it is answered for good: 429 always, a failure where that does no harm."""
        for attempt in range(self.patience.tries):
            last = attempt == self.patience.tries - 1
            pause = self.patience.pause * 2**attempt
            bearer = await self._bearer(step, login) if login else {}
            try:
                status, answered, body = await self._once(step, data, {**headers, **bearer}, params)
            except UploadError:
                if last or not step.repeatable:
                    raise
                await asyncio.sleep(pause)
                continue
            if 200 <= status < 300 or status in also:
                return status, body
            if last or not (status == 429 or (status in _AGAIN and step.repeatable)):
                host = urlsplit(self._url(step)).netloc
                secrets = login.secrets if login else signatures(step.path)
                raise refused(step, host, status, body, secrets)
            asked = retry_after(answered)
            await asyncio.sleep(min(60.0, pause if asked is None else asked))
        raise AssertionError("tries is 1 or more")

    async def _once(
        self,
        step: Step,
        data: bytes | Path | None,
        headers: Mapping[str, str],
        params: Mapping[str, str] | None,
    ) -> tuple[int, Mapping[str, str], bytes]:
        import aiohttp
        from yarl import URL

        assert self._session is not None
        url = self._url(step)
        sent = data.open("rb") if isinstance(data, Path) else data
        try:
            async with self._session.request(
                step.method,
                # A signature must go out as it came in.
                URL(url, encoded=True) if isinstance(data, Path) else url,
                data=sent,
                headers=headers,
                params=params,
                allow_redirects=False,
            ) as answer:
                return answer.status, answer.headers, await answer.read()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            # Its own text may hold the whole address, signature included.
            reason = getattr(getattr(error, "os_error", None), "strerror", None)
            why = reason or type(error).__name__
            raise unreachable(step, urlsplit(url).netloc, str(why)) from None
        finally:
            if isinstance(data, Path):
                sent.close()  # type: ignore[union-attr]

    def _url(self, step: Step) -> str:
        """The full address. A link to another host is refused: the token would go with it."""
        if step.path.startswith("/"):
            return self.project.endpoint + step.path
        here, there = urlsplit(self.project.endpoint), urlsplit(step.path)
        if not step.shown_path and (there.scheme, there.netloc) != (here.scheme, here.netloc):
            raise UploadError(f"{step.title}: the next page is at another host, {there.netloc}")
        return step.path

    async def _bearer(self, step: Step, login: Entra) -> Mapping[str, str]:
        try:
            return await login.headers()
        except JudgeError as error:
            ways = "log in with az login, give credential="
            if login is self._login:
                ways += f", or set {TOKEN} to a token for {login.scope}"
            raise UploadError(f"{step.title} failed: {error}; {ways}", step=step) from None

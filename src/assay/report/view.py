"""A local server over a folder of runs: to look at them, never to change them.

It listens on 127.0.0.1 alone, answers only below an address with a random token, and only
where the `Host` header names this server: another page in the same browser can reach none of
it. Pages are made in a temporary folder; the runs are only read.
"""

from __future__ import annotations

import hmac
import secrets
import shutil
import tempfile
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

from assay.errors import AssayError, SetupError
from assay.jsontext import dumps
from assay.report.compare import compare
from assay.report.comparison import write_comparison
from assay.report.listing import Listing, stamp
from assay.report.page import data_block, render
from assay.report.report import write_report
from assay.run.record import Run

HOST = "127.0.0.1"

_HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class Viewer:
    """The server, while a `with` block lasts. `url` is the only address that answers.

    Raises SetupError where the folder is not there or the port is taken.
    """

    def __init__(self, folder: str | Path = "runs", *, port: int = 0) -> None:
        self.folder = Path(folder)
        if not self.folder.is_dir():
            raise SetupError(f"{folder} is no folder of runs")
        self.token = secrets.token_urlsafe(24)
        self.listing = Listing(self.folder)
        self._lock = threading.Lock()
        self._pages: dict[str, tuple[Any, Path]] = {}
        self._scratch = Path(tempfile.mkdtemp(prefix="assay-view-"))
        try:
            self._server = ThreadingHTTPServer((HOST, port), _handler(self))
        except OSError as error:
            shutil.rmtree(self._scratch, ignore_errors=True)
            raise SetupError(f"port {port} cannot be used: {error.strerror}") from None
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}/{self.token}/"

    def serve(self) -> None:
        """Answer until `close` is called or Ctrl-C comes."""
        self._server.serve_forever(poll_interval=0.2)

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve, name="viewer", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self.close()

    def close(self) -> None:
        """Give back the port and remove the pages that were made."""
        self._server.server_close()
        shutil.rmtree(self._scratch, ignore_errors=True)

    # What it shows.

    def list_page(self) -> bytes:
        """The list of runs; its script asks for `runs.json` from then on."""
        context = {"title": "Runs", "home": None, "folder": str(self.folder)}
        text = render("view.html", context, ("common.js", "view.js"), connect="'self'")
        head, tail = text.split("<!--data-->")
        with self._lock:
            block = data_block(self.listing.entries(), "runs")
        return head.encode("utf-8", "replace") + block + tail.encode("utf-8", "replace")

    def runs_json(self) -> bytes:
        with self._lock:
            return dumps(self.listing.entries())

    def report(self, name: str) -> Path:
        """The report of a run as it is now. Raises KeyError for a name that is not listed."""
        directory = self.listing.directories()[name]

        def make(path: Path) -> None:
            write_report(Run(directory), path, home="../../")

        return self._page(f"run {name}", stamp(directory), make)

    def comparison(self, names: list[str]) -> Path:
        """Runs side by side. Raises KeyError for a name that is not listed."""
        listed = self.listing.directories()
        directories = [listed[name] for name in names]

        def make(path: Path) -> None:
            write_comparison(compare(directories), path, home="./")

        return self._page("\n".join(names), [stamp(d) for d in directories], make)

    def _page(self, key: str, now: Any, make: Callable[[Path], None]) -> Path:
        with self._lock:
            known = self._pages.get(key)
            if known is None or known[0] != now:
                path = self._scratch / f"{len(self._pages)}.html"
                if known is not None:
                    path = known[1]
                make(path)
                known = self._pages[key] = (now, path)
            return known[1]


def _handler(viewer: Viewer) -> type[BaseHTTPRequestHandler]:
    """The handler of one viewer's requests."""

    class Handler(BaseHTTPRequestHandler):
        server_version, sys_version = "assay", ""
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            url = urlsplit(self.path)
            parts = url.path.split("/")  # "", token, what
            if self.headers.get("Host") not in _hosts(viewer.port):
                self._say(HTTPStatus.FORBIDDEN, "This server answers only to its own name.")
            elif not hmac.compare_digest(parts[1].encode(), viewer.token.encode()):
                self._say(HTTPStatus.NOT_FOUND, "Open the address that `assay view` printed.")
            else:
                self._answer(parts[2:], parse_qs(url.query))

        do_HEAD = do_GET

        def _answer(self, parts: list[str], query: dict[str, list[str]]) -> None:
            try:
                match parts:
                    case [""]:
                        self._send(viewer.list_page(), "text/html; charset=utf-8")
                    case ["runs.json"]:
                        self._send(viewer.runs_json(), "application/json")
                    case ["run", name, ""]:
                        self._send_file(viewer.report(unquote(name)))
                    case ["compare"]:
                        self._send_file(viewer.comparison(query.get("run", [])))
                    case _:
                        self._say(HTTPStatus.NOT_FOUND, "There is nothing here.")
            except KeyError:
                self._say(HTTPStatus.NOT_FOUND, "There is no such run.")
            except AssayError as error:
                self._say(HTTPStatus.UNPROCESSABLE_ENTITY, str(error))
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        def _send_file(self, path: Path) -> None:
            with path.open("rb") as file:
                self._head(HTTPStatus.OK, "text/html; charset=utf-8", path.stat().st_size)
                if self.command == "GET":
                    shutil.copyfileobj(file, self.wfile)

        def _send(self, body: bytes, kind: str, status: HTTPStatus = HTTPStatus.OK) -> None:
            self._head(status, kind, len(body))
            if self.command == "GET":
                self.wfile.write(body)

        def _say(self, status: HTTPStatus, text: str) -> None:
            self._send(f"{text}\n".encode(), "text/plain; charset=utf-8", status)

        def _head(self, status: HTTPStatus, kind: str, length: int) -> None:
            self.send_response(status)
            for name, value in _HEADERS.items():
                self.send_header(name, value)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(length))
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: the address holds the token, and no log needs it."""

    return Handler


def _hosts(port: int) -> tuple[str, str]:
    return f"{HOST}:{port}", f"localhost:{port}"

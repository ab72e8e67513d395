"""Azurite, Microsoft's own emulator of blob storage, on a free port of loopback behind TLS.

It is looked for in ASSAY_AZURITE, on the PATH, and in .ci/node, where .ci/run installs it. It
checks signatures as Azure does; of tokens it checks issuer, audience and time.
"""

from __future__ import annotations

import base64
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.support.tls import Tls

ACCOUNT, CONTAINER = "account", "store"
ACCOUNT_KEY = base64.b64encode(
    b"a key of sixty-four bytes, which signs in these tests and nowhere else"
).decode()
_LISTENS = re.compile(r"successfully listens on (https://\S+)")
_INSTALLED = Path(__file__).resolve().parents[2] / ".ci/node/node_modules/.bin/azurite-blob"


def find_azurite() -> str | None:
    """The command, where there is one."""
    named = os.environ.get("ASSAY_AZURITE") or shutil.which("azurite-blob")
    return named or (str(_INSTALLED) if _INSTALLED.exists() else None)


class Azurite:
    """A running one, with a container."""

    def __init__(self, origin: str, tls: Tls) -> None:
        from azure.storage.blob import ContainerClient

        self.port = urlsplit(origin).port
        self.container = f"{origin}/{ACCOUNT}/{CONTAINER}"
        self._client = ContainerClient.from_container_url(
            self.container,
            credential=ACCOUNT_KEY,
            connection_verify=str(tls.cert),
            use_env_settings=False,  # no proxy of a test
        )
        self._client.create_container()

    def sas(self, **how: Any) -> str:
        """A signature of an hour for writing into the container, as a project gives one."""
        from azure.storage.blob import ContainerSasPermissions, generate_container_sas

        options: dict[str, Any] = {
            "account_key": ACCOUNT_KEY,
            "permission": ContainerSasPermissions(write=True, create=True),
            "expiry": datetime.now(UTC) + timedelta(hours=1),
        }
        return str(generate_container_sas(ACCOUNT, CONTAINER, **options | how))

    def __contains__(self, url: object) -> bool:
        return bool(self._client.get_blob_client(self._name(str(url))).exists())

    def __getitem__(self, url: str) -> bytes:
        return bytes(self._client.download_blob(self._name(url)).readall())

    def names(self) -> list[str]:
        """What is in the container."""
        return list(self._client.list_blob_names())

    def clear(self) -> None:
        for name in self.names():
            self._client.delete_blob(name)

    def close(self) -> None:
        self._client.close()

    def _name(self, url: str) -> str:
        return url.removeprefix(f"{self.container}/")


def storage_token(audience: str = "https://storage.azure.com") -> str:
    """A token as Entra ID makes them, but for the key that signs it."""
    import jwt

    now = int(time.time())
    claims = {
        "iss": "https://sts.windows.net/t/",
        "aud": audience,
        "iat": now - 60,
        "nbf": now - 60,
    }
    return jwt.encode({**claims, "exp": now + 3600}, "k" * 32, algorithm="HS256")


@contextmanager
def start_azurite(command: str, tls: Tls, folder: Path) -> Iterator[Azurite]:
    """Run it until the `with` block ends. It keeps everything in memory."""
    process = subprocess.Popen(
        [
            *(command, "--blobHost", "127.0.0.1", "--blobPort", "0", "--oauth", "basic"),
            *("--inMemoryPersistence", "--disableTelemetry", "--skipApiVersionCheck", "--silent"),
            *("--cert", str(tls.cert), "--key", str(tls.key)),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        cwd=folder,
        env={**os.environ, "AZURITE_ACCOUNTS": f"{ACCOUNT}:{ACCOUNT_KEY}"},
    )
    assert process.stdout is not None
    try:
        said = ""
        for line in process.stdout:
            said += line
            found = _LISTENS.search(line)
            if found:
                break
        else:
            raise AssertionError(f"azurite did not start: {said}")
        running = Azurite(found[1], tls)
        try:
            yield running
        finally:
            running.close()
    finally:
        process.kill()
        process.communicate()

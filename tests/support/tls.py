"""A throwaway authority: a certificate for loopback that nobody else trusts."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

HOSTS = (
    *("localhost", "management.azure.com", "login.microsoftonline.com"),
    *("ml.test", "account.blob.core.windows.net"),
)


class Tls(NamedTuple):
    """cert: what clients must trust. context: for a server."""

    cert: Path
    key: Path

    def context(self) -> ssl.SSLContext:
        """A server's side of the handshake."""
        found = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        found.load_cert_chain(self.cert, self.key)
        return found


def make_tls(folder: Path) -> Tls:
    """A self-signed certificate for 127.0.0.1 and `HOSTS`, its own authority."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl to make a certificate with")
    made = Tls(folder / "ca.pem", folder / "key.pem")
    names = ",".join(f"DNS:{name}" for name in HOSTS)
    subprocess.run(
        [
            *(openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-days", "2", "-subj", "/CN=assay tests"),
            *("-addext", f"subjectAltName=IP:127.0.0.1,{names}"),
            *("-addext", "keyUsage=critical,digitalSignature,keyCertSign"),
            *("-keyout", str(made.key), "-out", str(made.cert)),
        ],
        check=True,
        capture_output=True,
        timeout=60,
    )
    return made

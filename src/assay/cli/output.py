"""Data for stdout."""

from __future__ import annotations

import sys
from typing import Any

from assay.jsontext import dumps


def print_json(value: Any) -> None:
    """One JSON document on stdout, UTF-8 whatever the console's encoding is."""
    data = dumps(value) + b"\n"
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is None:
        sys.stdout.write(data.decode())
        return
    sys.stdout.flush()
    buffer.write(data)
    buffer.flush()

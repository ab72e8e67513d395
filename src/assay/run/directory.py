"""Where a run is put."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

from assay.errors import RunError
from assay.run.journal import HEADER


def latest_directory(folder: Path) -> Path:
    """The run that was made last. Raises RunError where there is none."""
    found = sorted(path.parent for path in folder.glob(f"*/{HEADER}"))
    if not found:
        raise RunError(f"{folder}/ holds no run; make one with assay run, or name its directory")
    return found[-1]


def make_directory(folder: Path, name: str) -> Path:
    """A new `<time>-<name>` in `folder`. Raises RunError where it cannot be made."""
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    label = re.sub(r"[^\w.-]+", "-", name)[:60].strip("-.") or "run"
    base = folder / f"{stamp}-{label}"
    for count in range(1, 1000):
        directory = base if count == 1 else base.with_name(f"{base.name}-{count}")
        try:
            directory.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise RunError(f"{directory} cannot be made: {error.strerror}") from None
        return directory
    raise RunError(f"{base} exists a thousand times")

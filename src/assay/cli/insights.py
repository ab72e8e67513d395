"""What a Foundry project says of runs, set beside what is found here: `assay compare --foundry`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TextIO

from assay import sync
from assay.cli.compare import chance, change, number

if TYPE_CHECKING:
    from assay.report.compare import Comparison


def compare_there(found: Comparison, azure_ai_project: str | None) -> dict[str, Any]:
    """The project's comparison of the same runs. `here`: the same difference as it is on disk;
    `notes`: where the two point in opposite directions."""
    from assay.azure import find_project
    from assay.azure.insights import compare_uploaded
    from assay.cli.upload import tell

    project = find_project(azure_ai_project)
    there: dict[str, Any] = sync.run(compare_uploaded(found.runs, project, tell=tell))
    here = found.as_dict()["metrics"]
    for one in there["comparisons"]:
        own = here.get(one["metric"]) if one["kind"] == "score" else None
        pairs = own["against_first"] if own and not own["problem"] else []
        for treatment, pair in zip(one["treatments"], pairs, strict=False):
            treatment["here"] = {key: pair[key] for key in ("n", "difference", "p_sign")}
            if _disagree(treatment, one["scale"]):
                there["notes"].append(
                    f"{one['criterion']}: the difference of {treatment['run']} is "
                    f"{treatment['difference']:+.3g} there and {pair['difference']:+.3g} here, "
                    f"over {treatment['n'] or 'an unknown number of'} rows there and "
                    f"{pair['n']} matched rows here"
                )
    return there


def _disagree(treatment: dict[str, Any], scale: list[float]) -> bool:
    """Whether one says better and the other worse, beyond what rounding does on the way."""
    from assay.azure.metrics import DIGITS

    theirs, own = treatment["difference"], treatment["here"]["difference"]
    if theirs is None or own is None:
        return False
    rounding = (scale[1] - scale[0]) * 10.0**-DIGITS
    return bool(theirs * own < 0 and min(abs(theirs), abs(own)) > rounding)


def print_there(there: dict[str, Any], out: TextIO) -> None:
    """A table, and below it what is not in it or does not fit together."""
    from rich.console import Console
    from rich.table import Table

    console = Console(file=out, highlight=False, markup=False)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("in Foundry", overflow="fold")
    for head in ("mean", "difference", "n", "p", "effect", "here", "p here"):
        table.add_column(head, justify="right", no_wrap=True)
    for one in there["comparisons"]:
        share = ", share passed" if one["kind"] == "verdict" else ""
        table.add_row(f"{one['criterion']}{share}")
        base = one["baseline"]
        table.add_row(f"  {base['name']}", number(base["mean"]), "", _count(base["n"]))
        for run in one["treatments"]:
            here = run.get("here") or {}
            table.add_row(
                f"  {run['name']}",
                number(run["mean"]),
                change(run["difference"]),
                _count(run["n"]),
                chance(run["p"]),
                run["effect"] or "-",
                change(here.get("difference")),
                chance(here.get("p_sign")),
            )
    console.print()
    console.print(table)
    console.print(f"{there['method']} by the service, on the metric's scale; p here: sign test")
    for note in there["notes"]:
        console.print(f"careful: {note}")


def _count(value: float | None) -> str:
    return "-" if value is None else f"{value:g}"

"""To look at: the report of a run, runs side by side, a viewer, exports."""

from assay.report.compare import compare
from assay.report.comparison import write_comparison
from assay.report.export import FORMATS, export
from assay.report.report import write_report
from assay.report.terminal import level_bars, summary_markdown
from assay.report.view import Viewer

__all__ = [
    "FORMATS",
    "Viewer",
    "compare",
    "export",
    "level_bars",
    "summary_markdown",
    "write_comparison",
    "write_report",
]

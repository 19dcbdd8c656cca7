"""The reporter `png`: charts as image files, drawn without a browser.

The specifications are those of the HTML page. `renderer` draws them in a process of its own.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from pathlib import Path

from assay.model import Report
from assay.plugin.charts import Chart
from assay.plugin.file_names import safe_name
from assay.report.cases import case_rows
from assay.report.charts.renderer import Drawing, Failure, draw
from assay.report.charts.run import run_charts, trial_charts
from assay.report.charts.side_by_side import contest_charts
from assay.report.charts.vega import apply_theme
from assay.report.console.screen import warn
from assay.report.findings import finding_sections
from assay.report.side_by_side import build_contests

_IN_FULL = 20
_NAMED = 3
"""Charts that a warning names."""


class Png:
    """Writes a file a chart; a run of more than 20 trials gets the charts that show all of them together."""

    def __init__(self, *, dark: bool = False) -> None:
        self.dark = dark

    def write(self, report: Report, folder: Path) -> Sequence[Path]:
        drawings: dict[Path, Drawing] = {}
        for chart in _charts(report):
            path = _free(folder / f"{safe_name(chart.name)}.png", drawings)
            drawings[path] = Drawing(apply_theme(chart.spec, self.dark), path)
        failures = draw(list(drawings.values()))
        if failures:
            warn(_describe(failures, len(drawings)))
        return [path for path in drawings if path not in {failure.path for failure in failures}]


def _describe(failures: Sequence[Failure], wanted: int) -> str:
    left_out = ", ".join(failure.path.name for failure in failures[:_NAMED])
    more = f" and {len(failures) - _NAMED} more" if len(failures) > _NAMED else ""
    return (
        f"{len(failures)} of {wanted} charts could not be drawn: {left_out}{more} ({failures[0].reason}). "
        "The rest of the report is complete."
    )


def _charts(report: Report) -> Iterator[Chart]:
    for contest in build_contests(report):
        yield from contest_charts(contest, case_rows(contest))
    for section in finding_sections(report, with_charts=True):
        yield from section.charts()
    yield from run_charts(report)
    if len(report.trials) <= _IN_FULL:
        for trial in report.trials:
            yield from trial_charts(trial)


def _free(path: Path, taken: Container[Path]) -> Path:
    """Names that differ only in what a file system cannot hold get a number."""
    number = 2
    free = path
    while free in taken:
        free = path.with_name(f"{path.stem}-{number}.png")
        number += 1
    return free

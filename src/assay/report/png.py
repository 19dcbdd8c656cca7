"""Charts as PNG files, drawn without a browser."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from pathlib import Path

from assay.model import Report
from assay.report.cases import case_rows
from assay.report.chart_renderer import Drawing, Failure, draw
from assay.report.charts import run_charts, trial_charts
from assay.report.contest_charts import contest_charts
from assay.report.contests import contests
from assay.report.load_charts import load_charts
from assay.report.load_time_charts import charts_of
from assay.report.names import safe_name
from assay.report.screen import warn
from assay.report.stored_loads import is_brief, shown, stored_loads
from assay.report.team_charts import team_charts
from assay.report.vega import Chart, themed

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
            drawings[path] = Drawing(themed(chart.spec, self.dark), path)
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
    for contest in contests(report):
        yield from contest_charts(contest, case_rows(contest))
    yield from team_charts(report.teams)
    yield from run_charts(report)
    loads = stored_loads(report)
    yield from load_charts(loads)
    drawn = shown(loads)
    for place, load in enumerate(drawn):
        yield from charts_of(load, place + 1, is_brief=is_brief(place, drawn))
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

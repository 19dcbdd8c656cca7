"""The finding `grades`: figures against the thresholds that their experiments declare, each with its interval."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.model import Estimate, Series, TrialReport
from assay.model.page import Cell, ListItem, PageSection, Table
from assay.plugin.experiment import find_trait
from assay.plugin.figures import NOTHING, interval_text
from assay.plugin.finding import Finding
from assay.plugin.grades import GradeBand, GradeScale
from assay.units import count, show

UNSURE = "unsure"
NOT_ENOUGH = "not enough data"


@dataclass(frozen=True, slots=True)
class FigureInterval:
    """A statistic of a metric over a trial; without ends where there are too few data for an interval."""

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class GradedFigure:
    """One figure of one trial, its grade, and what it was graded by."""

    trial: str
    is_simulated: bool
    failed: int
    """Executions of the trial that were not ok, of which no figure knows anything."""
    scale: GradeScale
    metric: str
    unit: str
    figure: FigureInterval

    @property
    def band(self) -> GradeBand | None:
        figure = self.figure
        if figure.low is None or figure.high is None:
            return None
        return self.scale.find_band(figure.low, figure.high)

    @property
    def grade(self) -> str:
        """The name of the band that holds the whole interval, else why there is none."""
        if self.figure.low is None:
            return NOT_ENOUGH
        return self.band.name if self.band is not None else UNSURE

    @property
    def mark(self) -> str:
        """What a reader has to know of all figures of the trial."""
        failures = f"failed: {count(self.failed)}" if self.failed else ""
        return ", ".join(filter(None, ["simulated" if self.is_simulated else "", failures]))

    @property
    def tone(self) -> str:
        return self.band.tone if self.band is not None else "quiet"

    def document(self) -> dict[str, Any]:
        return {
            "trial": self.trial,
            "label": self.scale.label,
            "metric": self.metric,
            "statistic": self.scale.statistic,
            "value": self.figure.value,
            "low": self.figure.low,
            "high": self.figure.high,
            "unit": self.unit,
            "grade": self.grade,
            "simulated": self.is_simulated,
            "failed": self.failed,
            "thresholds": {band.name: band.below for band in self.scale.bands[:-1]},
        }


@dataclass(frozen=True, slots=True)
class Grades(Finding):
    """All graded figures of a run, by trial."""

    graded: tuple[GradedFigure, ...]

    @classmethod
    def read(cls, trials: Sequence[TrialReport]) -> Finding | None:
        graded = tuple(figure for trial in trials for figure in grade_trial(trial))
        return cls(graded) if graded else None

    def document(self) -> Mapping[str, Any]:
        return {"grades": [figure.document() for figure in self.graded]}

    def sections(self, *, with_charts: bool) -> Sequence[PageSection]:
        counts = Counter(figure.grade for figure in self.graded)
        bad = [f"{figure.trial}: {figure.scale.label}" for figure in self.graded if figure.tone == "bad"]
        sentence = ", ".join(f"{number} {grade}" for grade, number in counts.most_common())
        return [
            PageSection(
                "Grades",
                [_build_table(self.graded)],
                finding=f"{sentence}.",
                tone="bad" if bad else "",
                notes=[
                    "A grade is given where the whole 95 % interval lies on one side of every threshold; else it is unsure. "
                    "P95 and P99 need 200 and 1,000 executions, the CV twenty."
                ],
                is_simulated=all(figure.is_simulated for figure in self.graded),
                anchor="grades",
            )
        ]


def grade_trial(trial: TrialReport) -> Iterator[GradedFigure]:
    """Grade a trial by each scale of its experiment whose metric it has."""
    experiment = trial.stored.trial.experiment
    scales: Sequence[GradeScale] = find_trait(experiment, "grades", ())
    inputs: int = find_trait(experiment, "inputs_in_turn", 1)
    estimates = {estimate.metric.name: estimate for estimate in trial.estimates}
    for scale in scales:
        metric = next((name for name in scale.metrics if name in estimates), None)
        if metric is not None:
            figure = _read_figure(scale, estimates, metric, trial.series[metric], inputs)
            unit = "share" if scale.statistic == "cv" else estimates[metric].metric.unit
            failed = sum(trial.counts.values()) - trial.ok
            yield GradedFigure(trial.name, trial.is_simulated, failed, scale, metric, unit, figure)


def _read_figure(
    scale: GradeScale, estimates: Mapping[str, Estimate], metric: str, series: Series, inputs: int
) -> FigureInterval:
    estimate, statistic = estimates[metric], scale.statistic
    if scale.ends is not None:
        low, high = (estimates[name] for name in scale.ends)
        return FigureInterval(estimate.median, low.low, high.high)
    if statistic == "median":
        return FigureInterval(estimate.median, estimate.low, estimate.high)
    if statistic == "cv":
        return _read_cv(series, inputs)
    if statistic in estimate.insufficient:
        return FigureInterval(None)
    return FigureInterval(float(getattr(estimate, statistic)), *estimate.tails.get(statistic, (None, None)))


def _read_cv(series: Series, inputs: int) -> FigureInterval:
    """Among executions with the same input, over the units of replication; the executions of a lone process are its units."""
    import numpy as np

    from assay.stats.variation import estimate_variation

    values, processes = np.asarray(series.values, dtype=np.float64), np.asarray(series.processes)
    units = processes if np.unique(processes).size > 1 else np.arange(values.size)
    found = estimate_variation(values, units, np.asarray(series.repetitions) % inputs)
    return FigureInterval(None) if found is None else FigureInterval(found.value, found.low, found.high)


def _build_table(graded: Sequence[GradedFigure]) -> Table:
    rows, before = [], ""
    for figure in graded:
        name = Cell(figure.trial, note=figure.mark) if figure.trial != before else Cell("")
        before = figure.trial
        thresholds = ", ".join(
            f"{band.name} < {show(band.below, figure.unit)}" for band in figure.scale.bands[:-1]
        )
        rows.append(
            [
                name,
                Cell(figure.scale.label),
                Cell(_format_figure(figure)),
                Cell(figure.grade, tone=figure.tone),
                Cell(f"{thresholds}, else {figure.scale.bands[-1].name}", tone="quiet"),
            ]
        )
    titles = ("Trial", "Figure", "Value [95 %]", "Grade", "Thresholds")
    brief = _list_trials(graded) if len(rows) > _MOST_ROWS else None
    return Table(titles, rows, words=(1, 3, 4), minor=(4,), terminal=brief)


_MOST_ROWS = 12
"""Beyond that, a terminal has a line for each trial instead of one for each figure."""
_TONES = ("bad", "warn", "good")


def _list_trials(graded: Sequence[GradedFigure]) -> list[ListItem]:
    """A line for each trial, with the tone of its worst grade; trials are named where their figures stand."""
    found: dict[str, list[GradedFigure]] = {}
    for figure in graded:
        found.setdefault(figure.trial, []).append(figure)
    items = []
    for trial, figures in found.items():
        text = ", ".join(f"{figure.scale.label} {figure.grade}" for figure in figures)
        tones = {figure.tone for figure in figures}
        mark = f" ({figures[0].mark})" if figures[0].mark else ""
        items.append(ListItem(text, next((tone for tone in _TONES if tone in tones), "unsure"), trial + mark))
    return items


def _format_figure(graded: GradedFigure) -> str:
    figure = graded.figure
    if figure.value is None:
        return NOTHING
    return interval_text(figure.value, figure.low, figure.high, graded.unit)

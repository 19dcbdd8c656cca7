"""The finding of experiments on spatial indexes: how time and memory grow with the number of entities.

Trials that differ in `agent_count` alone form a series. Its exponent is fitted to the units of all of its trials, so it has
an interval, and its largest trial is compared with its smallest one by the rules of `assay compare`. Nothing is said that was not measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from assay.analysis.comparison.compare import find_contrasts
from assay.analysis.estimates.replication import observe
from assay.analysis.estimates.treatment import same_value
from assay.model import Better, Metric, TrialReport
from assay.model.page import Cell, Charts, PageSection, Table
from assay.plugin.finding import Finding
from assay.report.figures import NOTHING, interval_text, with_interval
from assay.stats.line import FittedLine, fit_line
from assay.units import significant

_SIZE = "agent_count"
_MEMORY = "bytes_per_entity"
_FEWEST_SIZES = 3


@dataclass(frozen=True, slots=True)
class Growth:
    """One metric of a series: the power of the number of entities by which it grows, and largest against smallest."""

    metric: Metric
    exponent: FittedLine | None
    ratio: tuple[float, float | None, float | None] | None
    """Of the largest to the smallest, with its interval where there are enough units for one."""


@dataclass(frozen=True, slots=True)
class SizeSeries:
    """Trials that differ in the number of entities alone, the smallest first."""

    settings: Mapping[str, object]
    """What they have in common, of the axes of the sweep."""
    trials: tuple[TrialReport, ...]
    growths: tuple[Growth, ...] = field(default=())

    @property
    def sizes(self) -> list[int]:
        return [_size(trial) for trial in self.trials]

    @property
    def label(self) -> str:
        return ", ".join(map(str, self.settings.values())) or "all"


@dataclass(frozen=True, slots=True)
class ScalingResults(Finding):
    """Every series of a run, with how each of its metrics grows."""

    series: tuple[SizeSeries, ...]

    @classmethod
    def read(cls, trials: Sequence[TrialReport]) -> Finding | None:
        found = tuple(
            SizeSeries(one.settings, one.trials, tuple(_growths(one))) for one in group_by_size(trials)
        )
        return cls(found) if found else None

    def document(self) -> Mapping[str, Any]:
        return {"scaling": [_series_document(one) for one in self.series]}

    def sections(self, *, with_charts: bool) -> Sequence[PageSection]:
        charts = Charts(())
        if with_charts:
            from assay.builtin.findings.scaling_charts import growth_charts

            charts = Charts(growth_charts(self.series), is_single=False)
        smallest, largest = self.series[0].sizes[0], self.series[0].sizes[-1]
        tables = [
            _table(self.series, "Time grows with n to the power of", "analyze_complexity", _exponent_cell),
            _table(
                self.series,
                f"Time at {largest:,} entities, as a multiple of that at {smallest:,}",
                "analyze_scalability",
                _ratio_cell,
            ),
            _memory_table(self.series),
        ]
        return [
            PageSection(
                "Growth with the number of entities",
                [charts, *(table for table in tables if table is not None)],
                finding=_sentence(self.series),
                notes=[
                    "The mean power over these sizes; 1 is linear: twice the entities take twice as long. Intervals are of 95 %."
                ],
                anchor="scaling",
            )
        ]


def group_by_size(trials: Sequence[TrialReport]) -> list[SizeSeries]:
    """The series of at least three sizes, in the order of the trials."""
    groups: dict[str, list[TrialReport]] = {}
    for trial in trials:
        if trial.ok:
            others = {name: value for name, value in trial.stored.trial.params.items() if name != _SIZE}
            groups.setdefault(same_value(others), []).append(trial)
    return [
        SizeSeries(
            {name: value for name, value in group[0].stored.trial.axes.items() if name != _SIZE},
            tuple(sorted(group, key=_size)),
        )
        for group in groups.values()
        if len({_size(trial) for trial in group}) >= _FEWEST_SIZES
    ]


def _size(trial: TrialReport) -> int:
    return int(str(trial.stored.trial.params[_SIZE]))


def _growths(series: SizeSeries) -> Iterator[Growth]:
    """Of each of the experiment's own metrics in seconds, and of memory."""
    metrics = {
        estimate.metric.name: estimate.metric
        for trial in series.trials
        for estimate in trial.estimates
        if estimate.metric.name in trial.declared and estimate.metric.better is Better.LOWER
    }
    for metric in metrics.values():
        if metric.unit == "s" or metric.name == _MEMORY:
            yield Growth(
                metric, fit_exponent(series.trials, metric.name), _compare_ends(series.trials, metric)
            )


def fit_exponent(trials: Sequence[TrialReport], metric: str) -> FittedLine | None:
    """The slope of the logarithms: the mean power over the sizes that were measured, fixed costs included."""
    sizes: list[int] = []
    values: list[float] = []
    for trial in trials:
        if metric in trial.series:
            units = observe(trial.series[metric]).units.tolist()
            sizes += [_size(trial)] * len(units)
            values += units
    across, up = np.asarray(sizes, dtype=np.float64), np.asarray(values, dtype=np.float64)
    return fit_line(np.log(across[up > 0]), np.log(up[up > 0]))


def _compare_ends(
    trials: Sequence[TrialReport], metric: Metric
) -> tuple[float, float | None, float | None] | None:
    for contrast in find_contrasts(trials[0], trials[-1], [metric.name], interleaved=True):
        effect = contrast.effect
        if effect is not None and effect.neutral == 1.0 and effect.low > 0:
            return effect.value, effect.low, effect.high
        if contrast.value_a > 0:
            return contrast.value_b / contrast.value_a, None, None
    return None


def _table(series: Sequence[SizeSeries], caption: str, wish: str, cell: Any) -> Table | None:
    """A row for each series and a column for each metric in seconds, of the trials that wish to have it."""
    asked = [one for one in series if one.trials[0].stored.trial.params.get(wish, True)]
    names = list(dict.fromkeys(g.metric.name for one in asked for g in one.growths if g.metric.unit == "s"))
    if not names:
        return None
    rows = []
    for one in asked:
        by_name = {growth.metric.name: growth for growth in one.growths}
        rows.append(
            [Cell(one.label), *(cell(by_name[name]) if name in by_name else Cell(NOTHING) for name in names)]
        )
    titles = [name.removesuffix("_seconds") for name in names]
    return Table(("Index", *titles), rows, caption=Cell(caption))


def _exponent_cell(growth: Growth) -> Cell:
    line = growth.exponent
    return Cell(NOTHING if line is None else interval_text(line.slope, line.low, line.high, ""))


def _ratio_cell(growth: Growth) -> Cell:
    if growth.ratio is None:
        return Cell(NOTHING)
    middle, bracket, ends = interval_text(*growth.ratio, "").partition(" [")
    return Cell(f"{middle} ×{bracket}{ends}")


def _memory_table(series: Sequence[SizeSeries]) -> Table | None:
    """Bytes per entity at the smallest and at the largest size, and how they grow."""
    rows = []
    for one in series:
        growth = next((growth for growth in one.growths if growth.metric.name == _MEMORY), None)
        if growth is not None:
            ends = [_estimate_text(trial) for trial in (one.trials[0], one.trials[-1])]
            rows.append([Cell(one.label), *map(Cell, ends), _exponent_cell(growth)])
    if not rows:
        return None
    smallest, largest = series[0].sizes[0], series[0].sizes[-1]
    return Table(
        ("Index", f"at {smallest:,}", f"at {largest:,}", "power of n"),
        rows,
        caption=Cell("Memory of an entity"),
    )


def _estimate_text(trial: TrialReport) -> str:
    found = (estimate for estimate in trial.estimates if estimate.metric.name == _MEMORY)
    estimate = next(found, None)
    return NOTHING if estimate is None else with_interval(estimate)


def _sentence(series: Sequence[SizeSeries]) -> str:
    """Which series grow least and most in the time of a query."""
    known = [
        (growth.exponent, one.label)
        for one in series
        for growth in one.growths
        if growth.exponent is not None and growth.metric.name == "query_seconds"
    ]
    if len(known) < 2:
        return ""
    known.sort(key=lambda pair: pair[0].slope)
    (least, first), (most, last) = known[0], known[-1]
    if least.high >= most.low:
        return f"The time of a query grows alike in all {len(known)} series, as far as their intervals tell."
    return (
        f"The time of a query grows least for {first} (power {significant(least.slope)}) and most for {last} "
        f"(power {significant(most.slope)})."
    )


def _series_document(series: SizeSeries) -> dict[str, Any]:
    return {
        "settings": dict(series.settings),
        "sizes": series.sizes,
        "metrics": {growth.metric.name: _growth_document(growth) for growth in series.growths},
    }


def _growth_document(growth: Growth) -> dict[str, Any]:
    line, ratio = growth.exponent, growth.ratio
    return {
        "exponent": None if line is None else line.slope,
        "exponent_interval": None if line is None else [line.low, line.high],
        "ratio": None if ratio is None else ratio[0],
        "ratio_interval": None if ratio is None or ratio[1] is None else [ratio[1], ratio[2]],
    }

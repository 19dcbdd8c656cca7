"""The finding of experiments on spatial indexes: how time and memory grow with the number of entities.

Trials of one benchmark that differ in `agent_count` alone form a series. Its exponent is fitted to the units of all of its trials, so
it has an interval, and its largest trial is compared with its smallest one by the rules of `assay compare`. Nothing is said that was not
measured. All experiments that list the finding share it, so that a run over several has one section.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from assay.analysis.comparison.compare import find_contrasts
from assay.analysis.estimates.replication import observe
from assay.analysis.estimates.treatment import same_value
from assay.model import Better, Metric, TrialReport
from assay.model.page import Cell, Charts, PageSection, Table
from assay.plugin.figures import NOTHING, interval_text, with_interval
from assay.plugin.finding import Finding
from assay.stats.line import FittedLine, fit_line
from assay.units import and_list, significant

_SIZE = "agent_count"
_MEMORY = "bytes_per_entity"
_FEWEST_SIZES = 3


@dataclass(frozen=True, slots=True)
class Growth:
    """One metric of a series: the power of the number of entities by which it grows, and largest against smallest."""

    metric: Metric
    exponent: FittedLine | None
    ratio: tuple[float, float | None, float | None] | None
    """Ratio of the largest to the smallest, with its interval where there are enough units for one."""


@dataclass(frozen=True, slots=True)
class SizeSeries:
    """Trials that differ in the number of entities alone, the smallest first."""

    settings: Mapping[str, object]
    """What they have in common, of the axes of the sweep."""
    trials: tuple[TrialReport, ...]
    growths: tuple[Growth, ...] = field(default=())
    is_alone: bool = True
    """Whether the run has series of this benchmark only."""

    @property
    def sizes(self) -> list[int]:
        return [_size(trial) for trial in self.trials]

    @property
    def ends(self) -> tuple[int, int]:
        return self.sizes[0], self.sizes[-1]

    @property
    def benchmark(self) -> str:
        return self.trials[0].stored.trial.benchmark

    @property
    def label(self) -> str:
        label = ", ".join(map(str, self.settings.values())) or "all"
        return label if self.is_alone else f"{self.benchmark}: {label}"


@dataclass(frozen=True, slots=True)
class ScalingResults(Finding):
    """Every series of a run, with how each of its metrics grows."""

    series: tuple[SizeSeries, ...]

    @classmethod
    def read(cls, trials: Sequence[TrialReport]) -> Finding | None:
        found = group_by_size(trials)
        is_alone = len({series.benchmark for series in found}) == 1
        whole = tuple(replace(series, growths=tuple(_growths(series)), is_alone=is_alone) for series in found)
        return cls(whole) if whole else None

    def document(self) -> Mapping[str, Any]:
        return {"scaling": [_series_document(series) for series in self.series]}

    def sections(self, *, with_charts: bool) -> Sequence[PageSection]:
        charts = Charts(())
        if with_charts:
            from assay.builtin.findings.scaling_charts import growth_charts

            charts = Charts(growth_charts(self.series), is_single=False)
        benchmarks = dict.fromkeys(series.benchmark for series in self.series)
        tables = [_exponent_table(self.series), _ratio_table(self.series), _memory_table(self.series)]
        return [
            PageSection(
                "Growth with the number of entities",
                [charts, *(table for table in tables if table is not None)],
                finding=_sentence(self.series),
                notes=[
                    f"Of the trials of {and_list(list(benchmarks))}.",
                    "The mean power over these sizes; 1 is linear: twice the entities take twice as long. Intervals are of 95 %.",
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
            groups.setdefault(same_value([trial.stored.trial.benchmark, others]), []).append(trial)
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
    """Compute the growth of each of the experiment's own metrics in seconds, and of memory."""
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


def _exponent_table(all_series: Sequence[SizeSeries]) -> Table | None:
    selected = _select_asked(all_series, "analyze_complexity")
    return _table(
        selected, "Time grows with n to the power of", _exponent_cell, [series.label for series in selected]
    )


def _ratio_table(all_series: Sequence[SizeSeries]) -> Table | None:
    selected = _select_asked(all_series, "analyze_scalability")
    smallest, largest = _name_ends(selected)
    caption = f"Time {largest}, as a multiple of that {smallest}"
    return _table(selected, caption, _ratio_cell, _label_with_ends(selected))


def _select_asked(all_series: Sequence[SizeSeries], wish: str) -> list[SizeSeries]:
    return [series for series in all_series if series.trials[0].stored.trial.params.get(wish, True)]


def _name_ends(all_series: Sequence[SizeSeries]) -> tuple[str, str]:
    """The smallest and the largest size, which a failed trial may have made others for one series than for the rest."""
    ends = {series.ends for series in all_series}
    if len(ends) != 1:
        return "at its smallest size", "at its largest size"
    smallest, largest = ends.pop()
    return f"at {smallest:,} entities", f"at {largest:,} entities"


def _label_with_ends(all_series: Sequence[SizeSeries]) -> list[str]:
    if len({series.ends for series in all_series}) == 1:
        return [series.label for series in all_series]
    return [f"{series.label} ({series.ends[0]:,} to {series.ends[1]:,} entities)" for series in all_series]


def _table(all_series: Sequence[SizeSeries], caption: str, cell: Any, labels: Sequence[str]) -> Table | None:
    """A row for each series and a column for each metric in seconds."""
    names = list(
        dict.fromkeys(g.metric.name for series in all_series for g in series.growths if g.metric.unit == "s")
    )
    if not names:
        return None
    rows = []
    for series, label in zip(all_series, labels, strict=True):
        by_name = {growth.metric.name: growth for growth in series.growths}
        rows.append(
            [Cell(label), *(cell(by_name[name]) if name in by_name else Cell(NOTHING) for name in names)]
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


def _memory_table(all_series: Sequence[SizeSeries]) -> Table | None:
    """Bytes per entity at the smallest and at the largest size, and how they grow."""
    known = [
        series for series in all_series if any(growth.metric.name == _MEMORY for growth in series.growths)
    ]
    if not known:
        return None
    rows = []
    for series, label in zip(known, _label_with_ends(known), strict=True):
        growth = next(growth for growth in series.growths if growth.metric.name == _MEMORY)
        ends = [_estimate_text(trial) for trial in (series.trials[0], series.trials[-1])]
        rows.append([Cell(label), *map(Cell, ends), _exponent_cell(growth)])
    return Table(("Index", *_name_ends(known), "power of n"), rows, caption=Cell("Memory of an entity"))


def _estimate_text(trial: TrialReport) -> str:
    found = (estimate for estimate in trial.estimates if estimate.metric.name == _MEMORY)
    estimate = next(found, None)
    return NOTHING if estimate is None else with_interval(estimate)


def _sentence(all_series: Sequence[SizeSeries]) -> str:
    """Which series grow least and most in the time of a query."""
    known = [
        (growth.exponent, series.label)
        for series in all_series
        for growth in series.growths
        if growth.exponent is not None and growth.metric.name == "query_seconds"
    ]
    if len(known) < 2:
        return ""
    known.sort(key=lambda pair: pair[0].slope)
    (least, first), (most, last) = known[0], known[-1]
    if least.high >= most.low:
        subject = "both" if len(known) == 2 else f"all {len(known)}"
        return f"Query time grows at the same rate in {subject} series, within their intervals."
    return (
        f"Query time grows least for {first} (power {significant(least.slope)}) and most for {last} "
        f"(power {significant(most.slope)})."
    )


def _series_document(series: SizeSeries) -> dict[str, Any]:
    return {
        "benchmark": series.benchmark,
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

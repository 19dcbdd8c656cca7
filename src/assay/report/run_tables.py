"""The tables of a run for the terminal, Markdown and HTML: trials, further metrics, axes of a sweep and machines."""

from __future__ import annotations

from collections.abc import Iterable

from assay.model import AxisEffect, Estimate, Report, TrialReport
from assay.model.page import Cell, Table
from assay.report.figures import (
    NOTHING,
    cv_text,
    effect_text,
    interval_text,
    leading,
    ok_text,
    percentile_text,
    size_text,
    standing,
    total,
    with_interval,
)
from assay.units import count, show


def trials_table(trials: Iterable[TrialReport]) -> Table:
    rows = []
    for trial in trials:
        estimate = leading(trial)
        spread = (cv_text(estimate), size_text(estimate)) if estimate else (NOTHING, NOTHING)
        tone = "bad" if not trial.ok else "good" if trial.ok == total(trial) else "warn"
        rows.append(
            [Cell(trial.name), *leading_cells(trial), *map(Cell, spread), Cell(ok_text(trial), tone=tone)]
        )
    titles = ["Trial", "Median [interval]", "Mean", "P95", "CV", "n / units", "ok"]
    return Table(titles, rows, minor=(4, 5))


def leading_cells(trial: TrialReport) -> list[Cell]:
    """Median, mean and P95. The name of the metric stands before them unless that is seconds, which needs no name."""
    estimate = leading(trial)
    if estimate is None:
        return [Cell(NOTHING, tone="quiet")] * 3
    name = "" if estimate.metric.name == "seconds" else f"{estimate.metric.name} "
    mean = show(estimate.mean, estimate.metric.unit)
    return [_median(estimate, name), Cell(mean), Cell(percentile_text(estimate, "p95"))]


def _median(estimate: Estimate, name: str = "") -> Cell:
    kind = estimate.metric.kind
    return Cell(f"{name}{with_interval(estimate)}", note="" if kind == "measured" else f"({kind.value})")


def metrics_table(rows: Iterable[tuple[TrialReport, Estimate]], *, names_trials: bool) -> Table:
    """Metrics of trials; the name of a trial stands once for all of its metrics."""
    cells = []
    before = None
    for trial, estimate in rows:
        name = [Cell("" if trial is before else trial.name)] if names_trials else []
        figures = [_median(estimate), Cell(cv_text(estimate), tone="quiet")]
        cells.append([*name, Cell(estimate.metric.name), *figures])
        before = trial
    titles = [*(["Trial"] if names_trials else []), "Metric", "Median [interval]", "CV"]
    return Table(titles, cells, words=(1,) if names_trials else ())


def axis_table(effect: AxisEffect) -> Table:
    """What each value of an axis leads to, with the sentence that sums it up."""
    rows = []
    for value, median, low, high in zip(
        effect.values, effect.medians, effect.lows, effect.highs, strict=True
    ):
        place = standing(effect, value)
        figure = interval_text(median, low, high, effect.metric.unit)
        rows.append([Cell(str(value)), Cell(figure), Cell(place, tone="good" if place == "best" else "")])
    sentence = effect_text(effect)
    caption = Cell(sentence) if sentence else None
    return Table([effect.axis, "Median [interval]", ""], rows, words=(2,), caption=caption)


def machines_table(report: Report) -> Table:
    """The nodes that carried out the run."""
    rows = [
        [
            Cell(node.node),
            Cell(node.kind),
            Cell(count(node.processes)),
            Cell(count(node.executions)),
            Cell(" ".join(node.doubts)),
        ]
        for node in report.nodes
    ]
    return Table(["Node", "Kind", "Processes", "Ok executions", "Warnings"], rows, words=(1, 4))

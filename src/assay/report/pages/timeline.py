"""An agent over its versions as a `Page`: charts of its metrics, and a table of what changed."""

from __future__ import annotations

from collections.abc import Sequence

from assay.model.page import Cell, Charts, PageSection, Table
from assay.model.regression import AgentTimeline, MetricHistory, Regression, Shift
from assay.report.charts.timeline import timeline_chart
from assay.report.console.regressions import SEVERITY_TONES, loss_text, unit_of_loss
from assay.report.figures import NOTHING
from assay.report.pages.page import Page
from assay.units import format_count, format_signed, show


def timeline_page(timeline: AgentTimeline, most_charts: int = 24) -> Page:
    """The newest version gives the verdict: what got worse with it and is not settled yet."""
    newest = timeline.versions[-1] if timeline.versions else ""
    open_ones = [regression for regression in timeline.regressions if regression.counts]
    better = [shift for shift in timeline.shifts if shift.loss.value < 0 and not shift.is_over]
    parts = [format_count(len(open_ones), "open regression")] if open_ones else []
    parts += [format_count(len(better), "improvement")] if better else []
    return Page(
        title=f"{timeline.agent} over time",
        kind="timeline",
        facts=[
            f"suite {timeline.suite}" if timeline.suite else "code experiments",
            format_count(len(timeline.versions), "version"),
            *([f"newest {newest}"] if newest else []),
        ],
        verdict=" and ".join(parts) or "No significant change in level",
        is_certain=bool(parts),
        sections=timeline_sections(timeline, most_charts),
        warnings=timeline.doubts,
    )


def timeline_sections(timeline: AgentTimeline, most_charts: int) -> list[PageSection]:
    """Charts of the histories with at least two runs, then regressions, then changes of level for better or worse."""
    charts = []
    for history in sorted(timeline.histories, key=_find_rank):
        own = [
            shift
            for shift in timeline.shifts
            if (shift.benchmark, shift.metric.name) == (history.benchmark, history.metric.name)
        ]
        if (chart := timeline_chart(history, own)) is not None:
            charts.append(chart)
    sections = []
    if charts:
        omitted = len(charts) - most_charts
        sections.append(
            PageSection(
                "Metrics over runs",
                [Charts(charts[:most_charts], is_single=False)],
                notes=[f"{format_count(omitted, 'more chart')} left out"] if omitted > 0 else [],
            )
        )
    if timeline.regressions:
        sections.append(
            PageSection("Regressions", [regressions_table(timeline.regressions)], anchor="regressions")
        )
    if timeline.shifts:
        rows = [_shift_row(shift) for shift in timeline.shifts]
        titles = ["Benchmark", "Metric", "Change", "Before", "After", "Since version", "Kind"]
        sections.append(PageSection("Changes of level", [Table(titles, rows, words=(1, 5, 6))]))
    return sections


def _find_rank(history: MetricHistory) -> tuple[bool, int]:
    """What changed comes before what stayed the same, then scores before times before everything else."""
    is_constant = len({point.value for point in history.points}) == 1
    names = ("score", "seconds")
    place = names.index(history.metric.name) if history.metric.name in names else len(names)
    return is_constant, place


def regressions_table(regressions: Sequence[Regression]) -> Table:
    """The newest first; agents and suites can be followed where there are links."""
    newest = sorted(
        regressions,
        key=lambda regression: (regression.detected is not None, regression.detected),
        reverse=True,
    )
    return Table(
        [
            "Agent",
            "Severity",
            "Metric",
            "Loss",
            "Before",
            "Now",
            "Suite",
            "Since version",
            "State",
            "Detected",
        ],
        [_regression_row(regression) for regression in newest],
        words=(1, 2, 6, 7, 8, 9),
    )


def _regression_row(regression: Regression) -> list[Cell]:
    unit = regression.metric.unit
    return [
        Cell(regression.agent, ref=f"agents/{regression.agent}"),
        Cell(regression.severity.value, tone=SEVERITY_TONES[regression.severity]),
        Cell(regression.metric.name, note=regression.benchmark),
        Cell(loss_text(regression)),
        Cell(show(regression.baseline_value, unit)),
        Cell(show(regression.current_value, unit)),
        Cell(regression.suite or NOTHING, ref=f"suites/{regression.suite}" if regression.suite else ""),
        Cell(regression.after, note=f"from {regression.before}" if regression.before else ""),
        Cell(regression.state.value.replace("_", " "), tone="warn" if regression.counts else "quiet"),
        Cell(f"{regression.detected:%Y-%m-%d}" if regression.detected else NOTHING, tone="quiet"),
    ]


def _shift_row(shift: Shift) -> list[Cell]:
    unit = shift.metric.unit
    loss = shift.loss
    tone = "quiet" if shift.is_over else "bad" if loss.value > 0 else "good"
    word = "worse" if loss.value > 0 else "better"
    return [
        Cell(shift.benchmark),
        Cell(shift.metric.name),
        Cell(
            f"{format_signed(-loss.value * 100)} {unit_of_loss(shift.metric)} "
            f"[{format_signed(-loss.high * 100)}, {format_signed(-loss.low * 100)}]"
        ),
        Cell(show(shift.level_before, unit)),
        Cell(show(shift.level_after, unit)),
        Cell(shift.after.version or NOTHING, note=f"{shift.after.started:%Y-%m-%d}"),
        Cell(f"{word}{', over' if shift.is_over else ''}", tone=tone, note=shift.kind),
    ]

"""Regressions of an agent for the terminal: what to do, what got worse, and what it means to users.

A regression is suspected by comparison with a baseline, by a change point in the history, or by a drift. The marks behind the
severity say which ones are still pending and which may be due to another machine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from assay.model import Metric, Verdict
from assay.model.page import Cell, Table
from assay.model.regression import (
    Action,
    Regression,
    RegressionReport,
    RegressionState,
    Severity,
    Shift,
)
from assay.report.change import in_points
from assay.report.console.gate import lost_text
from assay.report.console.screen import bullet, join_texts, literal
from assay.report.console.sections import print_table
from assay.report.figures import NOTHING
from assay.units import show, significant, usd

if TYPE_CHECKING:
    from rich.console import Console

_ACTIONS = {Action.PROMOTE: "green", Action.HOLD: "yellow", Action.ROLL_BACK: "red", Action.RERUN: "yellow"}
SEVERITY_TONES = {
    Severity.CRITICAL: "bad",
    Severity.MAJOR: "bad",
    Severity.MODERATE: "warn",
    Severity.MINOR: "",
}
_CASES = 3
_SHOWN = 3


def print_regressions(report: RegressionReport, console: Console, *, with_closed: bool = False) -> None:
    """Closed ones only where asked for, and where it was newer data that closed them just now."""
    _print_head(report, console)
    regressions = [regression for regression in report.regressions if with_closed or regression.counts]
    if regressions:
        print_table(_table(regressions), console)
        for regression in regressions:
            if impact := impact_text(regression):
                console.print(bullet(regression.id, impact, "dim"))
        console.print()
    for flips in report.flips:
        if flips.lost:
            console.print(bullet("✗", lost_text(flips), "red"))
    for pattern in report.patterns:
        console.print(bullet("≈", pattern.message, "yellow"))
    for shift in report.improvements:
        console.print(bullet("↑", shift_text(shift), "green"))
    for sentence in _describe_unsettled(report):
        console.print(bullet("?", sentence, "yellow"))
    for doubt in report.doubts:
        console.print(bullet("!", str(doubt), "yellow"))


def _print_head(report: RegressionReport, console: Console) -> None:
    """Whose regressions these are, against what, and the advice that follows from them."""
    advice = report.advice
    name = f"{report.agent} {report.version}".strip()
    suite = f" on {report.suite}" if report.suite else ""
    basis = f" against {report.baseline}" if report.baseline else ", by its history alone"
    console.print(join_texts(literal(name, "bold"), literal(suite + basis)))
    style = _ACTIONS[advice.action]
    console.print(
        join_texts(
            literal(advice.action.value, f"bold {style}"),
            literal(f" · health {advice.health:.2f} · {advice.reason}"),
        )
    )
    console.print()


def _table(regressions: Sequence[Regression]) -> Table:
    """Regressions as rows. A narrow screen has the column of states only if one has another state than "detected"."""
    minor = [3, 5]
    if all(regression.state is RegressionState.DETECTED for regression in regressions):
        minor.append(7)
    titles = ["Id", "What", "Between", "Was → is", "Loss [interval]", "p", "Severity", "State"]
    return Table(titles, [_cells(regression) for regression in regressions], words=(1, 2, 6, 7), minor=minor)


def _cells(regression: Regression) -> list[Cell]:
    unit = regression.metric.unit
    marks = {
        "drift": "drift" in regression.found_by,
        "pending": regression.is_pending,
        "machine?": regression.is_suspect,
    }
    set_marks = ", ".join(mark for mark, is_set in marks.items() if is_set)
    return [
        Cell(regression.id, tone="quiet"),
        Cell(f"{regression.benchmark} · {regression.metric.name}"),
        Cell(range_text(regression)),
        Cell(f"{show(regression.baseline_value, unit)} → {show(regression.current_value, unit)}"),
        Cell(loss_text(regression)),
        Cell(NOTHING if regression.p is None else f"{regression.p:.2g}"),
        Cell(
            regression.severity.value,
            tone=SEVERITY_TONES[regression.severity],
            note=f"({set_marks})" if set_marks else "",
        ),
        Cell(regression.state.value.replace("_", " "), tone="" if regression.counts else "quiet"),
    ]


def range_text(regression: Regression) -> str:
    """The guilty range of versions; a commit is known by its beginning."""
    return f"{regression.before or 'none'} → {regression.after or 'none'}"


def loss_text(regression: Regression) -> str:
    """`25 % [21, 29]`, of scores in points; from a baseline of zero there is no percentage."""
    ends = f"[{_hundredths(regression.loss.low)}, {_hundredths(regression.loss.high)}]"
    if regression.percentage is None:
        return "from 0"
    return f"{significant(regression.loss.value * 100)} {unit_of_loss(regression.metric)} {ends}"


def unit_of_loss(metric: Metric) -> str:
    return "points" if in_points(metric) else "%"


def _hundredths(share: float) -> str:
    return ("∞" if share > 0 else "−∞") if math.isinf(share) else significant(share * 100)


def impact_text(regression: Regression) -> str:
    """What it means to users, and what somebody noted."""
    impact = regression.impact
    parts = []
    if impact.cases:
        more = f" and {len(impact.cases) - _CASES} more" if len(impact.cases) > _CASES else ""
        parts.append(f"worse in {', '.join(impact.cases[:_CASES])}{more}")
    if impact.overall:
        parts.append(f"lowers the overall score by {significant(impact.overall, 2)}")
    parts.append(_per_1000(regression))
    if impact.usd_per_1000 is not None and impact.usd_per_1000 > 0:
        parts.append(f"{usd(impact.usd_per_1000)} more for 1,000 solved tasks")
    if regression.note:
        parts.append(f"“{regression.note}”")
    return " · ".join(part for part in parts if part)


def _per_1000(regression: Regression) -> str:
    value = regression.impact.per_1000
    if value is None or value <= 0:
        return ""
    if in_points(regression.metric):
        return f"{significant(value, 2)} more of 1,000 tasks fail"
    return f"{show(value, regression.metric.unit)} more for 1,000 tasks"


def shift_text(shift: Shift) -> str:
    first, second = shift.before.version, shift.after.version
    gain = f"{significant(-shift.loss.value * 100)} {unit_of_loss(shift.metric)}"
    return f"{shift.benchmark} · {shift.metric.name} got better by {gain} between {first} and {second}"


def _describe_unsettled(report: RegressionReport) -> list[str]:
    """What could not be told: comparisons that are unsure, and histories that are too short."""
    unsure = [comparison for comparison in report.comparisons if comparison.verdict is Verdict.UNSURE]
    lines = [
        f"{comparison.trial_b} · {comparison.metric.name}: {comparison.reason}"
        for comparison in unsure[:_SHOWN]
    ]
    if len(unsure) > _SHOWN:
        lines.append(f"{len(unsure) - _SHOWN} more comparisons are unsure; --json has all of them.")
    reasons: dict[str, list[str]] = {}
    for name, reason in report.unsearched.items():
        reasons.setdefault(reason, []).append(name)
    for reason, names in reasons.items():
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        where = "" if len(names) == len(report.histories) else f" of {names[0]}{more}"
        lines.append(f"No change point can be found in the history{where}: {reason}")
    return lines

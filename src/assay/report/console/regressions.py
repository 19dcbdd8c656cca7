"""Regressions of an agent for the terminal: what to do, what got worse, and what it means to users.

A regression is suspected by comparison with a baseline, by a change point in the history, or by a drift. The marks behind the
severity say which ones are still pending and which may be due to another machine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from assay.model import Metric, Verdict
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
from assay.report.console.screen import bullet, join_texts, literal, new_table
from assay.units import show, significant, usd

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

_ACTIONS = {Action.PROMOTE: "green", Action.HOLD: "yellow", Action.ROLL_BACK: "red", Action.RERUN: "yellow"}
_SEVERITIES = {
    Severity.MINOR: "yellow",
    Severity.MODERATE: "yellow",
    Severity.MAJOR: "red",
    Severity.CRITICAL: "bold red",
}
_CASES = 3
_WIDE = 120
_SHOWN = 3


def print_regressions(report: RegressionReport, console: Console, *, with_closed: bool = False) -> None:
    """Closed ones only where asked for, and where it was newer data that closed them just now."""
    _print_head(report, console)
    regressions = [regression for regression in report.regressions if with_closed or regression.counts]
    if regressions:
        console.print(_table(regressions, is_wide=console.width >= _WIDE))
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


def _table(regressions: Sequence[Regression], *, is_wide: bool) -> Table:
    """Regressions as rows.

    The column of states appears only if one of them has another state than "detected", or there is room.
    """
    table = new_table()
    table.add_column("Id", no_wrap=True)
    table.add_column("What", overflow="fold", min_width=14)
    table.add_column("Between", overflow="fold")
    if is_wide:
        table.add_column("Was → is", justify="right", no_wrap=True)
    table.add_column(literal("Loss [interval]"), justify="right", no_wrap=True)
    if is_wide:
        table.add_column("p", justify="right", no_wrap=True)
    table.add_column("Severity", overflow="fold")
    has_states = is_wide or any(
        regression.state is not RegressionState.DETECTED for regression in regressions
    )
    if has_states:
        table.add_column("State", overflow="fold")
    for regression in regressions:
        cells = _cells(regression, is_wide=is_wide)
        table.add_row(*(cells if has_states else cells[:-1]))
    return table


def _cells(regression: Regression, *, is_wide: bool) -> list[Text]:
    loss, bracket, ends = loss_text(regression).partition(" [")
    unit = regression.metric.unit
    values = literal(f"{show(regression.baseline_value, unit)} → {show(regression.current_value, unit)}")
    marks = {
        "drift": "drift" in regression.found_by,
        "pending": regression.is_pending,
        "machine?": regression.is_suspect,
    }
    set_marks = ", ".join(mark for mark, is_set in marks.items() if is_set)
    marks_text = literal(f" ({set_marks})" if set_marks else "", "dim")
    p = literal("–" if regression.p is None else f"{regression.p:.2g}")
    return [
        literal(regression.id, "dim"),
        join_texts(literal(regression.benchmark), literal(" · "), literal(regression.metric.name, "bold")),
        literal(range_text(regression)),
        *([values] if is_wide else []),
        join_texts(literal(loss, "bold"), literal(bracket + ends, "dim")),
        *([p] if is_wide else []),
        join_texts(literal(regression.severity.value, _SEVERITIES[regression.severity]), marks_text),
        literal(regression.state.value.replace("_", " "), "" if regression.counts else "dim"),
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

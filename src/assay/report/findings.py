"""What the findings of all experiments add to the report of a run.

Experiments such as `load` and `stress` have findings of their own (see `assay.plugin.finding`). The formats do not know these
experiments: they ask here for sections, headlines and for which trials the general tables still list.
"""

from __future__ import annotations

from functools import reduce

from assay.model import AxisEffect, Report, TrialReport
from assay.model.page import PageSection


def finding_sections(report: Report, *, with_charts: bool) -> list[PageSection]:
    return [
        section
        for finding in report.findings.values()
        for section in finding.sections(with_charts=with_charts)
    ]


def headlines(report: Report) -> list[PageSection]:
    """Verdicts, which stand above all other figures."""
    found = (finding.headline() for finding in report.findings.values())
    return [section for section in found if section is not None]


def is_listed_on_pages(report: Report, trial: TrialReport) -> bool:
    """Whether the table of all trials has a row for it."""
    finding = report.finding_of(trial)
    return finding is None or finding.is_listed_on_pages


def select_axes(report: Report) -> tuple[AxisEffect, ...]:
    """Effects of a sweep, without those that the charts of every trial's finding show better."""
    found = [report.finding_of(trial) for trial in report.trials]
    hidden = [frozenset[str]() if finding is None else finding.hidden_axes for finding in found]
    if not hidden:
        return report.axes
    common = reduce(frozenset.intersection, hidden)
    return tuple(effect for effect in report.axes if effect.axis not in common)

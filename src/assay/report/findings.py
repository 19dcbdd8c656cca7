"""What the findings of all experiments add to the report of a run.

Experiments such as `load` and `stress` have findings of their own (see `assay.model.finding`). The formats do not know these
experiments: they ask here for sections, headlines and for which trials the general tables still list. `outcome_of` sums a run
up in a word: its state or, if it came to its end, the worst that its findings showed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from assay.model import AxisEffect, Report, RunState, TrialReport
from assay.model.load_verdict import worst_verdict
from assay.model.page import PageSection, RunOutcome
from assay.report.figures import state_text


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
    # An axis is left out only if the findings of all trials show it: a trial without a finding has no chart of its own.
    found = [report.finding_of(trial) for trial in report.trials]
    hidden = [frozenset[str]() if finding is None else finding.hidden_axes for finding in found]
    if not hidden:
        return report.axes
    common = reduce(frozenset.intersection, hidden)
    return tuple(effect for effect in report.axes if effect.axis not in common)


_TONES = {RunState.COMPLETED: "good", RunState.FAILED: "bad"}
COLOURS = {"bad": "red", "warn": "yellow", "good": "green"}


def outcome(state: RunState, verdicts: Sequence[str] = ()) -> RunOutcome:
    """
    >>> outcome(RunState.COMPLETED), outcome(RunState.COMPLETED, ["ok", "slo_broken"])
    (RunOutcome(text='completed', tone='good'), RunOutcome(text='SLO not met', tone='bad'))
    """
    if state is RunState.COMPLETED and (verdict := worst_verdict(verdicts)) is not None:
        return RunOutcome(verdict.text, verdict.tone)
    return RunOutcome(state_text(state), _TONES.get(state, "warn"))


def outcome_of(report: Report) -> RunOutcome:
    """Return the outcome of a run: the worst that its findings came to, if the run was completed."""
    own = [found for finding in report.findings.values() if (found := finding.outcome()) is not None]
    if report.run.state is RunState.COMPLETED and own:
        return min(own, key=lambda found: list(COLOURS).index(found.tone))
    return outcome(report.run.state)

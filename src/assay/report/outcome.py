"""What a run came to, in a word: its state or, of load tests that came to their end, what they showed."""

from __future__ import annotations

from collections.abc import Sequence

from assay.model import Report, RunState
from assay.model.load_verdict import worst_verdict
from assay.model.page import RunOutcome
from assay.report.figures import state_text

_TONES = {RunState.COMPLETED: "good", RunState.FAILED: "bad"}
COLOURS = {"bad": "red", "warn": "yellow", "good": "green"}


def outcome(state: RunState, verdicts: Sequence[str] = ()) -> RunOutcome:
    """
    >>> outcome(RunState.COMPLETED), outcome(RunState.COMPLETED, ["ok", "slo_broken"])
    (RunOutcome(text='completed', tone='good'), RunOutcome(text='SLO broken', tone='bad'))
    """
    if state is RunState.COMPLETED and (verdict := worst_verdict(verdicts)) is not None:
        return RunOutcome(verdict.text, verdict.tone)
    return RunOutcome(state_text(state), _TONES.get(state, "warn"))


def outcome_of(report: Report) -> RunOutcome:
    """By what its findings came to, the worst of them, where the run was completed."""
    own = [found for finding in report.findings.values() if (found := finding.outcome()) is not None]
    if report.run.state is RunState.COMPLETED and own:
        return min(own, key=lambda found: list(COLOURS).index(found.tone))
    return outcome(report.run.state)

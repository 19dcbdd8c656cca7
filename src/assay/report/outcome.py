"""What a run came to, in a word: its state or, of load tests that came to their end, what they showed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assay.model import Report, RunState
from assay.report.figures import state_text
from assay.report.load_findings import worst_verdict
from assay.report.stored_loads import stored_verdicts

_TONES = {RunState.COMPLETED: "good", RunState.FAILED: "bad"}
COLOURS = {"good": "green", "warn": "yellow", "bad": "red"}


@dataclass(frozen=True, slots=True)
class RunOutcome:
    text: str
    tone: str
    """`good`, `warn` or `bad`."""


def outcome(state: RunState, verdicts: Sequence[str] = ()) -> RunOutcome:
    """
    >>> outcome(RunState.COMPLETED), outcome(RunState.COMPLETED, ["ok", "slo_broken"])
    (RunOutcome(text='completed', tone='good'), RunOutcome(text='SLO broken', tone='bad'))
    """
    if state is RunState.COMPLETED and (verdict := worst_verdict(verdicts)) is not None:
        return RunOutcome(verdict.text, verdict.tone)
    return RunOutcome(state_text(state), _TONES.get(state, "warn"))


def outcome_of(report: Report) -> RunOutcome:
    return outcome(report.run.state, stored_verdicts(report))

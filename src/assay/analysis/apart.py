"""Trials of teams and of stress, which have findings of their own beside those of every trial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assay.analysis.stress import is_stress, stress_findings, told_elsewhere
from assay.analysis.team import is_team, marked, team_findings, without_unit_doubts
from assay.model import TrialReport
from assay.model.stress import StressFinding
from assay.model.team import TeamFinding


@dataclass(frozen=True, slots=True)
class Apart:
    trials: list[TrialReport]
    swept: list[TrialReport]
    """The legs of a team are compared pair by pair: to a sweep they would be one axis among others."""
    teams: tuple[TeamFinding, ...]
    stress: StressFinding | None


def read_apart(trials: Sequence[TrialReport]) -> Apart:
    shown = [marked(trial) if is_team(trial) or is_stress(trial) else trial for trial in trials]
    shown = [without_unit_doubts(trial) if is_team(trial) else trial for trial in shown]
    shown = [told_elsewhere(trial) if is_stress(trial) else trial for trial in shown]
    swept = [trial for trial in shown if not is_team(trial) and not is_stress(trial)]
    return Apart(shown, swept, team_findings(shown), stress_findings(shown))

"""Finds scorers that could not judge outputs, and warns about them.

An execution without a score is left out of accuracy, so a scorer that fails on hard cases would make an agent look better.
`pipeline/report.py` finds the failures when it reads a run; reports and comparisons show the warnings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from assay.model import Benchmark, Doubt, Execution, Phase, Report, Status, TrialReport
from assay.model.rating import ScorerFailure
from assay.units import count

_TURN = re.compile(r"^turn\d+\.")
_LONGEST_REASON = 200


def find_scorer_failures(executions: Iterable[Execution], benchmark: Benchmark) -> tuple[ScorerFailure, ...]:
    """Which scorers failed on ok measured executions, how often, and why the first time.

    Parts of a score are not counted: the scorer that gives them is.
    """
    of_turns = (use for case in benchmark.cases for turn in case.turns for use in turn.scorers)
    weights: dict[str, float] = {}
    for use in (*benchmark.scorers, *of_turns):
        weights[use.score_name] = max(use.weight, weights.get(use.score_name, 0.0))
    failed: dict[str, int] = {}
    reasons: dict[str, str] = {}
    total = 0
    for execution in executions:
        if execution.phase is not Phase.MEASURED or execution.status is not Status.OK:
            continue
        total += 1
        for name, reason in _find_failed_scorers(execution, weights).items():
            failed[name] = failed.get(name, 0) + 1
            reasons.setdefault(name, reason)
    return tuple(
        ScorerFailure(name, number, total, weights[name], reasons[name]) for name, number in failed.items()
    )


def _find_failed_scorers(execution: Execution, weights: Mapping[str, float]) -> dict[str, str]:
    """Scorer to its reason; a scorer with weight has failed only if the execution has no score."""
    detail = execution.detail or {}
    names = detail.get("unscored")
    reasons = detail.get("reasons")
    found: dict[str, str] = {}
    for name in names if isinstance(names, list) else ():
        scorer = _TURN.sub("", str(name))
        if scorer in weights and (weights[scorer] == 0 or "score" not in execution.measurements):
            reason = reasons.get(name, "") if isinstance(reasons, Mapping) else ""
            found.setdefault(scorer, str(reason))
    return found


def scorer_doubts(trial: TrialReport, run_id: str) -> Iterator[Doubt]:
    """Warnings of a run about the scorers that failed in one trial."""
    for failure in sorted(trial.scorer_failures, key=lambda failure: failure.weight == 0):
        reason = f": {_shorten(failure.reason)}" if failure.reason else ""
        failed = (
            f"Scorer '{failure.scorer}' failed on {count(failure.failed)} of {count(failure.of)} executions"
        )
        if failure.weight == 0:
            yield Doubt(
                "scorer", f"{failed}. It has weight 0, so they are scored without it{reason}", "", trial.name
            )
            continue
        yield Doubt(
            "unscored",
            f"{failed}, which are unscored and left out of accuracy{reason}",
            f"When it is fixed, score the stored outputs again: assay rescore {run_id}",
            trial.name,
        )


def _shorten(reason: str) -> str:
    line = " ".join(reason.split()).removeprefix("the scorer failed: ")
    line = line if len(line) <= _LONGEST_REASON else f"{line[:_LONGEST_REASON]}…"
    return line if line.endswith((".", "!", "?", "…")) else f"{line}."


def check_unscored_sides(a: Report, b: Report) -> Iterator[Doubt]:
    """Warnings of a comparison about executions of either side that have no score because a scorer failed."""
    for side, report in (("A", a), ("B", b)):
        for trial in report.trials:
            names = [failure.scorer for failure in trial.scorer_failures if failure.weight > 0]
            if names and trial.ratings is not None:
                listed = ", ".join(f"'{name}'" for name in names)
                yield Doubt(
                    "unscored",
                    f"{count(trial.ratings.unscored)} of {count(trial.ok)} executions of {side} are unscored because "
                    f"{listed} failed: scores are compared without them.",
                    f"Score the stored outputs again: assay rescore {report.run_of(trial).id}",
                    trial.name,
                )

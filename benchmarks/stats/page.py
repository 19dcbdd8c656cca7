"""What the statistics promise and keep, as a part of docs/benchmarks.md."""

from __future__ import annotations

from collections.abc import Sequence

import record
from record import Result

RESULTS = record.RESULTS / "stats"
ORDER = (
    "false-positives",
    "false-positives-least",
    "false-positives-worst",
    "false-claims",
    "coverage",
    "coverage-most",
    "coverage-worst",
    "coverage-accuracy",
    "coverage-tails",
    "power-unpaired",
    "power-paired",
    "power-accuracy",
    "stopping-false-alarms",
    "stopping-found",
    "stopping-pairs",
    "gate",
    "nodes-false-claims",
    "nodes-found",
    "equal-agents-separated",
    "no-change-flagged",
    "no-change-flagged-worst-family",
    "real-like-flagged",
    "real-like-flagged-worst",
    "short-flagged",
    "drifts-found",
    "drifts-called-steps",
    "steps-called-drifts",
    "steps-found-5",
    "steps-found-10",
    "steps-found-20",
    "accuracy-5",
    "accuracy-10",
    "compare-seconds",
    "leaderboard-seconds",
    "leaderboard-command-seconds",
    "compare-command-seconds",
    "seconds-10000-points",
    "seconds-100000-points",
    "seconds-1000000-points",
    "seconds-1000-histories-of-200",
)
OPENING = """\
# Statistics

Simulations with fixed seeds and known answers test the code that `assay compare`, `assay gate`, `assay detect` and
`assay leaderboard` run. In brackets is the 95 % interval that follows from the number of repetitions. [Method](method.md) explains the tests.

The last rows use real clocks instead: eight names for one function, timed by `assay run`, while another program keeps one core busy at random times.
Their verdicts are those of the commands. The target is for all kinds of run together; the remarks below the table list each kind.
"""
REPRODUCE = """\
    make bench-stats                                          # everything, more than an hour; exit code 1 if a target is missed
    PYTHONPATH=benchmarks python -m stats.run --only power    # one part: comparisons, power, estimates, stopping, families, …
    PYTHONPATH=benchmarks python -m stats.run --only clocks --quick   # real clocks, two boards of each kind; stores nothing
"""


def section(results: Sequence[Result]) -> str:
    """Empty where nothing was stored."""
    if not results:
        return ""
    ordered = sorted(results, key=lambda one: _place(one.promise.name))
    rows = ["| what | target | measured | verdict |", "|---|---|---|---|", *map(_row, ordered)]
    remarks = [f"- {one.promise.claim}: {one.detail}" for one in ordered if one.detail]
    return "\n".join(
        [OPENING, _verdict(ordered), "\n".join(rows) + "\n", "\n".join(remarks) + "\n", REPRODUCE]
    )


def _place(name: str) -> tuple[int, str]:
    return (ORDER.index(name) if name in ORDER else len(ORDER), name)


def _verdict(results: Sequence[Result]) -> str:
    missed = [f"`{one.promise.name}`" for one in results if not one.holds]
    if not missed:
        return f"**All {len(results)} targets are met.**\n"
    return f"**{len(missed)} of {len(results)} targets {'is' if len(missed) == 1 else 'are'} missed: {', '.join(missed)}.**\n"


def _row(result: Result) -> str:
    verdict = "met" if result.holds else "**missed**"
    cells = (result.promise.claim, result.promise.shown(), result.judged.shown(result.unit), verdict)
    return f"| {' | '.join(cells)} |"

"""Warns if a budget was kept only because some cost is unknown.

A cost that nobody knows counts as nothing against the budget, so more may have been spent than it allowed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from assay.model import Doubt, Run, Status, TrialReport
from assay.model.metric import JUDGING
from assay.units import count

_CALLS, _TOKENS, _USD = JUDGING
_PRICE = "Give its price (price: {input: X, output: Y}), or say that it costs nothing (price: free)."


def budget_doubts(run: Run, trials: Sequence[TrialReport]) -> Iterator[Doubt]:
    """Warnings about unknown costs and tokens of agents and judges; none without a budget."""
    if run.budget.usd is None and run.budget.tokens is None:
        return
    for trial in (one for one in trials if one.stored.trial.agent_use is not None):
        made = [(e.status is Status.OK, e.measurements) for e in trial.executions if e.status.is_settled]
        judged = [measured for _, measured in made if _CALLS in measured]
        if run.budget.usd is not None:
            # If the agent is free, its failures cost nothing either.
            is_free = _is_free(made)
            unpriced = sum("usd" not in measured and (is_ok or not is_free) for is_ok, measured in made)
            yield from _doubt(trial, "the agent's cost", unpriced, len(made), _PRICE)
            yield from _doubt(trial, "the judge's cost", _lacking(_USD, judged), len(judged), _PRICE)
        if run.budget.tokens is not None:
            uncounted = 0 if _is_free(made) else _lacking("tokens", [measured for _, measured in made])
            yield from _doubt(trial, "the agent's use of tokens", uncounted, len(made))
            yield from _doubt(trial, "the judge's use of tokens", _lacking(_TOKENS, judged), len(judged))


_Made = Sequence[tuple[bool, Mapping[str, float]]]
"""For each settled execution, whether it was ok, and its measurements."""


def _is_free(made: _Made) -> bool:
    """Whether all costs that are known are 0."""
    costs = [measured["usd"] for _, measured in made if "usd" in measured]
    return bool(costs) and not any(costs)


def _lacking(metric: str, measured: Sequence[Mapping[str, float]]) -> int:
    return sum(metric not in one for one in measured)


def _doubt(trial: TrialReport, what: str, missing: int, total: int, hint: str = "") -> Iterator[Doubt]:
    if missing:
        yield Doubt(
            "budget",
            f"In {count(missing)} of {count(total)} executions {what} is unknown and not counted: more than the "
            "budget may have been spent.",
            hint,
            trial.name,
        )

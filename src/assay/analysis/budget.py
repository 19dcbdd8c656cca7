"""Whether a budget was kept, or only seemed to be because some cost is unknown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from assay.model import Doubt, Run, Status, TrialReport
from assay.model.metric import JUDGING
from assay.units import count

_CALLS, _TOKENS, _USD = JUDGING
_PRICE = "Give its price (price: {input: X, output: Y}), or say that it costs nothing (price: free)."


def budget_doubts(run: Run, trials: Sequence[TrialReport]) -> Iterator[Doubt]:
    """Executions are looked through only where there is a budget."""
    if run.budget.usd is None and run.budget.tokens is None:
        return
    for trial in (one for one in trials if one.stored.trial.agent_use is not None):
        made = [(e.status is Status.OK, e.measurements) for e in trial.executions if e.status.is_settled]
        judged = [measured for _, measured in made if _CALLS in measured]
        if run.budget.usd is not None:
            yield from _doubt(trial, "the agent's cost", _unpriced(made), len(made), _PRICE)
            yield from _doubt(trial, "the judge's cost", _lacking(_USD, judged), len(judged), _PRICE)
        if run.budget.tokens is not None:
            uncounted = 0 if _is_free(made) else _lacking("tokens", [measured for _, measured in made])
            yield from _doubt(trial, "the agent's use of tokens", uncounted, len(made))
            yield from _doubt(trial, "the judge's use of tokens", _lacking(_TOKENS, judged), len(judged))


_Made = Sequence[tuple[bool, Mapping[str, float]]]
"""Whether it was ok, and its measurements, of each execution."""


def _unpriced(made: _Made) -> int:
    """What failed in the hands of an agent that is free cost nothing either."""
    is_free = _is_free(made)
    return sum("usd" not in measured and (is_ok or not is_free) for is_ok, measured in made)


def _is_free(made: _Made) -> bool:
    costs = [measured["usd"] for _, measured in made if "usd" in measured]
    return bool(costs) and not any(costs)


def _lacking(metric: str, measured: Sequence[Mapping[str, float]]) -> int:
    return sum(metric not in one for one in measured)


def _doubt(trial: TrialReport, what: str, missing: int, total: int, hint: str = "") -> Iterator[Doubt]:
    if missing:
        yield Doubt(
            "budget",
            f"In {count(missing)} of {count(total)} executions {what} is unknown and counted for nothing: more than the "
            "budget may have been spent.",
            hint,
            trial.name,
        )

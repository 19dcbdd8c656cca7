"""Forecasts how long a plan will take and what it will cost.

The basis is, in this order: earlier executions of the same agent on the same benchmark, the limits and prices of the spec, or
nothing, and then the forecast is unknown. `assay run` shows it before it starts.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from statistics import median

from assay.model import AgentUse, Answer, Plan, Trial, Usage
from assay.model.forecast import Basis, Expected, Forecast, TrialForecast, add_up
from assay.plugin.agent import Agent
from assay.plugin.agent_pool import make_agent
from assay.plugin.prices import Price
from assay.store.history import PastFigures
from assay.store.store import Store
from assay.units import format_count


def forecast(plan: Plan, store: Store | None = None) -> Forecast:
    """The forecast of a plan. Time does not include starting processes; requests in flight together share it."""
    past = _Past(store)
    trials = tuple(_forecast_trial(trial, past) for trial in plan.trials)
    seconds = add_up([(trial.trial, trial.seconds) for trial in trials])
    if seconds.value is not None:
        seconds = Expected(seconds.value / max(1, plan.parallelism), seconds.basis, seconds.reason)
    usd = add_up([(trial.trial, trial.usd) for trial in trials])
    return Forecast(sum(trial.executions for trial in trials), seconds, usd, trials)


class _Past:
    """Earlier figures of trials. If nothing is stored of an agent on a benchmark, the store is asked only once for it."""

    def __init__(self, store: Store | None) -> None:
        self._store = store
        self._unknown: set[tuple[str, str, str]] = set()

    def figures(self, trial: Trial) -> PastFigures | None:
        subject = (trial.agent.name, trial.benchmark, trial.suite)
        if self._store is None or subject in self._unknown:
            return None
        found = self._store.past_figures(trial)
        if found is None:
            self._unknown.add(subject)
        return found


def _forecast_trial(trial: Trial, past: _Past) -> TrialForecast:
    """What one trial takes and costs, from the best basis that there is; each of the two figures has a basis of its own."""
    executions = trial.most_executions
    agent = make_agent(trial.agent_use, trial.concurrency) if trial.agent_use is not None else None
    is_concurrent = agent is not None and (
        inspect.iscoroutinefunction(agent.answer) or bool(getattr(agent, "is_thread_safe", False))
    )
    # Requests share time only if the agent can really work on several at once; otherwise they wait for each other.
    in_flight = trial.concurrency if is_concurrent else 1
    limit = trial.limits.seconds
    by_limit = Expected(None, Basis.UNKNOWN, "no earlier run to estimate from, and no limits.seconds")
    if limit is not None:
        by_limit = Expected(limit * (executions / in_flight), Basis.LIMIT, f"limits.seconds is {limit:g}")
    history = past.figures(trial)
    seconds = history.seconds if history else ()
    usd = history.usd if history else ()
    run = history.run_id if history else ""
    return TrialForecast(
        trial.name,
        executions,
        _NO_TIME
        if trial.is_recorded
        else _forecast_from_history(seconds, executions / in_flight, run) or by_limit,
        _forecast_from_history(usd, executions, run) or _usd_without_history(trial, agent, executions),
    )


_NO_TIME = Expected(0.0, Basis.RECORDED, "recorded answers take no time")


def _forecast_from_history(values: Sequence[float], times: float, run: str) -> Expected | None:
    if not values:
        return None
    # The median and not the mean: one execution that hung until its time limit would dominate a mean.
    reason = f"median of {format_count(len(values), 'execution')} in run {run}"
    return Expected(median(values) * times, Basis.HISTORY, reason)


def _usd_without_history(trial: Trial, agent: Agent | None, executions: int) -> Expected:
    """The cost by limits and prices: an upper bound, because limits are."""
    use = trial.agent_use
    if use is None or agent is None:
        return Expected(None, Basis.NONE, "code has no price")
    price = Price(use, agent)
    if price.is_free:
        return Expected(0.0, Basis.FREE, "the agent is free")
    if (limit := trial.limits.usd) is not None:
        return Expected(limit * executions, Basis.LIMIT, f"limits.usd is {limit:g}")
    if (
        trial.limits.tokens is not None
        and (dearest := _dearest(price, use, int(trial.limits.tokens))) is not None
    ):
        reason = f"limits.tokens is {trial.limits.tokens:g}, at its price"
        return Expected(dearest * executions, Basis.LIMIT, reason)
    return Expected(None, Basis.UNKNOWN, "no earlier run to estimate from, and no limits.usd")


def _dearest(price: Price, use: AgentUse, tokens: int) -> float | None:
    """The most that an answer of so many tokens can cost: all of them input, or all of them output."""
    model = use.options.get("model")
    usages = (Usage(tokens, 0), Usage(0, tokens))
    costs = [
        price.of(Answer("", usage=usage, model=str(model) if model is not None else None)) for usage in usages
    ]
    known = [cost.usd for cost in costs if cost is not None]
    return max(known) if len(known) == len(usages) else None

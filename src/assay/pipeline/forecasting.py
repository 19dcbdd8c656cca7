"""How long a plan will take and what it will cost: from stored history, else from limits and prices, else unknown."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from statistics import median

from assay.execute.agents import make_agent
from assay.execute.price import Price
from assay.model import AgentUse, Answer, Plan, Trial, Usage
from assay.model.forecast import Basis, Expected, Forecast, TrialForecast, add_up
from assay.plugin.agent import Agent
from assay.store.history import PastFigures
from assay.store.store import Store
from assay.units import counted


def forecast(plan: Plan, store: Store | None = None) -> Forecast:
    """Time without that of starting processes; a trial's is its executions', divided by those in flight at a time."""
    past = _Past(store)
    trials = tuple(_forecast_trial(trial, past) for trial in plan.trials)
    seconds = add_up([(trial.trial, trial.seconds) for trial in trials])
    if seconds.value is not None:
        seconds = Expected(seconds.value / plan.parallelism, seconds.basis, seconds.reason)
    usd = add_up([(trial.trial, trial.usd) for trial in trials])
    return Forecast(sum(trial.executions for trial in trials), seconds, usd, trials)


class _Past:
    """Earlier figures of trials; asks once for an agent on a benchmark of which nothing is stored, not at every point."""

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
    executions = trial.most_executions
    agent = make_agent(trial.agent_use, trial.concurrency) if trial.agent_use is not None else None
    in_flight = trial.concurrency if agent is not None and _answers_concurrently(agent) else 1
    history = past.figures(trial)
    seconds = history.seconds if history else ()
    usd = history.usd if history else ()
    run = history.run_id if history else ""
    return TrialForecast(
        trial.name,
        executions,
        _NO_TIME
        if trial.is_recorded
        else _of_history(seconds, executions / in_flight, run)
        or _seconds_by_limit(trial, executions / in_flight),
        _of_history(usd, executions, run) or _usd_without_history(trial, agent, executions),
    )


_NO_TIME = Expected(0.0, Basis.RECORDED, "recorded answers are not waited for")


def _answers_concurrently(agent: Agent) -> bool:
    return inspect.iscoroutinefunction(agent.answer) or bool(getattr(agent, "is_thread_safe", False))


def _of_history(values: Sequence[float], times: float, run: str) -> Expected | None:
    if not values:
        return None
    reason = f"median of {counted(len(values), 'execution')} in run {run}"
    return Expected(median(values) * times, Basis.HISTORY, reason)


def _seconds_by_limit(trial: Trial, times: float) -> Expected:
    if (limit := trial.limits.seconds) is not None:
        return Expected(limit * times, Basis.LIMIT, f"limits.seconds is {limit:g}")
    return Expected(None, Basis.UNKNOWN, "no earlier run to estimate from, and no limits.seconds")


def _usd_without_history(trial: Trial, agent: Agent | None, executions: int) -> Expected:
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

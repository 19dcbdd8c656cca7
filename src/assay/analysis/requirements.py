"""Requirements and the trials of a run: the value, the limit, and whether it is met."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from assay.analysis.replication import observed
from assay.model import Estimate, Status, TrialReport
from assay.model.metric import is_score
from assay.model.rating import Ratings
from assay.model.requirement import CheckedRequirement, Requirement
from assay.spec.requirements import is_of_trial, split_name
from assay.stats.summary import percentile
from assay.stats.tails import is_enough, needed


def check_requirements(
    requirements: Iterable[Requirement], trials: Sequence[TrialReport]
) -> tuple[CheckedRequirement, ...]:
    """Every requirement against every trial that it is about; one without a trial is not met."""
    return tuple(checked for one in requirements for checked in _check(one, trials))


def _check(one: Requirement, trials: Sequence[TrialReport]) -> Iterator[CheckedRequirement]:
    own = [trial for trial in trials if one.benchmark in ("", trial.stored.trial.benchmark)]
    if not own:
        yield CheckedRequirement(one, one.benchmark, note="the run has no results of this benchmark")
    for trial in own:
        found = _of_trial(one, trial) if is_of_trial(one.name) else _of_metric(one, trial)
        yield _with_unscored(found, trial) if _depends_on_scores(one.name) else found


def _depends_on_scores(name: str) -> bool:
    if is_of_trial(name):
        return name not in ("completion", "speed")
    metric = split_name(name)[1]
    return metric == "score" or metric.startswith("score.")


def _with_unscored(found: CheckedRequirement, trial: TrialReport) -> CheckedRequirement:
    """Executions that a scorer failed on are in no figure; where they are most of them, nobody knows the figure."""
    if trial.ratings is None or not trial.ratings.unscored or found.value is None:
        return found
    told = f"{trial.ratings.unscored} of {sum(trial.counts.values())} executions are unscored"
    if trial.is_scoring_failed:
        return CheckedRequirement(found.requirement, trial.name, note=told)
    return replace(found, note="; ".join(filter(None, (found.note, told))))


def _of_trial(one: Requirement, trial: TrialReport) -> CheckedRequirement:
    if one.name == "completion":
        return _completion(one, trial)
    ratings = trial.ratings
    if ratings is None:
        return CheckedRequirement(
            one, trial.name, note="the trial is not rated, because it is not of a suite"
        )
    if one.name in ("cost_per_solved", "tokens_per_solved"):
        return _per_solved(one, trial.name, ratings)
    if found := re.fullmatch(r"pass([@^])(\d+)", one.name):
        known = ratings.pass_at if found[1] == "@" else ratings.pass_hat
        value = known.get(int(found[2]))
        note = "" if value is not None else f"it is known for K = {', '.join(map(str, known)) or 'none'}"
        return CheckedRequirement(one, trial.name, value, note=note)
    rating = ratings.overall if one.name == "overall" else ratings.dimensions.get(one.name)
    if rating is None or rating.value is None:
        reason = rating.basis if rating is not None else ""
        return CheckedRequirement(one, trial.name, note=f"unrated{f': {reason}' if reason else ''}")
    return CheckedRequirement(one, trial.name, rating.value, rating.low, rating.high)


def _completion(one: Requirement, trial: TrialReport) -> CheckedRequirement:
    settled = sum(number for status, number in trial.counts.items() if Status(status).is_settled)
    if not settled:
        return CheckedRequirement(one, trial.name, note="no execution was settled")
    return CheckedRequirement(one, trial.name, trial.ok / settled)


def _per_solved(one: Requirement, trial: str, ratings: Ratings) -> CheckedRequirement:
    is_cost = one.name == "cost_per_solved"
    value, unit = (ratings.usd_per_solved, "usd") if is_cost else (ratings.tokens_per_solved, "tokens")
    if is_cost and ratings.unpriced:
        reason = f"the cost of {ratings.unpriced} executions is unknown"
        if value is None or one.holds(value):  # a floor says nothing about a limit above it
            return CheckedRequirement(one, trial, note=reason)
        return CheckedRequirement(one, trial, value, unit=unit, note=f"at least, as {reason}")
    if value is None:
        reason = "no case was solved" if not ratings.solved else f"{unit} were not measured"
        return CheckedRequirement(one, trial, note=reason)
    return CheckedRequirement(one, trial, value, unit=unit)


def _of_metric(one: Requirement, trial: TrialReport) -> CheckedRequirement:
    statistic, metric = split_name(one.name)
    known = {estimate.metric.name: estimate for estimate in trial.estimates if estimate.n}
    if one.name in known:  # a metric may be called like a statistic of another one
        statistic, metric = "", one.name
    estimate = known.get(metric)
    if estimate is None:
        return CheckedRequirement(one, trial.name, note=f"'{metric}' was not measured in an ok execution")
    statistic = statistic or ("mean" if is_score(estimate.metric) else "median")
    return _statistic(one, trial, estimate, statistic)


def _statistic(
    one: Requirement, trial: TrialReport, estimate: Estimate, statistic: str
) -> CheckedRequirement:
    unit = estimate.metric.unit
    if statistic in ("median", "p50"):
        return CheckedRequirement(one, trial.name, estimate.median, estimate.low, estimate.high, unit)
    if statistic == "mean":
        return CheckedRequirement(one, trial.name, estimate.mean, estimate.mean_low, estimate.mean_high, unit)
    if statistic in ("min", "max"):
        return CheckedRequirement(
            one, trial.name, estimate.min if statistic == "min" else estimate.max, unit=unit
        )
    q = float(statistic[1:])
    values = observed(trial.series[estimate.metric.name]).values
    low, high = estimate.tails.get(statistic, (None, None))
    few = (
        ""
        if is_enough(values.size, q)
        else f"{values.size} executions; P{q:g} needs {needed(q):,} to be reliable"
    )
    return CheckedRequirement(one, trial.name, percentile(values, q), low, high, unit, few)

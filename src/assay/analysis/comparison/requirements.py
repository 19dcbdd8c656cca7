"""Checks requirements such as `accuracy >= 0.9` or `p95(seconds) < 2` against the trials of a run.

Each check gives the value, its interval, the limit and a note. A requirement whose value is unknown is not met.
`pipeline/requirements.py` collects the requirements of a suite and of the command line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from assay.analysis.estimates.replication import observe
from assay.model import Estimate, Status, TrialReport
from assay.model.metric import is_score
from assay.model.rating import Ratings
from assay.model.requirement import CheckedRequirement, Requirement
from assay.spec.requirements import is_of_trial, split_name
from assay.stats.summary import percentile
from assay.stats.tails import compute_values_needed, is_enough
from assay.units import format_count


def check_requirements(
    requirements: Iterable[Requirement], trials: Sequence[TrialReport]
) -> tuple[CheckedRequirement, ...]:
    """Every requirement against every trial that it is about; one without a trial is not met."""
    return tuple(checked for requirement in requirements for checked in _check(requirement, trials))


def _check(requirement: Requirement, trials: Sequence[TrialReport]) -> Iterator[CheckedRequirement]:
    """A requirement against each trial of its benchmark, or of all benchmarks if it names none."""
    name, benchmark = requirement.name, requirement.benchmark
    own = [trial for trial in trials if benchmark in ("", trial.stored.trial.benchmark)]
    if not own:
        yield CheckedRequirement(requirement, benchmark, note="the run has no results of this benchmark")
    if is_of_trial(name):
        depends_on_scores = name not in ("completion", "speed")
    else:
        metric = split_name(name)[1]
        depends_on_scores = metric == "score" or metric.startswith("score.")
    for trial in own:
        check = _check_trial if is_of_trial(name) else _check_metric
        checked = check(requirement, trial)
        yield _with_unscored(checked, trial) if depends_on_scores else checked


def _with_unscored(found: CheckedRequirement, trial: TrialReport) -> CheckedRequirement:
    """The check with a note about unscored executions, which are in no figure; without a value if they are most of them."""
    if trial.ratings is None or not trial.ratings.unscored or found.value is None:
        return found
    note = f"{trial.ratings.unscored} of {sum(trial.counts.values())} executions are unscored"
    if trial.is_scoring_failed:
        return CheckedRequirement(found.requirement, trial.name, note=note)
    return replace(found, note="; ".join(filter(None, (found.note, note))))


def _check_trial(requirement: Requirement, trial: TrialReport) -> CheckedRequirement:
    """A requirement on ratings and other figures of the whole trial."""
    if requirement.name == "completion":
        settled = sum(number for status, number in trial.counts.items() if Status(status).is_settled)
        if not settled:
            return CheckedRequirement(
                requirement, trial.name, note="every execution was cancelled or ended in a harness error"
            )
        return CheckedRequirement(requirement, trial.name, trial.ok / settled)
    ratings = trial.ratings
    if ratings is None:
        return CheckedRequirement(
            requirement, trial.name, note="the trial is not rated, because it does not belong to a suite"
        )
    if requirement.name in ("cost_per_solved", "tokens_per_solved"):
        return _per_solved(requirement, trial.name, ratings)
    if found := re.fullmatch(r"pass([@^])(\d+)", requirement.name):
        known = ratings.pass_at if found[1] == "@" else ratings.pass_hat
        value = known.get(int(found[2]))
        note = (
            ""
            if value is not None
            else f"known only for K = {', '.join(map(str, known))}"
            if known
            else "unknown"
        )
        return CheckedRequirement(requirement, trial.name, value, note=note)
    rating = ratings.overall if requirement.name == "overall" else ratings.dimensions.get(requirement.name)
    if rating is None or rating.value is None:
        reason = rating.basis if rating is not None else ""
        return CheckedRequirement(requirement, trial.name, note=f"unrated{f': {reason}' if reason else ''}")
    return CheckedRequirement(requirement, trial.name, rating.value, rating.low, rating.high)


def _per_solved(requirement: Requirement, trial: str, ratings: Ratings) -> CheckedRequirement:
    """Cost or tokens per solved case.

    If the cost of some executions is unknown, the value is only a lower bound: it can break a limit, but not meet it.
    """
    is_cost = requirement.name == "cost_per_solved"
    value, unit = (ratings.usd_per_solved, "usd") if is_cost else (ratings.tokens_per_solved, "tokens")
    if is_cost and ratings.unpriced:
        reason = f"the cost of {format_count(ratings.unpriced, 'execution')} is unknown"
        if value is None or requirement.holds(value):  # a floor says nothing about a limit above it
            return CheckedRequirement(requirement, trial, note=reason)
        return CheckedRequirement(requirement, trial, value, unit=unit, note=f"at least, because {reason}")
    if value is None:
        reason = "no case was solved" if not ratings.solved else f"{unit} were not measured"
        return CheckedRequirement(requirement, trial, note=reason)
    return CheckedRequirement(requirement, trial, value, unit=unit)


def _check_metric(requirement: Requirement, trial: TrialReport) -> CheckedRequirement:
    """A requirement on a statistic of a metric; without a statistic, the mean of scores and the median of the rest."""
    statistic, metric = split_name(requirement.name)
    known = {estimate.metric.name: estimate for estimate in trial.estimates if estimate.n}
    if requirement.name in known:  # a metric may be called like a statistic of another one
        statistic, metric = "", requirement.name
    estimate = known.get(metric)
    if estimate is None:
        return CheckedRequirement(
            requirement, trial.name, note=f"'{metric}' was not measured in an ok execution"
        )
    statistic = statistic or ("mean" if is_score(estimate.metric) else "median")
    return _statistic(requirement, trial, estimate, statistic)


def _statistic(
    requirement: Requirement, trial: TrialReport, estimate: Estimate, statistic: str
) -> CheckedRequirement:
    """A statistic of a metric with its interval; a percentile from too few executions gets a note."""
    unit = estimate.metric.unit
    if statistic in ("median", "p50"):
        return CheckedRequirement(requirement, trial.name, estimate.median, estimate.low, estimate.high, unit)
    if statistic == "mean":
        return CheckedRequirement(
            requirement, trial.name, estimate.mean, estimate.mean_low, estimate.mean_high, unit
        )
    if statistic in ("min", "max"):
        return CheckedRequirement(
            requirement, trial.name, estimate.min if statistic == "min" else estimate.max, unit=unit
        )
    q = float(statistic[1:])
    values = observe(trial.series[estimate.metric.name]).values
    low, high = estimate.tails.get(statistic, (None, None))
    few = (
        ""
        if is_enough(values.size, q)
        else f"{format_count(values.size, 'execution')}; P{q:g} needs {compute_values_needed(q):,} to be reliable"
    )
    return CheckedRequirement(requirement, trial.name, percentile(values, q), low, high, unit, few)

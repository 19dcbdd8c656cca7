"""How much must be run before an effect of a given size is found, from what stored results vary by."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from statistics import median

import numpy as np

from assay.analysis.replication import observed
from assay.model import Metric, Series, TrialReport
from assay.model.metric import is_score
from assay.model.precision import Need
from assay.stats.power import (
    Variances,
    case_variance,
    cases_needed,
    paired_variances,
    repetition_variance,
    units_needed,
)
from assay.stats.sample import Array

MOST_REPETITIONS = 100

ByCase = Mapping[int, Array]


def needs(trials: Sequence[TrialReport], effect: float, metrics: Sequence[str]) -> Iterator[Need]:
    """Of one benchmark, from the latest trial of each agent that was put through it; made-up figures only where there are no others."""
    measured = [trial for trial in trials if not trial.is_simulated]
    remark = _about_simulated(trials, measured)
    trials = measured or trials
    known = {one.metric.name: one.metric for trial in trials for one in trial.estimates if one.n}
    for name in metrics:
        series = [trial.series[name] for trial in trials if name in trial.series]
        if name not in known or not any(any(one.values) for one in series):
            continue
        metric, unit = known[name], series[0].unit
        found = (
            _by_case(trials, series, metric, effect)
            if unit == "case"
            else _by_process(trials, series, metric, effect)
        )
        if found is not None:
            yield replace(found, basis=found.basis + remark)


def _about_simulated(trials: Sequence[TrialReport], measured: Sequence[TrialReport]) -> str:
    if len(measured) == len(trials):
        return ""
    if not measured:
        return "; all of it simulated"
    names = dict.fromkeys(trial.stored.trial.agent.name for trial in trials if trial.is_simulated)
    return f"; simulated, so left out: {', '.join(names)}"


def _by_case(
    trials: Sequence[TrialReport], series: Sequence[Series], metric: Metric, effect: float
) -> Need | None:
    tables = [_grouped(one, is_score(metric)) for one in series]
    tables = [table for table in tables if len(table) > 1]
    if not tables:
        return None
    there = max(len(table) for table in tables)
    repetitions = max(1, round(median(len(values) for table in tables for values in table.values())))
    variances, basis = _variances(tables, effect, is_score(metric))
    units = _cases(metric, effect, variances, repetitions)
    more = _fewest_repetitions(metric, effect, variances, there)
    executions = 2 * (there * more if more is not None else units * repetitions)
    return Need(
        trials[0].stored.trial.benchmark, metric, effect, "case", there, units, repetitions, more, executions,
        _minutes(trials, executions), _usd(trials, executions), basis,
    )  # fmt: skip


def _fewest_repetitions(metric: Metric, effect: float, variances: Variances, there: int) -> int | None:
    """Of each case that is there; None where no number of them is enough, because the cases themselves differ."""

    def is_enough(repetitions: int) -> bool:
        return _cases(metric, effect, variances, repetitions) <= there

    if not is_enough(MOST_REPETITIONS):
        return None
    return bisect_left(range(1, MOST_REPETITIONS), True, key=is_enough) + 1


def _cases(metric: Metric, effect: float, variances: Variances, repetitions: int) -> int:
    if is_score(metric):
        return cases_needed(effect, variances, (repetitions, repetitions))
    spread = math.sqrt(variances.of_case(repetitions, repetitions))
    return units_needed(1 + effect, spread, is_paired=True)


def _variances(tables: Sequence[ByCase], effect: float, are_scores: bool) -> tuple[Variances, str]:
    """Of pairs of agents where two were asked the same cases, else of one agent and a version that changes alike."""
    pairs = [found for a, b in combinations(tables, 2) if (found := _paired(a, b)) is not None]
    if pairs:
        middle = sorted(pairs, key=lambda one: one.of_case(1, 1))[len(pairs) // 2]
        return middle, f"{len(pairs)} pair{'s' if len(pairs) > 1 else ''} of stored agents"
    within = repetition_variance(list(tables[0].values()))
    # Of scores, an effect is some cases won and the others left alone, which alone makes cases differ by this much.
    between = effect * (1 - effect) if are_scores else 0.0
    said = "one stored agent, taking the other to change evenly"
    if within == 0 and all(len(values) < 2 for values in tables[0].values()):
        return Variances(
            2 * case_variance(list(tables[0].values())) or between, 0.0, 0.0
        ), f"{said}; no repetitions"
    return Variances(between, within, within), said


def _paired(a: ByCase, b: ByCase) -> Variances | None:
    shared = sorted(a.keys() & b.keys())
    return paired_variances([a[case] for case in shared], [b[case] for case in shared])


def _grouped(series: Series, are_scores: bool) -> dict[int, Array]:
    seen = observed(series)
    values = seen.values if are_scores else np.log(np.where(seen.values > 0, seen.values, np.nan))
    return {int(case): values[seen.processes == case] for case in np.unique(seen.processes)}


def _by_process(
    trials: Sequence[TrialReport], series: Sequence[Series], metric: Metric, effect: float
) -> Need | None:
    seen = max((observed(one) for one in series), key=lambda one: one.process_count)
    if seen.process_count < 2 or is_score(metric) or (seen.process_medians <= 0).any():
        return None
    logs = np.log(seen.process_medians)
    units = units_needed(1 + effect, logs - logs.mean(), is_paired=False)
    repetitions = max(1, seen.values.size // seen.process_count)
    executions = 2 * units * repetitions * len(trials)
    return Need(
        trials[0].stored.trial.benchmark, metric, effect, "process", seen.process_count, units, repetitions, None,
        executions, _minutes(trials, executions), _usd(trials, executions), f"{seen.process_count} stored processes",
    )  # fmt: skip


def _minutes(trials: Sequence[TrialReport], executions: int) -> float | None:
    mean = _mean(trials, "seconds")
    at_once = max(trial.stored.trial.concurrency for trial in trials)
    return None if mean is None else mean * executions / at_once / 60


def _usd(trials: Sequence[TrialReport], executions: int) -> float | None:
    mean = _mean(trials, "usd")
    return None if mean is None else mean * executions


def _mean(trials: Sequence[TrialReport], name: str) -> float | None:
    """Over the agents; None where any of them is unknown."""
    found = [[one.mean for one in trial.estimates if one.metric.name == name and one.n] for trial in trials]
    return float(np.mean([values[0] for values in found])) if all(found) else None

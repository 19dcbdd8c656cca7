"""Estimates how much runs differ when nothing has changed, from the history of an agent or from an A/A run.

Steps are rare in the history of runs, so the median difference between neighbouring runs is noise (`noise_floor`,
`session_error`). In an A/A run nothing was varied (`noise_floors`): its values are laid out as a table of cases by rounds, or
executions by processes, and an analysis of variance splits their variance into what cases differ by, what rounds differ by
(the machine), and the rest. The noise floor is the standard deviation of a round's mean. As a cross-check, odd rounds are
compared with even ones, which must not find a difference. `pipeline/tolerances.py` uses both estimates.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import pairwise
from statistics import fmean, median

import numpy as np

from assay.analysis.comparison.compare import compare_trials
from assay.analysis.comparison.default_metrics import lone_part
from assay.analysis.comparison.severity import in_points
from assay.model import Estimate, Series, TrialReport, Verdict
from assay.model.metric import is_score
from assay.model.precision import NoiseFloor
from assay.model.regression import MetricHistory
from assay.stats.means import t_quantile
from assay.stats.random_effects import ErrorPart
from assay.stats.sample import Array
from assay.stats.variance import split

FEWEST_SESSIONS = 5
"""Earlier runs before `session_error` is known."""
FEWEST = 6
"""Earlier runs before `noise_floor` is known."""
_SIGMA = 1.4826 / math.sqrt(2)
"""Turns the median distance of neighbours into the standard deviation of one run, if runs are normally distributed."""


def noise_floor(history: MetricHistory, judged: Collection[str]) -> float | None:
    """The noise floor as a share of the value.

    None with too few runs, and for scores, whose tests over cases need none. Runs that are `judged` do not count: their own
    change would excuse itself.
    """
    values = [point.value for point in history.points if point.run_id not in judged]
    if in_points(history.metric) or len(values) < FEWEST or min(values) <= 0:
        return None
    return _SIGMA * median(abs(math.log(after / before)) for before, after in pairwise(values))


def session_error(history: MetricHistory, judged: Collection[str], version: str) -> ErrorPart | None:
    """The error of the difference between two runs, from at least five earlier runs; None with fewer.

    The standard deviation of a run is taken from neighbours (von Neumann 1941): from those of one version where there are
    enough, else from all, so that a step in the past counts once. A busy machine has good and bad sessions, so the
    interval reaches at least as far as runs of one version lay apart.
    """
    points = [point for point in history.points if point.run_id not in judged]
    if len(points) < FEWEST_SESSIONS or min(point.value for point in points) <= 0:
        return None
    neighbours = list(pairwise(points))
    of_one_version = [(before, after) for before, after in neighbours if before.version == after.version]
    if len(of_one_version) >= FEWEST_SESSIONS - 1:
        neighbours = of_one_version
    squares = [math.log(after.value / before.value) ** 2 for before, after in neighbours]
    freedom = max(2, 2 * len(squares) // 3)
    values = [point.value for point in points if point.version == version]
    reach = math.log(max(values) / min(values)) if values else 0.0
    return ErrorPart(max(math.sqrt(fmean(squares)), reach / t_quantile(0.975, freedom)), freedom)


FEWEST_ROUNDS = 4


def noise_floors(trial: TrialReport) -> Iterator[NoiseFloor]:
    """The noise floor of each metric with a direction, as far as there are enough rounds and the metric varies at all."""
    verdicts = _against_itself(trial)
    lone = lone_part(trial.series)
    for estimate in trial.estimates:
        name = estimate.metric.name
        series = trial.series.get(name)
        if series is None or name in trial.watched or name == lone or estimate.metric.better == "unknown":
            continue
        floor = _floor(trial.name, estimate, series, verdicts.get(name, Verdict.UNSURE))
        if floor is not None:
            yield floor


def _floor(trial: str, estimate: Estimate, series: Series, verdict: Verdict) -> NoiseFloor | None:
    """The noise floor of one metric; None with too few rounds, or if values of zero have no logarithm."""
    table = _table(series)
    are_scores = is_score(estimate.metric)
    if table.shape[1] < FEWEST_ROUNDS or (not are_scores and (table <= 0).any()):
        return None
    found = split(table if are_scores else np.log(table))
    if found is None:
        return None
    spread = math.sqrt(found.of_round(table.shape[0]))
    total = (found.case or 0.0) + (found.round or 0.0) + found.rest
    share_case, share_machine = (
        None if part is None else part / total if total else 0.0 for part in (found.case, found.round)
    )
    return NoiseFloor(
        trial=trial,
        metric=estimate.metric,
        unit=series.unit,
        cases=table.shape[0],
        rounds=table.shape[1],
        floor=spread if are_scores else math.expm1(spread),
        share_case=share_case,
        share_machine=share_machine,
        share_repetition=found.rest / total if total else 0.0,
        verdict=verdict,
    )


def _table(series: Series) -> Array:
    """The values by case and round, or by execution and process; only rows that are complete."""
    values = np.asarray(series.values, dtype=np.float64)
    groups, repetitions = np.asarray(series.processes), np.asarray(series.repetitions)
    rows, columns = (groups, repetitions) if series.unit == "case" else (repetitions, groups)
    _, row = np.unique(rows, return_inverse=True)
    _, column = np.unique(columns, return_inverse=True)
    table = np.full((row.max(initial=-1) + 1, column.max(initial=-1) + 1), np.nan)
    table[row, column] = values
    return table[np.isfinite(table).all(axis=1)]


def _against_itself(trial: TrialReport) -> dict[str, Verdict]:
    """The verdict of each metric when odd rounds are compared with even ones."""
    halves = []
    for parity in (0, 1):
        series = {name: _half(measured, parity) for name, measured in trial.series.items()}
        halves.append(replace(trial, series=series))
    names = [estimate.metric.name for estimate in trial.estimates if estimate.n]
    compared = compare_trials(halves[0], halves[1], metrics=names)
    return {
        comparison.metric.name: comparison.verdict
        for comparison in compared
        if comparison.verdict is not None
    }


def _half(series: Series, parity: int) -> Series:
    """Every second round of a series, renumbered, so that both halves look like runs of their own."""
    rounds = series.repetitions if series.unit == "case" else series.processes
    chosen = [index for index, number in enumerate(rounds) if number % 2 == parity]
    is_by_case = series.unit == "case"
    step = 1 if is_by_case else 2
    return Series(
        [series.processes[index] // step for index in chosen],
        [series.repetitions[index] for index in chosen],
        [series.values[index] for index in chosen],
        series.unit,
        [rounds[index] // 2 for index in chosen] if is_by_case else (),
    )

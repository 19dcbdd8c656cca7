"""Computes the noise floor of an A/A run, in which nothing was varied.

The values are laid out as a table of cases by rounds (or executions by processes), and an analysis of variance splits their
variance into what cases differ by, what rounds differ by (the machine), and the rest. The noise floor is the standard
deviation of a round's mean. As a cross-check, odd rounds are compared with even ones, which must not find a difference.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from assay.analysis.comparison.compare import compare_trials
from assay.analysis.comparison.default_metrics import lone_part
from assay.model import Estimate, Series, TrialReport, Verdict
from assay.model.metric import is_score
from assay.model.precision import NoiseFloor
from assay.stats.sample import Array
from assay.stats.variance import split

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
        series = {name: _half(one, parity) for name, one in trial.series.items()}
        halves.append(replace(trial, series=series))
    names = [estimate.metric.name for estimate in trial.estimates if estimate.n]
    compared = compare_trials(halves[0], halves[1], metrics=names)
    return {one.metric.name: one.verdict for one in compared if one.verdict is not None}


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

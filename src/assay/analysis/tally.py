"""A trial's executions, case by case: what ratings are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from assay.model import Series, Trial
from assay.model.rating import CaseTable, is_pass, lowest_pass
from assay.stats.verdicts import consistency

_AGENT_ERRORS = frozenset({"failed", "crashed", "invalid_output"})
_LIMITS = frozenset({"timeout", "over_limit"})
_NOT_COUNTED = frozenset({"harness_error", "cancelled"})
_PER_SOLVED = frozenset({"usd", "tokens"})
_QUANTITIES = ("usd", "tokens", "cpu_seconds", "rss_max_bytes")

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Tally:
    """What each case amounts to over its repetitions; arrays with one row a case."""

    names: Sequence[str]
    executions: Floats
    completed: Floats
    scored: Floats
    """Repetitions that have a score; one in which the agent failed scores 0."""
    score: Floats
    """Sum of the scores."""
    passed: Floats
    alike: Floats
    """Chance that two repetitions got the same verdict; 0 where there are no two."""
    comparable: Floats
    """1 where there are two repetitions with a verdict, else 0."""
    sums: Mapping[str, Floats]
    """Metric to its sum over the repetitions; only metrics that every completed execution has.

    What is held against the solved cases is that of executions with a score: nobody knows whether the others solved theirs.
    """
    measured: Mapping[str, Floats]
    """Metric to the number of repetitions in that sum."""
    seconds: Floats
    """Median seconds of the completed repetitions; NaN where none completed."""
    is_judged: bool = True
    has_cases: bool = True
    """Whether rows are cases, and not processes of code."""

    @property
    def tries(self) -> Floats:
        """Repetitions with a verdict: those that were scored, or where nothing is scored, all."""
        return self.scored if self.is_judged else self.executions


def tally_of(table: CaseTable, pass_mark: float) -> Tally:
    statuses = np.asarray(table.statuses, dtype=object)
    counts = ~np.isin(statuses, list(_NOT_COUNTED))
    names, index = np.unique(np.asarray(table.cases, dtype=object)[counts].astype(str), return_inverse=True)
    is_ok = statuses[counts] == "ok"
    score = np.array([np.nan if value is None else value for value in _scores(table)], dtype=float)[counts]
    is_scored = ~np.isnan(score)

    def per_case(values: NDArray[np.generic]) -> Floats:
        return np.bincount(index, weights=values.astype(np.float64), minlength=len(names)).astype(np.float64)

    scored, executions = per_case(is_scored), per_case(np.ones(len(index)))
    has_passed = (np.nan_to_num(score) >= lowest_pass(pass_mark)) & is_scored
    passed = per_case(has_passed if table.is_judged else is_ok)
    tries = scored if table.is_judged else executions
    comparable = (tries > 1).astype(np.float64)
    sums, measured = _sums(table, counts, is_ok, is_scored, per_case)
    return Tally(
        names=names.tolist(),
        executions=executions,
        completed=per_case(is_ok),
        scored=scored,
        score=per_case(np.nan_to_num(score)),
        passed=passed,
        alike=consistency(passed.astype(np.int64), tries.astype(np.int64)) * comparable,
        comparable=comparable,
        sums=sums,
        measured=measured,
        seconds=_case_medians(_column(table, "seconds")[counts], index, is_ok, len(names)),
        is_judged=table.is_judged,
        has_cases=table.has_cases,
    )


def _column(table: CaseTable, name: str) -> Floats:
    values = table.metrics.get(name)
    if values is None:
        return np.full(len(table.cases), np.nan)
    return np.array([np.nan if value is None else value for value in values], dtype=float)


def _sums(
    table: CaseTable,
    counts: Bools,
    is_ok: Bools,
    is_scored: Bools,
    per_case: Callable[[NDArray[np.generic]], Floats],
) -> tuple[dict[str, Floats], dict[str, Floats]]:
    sums, measured = {}, {}
    for name in _QUANTITIES:
        column = _column(table, name)[counts]
        known = ~np.isnan(column)
        if not is_ok.any() or not known[is_ok].all():
            continue
        if name in _PER_SOLVED and column[known].any():
            if not is_scored.any():
                continue
            known &= is_scored
        sums[name], measured[name] = per_case(np.where(known, column, 0.0)), per_case(known)
    return sums, measured


def _case_medians(seconds: Floats, index: NDArray[np.intp], is_ok: Bools, size: int) -> Floats:
    medians = np.full(size, np.nan)
    usable = is_ok & ~np.isnan(seconds)
    values, of_case = seconds[usable], index[usable]
    order = np.lexsort((values, of_case))
    cases, starts, sizes = np.unique(of_case[order], return_index=True, return_counts=True)
    lower, upper = values[order][starts + (sizes - 1) // 2], values[order][starts + sizes // 2]
    medians[cases] = (lower + upper) / 2
    return medians


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Executions by the class of their outcome, and those that could not be judged."""

    counts: Mapping[str, int]
    unscored: int

    @property
    def scored(self) -> int:
        return self.counts["pass"] + self.counts["fail"]


def outcomes_of(table: CaseTable, pass_mark: float) -> Outcomes:
    counted = dict.fromkeys(("pass", "fail", "agent_error", "limit", "harness_error"), 0)
    unscored = 0
    scores = table.metrics.get("score") or [None] * len(table.cases)
    for status, score in zip(table.statuses, scores, strict=True):
        if status in _AGENT_ERRORS:
            counted["agent_error"] += 1
        elif status in _LIMITS:
            counted["limit"] += 1
        elif status in _NOT_COUNTED:
            counted["harness_error"] += status == "harness_error"
        elif not table.is_judged:
            counted["pass"] += 1
        elif score is None:
            unscored += 1
        else:
            counted["pass" if is_pass(score, pass_mark) else "fail"] += 1
    return Outcomes(counted, unscored)


def code_table(table: CaseTable, trial: Trial) -> CaseTable:
    """The executions of code as those of a suite: what is independent are its cases or, without any, its processes."""
    scores = table.metrics.get("score") or ()
    is_judged = any(score is not None for score in scores)
    if not trial.cases:
        names = [f"process {number}" for number in table.processes]
        return replace(table, cases=names, is_judged=is_judged, has_cases=False)
    rounds = [
        process // len(trial.cases) * trial.iterations.measured + repetition
        for process, repetition in zip(table.processes, table.repetitions, strict=True)
    ]
    return replace(table, repetitions=rounds, is_judged=is_judged)


def case_series(table: CaseTable) -> dict[str, Series]:
    """Each metric of the ok executions, with cases as what is independent: repetitions of one are not."""
    numbers = {case: case_number(case) for case in dict.fromkeys(table.cases)}
    places = [numbers[case] for case in table.cases]
    found: dict[str, Series] = {}
    # Where nothing worked nothing was scored either, and yet the agent has failures that count.
    columns = dict(table.metrics)
    if table.is_judged:
        columns.setdefault("score", [None] * len(places))
    else:
        columns.pop("score", None)
    for name, column in columns.items():
        values = _counted(name, table, column)
        rows = [i for i, value in enumerate(values) if value is not None]
        if rows:
            found[name] = Series(
                [places[i] for i in rows],
                [table.repetitions[i] for i in rows],
                [value for value in values if value is not None],
                unit="case",
            )
    return found


def _counted(name: str, table: CaseTable, column: Sequence[float | None]) -> list[float | None]:
    """Values of ok executions; for scores also the 0 of executions in which the agent failed."""
    if name == "score":
        return _scores(table)
    return [value if status == "ok" else None for status, value in zip(table.statuses, column, strict=True)]


def _scores(table: CaseTable) -> list[float | None]:
    """The score of each execution; 0 where the agent failed.

    If outputs were there to be scored and no scorer judged a single one of them, failures have no score either: their zeros
    alone would say that the agent is always wrong.
    """
    column = table.metrics.get("score") or [None] * len(table.cases)
    of_ok = [value for status, value in zip(table.statuses, column, strict=True) if status == "ok"]
    failure = None if not table.is_judged or (of_ok and all(value is None for value in of_ok)) else 0.0
    return [
        value if status == "ok" else None if status in _NOT_COUNTED else failure
        for status, value in zip(table.statuses, column, strict=True)
    ]


def case_number(case: str) -> int:
    """A number that stands for a case in every trial, so that two agents can be compared case by case."""
    return int.from_bytes(sha256(case.encode()).digest()[:7], "big")

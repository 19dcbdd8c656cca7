"""Sums up a trial's executions case by case: what ratings are made of.

A `CaseTable` has one row an execution, as read from the store; `tally_of` turns it into `CaseTotals`, arrays with one row a
case. A run may have a million executions, so everything here is done with numpy on whole columns. Harness
errors and cancelled executions say nothing about the agent and do not count.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from assay.model import Series, Trial
from assay.model.rating import CaseTable, lowest_pass
from assay.stats.verdicts import consistency

OK = frozenset({"ok"})
_HARNESS_ERROR = frozenset({"harness_error"})
_AGENT_ERRORS = frozenset({"failed", "crashed", "invalid_output"})
_LIMITS = frozenset({"timeout", "over_limit"})
NOT_COUNTED = frozenset({"harness_error", "cancelled"})
_PER_SOLVED = frozenset({"usd", "tokens"})
_SHORTEST = 1e-12
"""Seconds below which a time is taken for this, because zero has no logarithm."""
_QUANTITIES = ("usd", "tokens", "cpu_seconds", "rss_max_bytes")

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class CaseTotals:
    """The totals of each case over its repetitions; all arrays have one row a case, in the order of `names`."""

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

    Cost and tokens, which are divided by the solved cases, count only executions with a score: it is unknown whether the others
    solved their case.
    """
    measured: Mapping[str, Floats]
    """Metric to the number of repetitions in that sum."""
    seconds: Floats
    """Median seconds of the completed repetitions; NaN where none completed."""
    mean_seconds: Floats
    """Their geometric mean: in a ratio of two agents, what slows both of them in a round cancels out."""
    is_judged: bool = True
    has_cases: bool = True
    """Whether rows are cases, and not processes of code."""
    is_recorded: bool = False

    @property
    def tries(self) -> Floats:
        """Repetitions with a verdict: those that were scored, or where nothing is scored, all."""
        return self.scored if self.is_judged else self.executions


def tally_of(table: CaseTable, pass_mark: float) -> CaseTotals:
    """The totals of each case; a score of at least `pass_mark` is a pass."""
    counts = ~has_status(table, NOT_COUNTED)
    names, index = case_index(list(compress(table.cases, counts.tolist())))
    is_ok = has_status(table, OK)[counts]
    score = _scores(table)[counts]
    is_scored = ~np.isnan(score)

    def per_case(values: NDArray[np.generic]) -> Floats:
        return np.bincount(index, weights=values.astype(np.float64), minlength=len(names)).astype(np.float64)

    scored, executions = per_case(is_scored), per_case(np.ones(len(index)))
    has_passed = (np.nan_to_num(score) >= lowest_pass(pass_mark)) & is_scored
    passed = per_case(has_passed if table.is_judged else is_ok)
    tries = scored if table.is_judged else executions
    comparable = (tries > 1).astype(np.float64)
    sums, measured = _sums(table, counts, is_ok, is_scored, per_case)
    seconds = column_of(table, "seconds")[counts]
    is_timed = is_ok & ~np.isnan(seconds)
    timed = per_case(is_timed)
    mean_logs = per_case(np.where(is_timed, np.log(np.maximum(seconds, _SHORTEST)), 0.0)) / np.maximum(
        timed, 1
    )
    return CaseTotals(
        names=names,
        executions=executions,
        completed=per_case(is_ok),
        scored=scored,
        score=per_case(np.nan_to_num(score)),
        passed=passed,
        alike=consistency(passed.astype(np.int64), tries.astype(np.int64)) * comparable,
        comparable=comparable,
        sums=sums,
        measured=measured,
        seconds=_case_medians(seconds[is_timed], index[is_timed], len(names)),
        mean_seconds=np.where(timed > 0, np.exp(mean_logs), np.nan),
        is_judged=table.is_judged,
        has_cases=table.has_cases,
        is_recorded=table.is_recorded,
    )


def case_index(cases: Sequence[str]) -> tuple[list[str], NDArray[np.intp]]:
    """The names of the cases, sorted, and for each execution the place of its case among them."""
    names = sorted(set(cases))
    places = {name: place for place, name in enumerate(names)}
    return names, np.fromiter(map(places.__getitem__, cases), dtype=np.intp, count=len(cases))


def has_status(table: CaseTable, statuses: frozenset[str]) -> Bools:
    """Mark each execution that has one of these statuses.

    Nearly always all executions have one or none has, so these two cases are answered without a look at
    each.
    """
    size = len(table.statuses)
    found = set(table.statuses)
    if found <= statuses:
        return np.ones(size, dtype=bool)
    if not found & statuses:
        return np.zeros(size, dtype=bool)
    return np.fromiter(map(statuses.__contains__, table.statuses), dtype=bool, count=size)


def column_of(table: CaseTable, name: str) -> Floats:
    """A metric of each execution; NaN where it was not measured."""
    values = table.metrics.get(name)
    return np.full(len(table.cases), np.nan) if values is None else np.asarray(values, dtype=np.float64)


def _sums(
    table: CaseTable,
    counts: Bools,
    is_ok: Bools,
    is_scored: Bools,
    per_case: Callable[[NDArray[np.generic]], Floats],
) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """`CaseTotals.sums` and `CaseTotals.measured`."""
    sums, measured = {}, {}
    for name in _QUANTITIES:
        column = column_of(table, name)[counts]
        known = ~np.isnan(column)
        if not is_ok.any() or not known[is_ok].all():
            continue
        if name in _PER_SOLVED and column[known].any():
            if not is_scored.any():
                continue
            known &= is_scored
        sums[name], measured[name] = per_case(np.where(known, column, 0.0)), per_case(known)
    return sums, measured


def _case_medians(values: Floats, of_case: NDArray[np.intp], size: int) -> Floats:
    """The median of each case, NaN for a case without values: after one sort by case and value it lies in the middle."""
    medians = np.full(size, np.nan)
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
    """Count executions by outcome: pass, fail, agent_error, limit and harness_error, and those without a score."""
    is_ok = has_status(table, OK)
    score = column_of(table, "score")
    is_scored = is_ok & ~np.isnan(score) if table.is_judged else is_ok
    has_passed = is_scored & (score >= lowest_pass(pass_mark)) if table.is_judged else is_ok
    counted = {
        "pass": has_passed,
        "fail": is_scored & ~has_passed,
        "agent_error": has_status(table, _AGENT_ERRORS),
        "limit": has_status(table, _LIMITS),
        "harness_error": has_status(table, _HARNESS_ERROR),
    }
    counts = {name: int(np.count_nonzero(chosen)) for name, chosen in counted.items()}
    return Outcomes(counts, int(np.count_nonzero(is_ok & ~is_scored)))


def code_table(table: CaseTable, trial: Trial) -> CaseTable:
    """The executions of code in the form of a suite's, so that both are rated alike.

    The independent units are the code's cases or, if it has none, its processes.
    """
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
    """Return each metric of the ok executions as a series whose independent units are cases, not repetitions."""
    cases, index = case_index(table.cases)
    places = _number_cases("\0".join(cases))[index] if cases else np.zeros(0, dtype=np.int64)
    repetitions = np.asarray(table.repetitions, dtype=np.int64)
    rounds = np.asarray(table.processes, dtype=np.int64) if len(table.processes) else repetitions
    is_ok = has_status(table, OK)
    # If nothing worked, there is no column of scores, and yet the agent's failures count as scores of 0.
    names = dict.fromkeys(table.metrics)
    if table.is_judged:
        names.setdefault("score")
    else:
        names.pop("score", None)
    found: dict[str, Series] = {}
    # Most metrics are known of the same executions: their columns are the same arrays.
    kept: dict[bytes, list[array[int]]] = {}
    for name in names:
        values = _scores(table) if name == "score" else np.where(is_ok, column_of(table, name), np.nan)
        known = ~np.isnan(values)
        if not known.any():
            continue
        if (mask := known.tobytes()) not in kept:
            kept[mask] = [array("q", column[known].tobytes()) for column in (places, repetitions, rounds)]
        of_case, of_repetition, of_round = kept[mask]
        of_value = array("d", values[known].tobytes())
        found[name] = Series(of_case, of_repetition, of_value, unit="case", rounds=of_round)
    return found


def _scores(table: CaseTable) -> Floats:
    """The score of each execution; 0 where the agent failed, NaN where there is none.

    If there were outputs and no scorer could judge a single one of them, failures have no score either: their zeros alone
    would say that the agent is always wrong.
    """
    is_ok = has_status(table, OK)
    column = column_of(table, "score")
    is_unknown = not table.is_judged or (is_ok.any() and np.isnan(column[is_ok]).all())
    failure = np.where(has_status(table, NOT_COUNTED), np.nan, np.nan if is_unknown else 0.0)
    return np.where(is_ok, column, failure)


@lru_cache(maxsize=1 << 17)
def case_number(case: str) -> int:
    """A number that stands for a case in every trial, so that two agents can be compared case by case."""
    return _hash_case(case)


def _hash_case(case: str) -> int:
    return int.from_bytes(sha256(case.encode()).digest()[:7], "big")


@lru_cache(maxsize=16)
def _number_cases(joined: str) -> NDArray[np.int64]:
    """The numbers of the cases of a benchmark. Their names come as one text, which is small to keep; no name holds a NUL."""
    return np.array([_hash_case(case) for case in joined.split("\0")], dtype=np.int64)

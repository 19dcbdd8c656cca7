"""The five ratings of a trial, as docs/method.md defines them, each with an interval over cases."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assay.model import Limits, Rubric, Series
from assay.model.rating import DIMENSIONS, WEIGHTS, CaseTable, Rating, Ratings
from assay.stats.means import t_quantile
from assay.stats.order import median_interval
from assay.stats.verdicts import consistency, effective_n, pass_at, pass_hat, resampled, wilson, worth_of

DRAWS = 1000
LEVEL = 0.95
DISAGREEMENT = 0.05
"""A judge whose two judgements of one output differ by more on average invalidates the scores."""

_AGENT_ERRORS = frozenset({"failed", "crashed", "invalid_output"})
_LIMITS = frozenset({"timeout", "over_limit"})
_NOT_COUNTED = frozenset({"harness_error", "cancelled"})

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Tally:
    """What each case amounts to over its repetitions; arrays with one row a case."""

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
    """Metric to its sum over the repetitions; only metrics that every completed execution has."""
    measured: Mapping[str, Floats]
    """Metric to the number of repetitions in that sum."""
    seconds: Floats
    """Median seconds of the completed repetitions; NaN where none completed."""


def rate(
    table: CaseTable, rubric: Rubric, limits: Limits, baseline: Mapping[str, float] | None = None
) -> Ratings:
    """Ratings of one trial; `baseline` has the reference quantities of the suite's baseline run, where there is one."""
    outcomes, unscored = _outcomes(table, rubric.pass_mark)
    tally = _tally(table, rubric.pass_mark)
    reference = _references(rubric, limits, baseline or {})
    rated = {
        "accuracy": _accuracy(tally),
        "speed": _speed(tally, reference),
        "efficiency": _efficiency(tally, reference),
        "cost": _cost(tally, reference),
        "reliability": _reliability(tally),
    }
    repetitions, passed = tally.scored.astype(np.int64), tally.passed.astype(np.int64)
    most = int(repetitions.max()) if len(repetitions) else 0
    ks = [k for k in range(1, most + 1) if k <= 5 or k == most]
    solved = float((tally.passed / np.maximum(tally.scored, 1)).sum())
    return Ratings(
        dimensions=rated,
        overall=_overall(rated, rubric),
        outcomes=outcomes,
        unscored=unscored,
        cases=len(tally.executions),
        solved=solved,
        pass_at={k: value for k in ks if (value := pass_at(k, passed, repetitions)) is not None},
        pass_hat={k: value for k in ks if (value := pass_hat(k, passed, repetitions)) is not None},
        usd_per_solved=_per_solved(tally, "usd"),
        tokens_per_solved=_per_solved(tally, "tokens"),
        doubts=(*_doubts(tally, unscored), *_disagreements(table)),
    )


def case_series(table: CaseTable) -> dict[str, Series]:
    """Each metric of the ok executions, with cases as what is independent: repetitions of one are not."""
    numbers = {case: case_number(case) for case in dict.fromkeys(table.cases)}
    places = [numbers[case] for case in table.cases]
    found: dict[str, Series] = {}
    for name, column in table.metrics.items():
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
    """Values of ok executions; an execution in which the agent failed has the score 0."""
    pairs = zip(table.statuses, column, strict=True)
    if name == "score":
        return [value if status == "ok" else _score_of_failure(status) for status, value in pairs]
    return [value if status == "ok" else None for status, value in pairs]


def _score_of_failure(status: str) -> float | None:
    return None if status in _NOT_COUNTED else 0.0


def case_number(case: str) -> int:
    """A number that stands for a case in every trial, so that two agents can be compared case by case."""
    return int.from_bytes(sha256(case.encode()).digest()[:7], "big")


def _outcomes(table: CaseTable, pass_mark: float) -> tuple[dict[str, int], int]:
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
        elif score is None:
            unscored += 1
        else:
            counted["pass" if score >= pass_mark else "fail"] += 1
    return counted, unscored


def _tally(table: CaseTable, pass_mark: float) -> Tally:
    statuses = np.asarray(table.statuses, dtype=object)
    counts = ~np.isin(statuses, list(_NOT_COUNTED))
    names, index = np.unique(np.asarray(table.cases, dtype=object)[counts].astype(str), return_inverse=True)
    size = len(names)
    is_ok = statuses[counts] == "ok"
    score = _column(table, "score")[counts]
    score = np.where(is_ok, score, 0.0)
    is_scored = ~np.isnan(score)

    def per_case(values: Floats) -> Floats:
        return np.bincount(index, weights=values, minlength=size).astype(np.float64)

    scored = per_case(is_scored.astype(float))
    passed = per_case((np.nan_to_num(score) >= pass_mark).astype(float) * is_scored)
    comparable = (scored > 1).astype(float)
    sums, measured = _sums(table, counts, is_ok, per_case)
    return Tally(
        executions=per_case(np.ones(len(index))),
        completed=per_case(is_ok.astype(float)),
        scored=scored,
        score=per_case(np.nan_to_num(score)),
        passed=passed,
        alike=consistency(passed.astype(np.int64), scored.astype(np.int64)) * comparable,
        comparable=comparable,
        sums=sums,
        measured=measured,
        seconds=_case_medians(_column(table, "seconds")[counts], index, is_ok, size),
    )


def _column(table: CaseTable, name: str) -> Floats:
    values = table.metrics.get(name)
    if values is None:
        return np.full(len(table.cases), np.nan)
    return np.array([np.nan if value is None else value for value in values], dtype=float)


def _sums(
    table: CaseTable, counts: Bools, is_ok: Bools, per_case: Callable[[Floats], Floats]
) -> tuple[dict[str, Floats], dict[str, Floats]]:
    sums, measured = {}, {}
    for name in ("usd", "tokens", "cpu_seconds", "rss_max_bytes"):
        column = _column(table, name)[counts]
        known = ~np.isnan(column)
        if len(column) and is_ok.any() and known[is_ok].all():
            sums[name], measured[name] = per_case(np.nan_to_num(column)), per_case(known.astype(float))
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


def _references(
    rubric: Rubric, limits: Limits, baseline: Mapping[str, float]
) -> dict[str, tuple[float, str]]:
    """Quantity to what counts as 0.5, and where that comes from: rubric, baseline, or half the limit."""
    halves = {
        "seconds": limits.seconds and limits.seconds / 2,
        "tokens": limits.tokens and limits.tokens / 2,
        "usd": limits.usd and limits.usd / 2,
        "memory_mb": limits.memory_bytes and limits.memory_bytes / 2**21,
    }
    found: dict[str, tuple[float, str]] = {}
    for name in ("seconds", "tokens", "usd", "cpu_seconds", "memory_mb"):
        for source, value in (
            ("rubric", rubric.reference.get(name)),
            ("baseline", baseline.get(name)),
            ("half the limit", halves.get(name)),
        ):
            if value:
                found[name] = (float(value), source)
                break
    return found


def curve(x: float, reference: float) -> float:
    """Lower is better, never saturates: 0.5 at the reference, 0.67 at half of it, 0.33 at twice."""
    return 0.0 if math.isinf(x) else 1.0 / (1.0 + x / reference)


def _accuracy(tally: Tally) -> Rating:
    judged = tally.scored > 0
    if not judged.any():
        return Rating("accuracy", None, basis="nothing was scored")
    means = tally.score[judged] / tally.scored[judged]
    value = float(means.mean())
    interval = wilson(value, effective_n(means, int(tally.scored.sum())))
    return _rating("accuracy", value, interval, f"mean score over {len(means)} cases")


def _speed(tally: Tally, reference: Mapping[str, tuple[float, str]]) -> Rating:
    seconds = np.sort(tally.seconds[~np.isnan(tally.seconds)])
    if not len(seconds):
        return Rating("speed", None, basis="no execution completed")
    if "seconds" not in reference:
        return Rating("speed", None, basis="no reference: give rubric.reference.seconds or limits.seconds")
    r, source = reference["seconds"]
    middle = float(np.median(seconds))
    interval = median_interval([float(value) for value in seconds], LEVEL) or _log_interval(seconds)
    basis = f"median {middle:.4g} s, reference {r:.4g} s ({source})"
    if interval is None:
        return Rating("speed", curve(middle, r), basis=basis)
    return _rating("speed", curve(middle, r), (curve(interval[1], r), curve(interval[0], r)), basis)


def _log_interval(seconds: Floats) -> tuple[float, float] | None:
    """Student's, on logs: for so few cases that no order statistics bound their median."""
    if len(seconds) < 2 or seconds[0] <= 0:
        return None
    logs = np.log(seconds)
    middle = float(logs.mean())
    half = t_quantile((1 + LEVEL) / 2, len(logs) - 1) * float(logs.std(ddof=1)) / math.sqrt(len(logs))
    return math.exp(middle - half), math.exp(min(middle + half, _LARGEST_LOG))


_LARGEST_LOG = 700.0


def _rating(name: str, value: float, interval: tuple[float, float], basis: str) -> Rating:
    """An interval contains its value: rounding and resampling may fall short of it by a hair."""
    return Rating(name, value, max(0.0, min(interval[0], value)), min(1.0, max(interval[1], value)), basis)


def _per_solved(tally: Tally, name: str) -> float | None:
    if name not in tally.sums:
        return None
    total, solved = float(tally.sums[name].sum()), float(tally.passed.sum())
    if total == 0:
        return 0.0
    return total / solved if solved else math.inf


def _cost(tally: Tally, reference: Mapping[str, tuple[float, str]]) -> Rating:
    x = _per_solved(tally, "usd")
    if x is None:
        return Rating("cost", None, basis="the cost is unknown")
    if x == 0:
        return Rating("cost", 1.0, 1.0, 1.0, "free")
    if "usd" not in reference:
        return Rating("cost", None, basis="no reference: give rubric.reference.usd or limits.usd")
    r, source = reference["usd"]
    interval = _ratio_interval(tally.sums["usd"], tally.passed, r)
    basis = f"${x:.4g} per solved case, reference ${r:.4g} ({source})"
    return _rating("cost", curve(x, r), interval, basis)


def _ratio_interval(totals: Floats, solved: Floats, reference: float) -> tuple[float, float]:
    sums = resampled(np.column_stack([totals, solved]), DRAWS, seed=len(totals))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratings = np.where(sums[:, 1] > 0, 1 / (1 + sums[:, 0] / sums[:, 1] / reference), 0.0)
    low, high = np.quantile(ratings, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def _efficiency(tally: Tally, reference: Mapping[str, tuple[float, str]]) -> Rating:
    """Geometric mean of the ratings of tokens per solved case, CPU seconds and peak memory, of those there are."""
    parts: list[tuple[str, tuple[float, float, float]]] = []
    for name, quantity, scale in (
        ("tokens", "tokens", 1.0),
        ("cpu_seconds", "cpu_seconds", 1.0),
        ("memory_mb", "rss_max_bytes", 2**20),
    ):
        if name in reference and quantity in tally.sums and float(tally.sums[quantity].sum()) > 0:
            r = reference[name][0]
            totals = tally.sums[quantity] / scale
            per = tally.passed if name == "tokens" else tally.measured[quantity]
            whole = float(per.sum())
            value = curve(float(totals.sum()) / whole if whole else math.inf, r)
            parts.append((name, (value, *_ratio_interval(totals, per, r))))
    if not parts:
        return Rating(
            "efficiency", None, basis="no tokens, CPU time or memory with a reference were measured"
        )
    value, low, high = (_geometric([part[1][end] for part in parts]) for end in range(3))
    return _rating("efficiency", value, (low, high), " × ".join(part[0] for part in parts))


def _geometric(values: Sequence[float]) -> float:
    return math.prod(values) ** (1 / len(values))


def _reliability(tally: Tally) -> Rating:
    if not len(tally.executions):
        return Rating("reliability", None, basis="nothing was executed")
    columns = np.column_stack([tally.completed, tally.executions, tally.alike, tally.comparable])
    completion, alike = _completion_and_consistency(columns.sum(axis=0))
    value = completion * alike
    drawn = np.prod(_completion_and_consistency(resampled(columns, DRAWS, seed=len(columns)).T), axis=0)
    interval = wilson(value, worth_of(value, float(drawn.var()), len(columns), int(tally.executions.sum())))
    basis = f"completion {completion:.3g} × consistency {alike:.3g}"
    return _rating("reliability", float(value), interval, basis)


def _completion_and_consistency(sums: Floats) -> tuple[Any, Any]:
    """Of the sums of the four columns; consistency is 1 where no case has two repetitions."""
    completed, executions, alike, comparable = sums
    return completed / executions, np.where(comparable > 0, alike / np.maximum(comparable, 1), 1.0)


def _overall(rated: Mapping[str, Rating], rubric: Rubric) -> Rating:
    """Weighted mean of the rated dimensions; its interval adds up the half widths as if they were independent."""
    weights = {**WEIGHTS, **rubric.weights}
    there = {name: rating for name, rating in rated.items() if rating.value is not None and weights[name] > 0}
    total = sum(weights[name] for name in there)
    if not total:
        return Rating("overall", None, basis="no dimension is rated")
    value = sum(weights[name] * (rating.value or 0.0) for name, rating in there.items()) / total
    missing = [name for name in DIMENSIONS if name not in there]
    basis = f"without {', '.join(missing)}" if missing else "all five dimensions"
    if any(rating.low is None for rating in there.values()):
        return Rating("overall", value, basis=basis)
    below = _added([(weights[n] / total, r.value, r.low) for n, r in there.items()])
    above = _added([(weights[n] / total, r.value, r.high) for n, r in there.items()])
    return _rating("overall", value, (value - below, value + above), basis)


def _added(parts: Sequence[tuple[float, float | None, float | None]]) -> float:
    return math.sqrt(sum((w * ((value or 0.0) - (end or 0.0))) ** 2 for w, value, end in parts))


def _disagreements(table: CaseTable) -> Iterator[str]:
    """A judge that contradicts itself on a sample of outputs judged twice."""
    for name, column in table.metrics.items():
        values = [value for value in column if value is not None]
        if (
            name.endswith("judge_disagreement")
            and values
            and (mean := sum(values) / len(values)) > DISAGREEMENT
        ):
            yield (
                f"the judge disagrees with itself by {mean:.2g} on {len(values)} outputs that it judged twice, "
                f"more than {DISAGREEMENT}: its scores are not to be relied on"
            )


def _doubts(tally: Tally, unscored: int) -> list[str]:
    doubts = []
    if len(tally.executions) and not tally.comparable.any():
        doubts.append("one repetition a case: consistency cannot be seen and counts as 1")
    if unscored:
        doubts.append(f"{unscored} executions are unscored and count nowhere")
    if 0 < len(tally.executions) < 20:
        doubts.append(f"{len(tally.executions)} cases only: the intervals are wide")
    return doubts

"""Computes the five ratings of a trial and the overall rating, as docs/method.md defines them.

Each rating is a number from 0 to 1 with a 95 % interval over cases; ratings of times, CPU and memory also count the spread
between rounds. Speed, efficiency and cost are relative to references (see `reference.py`), so they can be compared only
between trials with the same yardstick. `pipeline/ratings.py` calls `rate` for every finished trial and stores the result.
Beside the figures, a rating has marks, what each case contributes (`case_ratings.py`), by which agents are told apart later.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from assay.analysis.comparison.rounds import error_by_round
from assay.analysis.comparison.weighted_ratings import round_error
from assay.analysis.estimates.case_costs import case_figures_of, usage_of
from assay.analysis.estimates.case_results import CaseTotals, outcomes_of, tally_of
from assay.analysis.ranking.case_ratings import EFFICIENCY, marks_of
from assay.analysis.ranking.reference import quantity, references_of
from assay.analysis.ranking.round_ratings import rate_by_round
from assay.model import Limits, Rubric
from assay.model.dimension import DIMENSIONS, WEIGHTS
from assay.model.rating import (
    OF_SOLUTIONS,
    QUANTITIES,
    CaseTable,
    Rating,
    Ratings,
    Reference,
    ReferenceValue,
    has_solved_nothing,
)
from assay.stats.means import mean_half_width
from assay.stats.order import median_interval
from assay.stats.random_effects import half_width
from assay.stats.resample import Resample, resample
from assay.stats.verdicts import effective_n, pass_at, pass_hat, wilson, worth_of
from assay.units import format_count

DRAWS = 2000
"""Bootstrap draws of the cases."""
LEVEL = 0.95
Z = 1.959963984540054
"""The normal quantile of a 95 % interval."""
DISAGREEMENT = 0.05
"""If a judge's two judgements of one output differ by more than this on average, its scores are not reliable."""

Floats = NDArray[np.float64]
References = Mapping[str, ReferenceValue]
"""Quantity to the value that is rated 0.5."""


@dataclass(frozen=True, slots=True)
class RatingDraws:
    """A rating and its value in each bootstrap draw of the cases; `draws` is None where it cannot be rated.

    All dimensions use the same draws, so that their weighted sum keeps what they have in common.
    """

    rating: Rating
    draws: Floats | None = None


def rate(
    table: CaseTable,
    rubric: Rubric,
    limits: Limits,
    kept: Mapping[str, Reference] | None = None,
    *,
    expects_scores: bool = True,
) -> Ratings:
    """Ratings of one trial; `kept` are the stored references of its benchmark's definition, by quantity.

    If scores are expected and no scorer could judge anything, the trial has no overall rating.
    """
    tally, outcomes = tally_of(table, rubric.pass_mark), outcomes_of(table, rubric.pass_mark)
    draws = resample(tuple(tally.names), DRAWS)
    reference = references_of(rubric, limits, kept)
    found = _rate_dimensions(tally, reference, draws)
    weights = {**WEIGHTS, **rubric.weights}
    marks = marks_of(tally, {name: known.value for name, known in reference.items()})
    if has_solved_nothing(found["accuracy"].rating, weights):
        for name in _find_dimensions_of_solutions(found, reference):
            found[name] = RatingDraws(Rating(name, 0.0, basis="nothing was solved"), np.zeros(DRAWS))
            marks[name] = np.zeros(len(tally.names))
    rated_values = {name: dimension.rating.value for name, dimension in found.items()}
    by_round = rate_by_round(table, tally, rated_values, reference)
    for name, offs in by_round.items():
        found[name] = replace(found[name], rating=_with_rounds(found[name].rating, offs))
    pass_at, pass_hat = _pass_rates(tally)
    rated = {name for name, dimension in found.items() if dimension.rating.value is not None}
    yardsticks = (f"{name} {known.value!r}" for name, known in reference.items())
    is_scoring_failed = expects_scores and outcomes.unscored > 0 and not outcomes.scored
    ratings = Ratings(
        dimensions={name: dimension.rating for name, dimension in found.items()},
        overall=_NOTHING_SCORED,
        outcomes=outcomes.counts,
        unscored=outcomes.unscored,
        cases=len(tally.names),
        solved=float((tally.passed / np.maximum(tally.tries, 1)).sum()),
        pass_at=pass_at,
        pass_hat=pass_hat,
        usd_per_solved=quantity(tally, "usd"),
        tokens_per_solved=quantity(tally, "tokens"),
        doubts=(*_doubts(tally, outcomes.unscored), *_disagreements(table)),
        weights=weights,
        yardstick=", ".join([*yardsticks, f"pass {rubric.pass_mark!r}"]),
        references=reference,
        pass_mark=rubric.pass_mark,
        attempted=len({c for c, s in zip(table.cases, table.statuses, strict=True) if s != "cancelled"}),
        unpriced=_unknown(tally, "usd"),
        completion=_completion(tally),
        names=tuple(tally.names),
        # 32-bit as in the store, so that a trial that was just rated equals one that is read back.
        marks={name: array("f", of.astype("f").tobytes()) for name, of in marks.items() if name in rated},
        case_figures=case_figures_of(table, tally),
        usage=usage_of(table),
        is_recorded=table.is_recorded,
        by_round=by_round,
        expects_scores=expects_scores,
    )
    return ratings if is_scoring_failed else replace(ratings, overall=_overall(found, ratings))


def _rate_dimensions(tally: CaseTotals, reference: References, draws: Resample) -> dict[str, RatingDraws]:
    """The five dimensions, each by its own formula; dimensions that cannot be rated are there without a value."""
    return {
        "accuracy": _accuracy(tally, draws),
        "speed": _speed(tally, reference, draws),
        "efficiency": _efficiency(tally, reference, draws),
        "cost": _cost(tally, reference, draws),
        "reliability": _reliability(tally, draws),
    }


def _pass_rates(tally: CaseTotals) -> tuple[dict[int, float], dict[int, float]]:
    """pass@k (at least one of k repetitions passes) and pass^k (all of them do), for k up to 5 and the largest k."""
    repetitions, passed = tally.scored.astype(np.int64), tally.passed.astype(np.int64)
    most = int(repetitions.max()) if len(repetitions) else 0
    ks = [k for k in range(1, most + 1) if k <= 5 or k == most]
    at_k = {k: value for k in ks if (value := pass_at(k, passed, repetitions)) is not None}
    hat_k = {k: value for k in ks if (value := pass_hat(k, passed, repetitions)) is not None}
    return at_k, hat_k


def with_plan(ratings: Ratings, planned: int) -> Ratings:
    """Ratings with the number of planned executions, and with a doubt where too many of them have no result."""
    found = replace(ratings, planned=planned)
    if not found.is_incomplete:
        return found
    return replace(found, doubts=(describe_incomplete(found), *ratings.doubts))


def describe_incomplete(ratings: Ratings) -> str:
    planned = max(ratings.planned, sum(ratings.outcomes.values()) + ratings.unscored)
    errors = ratings.outcomes.get("harness_error", 0)
    blamed = f" ({format_count(errors, 'harness error')})" if errors else ""
    return f"incomplete: {ratings.without_result} of {planned} planned executions have no result{blamed}, so it is not ranked"


def _with_rounds(rating: Rating, offs: Sequence[float | None]) -> Rating:
    """The rating with an interval over cases and rounds, whose halves add up in squares.

    Without an interval if there are too few rounds to know what rounds differ by.
    """
    if rating.value is None or rating.low is None or rating.high is None:
        return rating
    part = error_by_round(offs)
    if part is None:
        return replace(rating, low=None, high=None)
    half = half_width([part])
    ends = (
        rating.value - math.hypot(rating.value - rating.low, half),
        rating.value + math.hypot(rating.high - rating.value, half),
    )
    return _rating(rating.dimension, rating.value, ends, rating.basis)


def curve(x: float, reference: float) -> float:
    """The rating 1 ÷ (1 + x ÷ reference) of a quantity of which less is better: 0.5 at the reference, 0.67 at half of it.

    It does not saturate: between two agents, the one that needs less always gets the better rating.
    """
    return 0.0 if math.isinf(x) else 1.0 / (1.0 + x / reference)


def _rating(name: str, value: float, interval: tuple[float, float], basis: str) -> Rating:
    """A rating whose interval contains its value, which rounding and resampling may miss by a hair, and stays in 0 to 1."""
    return Rating(name, value, max(0.0, min(interval[0], value)), min(1.0, max(interval[1], value)), basis)


def _accuracy(tally: CaseTotals, resample: Resample) -> RatingDraws:
    """The mean score over cases, with Wilson's interval for as many observations as the repetitions are worth."""
    judged = tally.scored > 0
    if not judged.any():
        missing = "nothing was scored" if tally.is_judged else "the experiment gives no score"
        return RatingDraws(Rating("accuracy", None, basis=missing))
    means = tally.score / np.maximum(tally.scored, 1)
    value = float(means[judged].mean())
    interval = wilson(value, effective_n(means[judged], int(tally.scored.sum())))
    rating = _rating(
        "accuracy", value, interval, f"mean score over {format_count(int(judged.sum()), 'case')}"
    )
    return RatingDraws(rating, resample.ratios(means, judged.astype(np.float64), value))


def _speed(tally: CaseTotals, reference: References, resample: Resample) -> RatingDraws:
    """Rate the speed by the median over cases of their median seconds.

    Its interval comes from order statistics, which assume no distribution: times of cases are skewed, and
    some take minutes.
    """
    seconds = np.sort(tally.seconds[~np.isnan(tally.seconds)])
    if not len(seconds):
        is_untimed = tally.is_recorded and tally.completed.any()
        why = "the recorded answers have no seconds" if is_untimed else "no execution completed"
        return RatingDraws(Rating("speed", None, basis=why))
    if "seconds" not in reference:
        missing = "no reference: set by the first completed run, rubric.reference.seconds or limits.seconds"
        return RatingDraws(Rating("speed", None, basis=missing))
    r, source = reference["seconds"].value, reference["seconds"]
    middle = float(np.median(seconds))
    interval = median_interval([float(value) for value in seconds], LEVEL) or _log_interval(seconds)
    recorded = f" as recorded for {len(seconds)} of {len(tally.names)} cases" if tally.is_recorded else ""
    basis = f"median {middle:.4g} s{recorded}, reference {r:.4g} s ({source})"
    draws = 1 / (1 + np.maximum(resample.medians(tally.seconds), 0.0) / r)
    if interval is None:
        return RatingDraws(Rating("speed", curve(middle, r), basis=basis), draws)
    ends = (curve(interval[1], r), curve(interval[0], r))
    return RatingDraws(_rating("speed", curve(middle, r), ends, basis), draws)


def _find_dimensions_of_solutions(found: Mapping[str, RatingDraws], reference: References) -> list[str]:
    """Dimensions that are 0 because nothing was solved: those that this agent, or any other by these references, is rated on.

    Leaving them unrated would be wrong: a dimension that one agent is not rated on counts for none of them.
    """
    referred = {QUANTITIES[name] for name in reference}
    return [name for name in OF_SOLUTIONS if found[name].rating.value is not None or name in referred]


def _log_interval(seconds: Floats) -> tuple[float, float] | None:
    """Student's interval on logarithms, for so few cases that no order statistics bound their median."""
    if len(seconds) < 2 or seconds[0] <= 0:
        return None
    logs = np.log(seconds)
    middle = float(logs.mean())
    half = mean_half_width(logs, LEVEL)
    return math.exp(max(middle - half, -_LARGEST_LOG)), math.exp(min(middle + half, _LARGEST_LOG))


_LARGEST_LOG = 700.0
"""The exponential of more than about 709 overflows a float."""


def _unknown(tally: CaseTotals, name: str) -> int:
    """The number of scored executions whose cost or tokens are unknown and so missing in the sum; 0 where the agent is free."""
    if name not in tally.sums or not tally.sums[name].any():
        return 0
    return int(tally.scored.sum() - tally.measured[name].sum())


def _cost(tally: CaseTotals, reference: References, resample: Resample) -> RatingDraws:
    """Rate the cost by dollars per solved case; a free agent gets 1.

    An agent that fails cheaply must not look cheap, so what failures cost counts as well.
    """
    x = quantity(tally, "usd")
    if x is None:
        unknown = (
            "the cost is unknown (give the agent a price, or set price: free)"
            if tally.scored.any()
            else "nothing was scored"
        )
        return RatingDraws(Rating("cost", None, basis=unknown))
    if x == 0:
        return RatingDraws(Rating("cost", 1.0, 1.0, 1.0, "free"), np.ones(DRAWS))
    if "usd" not in reference:
        missing = (
            "no reference: set by the first completed run with a cost, rubric.reference.usd or limits.usd"
        )
        return RatingDraws(Rating("cost", None, basis=missing))
    r, source = reference["usd"].value, reference["usd"]
    draws = 1 / (1 + resample.ratios(tally.sums["usd"], tally.passed, math.inf) / r)
    basis = f"${x:.4g} per solved case, reference ${r:.4g} ({source})"
    return RatingDraws(_rating("cost", curve(x, r), _middle_of(draws), basis), draws)


def _middle_of(draws: Floats) -> tuple[float, float]:
    low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def _efficiency(tally: CaseTotals, reference: References, resample: Resample) -> RatingDraws:
    """The geometric mean of the ratings of tokens per solved case, CPU seconds and peak memory, as far as they are known."""
    values, draws, names = [], [], []
    for name, metric, scale in EFFICIENCY:
        if name in reference and (x := quantity(tally, name)):
            r, totals = reference[name].value, tally.sums[metric] / scale
            per = tally.passed if name == "tokens" else tally.measured[metric]
            values.append(curve(x, r))
            draws.append(1 / (1 + resample.ratios(totals, per, math.inf) / r))
            names.append(name)
    if not names:
        missing = "no tokens, CPU time or memory with a reference were measured"
        return RatingDraws(Rating("efficiency", None, basis=missing))
    together = np.prod(draws, axis=0) ** (1 / len(draws))
    value = math.prod(values) ** (1 / len(values))
    return RatingDraws(_rating("efficiency", value, _middle_of(together), " × ".join(names)), together)


def _reliability(tally: CaseTotals, resample: Resample) -> RatingDraws:
    """Completion × consistency, where consistency is the chance that two repetitions of a case get the same verdict.

    Unrated where no case has two repetitions with a verdict.
    """
    if not len(tally.names):
        return RatingDraws(Rating("reliability", None, basis="nothing was executed"))
    completion = _completion(tally)
    assert completion is not None
    pairs = float(tally.comparable.sum())
    if not pairs:
        why = "one repetition of each case" if tally.executions.max() == 1 else "no case was scored twice"
        basis = f"{why}, so consistency is unknown; completion {completion:.3g}"
        return RatingDraws(Rating("reliability", None, basis=basis))
    consistent_share = float(tally.alike.sum()) / pairs
    value = completion * consistent_share
    # Both factors in the same draws of cases, because cases that fail are often those on which verdicts differ.
    draws = resample.ratios(tally.completed, tally.executions, completion)
    draws *= resample.ratios(tally.alike, tally.comparable, 1.0)
    worth = worth_of(value, float(draws.var()), len(tally.names), int(tally.executions.sum()))
    basis = f"completion {completion:.3g} × consistency {consistent_share:.3g}"
    return RatingDraws(_rating("reliability", value, wilson(value, worth), basis), draws)


def _completion(tally: CaseTotals) -> float | None:
    """Share of the executions that ended without error, timeout, limit or invalid output."""
    return float(tally.completed.sum() / tally.executions.sum()) if len(tally.names) else None


_NOTHING_SCORED = Rating("overall", None, basis="nothing could be scored because scoring failed")
"""The other dimensions cannot replace accuracy: a fast agent may be always wrong."""


def _overall(found: Mapping[str, RatingDraws], ratings: Ratings) -> Rating:
    """The weighted mean of the dimensions that are rated; accuracy alone, which is 0, where nothing was solved."""
    weights = ratings.weights
    if has_solved_nothing(found["accuracy"].rating, weights):
        return replace(found["accuracy"].rating, dimension="overall", basis="nothing was solved")
    rated_by_name = {
        name: rated for name, rated in found.items() if rated.rating.value is not None and weights[name] > 0
    }
    total = sum(weights[name] for name in rated_by_name)
    if not total:
        return Rating("overall", None, basis="no dimension is rated")
    missing = [name for name in DIMENSIONS if name not in rated_by_name]
    basis = f"without {', '.join(missing)}" if missing else "all five dimensions"
    parts = [(weights[name] / total, rated.rating) for name, rated in rated_by_name.items()]
    draws = sum(
        weights[name] / total * rated.draws
        for name, rated in rated_by_name.items()
        if rated.draws is not None
    )
    error = math.hypot(float(np.std(draws)), round_error(ratings, list(rated_by_name)))
    return combine_ratings("overall", parts, error, basis)


def combine_ratings(name: str, parts: Sequence[tuple[float, Rating]], error: float, basis: str) -> Rating:
    """A weighted mean of ratings, with the wider of two intervals; without an interval where a part has none.

    The first interval is by `error`, the standard error of the whole, which covers that parts are correlated (as accuracy
    and the cost of a solved case are). The second adds up the intervals of the parts, which stay wide where all cases turned
    out alike and the standard error is 0.
    """
    value = sum(weight * (rating.value or 0.0) for weight, rating in parts)
    if any(rating.low is None or rating.high is None for _, rating in parts):
        return Rating(name, value, basis=basis)
    spread = Z * error
    below = math.hypot(*(weight * ((rating.value or 0.0) - (rating.low or 0.0)) for weight, rating in parts))
    above = math.hypot(*(weight * ((rating.high or 0.0) - (rating.value or 0.0)) for weight, rating in parts))
    return _rating(name, value, (value - max(below, spread), value + max(above, spread)), basis)


def _disagreements(table: CaseTable) -> Iterator[str]:
    """A warning about each judge that contradicts itself on the sample of outputs that it judged twice."""
    for name, column in table.metrics.items():
        values = [value for value in column if value is not None]
        if not (name.endswith("judge_disagreement") and values):
            continue
        if (mean := sum(values) / len(values)) > DISAGREEMENT:
            yield (
                f"the judge disagrees with itself by {mean:.2g} on {format_count(len(values), 'output')} that it judged twice, "
                f"more than {DISAGREEMENT}: its scores are not reliable"
            )


_QUANTITY_NAMES = {"usd": "cost", "tokens": "use of tokens"}


def _doubts(tally: CaseTotals, unscored: int) -> Iterator[str]:
    """Reasons to read the ratings with care: unknown costs, unscored executions, few cases."""
    for name, quantity_name in _QUANTITY_NAMES.items():
        if missing := _unknown(tally, name):
            were = "was" if missing == 1 else "were"
            yield (
                f"the {quantity_name} of {format_count(missing, 'execution')} that {were} not ok is unknown and not counted: "
                f"the true {quantity_name} per solved case is higher"
            )
    if unscored:
        are = "is" if unscored == 1 else "are"
        yield f"{format_count(unscored, 'execution')} {are} unscored and left out of accuracy"
    if 0 < len(tally.names) < 20 and tally.has_cases:
        many = "one case" if len(tally.names) == 1 else f"{len(tally.names)} cases"
        yield f"{many} only: the intervals are wide"

"""One agent's ratings on one benchmark, several dimensions taken together: their weighted mean, and how much it varies by rounds."""

from __future__ import annotations

from collections.abc import Sequence

from assay.analysis.comparison.rounds import error_by_round
from assay.analysis.estimates.replication import FEWEST_ROUNDS
from assay.model.rating import Ratings, has_solved_nothing
from assay.stats.random_effects import half_width
from assay.stats.sample import quantile


def shares(ratings: Ratings, dimensions: Sequence[str]) -> dict[str, float]:
    """The weights of these dimensions, scaled to a sum of 1; empty if all of them are 0.

    An agent that solved nothing is rated by its accuracy alone, which is 0: being fast at it is no merit.
    """
    if "accuracy" in dimensions and has_solved_nothing(ratings.dimensions["accuracy"], ratings.weights):
        return {"accuracy": 1.0}
    weights = {name: ratings.weights[name] for name in dimensions if ratings.weights[name] > 0}
    total = sum(weights.values())
    return {name: weight / total for name, weight in weights.items()}


def value_of(ratings: Ratings, dimensions: Sequence[str]) -> float | None:
    """The weighted mean of these dimensions on one benchmark; None if one of them is unrated or all weights are 0."""
    weights = shares(ratings, dimensions) if len(dimensions) > 1 else dict.fromkeys(dimensions, 1.0)
    values = {name: ratings.dimensions[name].value for name in weights}
    if not weights or any(value is None for value in values.values()):
        return None
    return sum(weight * (values[name] or 0.0) for name, weight in weights.items())


def round_deviations(
    ratings: Ratings, dimensions: Sequence[str], *, is_log: bool = False
) -> list[float | None] | None:
    """By how much each round deviates in these dimensions together; a slow round is slow in all of them.

    None with fewer than three rounds, and if nothing depends on the machine. With `is_log` the deviations of speed are on the
    scale of its log odds.
    """
    weights = shares(ratings, dimensions) if len(dimensions) > 1 else dict.fromkeys(dimensions, 1.0)
    parts = [(weight, ratings.by_round[name]) for name, weight in weights.items() if name in ratings.by_round]
    if is_log and (value := ratings.dimensions["speed"].value) is not None and 0 < value < 1:
        parts = [(weight / (value * (1 - value)), off) for weight, off in parts]
    if not parts or any(sum(deviation is not None for deviation in off) < FEWEST_ROUNDS for _, off in parts):
        return None
    rounds = range(min(len(off) for _, off in parts))
    return [
        None
        if any(off[number] is None for _, off in parts)
        else sum(weight * (off[number] or 0.0) for weight, off in parts)
        for number in rounds
    ]


def round_error(ratings: Ratings, dimensions: Sequence[str]) -> float:
    """The error of these dimensions together by rounds, as the normal standard error whose interval is as wide as Student's.

    0 if nothing depends on the machine, and with too few rounds to know.
    """
    offs = round_deviations(ratings, dimensions)
    part = error_by_round(offs) if offs else None
    return half_width([part]) / quantile(0.975) if part else 0.0


def has_rounds(ratings: Ratings) -> bool:
    """Whether there are enough rounds to know how much what depends on the machine varies."""
    return all(
        sum(deviation is not None for deviation in off) >= FEWEST_ROUNDS for off in ratings.by_round.values()
    )

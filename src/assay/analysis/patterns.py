"""What many benchmarks have in common: when all of them move by one factor, the cause is not in one of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import median

from assay.analysis.losses import dimension_of
from assay.model import Better, Comparison
from assay.model.regression import Pattern
from assay.units import percent

FEWEST = 3
"""Benchmarks that make a pattern."""


def patterns_in(comparisons: Sequence[Comparison], pace: float | None) -> tuple[Pattern, ...]:
    """Speeds that moved alike on all benchmarks; `pace` is the factor by which the machine itself did, if it did."""
    by_metric: dict[str, list[Comparison]] = {}
    for one in comparisons:
        if dimension_of(one.metric) == "speed":
            by_metric.setdefault(one.metric.name, []).append(one)
    return tuple(pattern for group in by_metric.values() for pattern in _pattern(group, pace))


def _pattern(group: Sequence[Comparison], pace: float | None) -> Iterator[Pattern]:
    slowdowns = [_slowdown(one) for one in group]
    if len(group) < FEWEST or any(one is None for one in slowdowns):
        return
    known = [one for one in slowdowns if one is not None]
    factor = median(value for value, _, _ in known)
    is_shared = all(low <= factor <= high and not low <= 1 <= high for _, low, high in known)
    if is_shared and abs(math.log(factor)) > math.log1p(max(one.tolerance for one in group)):
        yield Pattern(
            group[0].metric, factor, tuple(one.trial_b for one in group), pace, _message(group, factor, pace)
        )


def _slowdown(one: Comparison) -> tuple[float, float, float] | None:
    """By what factor it takes longer, with its interval."""
    if not one.ratio or not one.low or one.high is None:
        return None
    if one.metric.better is Better.LOWER:
        return one.ratio, one.low, one.high
    return 1 / one.ratio, 1 / one.high, 1 / one.low


def _message(group: Sequence[Comparison], factor: float, pace: float | None) -> str:
    told = f"All {len(group)} benchmarks became {_tempo(factor)}, by '{group[0].metric.name}'"
    if pace is None:
        return f"{told}: suspect the machine, or something that they share. The machine's own pace did not move noticeably."
    if (pace > 1) == (factor > 1):
        return f"{told}: suspect the machine, which itself became {_tempo(pace)} at a fixed piece of work. Run both sides anew."
    return f"{told}, although the machine itself became {_tempo(pace)}: suspect something that they share."


def _tempo(factor: float) -> str:
    """
    >>> _tempo(1.12), _tempo(0.8)
    ('about 12 % slower', 'about 20 % faster')
    """
    return f"about {percent(abs(factor - 1))} {'slower' if factor > 1 else 'faster'}"

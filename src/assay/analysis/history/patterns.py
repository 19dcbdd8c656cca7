"""Finds changes that many benchmarks have in common, whose cause is the machine or shared code.

If all benchmarks of a comparison became slower by the same factor, the cause is not in one of them: it is the machine, or
code that they share. `patterns_in` reports that once, instead of leaving the reader with a list of equal regressions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import median

from assay.analysis.comparison.severity import dimension_of
from assay.model import Better, Comparison
from assay.model.regression import Pattern
from assay.units import percent

FEWEST = 3
"""The fewest benchmarks that make a pattern: two may agree by chance."""


def patterns_in(comparisons: Sequence[Comparison], pace: float | None) -> tuple[Pattern, ...]:
    """Metrics of speed that moved by one factor on all benchmarks.

    `pace` is the factor by which the machine itself became slower between the two sides; None if it did not change noticeably.
    """
    by_metric: dict[str, list[Comparison]] = {}
    for comparison in comparisons:
        if dimension_of(comparison.metric) == "speed":
            by_metric.setdefault(comparison.metric.name, []).append(comparison)
    return tuple(pattern for group in by_metric.values() for pattern in _pattern(group, pace))


def _pattern(group: Sequence[Comparison], pace: float | None) -> Iterator[Pattern]:
    """The pattern of one metric, if there is one: every interval contains the median factor and excludes 1."""
    known = [slowdown for comparison in group if (slowdown := _slowdown(comparison)) is not None]
    if len(group) < FEWEST or len(known) < len(group):
        return
    factor = median(value for value, _, _ in known)
    is_shared = all(low <= factor <= high and not low <= 1 <= high for _, low, high in known)
    if is_shared and abs(math.log(factor)) > math.log1p(max(comparison.tolerance for comparison in group)):
        yield Pattern(
            group[0].metric,
            factor,
            tuple(comparison.trial_b for comparison in group),
            pace,
            _message(group, factor, pace),
        )


def _slowdown(comparison: Comparison) -> tuple[float, float, float] | None:
    """The factor by which B takes longer, with its interval. A throughput is inverted, so above 1 is always slower."""
    if not comparison.ratio or not comparison.low or comparison.high is None:
        return None
    if comparison.metric.better is Better.LOWER:
        return comparison.ratio, comparison.low, comparison.high
    return 1 / comparison.ratio, 1 / comparison.high, 1 / comparison.low


def _message(group: Sequence[Comparison], factor: float, pace: float | None) -> str:
    """What to suspect if all benchmarks became slower or faster together: the machine, if its own speed changed the same
    way."""
    change = f"All {len(group)} benchmarks became {_tempo(factor)}, by '{group[0].metric.name}'"
    if pace is None:
        return f"{change}: suspect the machine, or something that they share. The machine's own speed did not change noticeably."
    if (pace > 1) == (factor > 1):
        return f"{change}: suspect the machine, which itself became {_tempo(pace)} on a fixed workload. Run both sides again."
    return f"{change}, although the machine itself became {_tempo(pace)}: suspect something that they share."


def _tempo(factor: float) -> str:
    """
    >>> _tempo(1.12), _tempo(0.8)
    ('about 12 % slower', 'about 20 % faster')
    """
    return f"about {percent(abs(factor - 1))} {'slower' if factor > 1 else 'faster'}"

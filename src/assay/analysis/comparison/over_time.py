"""Shows several sides in their order, metric by metric: where they began, where they are, and where the level changed.

The verdict is about the last side against the first; change points say where in between it happened
(`assay compare A B C --type time_series`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from assay.analysis.comparison.compare import compare_reports, matching_trials
from assay.analysis.comparison.policy import KnownNoise
from assay.errors import Unlike
from assay.model import Better, Report, TrialReport
from assay.model.metric import is_score
from assay.model.showdown import Course
from assay.stats.changepoint import detect


def over_time(
    sides: Sequence[Report], metrics: Sequence[str], noise: KnownNoise | None = None
) -> list[Course]:
    """The course of every metric that has a direction and that all sides have.

    `noise` is what is known of the first and the last side, which the verdict is about.
    """
    courses = list(_courses(sides, metrics, noise))
    if not courses:
        raise Unlike("The sides have no trial and metric in common, so there is no course to show.")
    return courses


def _courses(sides: Sequence[Report], metrics: Sequence[str], noise: KnownNoise | None) -> Iterator[Course]:
    """One course for each metric of each trial of the first side that all other sides have, too."""
    first, last = sides[0], sides[-1]
    for comparison in compare_reports(first, last, metrics=list(metrics) or None, noise=noise):
        if comparison.metric.better is Better.UNKNOWN:
            continue
        values = []
        for side in sides:
            matches = (b for a, b in matching_trials(first, side) if a.name == comparison.trial_a)
            match = next(matches, None)
            values.append(None if match is None else _estimate(match, comparison.metric.name))
        known = [value for value in values if value is not None]
        if len(known) == len(sides):
            steps = tuple(point.index for point in detect(known).change_points)
            yield Course(comparison.trial_a, comparison.metric, tuple(known), comparison.verdict, steps)


def _estimate(trial: TrialReport, metric: str) -> float | None:
    return next(
        (
            one.mean if is_score(one.metric) else one.median
            for one in trial.estimates
            if one.metric.name == metric and one.n
        ),
        None,
    )

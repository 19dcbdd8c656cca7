"""Several sides in their order, metric by metric: where they began, where they are, and where the level changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from assay.analysis.compare import compare_reports, matching_trials
from assay.errors import Unlike
from assay.model import Better, Report, TrialReport
from assay.model.metric import is_score
from assay.model.showdown import Course
from assay.stats.changepoint import detect


def over_time(sides: Sequence[Report], metrics: Sequence[str]) -> list[Course]:
    """Of every metric of which better and worse are known, and that all sides have."""
    courses = list(_courses(sides, metrics))
    if not courses:
        raise Unlike("The sides have no trial and metric in common, so there is no course to show.")
    return courses


def _courses(sides: Sequence[Report], metrics: Sequence[str]) -> Iterator[Course]:
    first, last = sides[0], sides[-1]
    for comparison in compare_reports(first, last, metrics=list(metrics) or None):
        if comparison.metric.better is Better.UNKNOWN:
            continue
        values = [_value(first, side, comparison.trial_a, comparison.metric.name) for side in sides]
        known = [value for value in values if value is not None]
        if len(known) == len(sides):
            steps = tuple(point.index for point in detect(known).change_points)
            yield Course(comparison.trial_a, comparison.metric, tuple(known), comparison.verdict, steps)


def _value(first: Report, side: Report, trial: str, metric: str) -> float | None:
    """Of the trial that is matched with one of the first side's."""
    match = next((b for a, b in matching_trials(first, side) if a.name == trial), None)
    return None if match is None else _estimate(match, metric)


def _estimate(trial: TrialReport, metric: str) -> float | None:
    return next(
        (
            one.mean if is_score(one.metric) else one.median
            for one in trial.estimates
            if one.metric.name == metric and one.n
        ),
        None,
    )

"""Estimates what runs differ by although nothing changed, from the history of an agent.

Steps are rare in the history of runs, so the median difference between neighbouring runs is noise. `noise_run.py` measures
the same with an A/A run; `pipeline/tolerances.py` uses both.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from itertools import pairwise
from statistics import fmean, median

from assay.analysis.comparison.severity import in_points
from assay.model.regression import MetricHistory
from assay.stats.means import t_quantile
from assay.stats.random_effects import ErrorPart

FEWEST_SESSIONS = 5
"""Earlier runs before `session_error` is known."""
FEWEST = 6
"""Earlier runs before `noise_floor` is known."""
_SIGMA = 1.4826 / math.sqrt(2)
"""Turns the median distance of neighbours into the standard deviation of one run, if runs are normally distributed."""


def noise_floor(history: MetricHistory, judged: Collection[str]) -> float | None:
    """The noise floor as a share of the value.

    None with too few runs, and for scores, whose tests over cases need none. Runs that are `judged` do not count: their own
    change would excuse itself.
    """
    values = [point.value for point in history.points if point.run_id not in judged]
    if in_points(history.metric) or len(values) < FEWEST or min(values) <= 0:
        return None
    return _SIGMA * median(abs(math.log(after / before)) for before, after in pairwise(values))


def session_error(history: MetricHistory, judged: Collection[str], version: str) -> ErrorPart | None:
    """The error of the difference between two runs, from at least five earlier runs; None with fewer.

    The standard deviation of a run is taken from neighbours (von Neumann 1941): from those of one version where there are
    enough, else from all, so that a step in the past counts once. A busy machine has good and bad sessions, so the
    interval reaches at least as far as runs of one version lay apart.
    """
    points = [point for point in history.points if point.run_id not in judged]
    if len(points) < FEWEST_SESSIONS or min(point.value for point in points) <= 0:
        return None
    neighbours = list(pairwise(points))
    of_one_version = [(before, after) for before, after in neighbours if before.version == after.version]
    if len(of_one_version) >= FEWEST_SESSIONS - 1:
        neighbours = of_one_version
    squares = [math.log(after.value / before.value) ** 2 for before, after in neighbours]
    freedom = max(2, 2 * len(squares) // 3)
    alike = [point.value for point in points if point.version == version]
    reach = math.log(max(alike) / min(alike)) if alike else 0.0
    return ErrorPart(max(math.sqrt(fmean(squares)), reach / t_quantile(0.975, freedom)), freedom)

"""Decides which metrics get a verdict if none are requested.

Every further metric in a family makes all verdicts less certain, so the default family is small.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from assay.analysis.estimates.completion import COMPLETION
from assay.model import Better, Metric
from assay.model.metric import JUDGING

FAMILY = frozenset({"score", "seconds", "usd", COMPLETION})
"""What every user of an agent asks about: is it right, how long does it take, what does it cost, does it fail?"""


def default_family(metrics: Iterable[Metric], declared: Collection[str] = ()) -> list[str]:
    """Score, seconds, cost and completion, as far as they exist, and what an experiment `declared` to measure.

    Holm's correction makes every verdict less certain with every further metric, and without correction one in twenty
    metrics that did not change would seem to. If there is none of the default metrics, all that can be judged are.
    """
    known = judgeable(metrics)
    return [name for name in known if name in FAMILY or name in declared] or known


def judgeable(metrics: Iterable[Metric]) -> list[str]:
    """The agent's own metrics with a direction, without a part of the score that is all of it (`lone_part`)."""
    own = (metric for metric in metrics if metric.name not in JUDGING)
    known = [metric.name for metric in own if metric.better is not Better.UNKNOWN]
    lone = lone_part(name for name in known if name != COMPLETION)
    return [name for name in known if name != lone]


def lone_part(names: Iterable[str]) -> str | None:
    """The score of the only scorer. It equals the score, so one of both is enough unless somebody asks for it."""
    known = list(names)
    parts = [name for name in known if name.startswith("score.")]
    return parts[0] if len(parts) == 1 and "score" in known else None

"""Which metrics get a verdict when nobody asks for particular ones."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from assay.analysis.completion import COMPLETION
from assay.model import Better, Metric
from assay.model.metric import JUDGING

FAMILY = frozenset({"score", "seconds", "usd", COMPLETION})
"""What every user of an agent asks about: is it right, how long does it take, what does it cost, does it fail?"""


def default_family(metrics: Iterable[Metric], declared: Collection[str] = ()) -> list[str]:
    """Score, seconds and cost, those that exist, and what an experiment `declared` to measure.

    Every further metric would make all verdicts less certain (Holm), and one in twenty of those that did not change would
    seem to. Where there is none of them, all that can be judged are.
    """
    known = judgeable(metrics)
    return [name for name in known if name in FAMILY or name in declared] or known


def judgeable(metrics: Iterable[Metric]) -> list[str]:
    """The agent's own with a direction; a score that is the only part of the score is left to it."""
    own = (metric for metric in metrics if metric.name not in JUDGING)
    known = [metric.name for metric in own if metric.better is not Better.UNKNOWN]
    lone = lone_part(name for name in known if name != COMPLETION)
    return [name for name in known if name != lone]


def lone_part(names: Iterable[str]) -> str | None:
    """The score of the only scorer, which is the score: one of both is enough, unless somebody asks."""
    known = list(names)
    parts = [name for name in known if name.startswith("score.")]
    return parts[0] if len(parts) == 1 and "score" in known else None

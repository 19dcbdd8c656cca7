"""The resilience score, between 0 and 1."""

from __future__ import annotations

from collections.abc import Iterable

from assay.stats.means import share_difference

_SURE = 3.0


def scenario_score(share: float, sustained: float, recovering: float) -> float:
    """Each factor between 0 and 1, so that nothing makes up for a failing elsewhere.

    >>> scenario_score(0.9, 0.5, 0.8)
    0.36000000000000004
    """
    return share * sustained * recovering


def is_as_in_calm(failed: int, ended: int, calm_failed: int, calm_ended: int) -> bool:
    """Whether requests fail in calm as well, and no more under pressure as far as anybody can tell.

    By Newcombe's interval of the difference, with three standard errors: a load is looked at in many places.

    >>> is_as_in_calm(100, 1000, 9, 100), is_as_in_calm(300, 1000, 9, 100), is_as_in_calm(1, 10, 0, 100)
    (True, False, False)
    """
    if not calm_failed or not ended:
        return False
    low, _ = share_difference((calm_failed / calm_ended, calm_ended), (failed / ended, ended), _SURE)
    return low <= 0


def right_among(in_time: int, right: int, judged: int) -> float:
    """How many of the answers that came in time are right, where `judged` of them were held against a suite.

    >>> right_among(1000, 40, 50), right_among(3, 2, 3), right_among(7, 0, 0)
    (800.0, 2.0, 7.0)
    """
    return in_time * right / judged if judged else float(in_time)


def worth(offered: int, completed: int, judged: int) -> float:
    """Requests that a share rests on: all that were offered, or fewer where only some of the answers were judged.

    >>> worth(1000, 800, 800), worth(1000, 800, 200), worth(1000, 0, 0)
    (1000.0, 250.0, 1000.0)
    """
    return offered * min(1.0, judged / completed) if completed else float(offered)


def compute_sustained_share(is_broken: bool, sustained: float, requested: float) -> float:
    """The part of a load that was sustained; all of it where nothing broke.

    >>> compute_sustained_share(False, 3, 10), compute_sustained_share(True, 3, 10), compute_sustained_share(True, 12, 10)
    (1.0, 0.3, 1.0)
    """
    if not is_broken:
        return 1.0
    return min(1.0, max(0.0, sustained / requested)) if requested > 0 else 0.0


def recovering(recovery: float | None, seconds: float, faults: int = 0) -> float:
    """Half when it takes as long to recover as the scenario lasted.

    A fault that was established, such as a leak, is still there when the scenario is over: each counts as one that took as
    long to recover from as the scenario lasted.

    >>> recovering(None, 10), recovering(0.0, 10), recovering(10.0, 10), recovering(30.0, 10)
    (1.0, 1.0, 0.5, 0.25)
    >>> recovering(None, 10, faults=1), recovering(10.0, 10, faults=2)
    (0.5, 0.25)
    """
    if not recovery:
        return 1 / (1 + faults)
    return 1 / (1 + recovery / seconds + faults) if seconds > 0 else 0.0


def resilience(scores: Iterable[float]) -> float | None:
    """The mean over scenarios that apply; None where none does."""
    values = list(scores)
    return sum(values) / len(values) if values else None

"""How well something stands pressure, between 0 and 1."""

from __future__ import annotations

from collections.abc import Iterable


def scenario_score(share: float, bearing: float, recovering: float) -> float:
    """Each factor between 0 and 1, so that nothing makes up for a failing elsewhere.

    >>> scenario_score(0.9, 0.5, 0.8)
    0.36000000000000004
    """
    return share * bearing * recovering


def bearing(is_broken: bool, borne: float, asked: float) -> float:
    """The part of a load that was borne; all of it where nothing broke.

    >>> bearing(False, 3, 10), bearing(True, 3, 10), bearing(True, 12, 10)
    (1.0, 0.3, 1.0)
    """
    if not is_broken:
        return 1.0
    return min(1.0, max(0.0, borne / asked)) if asked > 0 else 0.0


def recovering(recovery: float | None, seconds: float) -> float:
    """Half when it takes as long to recover as the scenario lasted.

    >>> recovering(None, 10), recovering(0.0, 10), recovering(10.0, 10), recovering(30.0, 10)
    (1.0, 1.0, 0.5, 0.25)
    """
    if not recovery:
        return 1.0
    return 1 / (1 + recovery / seconds) if seconds > 0 else 0.0


def resilience(scores: Iterable[float]) -> float | None:
    """The mean over scenarios that apply; None where none does."""
    values = list(scores)
    return sum(values) / len(values) if values else None

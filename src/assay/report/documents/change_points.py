"""Change points of a series as plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay.stats.changepoint import ChangePoint, Drift, History


def change_points_document(found: History) -> dict[str, Any]:
    return {
        "change_points": [_change_point(one) for one in found.change_points],
        "drift": None if found.drift is None else _drift(found.drift),
        "n": found.n,
        "reason": found.reason,
    }


def _change_point(one: ChangePoint) -> dict[str, Any]:
    return {
        "index": one.index,
        "before": one.before,
        "after": one.after,
        "change": one.change,
        "p_value": one.p_value,
        "pending": one.is_pending,
    }


def _drift(drift: Drift) -> dict[str, Any]:
    return {
        "start": drift.start,
        "end": drift.end,
        "before": drift.before,
        "after": drift.after,
        "change": drift.change,
        "interval": [drift.low, drift.high],
        "p_value": drift.p_value,
    }

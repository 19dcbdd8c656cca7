"""The states of regressions over time: what is found again keeps its state, what newer data refute is resolved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from assay.model.regression import Regression, RegressionState


def settled(
    found: Iterable[Regression], kept: Mapping[str, Regression], gone: Mapping[str, str], now: datetime
) -> list[Regression]:
    """Those found now and those kept from before, each in its state; `gone` says by id what newer data show instead."""
    seen = [_met_again(one, kept.get(one.id), now) for one in found]
    ids = {one.id for one in seen}
    return [*seen, *(_unseen(one, gone.get(one.id), now) for one in kept.values() if one.id not in ids)]


def _met_again(one: Regression, known: Regression | None, now: datetime) -> Regression:
    if known is None:
        return replace(one, detected=now, changed=now)
    reopened = not known.state.is_open and not known.is_marked
    return replace(
        one,
        state=RegressionState.DETECTED if reopened else known.state,
        note="" if reopened else known.note,
        detected=known.detected,
        changed=now if reopened else known.changed,
        is_marked=known.is_marked,
    )


def _unseen(one: Regression, refuted: str | None, now: datetime) -> Regression:
    if refuted is None or not one.state.is_open:
        return one
    note = f"{one.note} {refuted}".strip()
    return replace(one, state=RegressionState.RESOLVED, note=note, changed=now, is_marked=False)

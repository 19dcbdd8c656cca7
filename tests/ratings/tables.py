"""Tables of executions as a trial leaves them, written down in a line each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from assay.analysis.ranking.ratings import rate
from assay.model import CaseTable, Limits, Ratings, Rubric
from assay.model.rating import RatingScope, Reference, ReferenceOrigin

Row = tuple[str, str, Mapping[str, float]]
"""Case, status and measurements."""


def table(rows: Sequence[Row]) -> CaseTable:
    names = {name for _, _, measured in rows for name in measured}
    seen: dict[str, int] = {}
    repetitions = []
    for case, _, _ in rows:
        repetitions.append(seen.get(case, 0))
        seen[case] = repetitions[-1] + 1
    return CaseTable(
        [case for case, _, _ in rows],
        repetitions,
        [status for _, status, _ in rows],
        {name: [measured.get(name) for _, _, measured in rows] for name in sorted(names)},
    )


def ok(case: str, score: float | None = 1.0, **measured: float) -> Row:
    return case, "ok", {**measured, **({} if score is None else {"score": score})}


def failed(case: str, status: str = "failed", **measured: float) -> Row:
    return case, status, measured


def rated(
    rows: Sequence[Row],
    reference: Mapping[str, float] | None = None,
    limits: Limits | None = None,
    first_run: Mapping[str, float] | None = None,
    weights: Mapping[str, float] | None = None,
    pass_mark: float = 0.5,
) -> Ratings:
    rubric = Rubric(weights or {}, reference or {}, pass_mark)
    kept = {name: reference_of(name, value) for name, value in (first_run or {}).items()}
    return rate(table(rows), rubric, limits or Limits(), kept)


def reference_of(quantity: str, value: float) -> Reference:
    """As the first completed run leaves it."""
    scope = RatingScope("s", "b", "hash", simulated=False)
    return Reference(scope, quantity, value, "r1", datetime(2026, 3, 1, tzinfo=UTC), ReferenceOrigin.FIRST)

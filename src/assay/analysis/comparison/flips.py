"""Finds cases that one side passed and the other did not.

With repetitions, a case is *lost* if A passed all of its repetitions and B none, and *won* the other way round. A case whose
mean crossed the pass mark without such a clear change is *weaker* or *stronger*.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from assay.analysis.estimates.case_results import case_number
from assay.analysis.estimates.replication import observe
from assay.model import TrialReport
from assay.model.head_to_head import Flips, Passes
from assay.model.rating import lowest_pass
from assay.stats.summary import find_groups


def flips_between(a: TrialReport, b: TrialReport) -> Flips:
    """The flips between two trials, each by the pass mark that it was run with.

    Cases without a score on one of the sides are left out.
    """
    all_before, all_after = _pass_table(a), _pass_table(b)
    places = {case: row for row, case in enumerate(all_after.cases)}
    rows = [row for row, case in enumerate(all_before.cases) if case in places]
    # Row by row the same cases.
    before = all_before.only(rows)
    after = all_after.only([places[case] for case in before.cases])
    lost = before.all_passed & (after.passed == 0)
    won = after.all_passed & (before.passed == 0)
    is_other = ~lost & ~won
    weaker = is_other & before.is_pass & ~after.is_pass
    stronger = is_other & after.is_pass & ~before.is_pass
    changed = [row for kind in (lost, won, weaker, stronger) for row in np.flatnonzero(kind).tolist()]
    return Flips(
        benchmark=a.stored.trial.benchmark,
        won=before.cases_at(won),
        lost=before.cases_at(lost),
        unchanged=len(before.cases) - len(changed),
        trial=b.name,
        passes={before.cases[row]: (before.at(row), after.at(row)) for row in changed},
        weaker=before.cases_at(weaker),
        stronger=before.cases_at(stronger),
    )


def find_scored_cases(trial: TrialReport) -> Sequence[str]:
    return _pass_table(trial).cases


@dataclass(frozen=True, slots=True)
class _PassTable:
    """One side as columns, a row a case: repetitions that passed, that were judged, and whether their mean passes."""

    cases: Sequence[str]
    passed: NDArray[np.int64]
    judged: NDArray[np.int64]
    is_pass: NDArray[np.bool_]

    @property
    def all_passed(self) -> NDArray[np.bool_]:
        return np.asarray(self.passed == self.judged)

    def cases_at(self, rows: NDArray[np.bool_]) -> tuple[str, ...]:
        return tuple(self.cases[row] for row in np.flatnonzero(rows).tolist())

    def at(self, row: int) -> Passes:
        return Passes(int(self.passed[row]), int(self.judged[row]), bool(self.is_pass[row]))

    def only(self, rows: Sequence[int]) -> _PassTable:
        chosen = np.asarray(rows, dtype=np.intp)
        cases = [self.cases[row] for row in rows]
        return _PassTable(cases, self.passed[chosen], self.judged[chosen], self.is_pass[chosen])


def _pass_table(trial: TrialReport) -> _PassTable:
    """The pass table of a trial; empty if it has no scores."""
    if trial.ratings is None or "score" not in trial.series:
        nothing = np.zeros(0, dtype=np.int64)
        return _PassTable((), nothing, nothing, nothing.astype(bool))
    seen = observe(trial.series["score"])
    lowest = lowest_pass(trial.ratings.pass_mark)
    groups = find_groups(seen.processes)
    size, judged = groups.names.size, groups.counts
    passed = np.bincount(groups.codes, weights=seen.values >= lowest, minlength=size).astype(np.int64)
    means = np.bincount(groups.codes, weights=seen.values, minlength=size) / judged
    rows = {number: row for row, number in enumerate(groups.names.tolist())}
    found = {name: row for name in trial.ratings.names if (row := rows.get(case_number(name))) is not None}
    names, chosen = list(found), np.array(list(found.values()), dtype=np.intp)
    return _PassTable(names, passed[chosen], judged[chosen], means[chosen] >= lowest)

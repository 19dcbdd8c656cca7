"""Cases that one side passed and the other did not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from assay.analysis.replication import observed
from assay.analysis.tally import case_number
from assay.model import TrialReport
from assay.model.rating import is_pass
from assay.model.showdown import Flips, Passes


def flips_between(a: TrialReport, b: TrialReport) -> Flips:
    """Each side by the pass mark that it was run with; a case that nothing could judge on a side is left out."""
    before, after = _passes_by_case(a), _passes_by_case(b)
    shared = [case for case in before if case in after]
    lost = tuple(case for case in shared if before[case].all_passed and not after[case].passed)
    won = tuple(case for case in shared if after[case].all_passed and not before[case].passed)
    rest = [case for case in shared if case not in {*lost, *won}]
    weaker = tuple(case for case in rest if before[case].is_pass and not after[case].is_pass)
    stronger = tuple(case for case in rest if after[case].is_pass and not before[case].is_pass)
    changed = (*lost, *won, *weaker, *stronger)
    return Flips(
        benchmark=a.stored.trial.benchmark,
        won=won,
        lost=lost,
        unchanged=len(shared) - len(changed),
        trial=b.name,
        passes={case: (before[case], after[case]) for case in changed},
        weaker=weaker,
        stronger=stronger,
    )


def _passes_by_case(trial: TrialReport) -> dict[str, Passes]:
    if trial.ratings is None or "score" not in trial.series:
        return {}
    seen = observed(trial.series["score"])
    mark = trial.ratings.pass_mark
    numbers = {name: case_number(name) for name in trial.ratings.names}
    order = np.argsort(seen.processes, kind="stable")
    cases, starts = np.unique(seen.processes[order], return_index=True)
    scores = dict(zip(cases.tolist(), np.split(seen.values[order], starts[1:]), strict=True))
    return {
        name: _passes(scores[number].tolist(), mark) for name, number in numbers.items() if number in scores
    }


def _passes(scores: Sequence[float], pass_mark: float) -> Passes:
    mean = sum(scores) / len(scores)
    return Passes(sum(is_pass(score, pass_mark) for score in scores), len(scores), is_pass(mean, pass_mark))

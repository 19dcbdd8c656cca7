"""What one side has results of and the other has not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from assay.analysis.compare import matching_trials
from assay.analysis.flips import cases_without_score
from assay.model import Doubt, Report
from assay.model.regression import Missing

_NAMED = 5


def find_missing(a: Report, b: Report) -> Missing:
    pairs = matching_trials(a, b)
    matched = {first.name for first, _ in pairs}
    cases = {second.name: cases_without_score(first, second) for first, second in pairs}
    return Missing(
        tuple(trial.name for trial in a.trials if trial.name not in matched),
        {trial: names for trial, names in cases.items() if names},
    )


def about_missing(a: Report, b: Report, missing: Missing) -> Iterator[Doubt]:
    """A gate judges what both sides have; what else there is must not look as if it had passed."""
    pairs = matching_trials(a, b)
    if missing.trials:
        yield Doubt(
            "missing",
            f"The run lacks {len(missing.trials)} of {len(a.trials)} trials of the baseline: {_some(missing.trials)}. "
            "They are not judged.",
            "Run the same agents and benchmarks as the baseline.",
        )
    for first, second in pairs:
        if names := missing.cases.get(second.name, ()):
            known = len(first.ratings.names) if first.ratings else len(names)
            yield Doubt(
                "missing",
                f"{len(names)} of {known} cases of the baseline have no score in the run: {_some(names)}. "
                "They are not judged.",
                f"See why: assay show {b.run.id}",
                second.name,
            )
    matched = {second.name for _, second in pairs}
    if new := [trial.name for trial in b.trials if trial.name not in matched]:
        yield Doubt("unmatched", f"Not in the baseline, so not judged: {_some(new)}.")


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more

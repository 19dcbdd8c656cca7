"""Finds trials and cases that only one side of a gate has results for.

A gate judges only what both sides have. What is missing in the run is reported, so that it does not look as if it had
passed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from assay.analysis.comparison.compare import matching_trials
from assay.analysis.comparison.flips import find_scored_cases
from assay.model import Doubt, Report
from assay.model.regression import Missing

_NAMED = 5


def find_missing(a: Report, b: Report) -> Missing:
    """The trials of A without a match in B, and for each trial of B the cases that only A has a score of."""
    pairs = matching_trials(a, b)
    matched = {first.name for first, _ in pairs}
    # Cases with a score in A and none in B: they were not run there, or could not be scored.
    cases: dict[str, tuple[str, ...]] = {}
    for first, second in pairs:
        scored = {*find_scored_cases(second)}
        cases[second.name] = tuple(case for case in find_scored_cases(first) if case not in scored)
    return Missing(
        tuple(trial.name for trial in a.trials if trial.name not in matched),
        {trial: names for trial, names in cases.items() if names},
    )


def warn_about_missing(a: Report, b: Report, missing: Missing) -> Iterator[Doubt]:
    """Warnings about trials and cases that only one side has results of."""
    pairs = matching_trials(a, b)
    if missing.trials:
        yield Doubt(
            "missing",
            f"Not judged, because the run lacks {len(missing.trials)} of {len(a.trials)} trials of the baseline: {_some(missing.trials)}.",
            "Run the same agents and benchmarks as the baseline.",
        )
    for first, second in pairs:
        if names := missing.cases.get(second.name, ()):
            known = len(find_scored_cases(first))
            yield Doubt(
                "missing",
                f"Not judged, because {len(names)} of {known} cases of the baseline have no score in the run: {_some(names)}.",
                f"See why: assay show {b.run.id}",
                second.name,
            )
    matched = {second.name for _, second in pairs}
    if new := [trial.name for trial in b.trials if trial.name not in matched]:
        yield Doubt("unmatched", f"Not in the baseline, so not judged: {_some(new)}.")


def warn_about_cases_left_out(report: Report) -> Iterator[Doubt]:
    """Cases of the suite without a score in the run, such as those that `--limit` left out."""
    benchmarks = (
        {benchmark.id: len(benchmark.cases) for benchmark in report.suite.benchmarks} if report.suite else {}
    )
    for trial in report.trials:
        known, scored = benchmarks.get(trial.stored.trial.benchmark, 0), len(find_scored_cases(trial))
        if 0 < scored < known:
            yield Doubt(
                "missing",
                f"Only {scored} of {known} cases of the suite have a score in the run.",
                f"See why: assay show {report.run.id}",
                trial.name,
            )


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more

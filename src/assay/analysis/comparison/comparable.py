"""Warns about what else differs between two runs than what is compared.

Two results can only be compared if everything else is the same: machine, Python, params, kind of figures and cases. What
differs does not stop a comparison, but it is shown beside the verdicts with the values of both sides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from assay.analysis.comparison.compare import matching_trials
from assay.analysis.estimates.completion import incomplete_sides
from assay.analysis.estimates.scorer_failures import check_unscored_sides
from assay.analysis.estimates.treatment import differing_params
from assay.analysis.findings import early_end
from assay.model import Doubt, Environment, Kind, Report, TrialReport

_NAMED = 3
# Code of the doubt, path in the facts of an environment, plural for the message, hint.
_FACTS = (
    (
        "machine",
        ("cpu", "model"),
        "processors",
        "Times of different machines are not comparable: run both on one.",
    ),
    ("machine", ("cpu", "cores_logical"), "numbers of cores", "Run both on one machine."),
    ("machine", ("os", "system"), "operating systems", "Run both on one machine."),
    (
        "python",
        ("python", "version"),
        "Python versions",
        "Unless this is what is compared, run both with one.",
    ),
    (
        "python",
        ("python", "implementation"),
        "Python implementations",
        "Unless this is what is compared, use one.",
    ),
)


def comparable(a: Report, b: Report) -> tuple[Doubt, ...]:
    """What else differs between two sides than what is compared, with the values of both; each warning once."""
    of_runs: list[Doubt] = []
    for first, second in by_runs(a, b):
        for code, path, plural, hint in _FACTS:
            there, here = (_fact(side.run.environment, path) for side in (first, second))
            if there is not None and here is not None and there != here:
                of_runs.append(Doubt(code, f"The {plural} differ: '{there}' for A, '{here}' for B.", hint))
        # A test for a fixed number of pairs finds too much if pairs were made until the result looked decided.
        questions = dict.fromkeys(side.run.question for side in (first, second))
        of_runs += [early_end(one) for one in questions if one is not None and one.is_decided]
    found = (
        *check_unscored_sides(a, b),
        *incomplete_sides(a, b),
        *of_runs,
        *_kinds(a, b),
        *_check_recorded_times(a, b),
        *_params(a, b),
        *_check_unmatched_trials(a, b),
    )
    return tuple(dict.fromkeys(found))


def by_runs(a: Report, b: Report) -> list[tuple[Report, Report]]:
    """Both sides, split into parts that have one run on either side.

    An agent's side may have results of several runs, and noise between runs has to be looked up run by run.
    """
    parts: dict[tuple[str, str], list[tuple[TrialReport, TrialReport]]] = {}
    for first, second in matching_trials(a, b):
        parts.setdefault((a.run_of(first).id, b.run_of(second).id), []).append((first, second))
    if len(parts) < 2 and len(a.runs) == len(b.runs) == 1:
        return [(a, b)]
    return [
        (_part(a, [first for first, _ in pairs]), _part(b, [second for _, second in pairs]))
        for pairs in parts.values()
    ]


def _part(report: Report, trials: Sequence[TrialReport]) -> Report:
    return replace(report, run=report.run_of(trials[0]), trials=tuple(trials))


def _fact(environment: Environment, path: tuple[str, ...]) -> object:
    found: object = environment.facts
    for key in path:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def _kinds(a: Report, b: Report) -> Iterator[Doubt]:
    """Metrics that are measured on one side and simulated or recorded on the other, of trials that match."""
    differing: dict[str, tuple[Kind, Kind]] = {}
    for first, second in matching_trials(a, b):
        kinds = {estimate.metric.name: estimate.metric.kind for estimate in second.estimates}
        for metric in (estimate.metric for estimate in first.estimates):
            if kinds.get(metric.name, metric.kind) is not metric.kind:
                differing[metric.name] = metric.kind, kinds[metric.name]
    hint = "Figures that were obtained in different ways are not comparable."
    for side, letter in enumerate("AB"):
        if made_up := [f"'{name}'" for name, kinds in differing.items() if kinds[side] is Kind.SIMULATED]:
            are = "is" if len(made_up) == 1 else "are"
            yield Doubt("kind", f"{', '.join(made_up)} {are} simulated for {letter} only.", hint)
    for name, (first_kind, second_kind) in differing.items():
        if Kind.SIMULATED not in (first_kind, second_kind):
            yield Doubt("kind", f"'{name}' is {first_kind} for A, but {second_kind} for B.", hint)


def _check_recorded_times(a: Report, b: Report) -> Iterator[Doubt]:
    """A warning if the times of both sides are recorded. If only one side's are, `_kinds` warns."""
    for first, second in matching_trials(a, b):
        if (
            first.is_recorded
            and second.is_recorded
            and "seconds" in first.series
            and "seconds" in second.series
        ):
            yield Doubt(
                "recorded",
                "The times of both sides are recorded: whether they come from one machine and one time of day is unknown, so "
                "the verdict on them holds for cases, not for rounds of a run.",
                "To compare times for certain, run both agents together.",
            )
            return


def _params(a: Report, b: Report) -> Iterator[Doubt]:
    """Params that differ between matching trials: the verdict cannot tell their effects apart."""
    for first, second in matching_trials(a, b):
        names = differing_params(first, second)
        if names:
            there, here = first.stored.trial.params, second.stored.trial.params
            values = ", ".join(
                f"{name} '{there.get(name)}' for A, '{here.get(name)}' for B" for name in names
            )
            yield Doubt(
                "params", f"The params differ: {values}.", "The verdict is about all of them together."
            )


def _check_unmatched_trials(a: Report, b: Report) -> Iterator[Doubt]:
    """Trials that only one side has, and that are therefore not compared."""
    matched = matching_trials(a, b)
    parts = []
    for side, report, place in (("A", a, 0), ("B", b, 1)):
        known = {id(pair[place]) for pair in matched}
        if alone := [trial.name for trial in report.trials if id(trial) not in known]:
            more = f" and {len(alone) - _NAMED} more" if len(alone) > _NAMED else ""
            parts.append(f"{', '.join(alone[:_NAMED])}{more} (only in {side})")
    if parts:
        message = f"Not compared: {'; '.join(parts)}."
        yield Doubt("unmatched", message, "Trials match by benchmark, params and agent.")

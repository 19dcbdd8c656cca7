"""Whether two runs may be compared at all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from assay.analysis.compare import matching_trials
from assay.analysis.completion import incomplete_sides
from assay.analysis.findings import early_end
from assay.analysis.scorer_failures import unscored_sides
from assay.analysis.treatment import differing_params
from assay.model import Doubt, Environment, Kind, Report, TrialReport

_NAMED = 3
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
    """What else differs between two sides than what is compared, with the values of both."""
    doubts = (
        doubt
        for first, second in by_runs(a, b)
        for doubt in (*_environments(first, second), *_early_ends(first, second))
    )
    found = (
        *unscored_sides(a, b),
        *incomplete_sides(a, b),
        *doubts,
        *_kinds(a, b),
        *_recorded(a, b),
        *_params(a, b),
        *_unmatched(a, b),
    )
    return tuple(dict.fromkeys(found))


def by_runs(a: Report, b: Report) -> list[tuple[Report, Report]]:
    """Both sides, split so that each part is of one run on either side; a single part where each side is one run."""
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


def _early_ends(a: Report, b: Report) -> Iterator[Doubt]:
    """A test for a fixed number of pairs, of pairs that were made until one liked what one saw, finds too much."""
    for question in dict.fromkeys(side.run.question for side in (a, b)):
        if question is not None and question.is_decided:
            yield early_end(question)


def _environments(a: Report, b: Report) -> Iterator[Doubt]:
    for code, path, plural, hint in _FACTS:
        first, second = _fact(a.run.environment, path), _fact(b.run.environment, path)
        if first is not None and second is not None and first != second:
            yield Doubt(code, f"The {plural} differ: '{first}' for A, '{second}' for B.", hint)


def _fact(environment: Environment, path: tuple[str, ...]) -> object:
    found: object = environment.facts
    for key in path:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def _kinds(a: Report, b: Report) -> Iterator[Doubt]:
    """Of trials that are compared with each other: what else is in the runs does not matter."""
    differing: dict[str, tuple[Kind, Kind]] = {}
    for first, second in matching_trials(a, b):
        kinds = {estimate.metric.name: estimate.metric.kind for estimate in second.estimates}
        for metric in (estimate.metric for estimate in first.estimates):
            if kinds.get(metric.name, metric.kind) is not metric.kind:
                differing[metric.name] = metric.kind, kinds[metric.name]
    hint = "Numbers that came about in different ways do not compare."
    for side, letter in enumerate("AB"):
        if made_up := [f"'{name}'" for name, kinds in differing.items() if kinds[side] is Kind.SIMULATED]:
            are = "is" if len(made_up) == 1 else "are"
            yield Doubt("kind", f"{', '.join(made_up)} {are} simulated for {letter} only.", hint)
    for name, (first_kind, second_kind) in differing.items():
        if Kind.SIMULATED not in (first_kind, second_kind):
            yield Doubt("kind", f"'{name}' is {first_kind} for A, but {second_kind} for B.", hint)


def _recorded(a: Report, b: Report) -> Iterator[Doubt]:
    """Of times that were recorded on both sides; where only one is, they differ in kind."""
    for first, second in matching_trials(a, b):
        if (
            first.is_recorded
            and second.is_recorded
            and "seconds" in first.series
            and "seconds" in second.series
        ):
            yield Doubt(
                "recorded",
                "Both sides' times are recorded: that they come from one machine and one time of day is not known, so "
                "the verdict on them holds for cases, not for rounds of a run.",
                "To compare times for certain, run both agents together.",
            )
            return


def _params(a: Report, b: Report) -> Iterator[Doubt]:
    for first, second in matching_trials(a, b):
        names = differing_params(first, second)
        if names:
            there, here = first.stored.trial.params, second.stored.trial.params
            told = ", ".join(f"{name} '{there.get(name)}' for A, '{here.get(name)}' for B" for name in names)
            yield Doubt("params", f"The params differ: {told}.", "The verdict is about all of them together.")


def _unmatched(a: Report, b: Report) -> Iterator[Doubt]:
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

"""Two versions of an agent, held against each other point by point."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from assay.analysis.compare import matching_trials
from assay.analysis.completion import inner_name, with_completion
from assay.analysis.flips import flips_between
from assay.analysis.floor import steadied
from assay.analysis.gate import Tolerances, compare_within, family_of, shared_metrics
from assay.analysis.losses import depends_on_machine
from assay.analysis.pace import moved_by, pace_of
from assay.analysis.patterns import patterns_in
from assay.analysis.regressions import Sides, by_breakage, by_comparison
from assay.execute.noise import Noise
from assay.model import Comparison, Doubt, Report, Verdict
from assay.model.regression import MetricHistory, Pace, Pattern, Regression
from assay.model.showdown import Flips
from assay.pipeline.record import Chosen, Record, TrialHistories, machine_of, report_on, unlikeness
from assay.pipeline.tolerating import history_floors, known_floors, session_errors
from assay.store.history import AgentTrial
from assay.store.store import Store
from assay.units import percent


@dataclass(frozen=True, slots=True)
class Against:
    """The other side: its version, what it is called, and its trials."""

    version: str
    told: str
    trials: Chosen


@dataclass(frozen=True, slots=True)
class Measure:
    """What a difference is measured by: a tolerance that was asked for, and what earlier runs differ by."""

    tolerance: float | None = None
    histories: Sequence[MetricHistory] = ()
    metrics: tuple[str, ...] = ()
    """To judge only these; without any, the default family."""


@dataclass(frozen=True, slots=True)
class GateFindings:
    """What came of holding one side against the other."""

    comparisons: tuple[Comparison, ...] = ()
    places: Mapping[str, str] = field(default_factory=dict)
    """Name of a trial to the label of its point."""
    regressions: tuple[Regression, ...] = ()
    patterns: tuple[Pattern, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    machine: str = ""
    """Why its times are not to be trusted."""
    flips: tuple[Flips, ...] = ()
    """Cases lost and won, one for each point of a suite."""

    def has(self, label: str) -> bool:
        """Whether both sides did this point."""
        return label in self.places.values()

    def of(self, label: str, metric: str) -> Comparison | None:
        found = (one for one in self.comparisons if self.places[one.trial_b] == label)
        return next((one for one in found if one.metric.name == metric), None)


Pairs = Mapping[str, tuple[AgentTrial, AgentTrial]]
"""Label of a point to its trials on both sides."""


def held(
    store: Store, record: Record, current: Chosen, against: Against, by: Measure | None = None
) -> GateFindings:
    """Points where both sides asked the same, with the metrics that their machines allow to compare."""
    pairs, doubts = _pairs(current, against)
    if not pairs:
        return GateFindings(
            doubts=(*doubts, Doubt("unmatched", f"Nothing can be compared with {against.told}."))
        )
    a, b = with_completion(
        report_on(store, [first for first, _ in pairs.values()]),
        report_on(store, [second for _, second in pairs.values()]),
    )
    moved_house = _moved_house(pairs)
    pace = moved_by(*(_paces(pair[side] for pair in pairs.values()) for side in (0, 1)))
    sides = _sides(record, against, pairs, (a, b), pace)
    measure = by or Measure()
    names = {label: second.name for label, (_, second) in sides.pairs.items()}
    histories = [(names[one.benchmark], one) for one in measure.histories if one.benchmark in names]
    noise = _Noise(store, histories, {second.run_id for _, second in pairs.values()})
    comparisons = _compared(a, b, noise, measure, across_machines=bool(moved_house))
    worse = by_comparison(comparisons, sides)
    return GateFindings(
        comparisons=comparisons,
        places={second.name: label for label, (_, second) in sides.pairs.items()},
        regressions=(*worse, *by_breakage(sides, worse)),
        patterns=patterns_in(comparisons, pace),
        doubts=(*doubts, *([Doubt("machine", moved_house)] if moved_house else [])),
        machine=moved_house or _slower(pace, comparisons) or _noisy(pairs, comparisons),
        flips=tuple(flips_between(*pair) for pair in sides.pairs.values() if pair[1].ratings is not None),
    )


@dataclass(frozen=True, slots=True)
class _Noise:
    """Where to look up what runs differ by though nothing changed."""

    store: Store
    histories: TrialHistories
    judged: Collection[str]
    """Runs that are no part of what is known, because they are what is asked about."""


def _compared(
    a: Report, b: Report, noise: _Noise, by: Measure, *, across_machines: bool
) -> tuple[Comparison, ...]:
    shared = {
        name: metric
        for name, metric in shared_metrics(a, b).items()
        if not (across_machines and depends_on_machine(metric))
    }
    asked = [inner_name(name) for name in by.metrics if inner_name(name) in shared]
    chosen = asked if by.metrics else family_of(a, b, shared)
    known = known_floors(noise.store, a, b)
    sessions = session_errors(known, noise.histories, a, b, noise.judged)
    comparisons = compare_within(a, b, chosen, Tolerances(by.tolerance), sessions=sessions)
    if by.tolerance is not None:
        return comparisons
    return steadied(comparisons, history_floors(noise.histories, noise.judged))


def _pairs(current: Chosen, against: Against) -> tuple[Pairs, list[Doubt]]:
    pairs: dict[str, tuple[AgentTrial, AgentTrial]] = {}
    doubts: list[Doubt] = []
    for label, trial in current.items():
        other = against.trials.get(label)
        if other is None:
            doubts.append(Doubt("unmatched", f"{label} has no counterpart in {against.told}."))
        elif told := unlikeness(other, trial):
            doubts.append(Doubt("unlike", f"{label} is not compared with {against.told}: {told}."))
        else:
            pairs[label] = other, trial
    return pairs, doubts


def _moved_house(pairs: Pairs) -> str:
    for first, second in pairs.values():
        there, here = machine_of(first), machine_of(second)
        if there != here:
            return f"The machine changed ({there}; now {here}), so times and memory are not compared. Run both on one."
    return ""


def _sides(
    record: Record, against: Against, pairs: Pairs, reports: tuple[Report, Report], pace: float | None
) -> Sides:
    a, b = reports
    labels = {second.trial_id: label for label, (_, second) in pairs.items()}
    matched = {labels[second.stored.id]: (first, second) for first, second in matching_trials(a, b)}
    before, after = against.version, record.version
    if before == after:
        runs = [next(iter(pairs.values()))[side].run_id for side in (0, 1)]
        before, after = (
            f"{version} run {run}".strip() for version, run in zip((before, after), runs, strict=True)
        )
    rubrics = {one.id: one.rubric for one in b.suite.benchmarks} if b.suite else {}
    return Sides(record.agent, record.suite, before, after, matched, rubrics, pace)


def _paces(trials: Iterable[AgentTrial]) -> list[Pace | None]:
    """One a run: its trials share it."""
    return [pace_of(facts) for facts in {trial.run_id: trial.facts for trial in trials}.values()]


def _slower(pace: float | None, comparisons: Sequence[Comparison]) -> str:
    if pace is None or not _is_in_doubt(comparisons):
        return ""
    told = f"{percent(abs(pace - 1))} {'slower' if pace > 1 else 'faster'}"
    return f"The machine itself was {told} at a fixed piece of work, so the times may be its doing. Run both sides anew."


def _noisy(pairs: Pairs, comparisons: Sequence[Comparison]) -> str:
    if not _is_in_doubt(comparisons):
        return ""
    noisy = {trial.run_id for pair in pairs.values() for trial in pair if _is_noisy(trial)}
    told = ", ".join(sorted(noisy))
    return f"The machine was noisy when run {told} began. Run again when it is idle." if noisy else ""


def _is_noisy(trial: AgentTrial) -> bool:
    try:
        return Noise(**trial.facts["noise"]).is_noisy
    except (KeyError, TypeError):
        return False  # made before there was such a probe, or where it could not work


def _is_in_doubt(comparisons: Sequence[Comparison]) -> bool:
    """Whether a figure that depends on the machine is worse, or cannot be told."""
    open_questions = (Verdict.WORSE, Verdict.UNSURE)
    return any(one.verdict in open_questions and depends_on_machine(one.metric) for one in comparisons)

"""Compares two versions of an agent point by point, for `assay regressions`.

Only points where both versions were asked the same are compared, and only metrics that their machines allow to compare. The
result also says whether the machine may be to blame: another machine, a slower one, or a noisy one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from assay.analysis.comparison.compare import matching_trials
from assay.analysis.comparison.flips import flips_between
from assay.analysis.comparison.gate import compare_within, family_of, find_common_metrics
from assay.analysis.comparison.policy import KnownNoise, Tolerances
from assay.analysis.comparison.severity import depends_on_machine
from assay.analysis.estimates.completion import inner_name, with_completion
from assay.analysis.estimates.machine_speed import compute_slowdown, pace_of
from assay.analysis.history.patterns import patterns_in
from assay.analysis.history.regressions import Sides, by_comparison, find_broken_benchmarks
from assay.execute.noise import Noise
from assay.model import Comparison, Doubt, Report, Verdict
from assay.model.head_to_head import Flips
from assay.model.regression import MetricHistory, Pattern, Regression
from assay.pipeline.agent_history import Chosen, Record, machine_of, report_on, unlikeness
from assay.pipeline.tolerances import read_noise
from assay.store.history import AgentTrial
from assay.store.store import Store
from assay.units import percent


@dataclass(frozen=True, slots=True)
class Against:
    """The side to compare with: its version, its name in messages, and its trials."""

    version: str
    told: str
    trials: Chosen


@dataclass(frozen=True, slots=True)
class Measure:
    """How to judge differences: the user's tolerance, the histories that show the noise between runs, and the metrics."""

    tolerance: float | None = None
    histories: Sequence[MetricHistory] = ()
    metrics: tuple[str, ...] = ()
    """To judge only these; without any, the default family."""


@dataclass(frozen=True, slots=True)
class GateFindings:
    """The result of comparing one side with the other."""

    comparisons: tuple[Comparison, ...] = ()
    places: Mapping[str, str] = field(default_factory=dict)
    """Name of a trial to the label of its point."""
    regressions: tuple[Regression, ...] = ()
    patterns: tuple[Pattern, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    machine: str = ""
    """Why its times cannot be trusted; empty if they can."""
    flips: tuple[Flips, ...] = ()
    """Cases lost and won, one for each point of a suite."""

    def has(self, label: str) -> bool:
        """Whether both sides did this point."""
        return label in self.places.values()

    def of(self, label: str, metric: str) -> Comparison | None:
        found = (comparison for comparison in self.comparisons if self.places[comparison.trial_b] == label)
        return next((comparison for comparison in found if comparison.metric.name == metric), None)


Pairs = Mapping[str, tuple[AgentTrial, AgentTrial]]
"""Label of a point to its trials on both sides."""


def compare_against(
    store: Store, record: Record, current: Chosen, against: Against, by: Measure | None = None
) -> GateFindings:
    """Compare the points where both sides asked the same, by the metrics that their machines allow to
    compare.

    All points form one family of tests. If a single pair ran on different kinds of machines, times and
    memory of no pair are compared, because one family has one set of metrics. What a slower machine would
    explain is a pattern beside the verdicts.
    """
    pairs, doubts = _pairs(current, against)
    if not pairs:
        return GateFindings(
            doubts=(*doubts, Doubt("unmatched", f"Nothing can be compared with {against.told}."))
        )
    a, b = with_completion(
        report_on(store, [first for first, _ in pairs.values()]),
        report_on(store, [second for _, second in pairs.values()]),
    )
    # One pair on a different kind of machine is enough: all points form one family of tests, which is compared by one set of metrics.
    moved_house = ""
    for first, second in pairs.values():
        machine_before, machine_now = machine_of(first), machine_of(second)
        if machine_before != machine_now:
            moved_house = f"The machine changed ({machine_before}; now {machine_now}), so times and memory are not compared. Run both on the same machine."
            break
    # The trials of a run share its pace, so each run counts once.
    facts = [{pair[side].run_id: pair[side].facts for pair in pairs.values()} for side in (0, 1)]
    pace = compute_slowdown(*([pace_of(environment) for environment in by_run.values()] for by_run in facts))
    sides = _sides(record, against, pairs, (a, b))
    measure = by or Measure()
    names = {label: second.name for label, (_, second) in sides.pairs.items()}
    histories = [
        (names[history.benchmark], history) for history in measure.histories if history.benchmark in names
    ]
    judged = {second.run_id for _, second in pairs.values()}
    noise = read_noise(store, a, b, histories, judged).noise
    comparisons = _compare_metrics(a, b, noise, measure, across_machines=bool(moved_house))
    worse = by_comparison(comparisons, sides)
    return GateFindings(
        comparisons=comparisons,
        places={second.name: label for label, (_, second) in sides.pairs.items()},
        regressions=(*worse, *find_broken_benchmarks(sides, worse)),
        patterns=patterns_in(comparisons, pace),
        doubts=(*doubts, *([Doubt("machine", moved_house)] if moved_house else [])),
        machine=moved_house or _blame_machine(pace, pairs, comparisons),
        flips=tuple(flips_between(*pair) for pair in sides.pairs.values() if pair[1].ratings is not None),
    )


def _compare_metrics(
    a: Report, b: Report, noise: KnownNoise, by: Measure, *, across_machines: bool
) -> tuple[Comparison, ...]:
    """Compare the metrics that were asked for or the default family; across machines only those that allow it."""
    shared = {
        name: metric
        for name, metric in find_common_metrics(a, b).items()
        if not (across_machines and depends_on_machine(metric))
    }
    requested = [inner_name(name) for name in by.metrics if inner_name(name) in shared]
    chosen = requested if by.metrics else family_of(a, b, shared)
    return compare_within(a, b, chosen, Tolerances(by.tolerance), noise=noise)


def _pairs(current: Chosen, against: Against) -> tuple[Pairs, list[Doubt]]:
    """The points that both versions ran alike, and a warning for each of the others."""
    pairs: dict[str, tuple[AgentTrial, AgentTrial]] = {}
    doubts: list[Doubt] = []
    for label, trial in current.items():
        other = against.trials.get(label)
        if other is None:
            doubts.append(Doubt("unmatched", f"{label} has no matching trial in {against.told}."))
        elif reason := unlikeness(other, trial):
            doubts.append(Doubt("unlike", f"{label} is not compared with {against.told}: {reason}."))
        else:
            pairs[label] = other, trial
    return pairs, doubts


def _sides(record: Record, against: Against, pairs: Pairs, reports: tuple[Report, Report]) -> Sides:
    """Build both sides for `history/regressions.py`; two runs of one version are named by their run ids."""
    a, b = reports
    labels = {second.trial_id: label for label, (_, second) in pairs.items()}
    matched = {labels[second.stored.id]: (first, second) for first, second in matching_trials(a, b)}
    before, after = against.version, record.version
    if before == after:
        runs = [next(iter(pairs.values()))[side].run_id for side in (0, 1)]
        before, after = (
            f"{version} run {run}".strip() for version, run in zip((before, after), runs, strict=True)
        )
    rubrics = {benchmark.id: benchmark.rubric for benchmark in b.suite.benchmarks} if b.suite else {}
    return Sides(record.agent, record.suite, before, after, matched, rubrics)


def _blame_machine(pace: float | None, pairs: Pairs, comparisons: Sequence[Comparison]) -> str:
    """Why the times cannot be trusted: the machine was slower or faster, or noisy. Empty if no time is in doubt."""
    if not _is_in_doubt(comparisons):
        return ""
    if pace is not None:
        change = f"{percent(abs(pace - 1))} {'slower' if pace > 1 else 'faster'}"
        return f"The machine itself was {change} on a fixed workload, which may explain the times. Run both sides again."
    noisy = set()
    for trial in (trial for pair in pairs.values() for trial in pair):
        # Runs of older versions, and runs on machines where the probe does not work, have no such facts.
        with contextlib.suppress(KeyError, TypeError):
            if Noise(**trial.facts["noise"]).is_noisy:
                noisy.add(trial.run_id)
    if not noisy:
        return ""
    return f"The machine was noisy when run {', '.join(sorted(noisy))} began. Run again when it is idle."


def _is_in_doubt(comparisons: Sequence[Comparison]) -> bool:
    """Whether a metric that depends on the machine is worse or unsure."""
    open_questions = (Verdict.WORSE, Verdict.UNSURE)
    return any(
        comparison.verdict in open_questions and depends_on_machine(comparison.metric)
        for comparison in comparisons
    )

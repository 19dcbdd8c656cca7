"""Forecasts how much must be run before `assay compare` finds a difference of a given size (`assay power`).

It simulates that very comparison: models of the stored results (`power_model.py`) are drawn from hundreds of times, with the
difference planted, and each draw goes through the same contrasts and the same policy as a real comparison. The power at a
size is the share of draws that end with a claim. `assay.stats.search` looks for the smallest number of cases, processes or
repetitions with 80 % power. Because p values are corrected over the whole family, the other metrics and benchmarks are
simulated as well, without a difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from statistics import median
from typing import cast

import numpy as np

from assay.analysis.comparison.compare import find_contrasts
from assay.analysis.comparison.default_metrics import default_family
from assay.analysis.comparison.policy import KnownNoise, Sessions, judge_first
from assay.analysis.comparison.power_model import Chance, PairModel, model_cases, model_processes
from assay.analysis.comparison.verdict import POWER, Contrast
from assay.analysis.estimates.replication import observe
from assay.analysis.estimates.treatment import same_value
from assay.model import AgentVersion, Comparison, Metric, Series, TrialReport, Verdict
from assay.model.metric import is_score
from assay.model.precision import Need, SimulatedPower
from assay.stats.sample import Array
from assay.stats.search import FINAL as SIMULATIONS
from assay.stats.search import Successes, smallest_size
from assay.stats.variance import compute_paired_variances
from assay.stats.verdicts import wilson
from assay.units import format_count, percent

MOST_CASES = 5_000
MOST_PROCESSES = 300
MOST_REPETITIONS = 100
NOW = 100
"""The fewest simulations of the size that is already stored."""
NULLS = 40
"""Simulated comparisons without a difference, for each other metric and benchmark; they are used in turn."""
_ENOUGH_UNITS = 10
_ENOUGH_REPETITIONS = 5
_CLAIMS = (Verdict.BETTER, Verdict.WORSE)

Progress = Callable[[int, int, str], None]
"""Called with the number of forecasts made, their total, and the name of the next one."""


def needs(
    trials: Sequence[TrialReport],
    effect: float,
    metrics: Sequence[str] = (),
    *,
    noise: KnownNoise | None = None,
    progress: Progress | None = None,
) -> Iterator[Need]:
    """What every benchmark and metric needs; `trials` are the latest of each agent.

    Without `metrics`, those that `assay compare` judges by default. What is judged together is corrected together.
    """
    members = list(_members(trials, metrics))
    family = _Family(members, noise or KnownNoise())
    targets = [member for member in members if member.model is not None and member.is_first]
    for number, member in enumerate(targets):
        if progress is not None:
            progress(number, len(targets), f"{member.benchmark}, {member.metric.name}")
        yield _Forecast(family, member, effect).need(trials)


@dataclass(frozen=True, slots=True)
class Size:
    """The size of one side of a comparison: cases or processes, and repetitions of each."""

    units: int
    repetitions: int


@dataclass(frozen=True, slots=True)
class _Member:
    """One metric of one benchmark: one of the comparisons of a family, with the model to draw it from."""

    a: TrialReport
    b: TrialReport
    metric: Metric
    model: PairModel | None
    """None if stored results do not show what it varies by."""
    there: int
    repetitions: int
    basis: str
    is_first: bool
    """Whether it stands for its benchmark. Of a sweep, only the first point does."""

    @property
    def benchmark(self) -> str:
        return self.a.stored.trial.benchmark

    @property
    def unit(self) -> str:
        return self.a.series[self.metric.name].unit

    @property
    def in_one_run(self) -> bool:
        """Agents of a suite run together and take turns; versions of code run one after the other."""
        return self.a.stored.trial.agent_use is not None

    def contrasts(self, a: TrialReport, b: TrialReport, sessions: Sessions | None) -> list[Contrast]:
        return find_contrasts(a, b, [self.metric.name], interleaved=self.in_one_run, sessions=sessions)

    @property
    def unit_name(self) -> str:
        return "cases" if self.unit == "case" else "processes"

    def simulate(self, model: PairModel, chance: Chance, size: Size) -> tuple[TrialReport, TrialReport]:
        samples = model.draw(chance, size.units, size.repetitions)
        first, second = (
            replace(trial, series={self.metric.name: _series(values, self.unit)})
            for trial, values in zip((self.a, self.b), samples, strict=True)
        )
        return first, second


def _series(values: Array, unit: str) -> Series:
    units, repetitions = values.shape
    return Series(
        cast(Sequence[int], np.repeat(np.arange(units), repetitions)),
        cast(Sequence[int], np.tile(np.arange(repetitions), units)),
        cast(Sequence[float], values.ravel()),
        unit=unit,
    )


def _members(trials: Sequence[TrialReport], metrics: Sequence[str]) -> Iterator[_Member]:
    """The family that `assay compare` would judge: every metric of every point that has results."""
    seen: set[tuple[str, str]] = set()
    for point in _points(trials):
        remark = _about_simulated(point)
        rivals = [trial for trial in point if not trial.is_simulated] or point
        known = {
            estimate.metric.name: estimate.metric
            for trial in rivals
            for estimate in trial.estimates
            if estimate.n
        }
        declared = frozenset(name for trial in rivals for name in trial.declared)
        for name in metrics or default_family(known.values(), declared):
            having = [
                trial
                for trial in rivals
                if name in known
                and name in trial.series
                and any(estimate.metric.name == name and estimate.n for estimate in trial.estimates)
            ]
            if having:
                key = having[0].stored.trial.benchmark, name
                member = _member(having, known[name], is_first=key not in seen)
                seen.add(key)
                yield replace(member, basis=member.basis + remark)


def _points(trials: Sequence[TrialReport]) -> list[list[TrialReport]]:
    """Trials grouped by benchmark and params."""
    points: dict[str, list[TrialReport]] = {}
    for trial in trials:
        planned = trial.stored.trial
        points.setdefault(same_value([planned.benchmark, dict(planned.params)]), []).append(trial)
    return list(points.values())


def _about_simulated(trials: Sequence[TrialReport]) -> str:
    simulated = [trial for trial in trials if trial.is_simulated]
    if not simulated:
        return ""
    if len(simulated) == len(trials):
        return "; all results are simulated"
    names = dict.fromkeys(trial.stored.trial.agent.name for trial in simulated)
    return f"; simulated, so left out: {', '.join(names)}"


def _member(trials: Sequence[TrialReport], metric: Metric, *, is_first: bool) -> _Member:
    """Choose the trials that stand for both sides of the comparison that is planned.

    For code it is the trial with the most processes, because it shows best what processes vary by. For a
    suite it is a typical pair of agents.
    """
    series = [trial.series[metric.name] for trial in trials]
    if series[0].unit != "case":
        place = max(range(len(series)), key=lambda index: observe(series[index]).process_count)
        seen = observe(series[place])
        model: PairModel | None = None if is_score(metric) else model_processes(series[place])
        a = b = _bare(trials[place], metric)
        repetitions = max(1, seen.values.size // max(1, seen.process_count))
        return _Member(
            a, b, metric, model, seen.process_count, repetitions, f"{seen.process_count} stored processes", is_first
        )  # fmt: skip
    first, second, basis = _pair(trials, metric)
    side_a = _bare(first, metric)
    if second:
        side_b = _bare(second, metric)
    else:
        # The trial of another agent that got the same results.
        planned = first.stored.trial
        agent = AgentVersion(f"another agent like {planned.agent.name}", planned.agent.version)
        side_b = replace(side_a, stored=replace(first.stored, trial=replace(planned, agent=agent)))
    model = model_cases(metric, first.series[metric.name], second.series[metric.name] if second else None)
    sides = [side.series[metric.name] for side in (first, second) if side]
    counts = [np.unique(np.asarray(side.processes), return_counts=True)[1] for side in sides]
    return _Member(
        side_a,
        side_b,
        metric,
        model,
        max(side.size for side in counts),
        max(1, round(median(np.concatenate(counts).tolist()))),
        basis,
        is_first,
    )


def _bare(trial: TrialReport, metric: Metric) -> TrialReport:
    """The trial with this metric alone, so that a simulated copy is cheap."""
    return replace(
        trial,
        estimates=tuple(estimate for estimate in trial.estimates if estimate.metric.name == metric.name),
        series={metric.name: trial.series[metric.name]},
        executions=(),
        failures=(),
    )


def _pair(trials: Sequence[TrialReport], metric: Metric) -> tuple[TrialReport, TrialReport | None, str]:
    """The pair of agents with the median variance between cases of their difference; if there is no pair, the only agent."""
    pairs = []
    for first, second in combinations(trials, 2):
        means_a, means_b = (observe(side.series[metric.name]).means for side in (first, second))
        shared = sorted(means_a.keys() & means_b.keys())
        variances = compute_paired_variances([means_a[c] for c in shared], [means_b[c] for c in shared])
        if first.stored.trial.agent.name != second.stored.trial.agent.name and variances is not None:
            pairs.append((variances.case, first, second))
    if not pairs:
        return trials[0], None, "one stored agent; the second is assumed to behave like it"
    pairs.sort(key=lambda pair: pair[0])
    _, first, second = pairs[len(pairs) // 2]
    names = " and ".join(f"'{trial.stored.trial.agent.name}'" for trial in (first, second))
    if len(pairs) == 1:
        return first, second, f"the stored agents {names}"
    return first, second, f"the stored agents {names}, the median of {len(pairs)} pairs"


@dataclass(slots=True)
class _Family:
    """All comparisons that one `assay compare` makes: its p values are corrected over all of them."""

    members: Sequence[_Member]
    noise: KnownNoise
    nulls: dict[tuple[int, int], list[list[Contrast]]] = field(default_factory=dict)
    """Contrasts without a difference, by the member's place and the number of repetitions."""

    def verdict(self, member: _Member, model: PairModel, chance: Chance, size: Size) -> Comparison:
        """The verdict of one simulated comparison of `member`, judged together with the rest of the family."""
        a, b = member.simulate(model, chance, size)
        contrasts = member.contrasts(a, b, self.noise.sessions)
        for place, other in enumerate(self.members):
            if other is not member:
                pool = self._null_contrasts(place, other, size.repetitions)
                # Steps of different lengths, so that not always the same draws meet.
                contrasts += pool[chance.number * (2 * place + 1) % len(pool)]
        # What runs of the past differ by says nothing about two sides that take turns in one run.
        noise = replace(self.noise, history={}) if member.in_one_run else self.noise
        return judge_first(contrasts, noise)

    def _null_contrasts(self, place: int, member: _Member, repetitions: int) -> list[list[Contrast]]:
        """Contrasts of a member without a difference, simulated once.

        With few repetitions a metric may get no p value and leave the family; beyond that their number hardly matters.
        """
        repetitions = min(repetitions, max(_ENOUGH_REPETITIONS, member.repetitions))
        if (place, repetitions) not in self.nulls:
            self.nulls[place, repetitions] = _find_null_contrasts(
                member, place, repetitions, self.noise.sessions
            )
        return self.nulls[place, repetitions]


def _find_null_contrasts(
    member: _Member, place: int, repetitions: int, sessions: Sessions | None
) -> list[list[Contrast]]:
    """Contrasts of one member of the family in which nothing differs: simulated where a model exists, else those of the
    data."""
    if member.model is None:
        return [member.contrasts(member.a, member.b, sessions)]
    model, size = member.model.plant(0.0), Size(max(member.there, _ENOUGH_UNITS), repetitions)
    chances = [Chance(1_000_000 * (place + 1) + number) for number in range(NULLS)]
    return [member.contrasts(*member.simulate(model, chance, size), sessions) for chance in chances]


@dataclass(frozen=True, slots=True)
class _Forecast:
    """The forecast for one benchmark and metric, with a difference of size `effect` planted.

    It simulates: results of a given size are drawn from a model of the stored ones, the difference is
    planted on one side, and the comparison of `assay compare` judges them. The power of a size is the
    share of simulations in which the difference was claimed. The smallest sufficient number of units and
    of repetitions are searched separately.
    """

    family: _Family
    member: _Member
    effect: float

    def need(self, trials: Sequence[TrialReport]) -> Need:
        """The forecast: the smallest number of units, and the smallest number of repetitions, with enough power."""
        member = self.member
        by_case = member.unit == "case"
        most = MOST_CASES if by_case else MOST_PROCESSES
        by_units = self._by_units()
        units = smallest_size(by_units, member.there, 2, most, POWER)
        by_units.simulate(member.there, NOW)
        by_repetitions = self._by_repetitions() if by_case and member.repetitions > 1 else None
        more = (
            smallest_size(by_repetitions, member.repetitions, 1, MOST_REPETITIONS, POWER)
            if by_repetitions
            else None
        )
        why_not_more = ""
        if by_repetitions is None:
            why_not_more = "with one stored repetition, the variation between repetitions is unknown; run with --repetitions 3"
        elif more is None:
            why_not_more = self._explain_low_power(by_repetitions, Size(member.there, MOST_REPETITIONS))
        own = [trial for trial in trials if trial.stored.trial.benchmark == member.benchmark]
        executions = self._executions(units, more, points=1 if by_case else len(own))
        seconds, usd = _mean(own, "seconds"), _mean(own, "usd")
        at_once = max(trial.stored.trial.concurrency for trial in own)
        return Need(
            benchmark=member.benchmark,
            metric=member.metric,
            effect=self.effect,
            unit=member.unit,
            there=member.there,
            units=units,
            repetitions=member.repetitions,
            more_repetitions=more,
            executions=executions,
            minutes=None if seconds is None or executions is None else seconds * executions / at_once / 60,
            usd=None if usd is None or executions is None else usd * executions,
            basis=member.basis,
            family=len(self.family.members),
            power_now=_power(by_units, member.there),
            power_units=_power(by_units, units),
            power_repetitions=_power(by_repetitions, more) if by_repetitions else None,
            why_not_units=self._explain_low_power(by_units, Size(most, member.repetitions))
            if units is None
            else "",
            why_not_repetitions=why_not_more if by_case else "",
        )

    def _executions(self, units: int | None, repetitions: int | None, points: int) -> int | None:
        """Executions of both sides by the cheaper way, more units or more repetitions; all `points` of a sweep are run."""
        ways = [
            left * right
            for left, right in ((units, self.member.repetitions), (self.member.there, repetitions))
            if left is not None and right is not None
        ]
        return 2 * points * min(ways) if ways else None

    def _by_units(self) -> Successes:
        """Counts how often the difference is found, by number of units, with the stored number of repetitions."""
        model, repetitions = self._plant_effect(), self.member.repetitions

        def is_found(units: int, number: int) -> bool:
            return self._verdict(model, Chance(number), Size(units, repetitions)).verdict in _CLAIMS

        return Successes(is_found)

    def _by_repetitions(self) -> Successes:
        """Counts how often the difference is found, by number of repetitions, with the stored cases."""
        model, units = self._plant_effect(), self.member.there

        def is_found(repetitions: int, number: int) -> bool:
            chance = Chance(number, grows_by_round=True)
            return self._verdict(model, chance, Size(units, repetitions)).verdict in _CLAIMS

        return Successes(is_found)

    def _plant_effect(self) -> PairModel:
        assert self.member.model is not None
        return self.member.model.plant(self.effect)

    def _verdict(self, model: PairModel, chance: Chance, size: Size) -> Comparison:
        return self.family.verdict(self.member, model, chance, size)

    def _explain_low_power(self, successes: Successes, size: Size) -> str:
        """How often the difference is found at the largest size, and what keeps the comparison from finding it more often."""
        unit = self.member.unit_name
        power = f"with {size.units:,} {unit} × {format_count(size.repetitions, 'repetition')}, the power is {percent(successes.largest_share)}"
        model = self._plant_effect()
        verdicts = (self._verdict(model, Chance(number), size) for number in range(SIMULATIONS))
        missed = next((comparison for comparison in verdicts if comparison.verdict not in _CLAIMS), None)
        if missed is not None and missed.tolerance >= self.effect:
            return f"{power}; differences within {percent(missed.tolerance)} are not claimed"
        if missed is not None and missed.p_corrected is None:
            return f"{power}; `assay compare` would say: {missed.reason}"
        return power


def _power(successes: Successes, size: int | None) -> SimulatedPower | None:
    if size is None:
        return None
    found, simulated = successes.counts[size]
    return SimulatedPower(found / simulated, *wilson(found / simulated, simulated), simulated)


def _mean(trials: Sequence[TrialReport], name: str) -> float | None:
    """The mean of a metric over the trials; None if it is unknown for one of them."""
    found = [
        [estimate.mean for estimate in trial.estimates if estimate.metric.name == name and estimate.n]
        for trial in trials
    ]
    return float(np.mean([values[0] for values in found])) if all(found) else None

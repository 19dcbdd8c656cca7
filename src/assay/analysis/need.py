"""How much must be run before `assay compare` finds a difference of a given size, by simulating that very comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from statistics import median
from typing import cast

import numpy as np

from assay.analysis.compare import find_contrasts
from assay.analysis.family import default_family
from assay.analysis.floor import steadied
from assay.analysis.power_model import Chance, PairModel, model_cases, model_processes
from assay.analysis.replication import observed
from assay.analysis.same import same_value
from assay.analysis.verdict import Contrast, Floors, Sessions, judged
from assay.model import AgentVersion, Comparison, Metric, Series, TrialReport, Verdict
from assay.model.metric import is_score
from assay.model.precision import Need, SimulatedPower
from assay.stats.paired_variances import paired_variances
from assay.stats.sample import Array
from assay.stats.search import FINAL as SIMULATIONS
from assay.stats.search import Successes, smallest_size
from assay.stats.verdicts import wilson
from assay.units import percent

POWER = 0.8
MOST_CASES = 5_000
MOST_PROCESSES = 300
MOST_REPETITIONS = 100
NOW = 100
"""Simulations of what is there, at the least."""
NULLS = 40
"""Simulated comparisons without a difference of each other metric and benchmark, which serve in turn."""
_ENOUGH_UNITS = 10
_ENOUGH_REPETITIONS = 5
_CLAIMS = (Verdict.BETTER, Verdict.WORSE)

Progress = Callable[[int, int, str], None]
"""Told how many of how many forecasts are made, and which is under way."""


def needs(
    trials: Sequence[TrialReport],
    effect: float,
    metrics: Sequence[str] = (),
    *,
    noise: KnownNoise | None = None,
    progress: Progress | None = None,
) -> Iterator[Need]:
    """Of every benchmark and metric of a comparison over these trials, the latest of each agent.

    Without `metrics`, of those that `assay compare` judges unasked. What is judged together is corrected together.
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
    """Of one side of a comparison: cases, or processes, and repetitions of each."""

    units: int
    repetitions: int


@dataclass(frozen=True, slots=True)
class KnownNoise:
    """By trial and metric, what results differ by though nothing changed."""

    repeated: Floors = field(default_factory=dict)
    """From A/A runs: they widen the tolerance."""
    history: Floors = field(default_factory=dict)
    """From earlier runs: claims of two runs that are no larger are unsure."""
    sessions: Sessions | None = None
    """Errors of the difference of two runs; None leaves them out, and where one is missing, times of two runs are unsure."""


@dataclass(frozen=True, slots=True)
class _Member:
    """One metric of one benchmark: what one of the comparisons of a family is about."""

    a: TrialReport
    b: TrialReport
    metric: Metric
    model: PairModel | None
    """None where stored results do not tell what it varies by."""
    there: int
    repetitions: int
    basis: str
    is_first: bool
    """Whether it stands for its benchmark: the first point of a sweep does."""

    @property
    def benchmark(self) -> str:
        return self.a.stored.trial.benchmark

    @property
    def unit(self) -> str:
        return self.a.series[self.metric.name].unit

    @property
    def in_one_run(self) -> bool:
        """Agents of a suite are run together and take turns; of code, one version is run after the other."""
        return self.a.stored.trial.agent_use is not None

    def contrasts(self, a: TrialReport, b: TrialReport, sessions: Sessions | None) -> list[Contrast]:
        return find_contrasts(a, b, [self.metric.name], interleaved=self.in_one_run, sessions=sessions)

    @property
    def unit_name(self) -> str:
        return "cases" if self.unit == "case" else "processes"

    def simulate(self, model: PairModel, chance: Chance, size: Size) -> tuple[TrialReport, TrialReport]:
        drawn = model.draw(chance, size.units, size.repetitions)
        first, second = (
            replace(trial, series={self.metric.name: _series(values, self.unit)})
            for trial, values in zip((self.a, self.b), drawn, strict=True)
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
    seen: set[tuple[str, str]] = set()
    for point in _points(trials):
        remark = _about_simulated(point)
        rivals = [trial for trial in point if not trial.is_simulated] or point
        known = {one.metric.name: one.metric for trial in rivals for one in trial.estimates if one.n}
        declared = frozenset(name for trial in rivals for name in trial.declared)
        for name in metrics or default_family(known.values(), declared):
            having = [trial for trial in rivals if name in known and _has(trial, name)]
            if having:
                key = having[0].stored.trial.benchmark, name
                member = _member(having, known[name], is_first=key not in seen)
                seen.add(key)
                yield replace(member, basis=member.basis + remark)


def _points(trials: Sequence[TrialReport]) -> list[list[TrialReport]]:
    """Trials of the same benchmark and params; of a benchmark, those with the most processes first."""
    points: dict[str, list[TrialReport]] = {}
    for trial in trials:
        planned = trial.stored.trial
        points.setdefault(same_value([planned.benchmark, dict(planned.params)]), []).append(trial)
    return list(points.values())


def _has(trial: TrialReport, name: str) -> bool:
    return name in trial.series and any(one.metric.name == name and one.n for one in trial.estimates)


def _about_simulated(trials: Sequence[TrialReport]) -> str:
    simulated = [trial for trial in trials if trial.is_simulated]
    if not simulated:
        return ""
    if len(simulated) == len(trials):
        return "; all of it simulated"
    names = dict.fromkeys(trial.stored.trial.agent.name for trial in simulated)
    return f"; simulated, so left out: {', '.join(names)}"


def _member(trials: Sequence[TrialReport], metric: Metric, *, is_first: bool) -> _Member:
    series = [trial.series[metric.name] for trial in trials]
    if series[0].unit != "case":
        place = max(range(len(series)), key=lambda one: observed(series[one]).process_count)
        seen = observed(series[place])
        model: PairModel | None = None if is_score(metric) else model_processes(series[place])
        a = b = _bare(trials[place], metric)
        repetitions = max(1, seen.values.size // max(1, seen.process_count))
        return _Member(
            a, b, metric, model, seen.process_count, repetitions, f"{seen.process_count} stored processes", is_first
        )  # fmt: skip
    first, second, basis = _pair(trials, metric)
    model = model_cases(metric, first.series[metric.name], second.series[metric.name] if second else None)
    sides = [side.series[metric.name] for side in (first, second) if side]
    counts = [np.unique(np.asarray(side.processes), return_counts=True)[1] for side in sides]
    return _Member(
        _bare(first, metric),
        _bare(second, metric) if second else _another(_bare(first, metric)),
        metric,
        model,
        max(side.size for side in counts),
        max(1, round(median(np.concatenate(counts).tolist()))),
        basis,
        is_first,
    )


def _bare(trial: TrialReport, metric: Metric) -> TrialReport:
    """With this metric alone."""
    return replace(
        trial,
        estimates=tuple(one for one in trial.estimates if one.metric.name == metric.name),
        series={metric.name: trial.series[metric.name]},
        executions=(),
        failures=(),
    )


def _another(trial: TrialReport) -> TrialReport:
    """The trial of another agent that did the same."""
    planned = trial.stored.trial
    agent = AgentVersion(f"another agent like {planned.agent.name}", planned.agent.version)
    return replace(trial, stored=replace(trial.stored, trial=replace(planned, agent=agent)))


def _pair(trials: Sequence[TrialReport], metric: Metric) -> tuple[TrialReport, TrialReport | None, str]:
    """The pair of agents whose difference varies from case to case as much as that of most pairs; else the only agent."""
    found = []
    for first, second in combinations(trials, 2):
        variance = _variance(first.series[metric.name], second.series[metric.name])
        if first.stored.trial.agent.name != second.stored.trial.agent.name and variance is not None:
            found.append((variance, first, second))
    if not found:
        return trials[0], None, "one stored agent; the other is assumed to be like it"
    found.sort(key=lambda one: one[0])
    _, first, second = found[len(found) // 2]
    names = " and ".join(f"'{one.stored.trial.agent.name}'" for one in (first, second))
    if len(found) == 1:
        return first, second, f"the stored agents {names}"
    return first, second, f"the stored agents {names}, the middle one of {len(found)} pairs"


def _variance(a: Series, b: Series) -> float | None:
    first, second = observed(a).means, observed(b).means
    shared = sorted(first.keys() & second.keys())
    found = paired_variances([first[case] for case in shared], [second[case] for case in shared])
    return None if found is None else found.case


@dataclass(slots=True)
class _Family:
    """All comparisons that one `assay compare` makes, which its p values are corrected for."""

    members: Sequence[_Member]
    noise: KnownNoise
    nulls: dict[tuple[int, int], list[list[Contrast]]] = field(default_factory=dict)
    """Contrasts without a difference, by the member's place and the number of repetitions."""

    def verdict(self, member: _Member, model: PairModel, chance: Chance, size: Size) -> Comparison:
        a, b = member.simulate(model, chance, size)
        contrasts = [
            *member.contrasts(a, b, self.noise.sessions),
            *self._others(member, chance.number, size.repetitions),
        ]
        comparison = judged(contrasts, None, self.noise.repeated)[0]
        return comparison if member.in_one_run else steadied((comparison,), self.noise.history)[0]

    def _others(self, member: _Member, number: int, repetitions: int) -> Iterator[Contrast]:
        for place, other in enumerate(self.members):
            if other is not member:
                pool = self._null_contrasts(place, other, repetitions)
                # Steps of different lengths, so that not always the same draws meet.
                yield from pool[number * (2 * place + 1) % len(pool)]

    def _null_contrasts(self, place: int, member: _Member, repetitions: int) -> list[list[Contrast]]:
        """Few repetitions may keep a metric out of the family; beyond that their number does not matter to p values."""
        repetitions = min(repetitions, max(_ENOUGH_REPETITIONS, member.repetitions))
        if (place, repetitions) not in self.nulls:
            self.nulls[place, repetitions] = _find_null_contrasts(
                member, place, repetitions, self.noise.sessions
            )
        return self.nulls[place, repetitions]


def _find_null_contrasts(
    member: _Member, place: int, repetitions: int, sessions: Sessions | None
) -> list[list[Contrast]]:
    if member.model is None:
        return [member.contrasts(member.a, member.b, sessions)]
    model, size = member.model.plant(0.0), Size(max(member.there, _ENOUGH_UNITS), repetitions)
    chances = [Chance(1_000_000 * (place + 1) + number) for number in range(NULLS)]
    return [member.contrasts(*member.simulate(model, chance, size), sessions) for chance in chances]


@dataclass(frozen=True, slots=True)
class _Forecast:
    """Of one benchmark and metric."""

    family: _Family
    member: _Member
    effect: float

    def need(self, trials: Sequence[TrialReport]) -> Need:
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
        own = [trial for trial in trials if trial.stored.trial.benchmark == member.benchmark]
        executions = self._executions(units, more, points=1 if by_case else len(own))
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
            minutes=_minutes(own, executions),
            usd=_usd(own, executions),
            basis=member.basis,
            family=len(self.family.members),
            power_now=_power(by_units, member.there),
            power_units=_power(by_units, units),
            power_repetitions=_power(by_repetitions, more) if by_repetitions else None,
            why_not_units=self._why_not(by_units, Size(most, member.repetitions)) if units is None else "",
            why_not_repetitions=self._why_not_repetitions(by_repetitions) if by_case and more is None else "",
        )

    def _why_not_repetitions(self, successes: Successes | None) -> str:
        if successes is None:
            return "with one stored repetition, the variation between repetitions is unknown; run with --repetitions 3"
        return self._why_not(successes, Size(self.member.there, MOST_REPETITIONS))

    def _executions(self, units: int | None, repetitions: int | None, points: int) -> int | None:
        """Of both sides, by the cheaper way; `points` of a sweep are all run."""
        ways = [
            left * right
            for left, right in ((units, self.member.repetitions), (self.member.there, repetitions))
            if left is not None and right is not None
        ]
        return 2 * points * min(ways) if ways else None

    def _by_units(self) -> Successes:
        model, repetitions = self._planted(), self.member.repetitions

        def is_found(units: int, number: int) -> bool:
            return self._verdict(model, Chance(number), Size(units, repetitions)).verdict in _CLAIMS

        return Successes(is_found)

    def _by_repetitions(self) -> Successes:
        model, units = self._planted(), self.member.there

        def is_found(repetitions: int, number: int) -> bool:
            chance = Chance(number, grows_by_round=True)
            return self._verdict(model, chance, Size(units, repetitions)).verdict in _CLAIMS

        return Successes(is_found)

    def _planted(self) -> PairModel:
        assert self.member.model is not None
        return self.member.model.plant(self.effect)

    def _verdict(self, model: PairModel, chance: Chance, size: Size) -> Comparison:
        return self.family.verdict(self.member, model, chance, size)

    def _why_not(self, successes: Successes, size: Size) -> str:
        """How often the difference is found at the largest size, and what keeps the comparison from finding it more often."""
        unit = self.member.unit_name
        said = f"with {size.units:,} {unit} × {size.repetitions} repetitions, the power is {percent(successes.largest_share)}"
        model = self._planted()
        verdicts = (self._verdict(model, Chance(number), size) for number in range(SIMULATIONS))
        missed = next((one for one in verdicts if one.verdict not in _CLAIMS), None)
        if missed is not None and missed.tolerance >= self.effect:
            return f"{said}; differences within {percent(missed.tolerance)} are not claimed"
        if missed is not None and missed.p_corrected is None:
            return f"{said}; `assay compare` would say: {missed.reason}"
        return said


def _power(successes: Successes, size: int | None) -> SimulatedPower | None:
    if size is None:
        return None
    found, made = successes.counts[size]
    return SimulatedPower(found / made, *wilson(found / made, made), made)


def _minutes(trials: Sequence[TrialReport], executions: int | None) -> float | None:
    mean = _mean(trials, "seconds")
    at_once = max(trial.stored.trial.concurrency for trial in trials)
    return None if mean is None or executions is None else mean * executions / at_once / 60


def _usd(trials: Sequence[TrialReport], executions: int | None) -> float | None:
    mean = _mean(trials, "usd")
    return None if mean is None or executions is None else mean * executions


def _mean(trials: Sequence[TrialReport], name: str) -> float | None:
    """Over the agents; None where any of them is unknown."""
    found = [[one.mean for one in trial.estimates if one.metric.name == name and one.n] for trial in trials]
    return float(np.mean([values[0] for values in found])) if all(found) else None

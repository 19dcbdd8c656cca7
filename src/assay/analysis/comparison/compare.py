"""Compares two sides metric by metric: A is the reference, and *better* means that B is better.

The flow is: match the trials of both sides, build a `Contrast` (effect, interval, p value) for every metric of every pair, and
hand all contrasts to `policy.judge` as one family of tests. What this module decides is the unit of replication and with
it the test:

- scores of one agent on fixed cases: a permutation test over the repetitions of these cases;
- scores of two agents: differences of case means, paired where both have the cases;
- times, CPU and memory of suites: Student's t over rounds (`rounds.py`);
- everything else: rank tests over processes, paired by round where both sides took turns;
- what depends on the machine, of sides that ran on several nodes: the same within each node (`nodes.py`);
- percentiles such as `seconds.p95`, only if they are asked for: over all executions.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from assay.analysis.comparison.default_metrics import default_family, lone_part
from assay.analysis.comparison.nodes import NodeBlocks, find_blocks
from assay.analysis.comparison.policy import KnownNoise, Sessions, Tolerances, judge
from assay.analysis.comparison.rounds import RoundEffect, compare_round_percentiles, compare_rounds
from assay.analysis.comparison.severity import depends_on_machine
from assay.analysis.comparison.verdict import (
    FEWEST_PAIRS,
    FEWEST_UNITS,
    Contrast,
    FixedCases,
    no_effect,
    too_few_rounds,
    without_rounding,
)
from assay.analysis.estimates.replication import FEWEST_ROUNDS, Observed, is_by_round, observe
from assay.analysis.estimates.treatment import (
    describe_incomparable_arms,
    describe_redefinition,
    same_value,
    select_compared_params,
)
from assay.errors import LookupFailed, format_unknown_name
from assay.model import Comparison, Metric, Report, TrialReport
from assay.model.metric import is_score
from assay.stats.blocks import Blocked, compare_within_blocks
from assay.stats.effect import Effect, compare_paired, compare_unpaired
from assay.stats.means import compute_unpaired_mean_difference, mean_difference
from assay.stats.permutation import Repetitions, permutation_test
from assay.stats.random_effects import ErrorPart
from assay.stats.summary import find_groups, percentile
from assay.stats.tails import compute_values_needed, is_enough, tail_effect

PERCENTILES = {"p90": 90.0, "p95": 95.0, "p99": 99.0}

Pair = tuple[TrialReport, TrialReport]


def compare_reports(
    a: Report,
    b: Report,
    *,
    metrics: Sequence[str] | None = None,
    unjudged: Sequence[str] = (),
    fixed_cases: bool | None = None,
    tolerances: Tolerances | None = None,
    noise: KnownNoise | None = None,
) -> tuple[Comparison, ...]:
    """Compare trials of the same benchmark and params, or the only trial of each side, as one family of tests.

    `metrics` are judged, `unjudged` ones come without a verdict. Without `metrics` the default family is judged and all
    others are listed only. A metric may be a percentile, as in `seconds.p95`; percentiles that are not requested are left out, so that
    they do not enlarge the family. Scores of one agent on both sides, or of any with `fixed_cases`, are tested over the
    repetitions of these cases; those of two agents over cases as a sample. `noise` is what is known of run-to-run noise: see
    `policy.judge`.
    """
    pairs = matching_trials(a, b)
    runs = [(a.run_of(first), b.run_of(second)) for first, second in pairs]
    meetings = [
        _Meeting(first.id == second.id and first.order == "interleaved", first.id == second.id)
        for first, second in runs
    ]
    question = _Question(metrics, unjudged, fixed_cases, noise.sessions if noise else None)
    return judge(_all_contrasts(pairs, meetings, question), noise, tolerances)


def compare_trials(
    a: TrialReport,
    b: TrialReport,
    *,
    interleaved: bool = True,
    metrics: Sequence[str] | None = None,
) -> tuple[Comparison, ...]:
    """Compare two arms of one run; `interleaved` arms are paired by the round that their processes ran in."""
    return judge(_all_contrasts([(a, b)], [_Meeting(interleaved)], _Question(metrics)))


def find_contrasts(
    a: TrialReport,
    b: TrialReport,
    metrics: Sequence[str],
    *,
    interleaved: bool,
    sessions: Sessions | None = None,
) -> list[Contrast]:
    """The contrasts of two trials before the correction for a family and the verdict (`policy.judge`).

    `sessions` are the errors between runs, for trials of two runs; see `policy.KnownNoise`.
    """
    return _all_contrasts([(a, b)], [_Meeting(interleaved)], _Question(metrics, sessions=sessions))


class _Meeting(NamedTuple):
    """How two trials met: whether they took turns, which they can only within one run."""

    takes_turns: bool
    is_one_run: bool = True


@dataclass(frozen=True, slots=True)
class _Question:
    """What the caller wants to know: metrics to judge (None for the default family), metrics to show, and how to test."""

    metrics: Sequence[str] | None
    unjudged: Sequence[str] = ()
    fixed_cases: bool | None = False
    """Whether the question is about these very cases and not about cases like them; None: if both sides are one agent."""
    sessions: Sessions | None = None

    def with_session(self, contrast: Contrast, interleaved: bool, metric: str) -> Contrast:
        """The contrast, marked if it is of two runs and the noise between runs is unknown."""
        is_known = interleaved or self.sessions is None or (contrast.trial_b, metric) in self.sessions
        return contrast if is_known else replace(contrast, is_session_unknown=True)

    def session(self, trial_b: str, metric: str, interleaved: bool) -> ErrorPart | None:
        return None if interleaved or self.sessions is None else self.sessions.get((trial_b, metric))

    def are_cases_fixed(self, a: TrialReport, b: TrialReport, metric: str) -> bool:
        """Whether the test is over the repetitions of fixed cases, which both sides must then share."""
        sides = a.series[metric], b.series[metric]
        is_fixed = self.fixed_cases
        if is_fixed is None:
            is_fixed = a.stored.trial.agent.name == b.stored.trial.agent.name
        return (
            is_fixed and sides[0].unit == "case" and not {*sides[0].processes}.isdisjoint(sides[1].processes)
        )

    def select_judged_metrics(
        self, a: TrialReport, b: TrialReport, shared: Mapping[str, Metric]
    ) -> Collection[str]:
        if self.metrics is not None:
            return self.metrics
        return default_family(shared.values(), a.declared | b.declared) or shared.keys()

    def is_wanted(self, name: str, lone: str | None) -> bool:
        if self.metrics is None:
            return name != lone
        return name in self.metrics or name in self.unjudged


def matching_trials(a: Report, b: Report) -> list[Pair]:
    """Pairs of trials with the same benchmark, params and agent.

    If no agent is on both sides, agents are ignored; and if nothing matches then, the only two trials there are match.
    """
    # The same agents first: of two runs with three agents each, everybody is compared with itself. Only if that gives
    # nothing is it a comparison of different agents.
    matched = _match_trials(a, b, lambda trial: f"{trial.stored.trial.agent.name} {_point(trial)}")
    matched = matched or _match_trials(a, b, _point)
    if not matched and len(a.trials) == len(b.trials) == 1:
        return [(a.trials[0], b.trials[0])]
    return matched


def _match_trials(a: Report, b: Report, key: Callable[[TrialReport], str]) -> list[Pair]:
    """Points that occur several times are matched in their order."""
    waiting: dict[str, deque[TrialReport]] = defaultdict(deque)
    for trial in b.trials:
        waiting[key(trial)].append(trial)
    return [(trial, waiting[key(trial)].popleft()) for trial in a.trials if waiting[key(trial)]]


def _point(trial: TrialReport) -> str:
    planned = trial.stored.trial
    return same_value([planned.benchmark, dict(select_compared_params(trial))])


def _all_contrasts(
    pairs: Sequence[Pair], meetings: Sequence[_Meeting], question: _Question
) -> list[Contrast]:
    """The contrasts of all pairs, in their order. Asking for a metric that no pair has is a mistake."""
    shared = {metric.name for a, b in pairs for metric in _find_common_metrics(a, b)}
    for name in question.metrics or ():
        if name not in shared and _parse_percentile(name, shared) is None:
            raise LookupFailed(format_unknown_name(name, "metrics that both sides have", shared))
    return [
        contrast
        for (a, b), meeting in zip(pairs, meetings, strict=True)
        for contrast in _contrasts(a, b, meeting, question)
    ]


def _parse_percentile(name: str, shared: Collection[str]) -> tuple[str, float] | None:
    """The metric and the percentile in a name such as `seconds.p95`; None if it is no such name."""
    metric, _, place = name.rpartition(".")
    if metric not in shared or place not in PERCENTILES:
        return None
    return metric, PERCENTILES[place]


def _find_common_metrics(a: TrialReport, b: TrialReport) -> list[Metric]:
    names_of_b = {estimate.metric.name for estimate in b.estimates if estimate.n}
    return [estimate.metric for estimate in a.estimates if estimate.n and estimate.metric.name in names_of_b]


def _contrasts(a: TrialReport, b: TrialReport, meeting: _Meeting, question: _Question) -> Iterator[Contrast]:
    """The contrasts of one pair: first its metrics, each by the test for its unit of replication, then
    percentiles.

    A test is chosen by what is independent of what. Executions of code are tested over processes, times
    of a suite over rounds, scores over cases; if both sides ran the same fixed cases, scores are tested
    by repetitions within cases. A contrast that must not be judged, because a treatment failed, the
    benchmark changed or one side is simulated, is yielded with the reason and without a verdict.
    """
    interleaved = meeting.takes_turns
    blocks = find_blocks(a, b, is_one_run=meeting.is_one_run)
    refusal = describe_incomparable_arms(a, b) or describe_redefinition(a, b)
    shared = {metric.name: metric for metric in _find_common_metrics(a, b)}
    lone = lone_part(shared)
    judged_names = question.select_judged_metrics(a, b, shared)
    # The choice of the test is the choice of what is independent. Two answers to one case are not, so scores of two agents
    # are tested over cases. Two cases in one slow minute are not, so times are tested over rounds. Two executions in one
    # process are not, as they share its memory layout, so code is tested over processes.
    for metric in shared.values():
        if question.is_wanted(metric.name, lone):
            nodes = blocks if depends_on_machine(metric) else None
            apart = refusal or (nodes.refusal if nodes else "")
            if is_score(metric) and question.are_cases_fixed(a, b, metric.name):
                contrast = _score_contrast_of_fixed_cases(
                    metric, a, b, refusal or _describe_mixed_kinds(metric, b)
                )
            elif is_by_round(metric, a.series[metric.name]):
                turns = _Turns(interleaved, question.session(b.name, metric.name, interleaved), nodes)
                fixed = question.are_cases_fixed(a, b, metric.name)
                contrast = _round_contrast(
                    metric, (a, b), turns, apart or _describe_mixed_kinds(metric, b), fixed
                )
                contrast = question.with_session(contrast, interleaved, metric.name)
            else:
                turns = _Turns(interleaved, nodes=nodes)
                contrast = _contrast(metric, a, b, turns, apart or _incomparable(metric, a, b))
            yield replace(contrast, is_judged=metric.name in judged_names)
    for name in question.metrics or ():
        if name not in shared and (tail_of := _parse_percentile(name, shared)):
            metric = shared[tail_of[0]]
            nodes = blocks if depends_on_machine(metric) else None
            turns = _Turns(interleaved, question.session(b.name, metric.name, interleaved), nodes)
            tail = _Tail(metric, name, tail_of[1], turns)
            apart = refusal or (nodes.refusal if nodes else "")
            contrast = tail.contrast(a, b, apart or _incomparable(metric, a, b))
            yield (
                question.with_session(contrast, interleaved, metric.name)
                if contrast.unit == "round"
                else contrast
            )


def _incomparable(metric: Metric, a: TrialReport, b: TrialReport) -> str:
    return _describe_mixed_kinds(metric, b) or _different_cases(metric.name, a, b)


def _different_cases(name: str, a: TrialReport, b: TrialReport) -> str:
    """Why results on different cases are not compared; empty if the sides share enough cases.

    Leaderboards and ratings compare agents only on the cases that both ran, so a verdict here could contradict them.
    """
    if a.series[name].unit != "case":
        return ""
    first, second = (find_groups(np.asarray(side.series[name].processes)).names for side in (a, b))
    common = np.intersect1d(first, second, assume_unique=True).size
    if common >= min(FEWEST_PAIRS, max(first.size, second.size)):
        return ""
    shared = f"only {common} {'case' if common == 1 else 'cases'}" if common else "no case"
    return (
        f"A and B have {shared} in common, so the difference may come from the cases; "
        f"run both on the same cases, at least {FEWEST_PAIRS}."
    )


def _describe_mixed_kinds(metric: Metric, b: TrialReport) -> str:
    other = next(estimate.metric for estimate in b.estimates if estimate.metric.name == metric.name)
    if other.kind == metric.kind:
        return ""
    return f"A is {metric.kind}, B is {other.kind}: they cannot be compared."


def _is_identical(metric: Metric, a: TrialReport, b: TrialReport) -> bool:
    """Whether both sides are the same data: for cases the same values, for processes the same times as well.

    Processes that happen to agree in one metric, such as a count, say nothing about the next process.
    """
    names = [metric.name]
    if a.series[metric.name].unit != "case" and "seconds" in a.series and "seconds" in b.series:
        names.append("seconds")
    return all(observe(a.series[name]).has_same_values_as(observe(b.series[name])) for name in names)


def _contrast(metric: Metric, a: TrialReport, b: TrialReport, turns: _Turns, refusal: str) -> Contrast:
    """The contrast of a metric whose independent units are processes, cases or loads."""
    unit = a.series[metric.name].unit
    first, second = observe(a.series[metric.name]), observe(b.series[metric.name])
    are_scores = is_score(metric)
    if are_scores:
        sides = _scores(first, second)
    else:
        can_be_paired = turns.are_interleaved or unit == "case"
        sides = _match_medians(first.by_process, second.by_process, can_be_paired, turns.nodes)
    value_a = _mean(sides.a) if are_scores else percentile(first.units, 50)
    value_b = _mean(sides.b) if are_scores else percentile(second.units, 50)
    return Contrast(
        metric=metric,
        trial_a=a.name,
        trial_b=b.name,
        value_a=value_a,
        value_b=value_b,
        units_a=len(sides.a),
        units_b=len(sides.b),
        effect=no_effect(metric, value_a)
        if _is_identical(metric, a, b)
        else without_rounding(sides.effect(), value_a, value_b),
        is_paired=sides.is_paired,
        refusal=refusal,
        unit=unit,
    )


def _score_contrast_of_fixed_cases(metric: Metric, a: TrialReport, b: TrialReport, refusal: str) -> Contrast:
    """The contrast of scores on the cases that both sides have: the test is over the repetitions of these cases."""
    first, second = observe(a.series[metric.name]), observe(b.series[metric.name])
    means_a, means_b = first.means, second.means
    shared = sorted(means_a.keys() & means_b.keys())
    value_a, value_b = (_mean([side[case] for case in shared]) for side in (means_a, means_b))
    test = permutation_test(*(Repetitions(side.values, side.processes) for side in (first, second)))
    effect = no_effect(metric, value_a) if _is_identical(metric, a, b) else test.effect() if test else None
    return Contrast(
        metric=metric,
        trial_a=a.name,
        trial_b=b.name,
        value_a=value_a,
        value_b=value_b,
        units_a=len(shared),
        units_b=len(shared),
        effect=without_rounding(effect, value_a, value_b),
        is_paired=True,
        refusal=refusal,
        unit="case",
        fixed_cases=_count_fixed_cases(first, second),
    )


def _count_fixed_cases(a: Observed, b: Observed) -> FixedCases:
    """Count cases whose repetitions do not overlap: a lost case scores higher in every repetition of A than in any of B."""
    (low_a, high_a), (low_b, high_b) = a.ranges, b.ranges
    shared = low_a.keys() & low_b.keys()
    fewest = min(
        (count for side in (a, b) for case, count in side.counts.items() if case in shared), default=0
    )
    lost = sum(low_a[case] > high_b[case] for case in shared)
    won = sum(high_a[case] < low_b[case] for case in shared)
    return FixedCases(fewest, lost, won)


@dataclass(frozen=True, slots=True)
class _Turns:
    """Whether both sides took turns in one run; if not, the error of the difference of two runs, where it is known.

    `nodes` are set where the metric depends on the machine and the sides ran on several.
    """

    are_interleaved: bool
    session: ErrorPart | None = None
    nodes: NodeBlocks | None = None


def _round_contrast(metric: Metric, pair: Pair, turns: _Turns, refusal: str, fixed: bool) -> Contrast:
    """The contrast of a metric that depends on the machine, whose independent units are rounds."""
    a, b = pair
    series = a.series[metric.name], b.series[metric.name]
    found = compare_rounds(
        *series,
        are_interleaved=turns.are_interleaved,
        are_cases_fixed=fixed,
        session=turns.session,
        nodes=turns.nodes,
    )
    first, second = (observe(side) for side in series)
    value_a, value_b = percentile(first.units, 50), percentile(second.units, 50)
    return _by_rounds(
        Contrast(
            metric=metric,
            trial_a=a.name,
            trial_b=b.name,
            value_a=value_a,
            value_b=value_b,
            units_a=found.rounds_a,
            units_b=found.rounds_b,
            effect=no_effect(metric, value_a) if _is_identical(metric, a, b) else found.effect,
            is_paired=turns.are_interleaved,
            refusal=refusal,
            unit="round",
        ),
        found,
    )


def _by_rounds(contrast: Contrast, found: RoundEffect) -> Contrast:
    """The contrast with the parts of its error, and with a refusal if there are no shared cases or too few rounds."""
    fewest = min(found.rounds_a, found.rounds_b)
    if not found.cases and not contrast.refusal:
        return replace(contrast, refusal="The sides have no case in common, so their times are not compared.")
    is_identical = contrast.effect is not None and contrast.effect is not found.effect
    if fewest >= FEWEST_ROUNDS or contrast.refusal or is_identical:
        return replace(contrast, errors=found.parts)
    return replace(contrast, refusal=too_few_rounds(fewest), errors=found.parts)


@dataclass(frozen=True, slots=True)
class _Tail:
    """A percentile over all executions of a metric: its `name` is `seconds.p95`, and `q` is 95.

    It needs at least ten executions beyond the percentile on each side: with fewer, single executions
    would decide.
    """

    metric: Metric
    name: str
    q: float
    turns: _Turns

    def contrast(self, a: TrialReport, b: TrialReport, refusal: str) -> Contrast:
        """The contrast of a percentile.

        Percentiles are taken over all executions and not over medians of units, since the tail is what medians leave out.
        The interval comes from resampling units, so that executions of one process do not count as independent. Of several
        nodes, only rounds that both sides had on the same one count: a tail is that of the slower machines else.
        """
        unit = a.series[self.metric.name].unit
        first, second = (observe(side.series[self.metric.name]) for side in (a, b))
        if (nodes := self.turns.nodes) is not None:
            first, second = (
                side.only(np.isin(side.processes, [*nodes.together])) for side in (first, second)
            )
        can_be_paired = self.turns.are_interleaved or unit == "case"
        is_paired = can_be_paired and first.by_process.keys() == second.by_process.keys()
        sides = ((first.values, first.processes), (second.values, second.processes))
        value_a = percentile(first.values, self.q)
        is_identical = _is_identical(self.metric, a, b)
        if not is_identical and is_by_round(self.metric, a.series[self.metric.name]):
            return self._round_contrast(a, b, refusal)
        return Contrast(
            metric=replace(self.metric, name=self.name),
            trial_a=a.name,
            trial_b=b.name,
            value_a=value_a,
            value_b=percentile(second.values, self.q),
            units_a=first.process_count,
            units_b=second.process_count,
            effect=no_effect(self.metric, value_a)
            if is_identical
            else tail_effect(*sides, self.q, is_paired=is_paired),
            is_paired=is_paired,
            refusal=refusal
            or ("" if is_identical else self._too_few(min(first.values.size, second.values.size))),
            unit=unit,
        )

    def _round_contrast(self, a: TrialReport, b: TrialReport, refusal: str) -> Contrast:
        """Compare a percentile of times of suites: the percentile of each round, by Student's t over rounds."""
        series = [side.series[self.metric.name] for side in (a, b)]
        found = compare_round_percentiles(
            series[0],
            series[1],
            self.q,
            are_interleaved=self.turns.are_interleaved,
            session=self.turns.session,
            nodes=self.turns.nodes,
        )
        values = [observe(side).values for side in series]
        contrast = Contrast(
            metric=replace(self.metric, name=self.name),
            trial_a=a.name,
            trial_b=b.name,
            value_a=percentile(values[0], self.q),
            value_b=percentile(values[1], self.q),
            units_a=found.rounds_a,
            units_b=found.rounds_b,
            effect=found.effect,
            is_paired=self.turns.are_interleaved,
            refusal=refusal or self._too_few(min(side.size for side in values)),
            unit="round",
        )
        return _by_rounds(contrast, found)

    def _too_few(self, executions: int) -> str:
        """Why there is no verdict on a percentile: with fewer than ten values beyond it, it is little more than the maximum."""
        if is_enough(executions, self.q):
            return ""
        return (
            f"Not enough data: ten executions must lie beyond P{self.q:g}, which takes {compute_values_needed(self.q):,} per side "
            f"instead of {executions:,}."
        )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


@dataclass(frozen=True, slots=True)
class _Sides:
    """Process medians or case means of both sides; if they are paired, only of rounds or cases that both have."""

    a: list[float]
    b: list[float]
    is_paired: bool
    executions: tuple[int, int] | None = None
    """How many executions are behind each side; only for scores."""
    nodes: tuple[list[str], list[str]] | None = None
    """The node of each value, where both sides are two samples within each node."""

    def effect(self) -> Effect | None:
        """The test for these sides: means for scores, which are 0 or 1 on many cases, and ranks for everything else."""
        if self.executions is not None:
            if self.is_paired:
                return mean_difference(self.a, self.b)
            return compute_unpaired_mean_difference(self.a, self.b, self.executions)
        if min(len(self.a), len(self.b)) < FEWEST_UNITS:
            return None
        if self.nodes is not None:
            first, second = self.nodes
            return compare_within_blocks(Blocked(np.array(self.a), first), Blocked(np.array(self.b), second))
        return compare_paired(self.a, self.b) if self.is_paired else compare_unpaired(self.a, self.b)


def _match_medians(
    a: Mapping[int, float], b: Mapping[int, float], can_be_paired: bool, nodes: NodeBlocks | None
) -> _Sides:
    """Medians of processes as pairs, or as two samples where pairs are too few; of several nodes, within these.

    A paired test of fewer than `FEWEST_PAIRS` could never be significant.
    """
    shared = sorted(a.keys() & b.keys()) if can_be_paired else []
    if nodes is not None and not nodes.has_pairs(shared, FEWEST_PAIRS):
        first = [number for number in a if nodes.a.get(number) in nodes.shared]
        second = [number for number in b if nodes.b.get(number) in nodes.shared]
        places = [nodes.a[number] for number in first], [nodes.b[number] for number in second]
        return _Sides([a[n] for n in first], [b[n] for n in second], is_paired=False, nodes=places)
    if nodes is not None:
        shared = [number for number in shared if number in nodes.together]
    if len(shared) < FEWEST_PAIRS:
        return _Sides(list(a.values()), list(b.values()), is_paired=False)
    return _Sides([a[n] for n in shared], [b[n] for n in shared], is_paired=True)


def _scores(a: Observed, b: Observed) -> _Sides:
    """Mean scores of the cases that both sides have, or unpaired of all cases if there are too few of those.

    Pairing removes how hard the cases are, which is most of what scores vary by. It needs no minimum if both sides have the
    very same cases: then nothing is lost by pairing, however few they are.
    """
    first, second = a.means, b.means
    executions = (a.values.size, b.values.size)
    cases = sorted(first.keys() & second.keys())
    if len(cases) < FEWEST_PAIRS and first.keys() != second.keys():
        return _Sides([*first.values()], [*second.values()], is_paired=False, executions=executions)
    return _Sides([first[c] for c in cases], [second[c] for c in cases], True, executions)

"""Two sides, metric by metric: A is the reference, and *better* means that B is better."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from assay.analysis.axes import same_value
from assay.analysis.replication import Observed, observed
from assay.analysis.treatment import treatment_failure
from assay.analysis.verdict import FEWEST_PAIRS, FEWEST_UNITS, Contrast, judged
from assay.errors import LookupFailed, no_such
from assay.model import Comparison, Metric, Report, TrialReport
from assay.stats.effect import Effect, paired, unpaired
from assay.stats.means import mean_difference
from assay.stats.summary import percentile

Pair = tuple[TrialReport, TrialReport]


def compare_reports(
    a: Report, b: Report, *, metrics: Sequence[str] | None = None, tolerance: float | None = None
) -> tuple[Comparison, ...]:
    """Trials of the same benchmark and params, or the only trial of each side; the whole call is one family of tests."""
    interleaved = a.run.id == b.run.id and a.run.order == "interleaved"
    return _compare(matching_trials(a, b), interleaved, metrics, tolerance)


def compare_trials(
    a: TrialReport,
    b: TrialReport,
    *,
    interleaved: bool = True,
    metrics: Sequence[str] | None = None,
    tolerance: float | None = None,
) -> tuple[Comparison, ...]:
    """Two arms of one run; `interleaved` ones are paired by the round that their processes ran in."""
    return _compare([(a, b)], interleaved, metrics, tolerance)


def matching_trials(a: Report, b: Report) -> list[Pair]:
    """By benchmark, params and agent; without the agent where no agent is on both sides; else the only two there are."""
    matched = _matched(a, b, _agent_and_point) or _matched(a, b, _point)
    if not matched and len(a.trials) == len(b.trials) == 1:
        return [(a.trials[0], b.trials[0])]
    return matched


def _matched(a: Report, b: Report, key: Callable[[TrialReport], str]) -> list[Pair]:
    """Points that occur several times are matched in their order."""
    waiting: dict[str, deque[TrialReport]] = defaultdict(deque)
    for trial in b.trials:
        waiting[key(trial)].append(trial)
    return [(trial, waiting[key(trial)].popleft()) for trial in a.trials if waiting[key(trial)]]


def _agent_and_point(trial: TrialReport) -> str:
    return f"{trial.stored.trial.agent.name} {_point(trial)}"


def _point(trial: TrialReport) -> str:
    planned = trial.stored.trial
    return same_value([planned.benchmark, dict(planned.params)])


def _compare(
    pairs: Sequence[Pair], interleaved: bool, metrics: Sequence[str] | None, tolerance: float | None
) -> tuple[Comparison, ...]:
    _check_names(pairs, metrics)
    contrasts = [contrast for a, b in pairs for contrast in _contrasts(a, b, interleaved, metrics)]
    return judged(contrasts, tolerance)


def _check_names(pairs: Iterable[Pair], metrics: Sequence[str] | None) -> None:
    shared = {metric.name for a, b in pairs for metric in _shared(a, b)}
    for name in metrics or ():
        if name not in shared:
            raise LookupFailed(no_such(name, "metrics that both sides have", shared))


def _shared(a: TrialReport, b: TrialReport) -> list[Metric]:
    there = {estimate.metric.name for estimate in b.estimates if estimate.n}
    return [estimate.metric for estimate in a.estimates if estimate.n and estimate.metric.name in there]


def _contrasts(
    a: TrialReport, b: TrialReport, interleaved: bool, metrics: Sequence[str] | None
) -> Iterator[Contrast]:
    refusal = treatment_failure(a, b)
    for metric in _shared(a, b):
        if metrics is None or metric.name in metrics:
            yield _contrast(metric, a, b, interleaved, refusal or _mixed_kinds(metric, b))


def _mixed_kinds(metric: Metric, b: TrialReport) -> str:
    other = next(estimate.metric for estimate in b.estimates if estimate.metric.name == metric.name)
    if other.kind == metric.kind:
        return ""
    return f"A is {metric.kind}, B is {other.kind}: they are not the same quantity."


def _contrast(metric: Metric, a: TrialReport, b: TrialReport, interleaved: bool, refusal: str) -> Contrast:
    unit = a.series[metric.name].unit
    first, second = observed(a.series[metric.name]), observed(b.series[metric.name])
    is_score = metric.name == "score" or metric.name.startswith("score.")
    sides = _scores(first, second) if is_score else _sides(first, second, interleaved or unit == "case")
    return Contrast(
        metric=metric,
        trial_a=a.name,
        trial_b=b.name,
        value_a=_mean(sides.a) if is_score else percentile(first.units, 50),
        value_b=_mean(sides.b) if is_score else percentile(second.units, 50),
        units_a=len(sides.a),
        units_b=len(sides.b),
        effect=sides.effect(),
        is_paired=sides.is_paired,
        refusal=refusal,
        unit=unit,
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


@dataclass(frozen=True, slots=True)
class _Sides:
    """Process medians of both sides; of rounds that both have, where they are paired."""

    a: list[float]
    b: list[float]
    is_paired: bool
    are_scores: bool = False

    def effect(self) -> Effect | None:
        if self.are_scores:
            return mean_difference(self.a, self.b)
        if min(len(self.a), len(self.b)) < FEWEST_UNITS:
            return None
        return paired(self.a, self.b) if self.is_paired else unpaired(self.a, self.b)


def _scores(a: Observed, b: Observed) -> _Sides:
    """Mean scores of the cases that both sides have."""
    first, second = a.means, b.means
    cases = sorted(first.keys() & second.keys())
    return _Sides([first[c] for c in cases], [second[c] for c in cases], is_paired=True, are_scores=True)


def _sides(a: Observed, b: Observed, interleaved: bool) -> _Sides:
    first, second = a.by_process, b.by_process
    rounds = sorted(first.keys() & second.keys()) if interleaved else []
    if len(rounds) < FEWEST_PAIRS:
        return _Sides(list(first.values()), list(second.values()), is_paired=False)
    return _Sides([first[r] for r in rounds], [second[r] for r in rounds], is_paired=True)

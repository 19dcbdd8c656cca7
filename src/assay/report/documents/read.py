"""Result documents turned back into a `Report`, so that a file can be given wherever a run is asked for.

`read_result` in `result` checks a file against `schema` and hands the models to this module. Estimates are computed anew from
the executions where a comparison needs them; those in the file are kept for display.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeVar, cast

from pydantic import BaseModel

from assay.model import (
    AgentUse,
    AgentVersion,
    AxisEffect,
    BestPoint,
    Better,
    Budget,
    Doubt,
    Environment,
    Estimate,
    Execution,
    InstrumentUse,
    Isolation,
    Iterations,
    Kind,
    Limits,
    Metric,
    Phase,
    Question,
    Rating,
    Ratings,
    Report,
    ResourceRequest,
    Run,
    RunState,
    Series,
    Status,
    StoredTrial,
    SuiteRef,
    Trial,
    TrialReport,
    metric_named,
)
from assay.model.codec import from_plain
from assay.model.dimension import DIMENSIONS
from assay.model.metric import JUDGING
from assay.model.rating import Judging, ReferenceValue, ScorerFailure
from assay.model.report import NodeShare
from assay.model.suite import PASS_MARK
from assay.report.documents import schema

Noun = TypeVar("Noun")
_SHOWN_FAILURES = 20


def report_from_result(result: schema.Result) -> Report:
    suite = result.suite.name if result.suite else ""
    trials = tuple(_trial_report(number, trial, suite) for number, trial in enumerate(result.trials))
    doubts = tuple(_noun(Doubt, warning) for warning in result.warnings)
    axes = tuple(_axis(effect) for effect in result.axes)
    best = tuple(_best(point) for point in result.best)
    run = _run(result, trials)
    return Report(run, trials, axes, doubts, best=best, nodes=_nodes(result))


def _nodes(result: schema.Result) -> tuple[NodeShare, ...]:
    return tuple(
        NodeShare(node.node, node.kind, node.processes, node.executions, tuple(node.warnings))
        for node in result.nodes or ()
    )


def report_from_flat(flat: schema.Flat) -> Report:
    """One trial in one process, unless the executions say which process they were made in."""
    executions = tuple(_flat_executions(flat))
    processes = len({execution.process for execution in executions}) or 1
    trial = Trial(
        index=0,
        name=flat.name,
        agent=AgentVersion(flat.name, str(flat.vcs.get("commit") or "")),
        benchmark=flat.name,
        experiment=flat.name,
        params=flat.parameters,
        iterations=_noun(Iterations, flat.iterations) if flat.iterations else Iterations(),
        processes=processes,
    )
    reports = (_with_series(StoredTrial(0, trial), executions),)
    return Report(_flat_run(flat, reports), reports, (), ())


def _run(result: schema.Result, trials: tuple[TrialReport, ...]) -> Run:
    """The run of a document. What a document does not tell, such as who carried the run out, is not needed to compare it."""
    return Run(
        id=result.run_id,
        name=result.name,
        state=RunState(result.status),
        started=datetime.fromisoformat(result.started),
        ended=datetime.fromisoformat(result.ended) if result.ended else None,
        seed=result.seed,
        tags=tuple(result.tags),
        notes=result.notes,
        label=result.label,
        environment=Environment(result.environment, result.vcs),
        trials=tuple(trial.stored for trial in trials),
        source=result.spec,
        order=result.order,
        parallelism=result.parallelism,
        executor=result.executor,
        instrument_costs={name: cost for name, cost in result.instrument_costs.items() if cost is not None},
        unmeasured=result.unmeasured,
        budget=_noun(Budget, result.budget) if result.budget else Budget(),
        suite=_noun(SuiteRef, result.suite) if result.suite else None,
        question=_noun(Question, result.question) if result.question else None,
    )


def _noun(kind: type[Noun], document: BaseModel) -> Noun:
    """Read the noun from a document that has its fields, and perhaps others that say the same in words."""
    names = set(cast(Any, kind).__dataclass_fields__)
    return from_plain(kind, document.model_dump(include=names))


def _flat_run(flat: schema.Flat, trials: tuple[TrialReport, ...]) -> Run:
    """A run from a flat result, which knows little of it: it has no seed, and its start may be unknown."""
    return Run(
        id=flat.run_id,
        name=flat.name,
        state=RunState.FAILED if flat.status == "failed" else RunState.COMPLETED,
        started=datetime.fromisoformat(flat.started) if flat.started else datetime.fromtimestamp(0, UTC),
        ended=None,
        seed=0,
        tags=tuple(flat.tags),
        notes=flat.notes if isinstance(flat.notes, str) else "",
        label=flat.label,
        environment=Environment(flat.environment, flat.vcs),
        trials=tuple(trial.stored for trial in trials),
        source={},
    )


def _trial_report(number: int, trial: schema.TrialDocument, suite: str) -> TrialReport:
    executions = tuple(_execution(trial.id, execution) for execution in trial.iteration_metrics or ())
    planned = replace(_trial(number, trial, executions), suite=suite)
    stored = StoredTrial(trial.id, planned, trial.stopped)
    estimates = tuple(_estimate(name, entry) for name, entry in trial.metrics.items())
    read = _with_series(stored, executions, estimates, trial.counts, trial.applied)
    return replace(
        read,
        ratings=_ratings(trial),
        judging=_noun(Judging, trial.judging) if trial.judging else None,
        scorer_failures=tuple(_noun(ScorerFailure, failure) for failure in trial.scorer_failures or ()),
        definition=trial.benchmark_hash or "",
        nodes={int(process): node for process, node in (trial.nodes or {}).items()},
    )


def _ratings(trial: schema.TrialDocument) -> Ratings | None:
    """The ratings of a trial. They are taken as they are, since their references are not part of the file."""
    if trial.ratings is None or trial.overall is None:
        return None
    if missing := [name for name in DIMENSIONS if name not in trial.ratings]:
        raise ValueError(f"the ratings of trial '{trial.name}' lack {', '.join(missing)}")
    return Ratings(
        dimensions={name: _rating(name, rating) for name, rating in trial.ratings.items()},
        overall=_rating("overall", trial.overall),
        outcomes=trial.outcomes or {},
        unscored=trial.unscored or 0,
        completion=trial.completion,
        cases=trial.cases or 0,
        solved=trial.solved or 0.0,
        pass_mark=PASS_MARK if trial.pass_mark is None else trial.pass_mark,
        pass_at=trial.pass_at or {},
        pass_hat=trial.pass_hat or {},
        usd_per_solved=trial.usd_per_solved,
        tokens_per_solved=trial.tokens_per_solved,
        doubts=tuple(trial.rating_warnings or ()),
        references={
            name: ReferenceValue(entry.value, entry.source, entry.run_id, entry.date, entry.origin)
            for name, entry in (trial.references or {}).items()
        },
        expects_scores=bool(trial.scoring_failed),
    )


def _rating(name: str, entry: schema.RatingDocument) -> Rating:
    low, high = entry.interval or (None, None)
    return Rating(name, entry.value, low, high, entry.basis)


def _trial(number: int, trial: schema.TrialDocument, executions: Iterable[Execution]) -> Trial:
    agent = trial.agent
    return Trial(
        index=number,
        name=trial.name,
        agent=_noun(AgentVersion, agent),
        benchmark=trial.benchmark,
        experiment=trial.experiment,
        params=trial.parameters,
        iterations=_noun(Iterations, trial.iterations),
        axes=trial.axes,
        processes=trial.processes,
        instruments=tuple(_noun(InstrumentUse, use) for use in trial.instruments),
        isolation=Isolation(trial.isolation),
        limits=_noun(Limits, trial.limits),
        resources=_noun(ResourceRequest, trial.resources) if trial.resources else None,
        agent_use=AgentUse(agent.name, agent.type, version=agent.version) if agent.type else None,
        cases=tuple(dict.fromkeys(execution.case for execution in executions if execution.case)),
        concurrency=trial.concurrency or 1,
    )


def _with_series(
    stored: StoredTrial,
    executions: tuple[Execution, ...],
    estimates: tuple[Estimate, ...] = (),
    counts: Mapping[str, int] | None = None,
    applied: Mapping[str, object] | None = None,
) -> TrialReport:
    """A trial with its series, made anew from the executions, which is what comparisons work on."""
    measured = [execution for execution in executions if execution.phase is Phase.MEASURED]
    failed = [execution for execution in executions if execution.status is not Status.OK]
    return TrialReport(
        stored=stored,
        estimates=estimates,
        counts=counts or Counter(execution.status.value for execution in measured),
        series=_series(measured, by_case=any(execution.case for execution in measured)),
        failures=tuple(failed[:_SHOWN_FAILURES]),
        executions=executions,
        applied=applied or {},
    )


def _series(measured: Iterable[Execution], *, by_case: bool) -> dict[str, Series]:
    """Collect the series; for a suite, the number of a case stands where otherwise that of the process does.

    The unit of replication comes first in a series: cases for suites, processes for code. What judging cost is left out, since
    the harness paid it and not the agent.
    """
    columns: dict[str, tuple[list[int], list[int], list[float], list[int]]] = {}
    places: dict[str, int] = {}
    for execution in measured:
        place = places.setdefault(execution.case, len(places)) if by_case else execution.process
        for name, value in execution.measurements.items() if execution.status is Status.OK else ():
            if name in JUDGING:
                continue
            processes, repetitions, values, rounds = columns.setdefault(name, ([], [], [], []))
            processes.append(place)
            repetitions.append(execution.repetition)
            values.append(value)
            rounds.append(execution.process)
    return {
        name: Series(places, repetitions, values, "case", rounds)
        if by_case
        else Series(places, repetitions, values)
        for name, (places, repetitions, values, rounds) in columns.items()
    }


def _execution(trial: int, execution: schema.ExecutionDocument) -> Execution:
    return Execution(
        trial=trial,
        process=execution.process,
        phase=Phase(execution.phase),
        repetition=execution.index,
        status=Status(execution.status),
        started=execution.started or 0.0,
        measurements=dict(_numbers(execution.duration_s, {**execution.metrics, **_scores(execution)})),
        loops=execution.loops,
        case=execution.case or "",
        output=execution.output,
        applied=execution.applied,
        error=execution.error,
        log=execution.log,
        detail=execution.detail,
    )


def _scores(execution: schema.ExecutionDocument) -> dict[str, float | None]:
    named = {f"score.{name}": value for name, value in (execution.scores or {}).items()}
    return named if execution.score is None else {"score": execution.score, **named}


def _flat_executions(flat: schema.Flat) -> Iterator[Execution]:
    for execution in flat.iteration_metrics:
        yield Execution(
            trial=0,
            process=execution.process,
            phase=Phase.MEASURED,
            repetition=execution.index,
            status=Status.OK if execution.status == "success" else Status(execution.status),
            started=0.0,
            measurements=dict(_numbers(execution.duration_s, execution.metrics)),
        )


def _numbers(duration: float | None, metrics: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Finite numbers by name, those of nested mappings with dotted names. True is a number to Python and none to a reader."""
    for name, value in {"seconds": duration, **metrics}.items():
        if isinstance(value, Mapping):
            yield from ((f"{name}.{inner}", number) for inner, number in _numbers(None, value))
        elif isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            yield name, float(value)


def _estimate(name: str, entry: schema.EstimateDocument) -> Estimate:
    names = ("mean", "median", "std", "min", "max", "p90", "p95", "p99", "median_without_outliers")
    figures: dict[str, Any] = {figure: _or_nan(getattr(entry, figure)) for figure in names}
    low, high = entry.interval or (None, None)
    mean_low, mean_high = entry.mean_interval or (None, None)
    return Estimate(
        metric=Metric(name, entry.unit, Better(entry.better), Kind(entry.kind)),
        n=entry.n,
        units=entry.units,
        low=low,
        high=high,
        level=entry.level,
        outliers=entry.outliers,
        insufficient=tuple(entry.insufficient),
        doubts=tuple(entry.warnings),
        tails=entry.tails,
        mean_low=mean_low,
        mean_high=mean_high,
        **figures,
    )


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value


def _axis(effect: schema.AxisEffectDocument) -> AxisEffect:
    metric = metric_named(effect.metric)
    ends = [point.interval or (None, None) for point in effect.points]
    return AxisEffect(
        axis=effect.axis,
        metric=Metric(effect.metric, effect.unit, metric.better, metric.kind),
        values=tuple(point.value for point in effect.points),
        medians=tuple(_or_nan(point.median) for point in effect.points),
        lows=tuple(low for low, _ in ends),
        highs=tuple(high for _, high in ends),
        best=effect.best,
        worst=effect.worst,
        effect=effect.effect,
        effect_low=effect.effect_interval[0] if effect.effect_interval else None,
        effect_high=effect.effect_interval[1] if effect.effect_interval else None,
        is_ratio=effect.effect_kind == "ratio",
        share=effect.share_of_variance,
        interacts=tuple(effect.interacts_with),
        is_workload=effect.is_workload,
    )


def _best(point: schema.BestPointDocument) -> BestPoint:
    not_separable = tuple(point.not_separable)
    return BestPoint(
        point.benchmark, metric_named(point.metric), point.trial, not_separable, point.compared_with
    )

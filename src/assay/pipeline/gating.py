"""A run against a baseline: may it pass?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from assay.analysis.comparable import comparable
from assay.analysis.compare import PERCENTILES, matching_trials
from assay.analysis.completion import COMPLETION, incomplete_trials, inner_name, outer_name, with_completion
from assay.analysis.coverage import about_missing, find_missing
from assay.analysis.family import default_family, judgeable
from assay.analysis.flips import flips_between, scored_cases
from assay.analysis.floor import excused, steadied
from assay.analysis.gate import (
    Tolerances,
    broken_trials,
    compare_within,
    family_of,
    shared_metrics,
    unscored_trials,
)
from assay.analysis.losses import depends_on_machine
from assay.analysis.treatment import differing_params
from assay.analysis.verdict import Floors
from assay.errors import LookupFailed, Unlike, no_such
from assay.execute.environment import machine_class
from assay.model import Doubt, Metric, Report, RunState
from assay.model.regression import Gate
from assay.pipeline.comparing import side
from assay.pipeline.record import read_histories
from assay.pipeline.searches import refuse_searches
from assay.pipeline.tolerating import (
    Known,
    about_floors,
    history_floors,
    known_floors,
    pace_between,
    session_errors,
    shares_of,
)
from assay.store.store import Store


def gated(
    store: Store,
    ref: str,
    baseline: str,
    *,
    metrics: Sequence[str] = (),
    tolerances: Tolerances | None = None,
    max_lost: int | None = None,
) -> Gate:
    """`ref` is a run or a result file, `baseline` the name of one that was set, or a result file."""
    sides = side(store, baseline_ref(store, baseline)), side(store, ref)
    refuse_searches((baseline, ref), sides)
    return gate_sides(store, sides, baseline, metrics=metrics, tolerances=tolerances, max_lost=max_lost)


def gate_sides(
    store: Store,
    sides: tuple[Report, Report],
    baseline: str,
    *,
    metrics: Sequence[str] = (),
    tolerances: Tolerances | None = None,
    max_lost: int | None = None,
) -> Gate:
    """The baseline's side and the side to judge; two halves of one run are judged without what differs between runs."""
    asked = [inner_name(name) for name in metrics]
    a, b = with_completion(*sides, always=COMPLETION in asked)
    shared = shared_metrics(a, b)
    _refuse_unlike(a, b, baseline, [])
    asked_widths = tolerances or Tolerances()
    broken = broken_trials(a, b)
    named = [*asked, *([] if asked else map(inner_name, asked_widths.of_metric))]
    _refuse_unknown(named, {**_metrics_of(a), **shared} if broken else shared)
    wanted = asked or (*family_of(a, b, shared), *named)
    chosen = [name for name in dict.fromkeys(wanted) if _base(name, shared) in shared]
    _refuse_unlike(a, b, baseline, [shared[_base(name, shared)] for name in chosen])
    if not chosen and not broken:
        raise Unlike(f"Run '{b.run.id}' and the baseline '{baseline}' have no metric in common.")
    others = [name for name in judgeable(shared.values()) if name not in chosen] if not asked else []
    widths = asked_widths.without({*named} - {*chosen})
    known: Known = {}
    if _is_one_run(a, b):
        comparisons = compare_within(a, b, chosen, widths, others)
    else:
        known, histories = known_floors(store, a, b), read_histories(store, b)
        sessions = session_errors(known, histories, a, b, {b.run.id})
        floors = _floors(shares_of(known), history_floors(histories, {b.run.id}), asked_widths)
        comparisons = compare_within(a, b, chosen, widths, others, sessions)
        comparisons = excused(steadied(comparisons, floors), pace_between(a, b))
    missing = find_missing(a, b)
    flips = tuple(flips_between(*pair) for pair in matching_trials(a, b) if pair[1].ratings is not None)
    if max_lost is not None and not flips:
        raise Unlike(f"--max-lost counts cases of suites, and run '{b.run.id}' has none. Leave it out.")
    return Gate(
        baseline=baseline.removeprefix("@"),
        a=a,
        b=b,
        comparisons=comparisons,
        broken=broken,
        unscored=unscored_trials(a, b) if not asked or "score" in asked else (),
        incomplete=incomplete_trials(b, {second.name for _, second in matching_trials(a, b)}),
        flips=flips,
        unjudged=tuple(name for name in shared if name not in chosen) if not metrics else (),
        doubts=(
            *(doubt for doubt in comparable(*sides) if doubt.code != "unmatched"),
            *_about_runs(a, b),
            *about_missing(a, b, missing),
            *_about_lost_metrics(a, b, metrics),
            *about_floors(known, comparisons),
        ),
        max_lost=max_lost,
        missing=missing,
        asked=(*(word for name in metrics for word in ("--metric", name)), *asked_widths.options),
    )


def _is_one_run(a: Report, b: Report) -> bool:
    """Whether the sides took turns in one run; a run that is held against itself has the same trials on both."""
    return a.run.id == b.run.id and not {trial.name for trial in a.trials} & {
        trial.name for trial in b.trials
    }


def _refuse_unlike(a: Report, b: Report, baseline: str, metrics: Sequence[Metric]) -> None:
    if told := unlike(a, b, metrics):
        raise Unlike(f"Run '{b.run.id}' cannot be held against the baseline '{baseline}': {told}")


def _floors(known: Floors, history: Floors, tolerances: Tolerances) -> Floors:
    """The larger of both, of metrics for which nobody asked for a tolerance."""
    return {
        (trial, metric): max(known.get((trial, metric), 0.0), history.get((trial, metric), 0.0))
        for trial, metric in {**known, **history}
        if not tolerances.is_asked(metric)
    }


def baseline_ref(store: Store, baseline: str) -> str:
    name = baseline.removeprefix("@")
    if name not in store.baselines() and Path(baseline).is_file():
        return baseline
    return f"@{name}"


def _refuse_unknown(asked: Sequence[str], shared: dict[str, Metric]) -> None:
    for name in asked if shared else ():
        if _base(name, shared) not in shared:
            raise LookupFailed(
                no_such(outer_name(name), "metrics that both sides have", map(outer_name, shared))
            )


def _metrics_of(report: Report) -> dict[str, Metric]:
    """Of the baseline: what no longer works has no times, and then that fails the gate, whichever metrics are asked for."""
    return {estimate.metric.name: estimate.metric for trial in report.trials for estimate in trial.estimates}


def _base(name: str, shared: dict[str, Metric]) -> str:
    """Of `seconds.p95`, the metric that it is a percentile of."""
    metric, _, place = name.rpartition(".")
    return metric if name not in shared and place in PERCENTILES else name


def unlike(a: Report, b: Report, metrics: Sequence[Metric]) -> str:
    """Why two sides are no measure for each other, with what to do; empty where they are."""
    reasons = (_other_suite(a, b), _nothing_in_common(a, b), _other_kind(a, b), _other_machine(a, b, metrics))
    return next((reason for reason in reasons if reason), "")


def _other_suite(a: Report, b: Report) -> str:
    first, second = a.run.suite, b.run.suite
    if first is None or second is None or first.hash == second.hash:
        return ""
    if first.name != second.name:
        return f"it is of suite '{second.name}', the baseline of suite '{first.name}'."
    return (
        f"suite '{second.name}' was changed since (definition {first.hash[:8]}, now {second.hash[:8]}). "
        "Run the baseline again with the suite as it is, and set it anew."
    )


def _nothing_in_common(a: Report, b: Report) -> str:
    pairs = matching_trials(a, b)
    if not pairs:
        return (
            f"they share no benchmark with the same params ({_benchmarks(b)} here, {_benchmarks(a)} there)."
        )
    first, second = pairs[0]
    if first.stored.trial.benchmark != second.stored.trial.benchmark:
        return f"it measures {_benchmarks(b)}, the baseline {_benchmarks(a)}."
    if names := differing_params(first, second):
        told = ", ".join(f"'{name}'" for name in names)
        return f"the params differ in {told}. Run both with the same."
    cases = [(scored_cases(before), scored_cases(after)) for before, after in pairs]
    if all(before and after and {*before}.isdisjoint(after) for before, after in cases):
        return "they have no case in common. Run both on the same cases."
    return ""


def _benchmarks(report: Report) -> str:
    names = dict.fromkeys(trial.stored.trial.benchmark for trial in report.trials)
    return ", ".join(f"'{name}'" for name in names) or "nothing"


def _other_kind(a: Report, b: Report) -> str:
    for first, second in matching_trials(a, b):
        kinds = ["simulated" if trial.is_simulated else "measured" for trial in (first, second)]
        if kinds[0] != kinds[1]:
            return f"'{second.name}' is {kinds[1]}, in the baseline it is {kinds[0]}. Compare like with like."
    return ""


def _other_machine(a: Report, b: Report, metrics: Sequence[Metric]) -> str:
    there, here = machine_class(a.run.environment), machine_class(b.run.environment)
    bound = [metric.name for metric in metrics if depends_on_machine(metric)]
    if there == here or not bound:
        return ""
    free = [metric.name for metric in metrics if not depends_on_machine(metric)]
    hint = (
        f", or judge what a machine does not change: {' '.join(f'--metric {n}' for n in free)}"
        if free
        else ""
    )
    return f"it was made on another kind of machine ({here}; the baseline: {there}). Make both on one{hint}."


def _about_lost_metrics(a: Report, b: Report, asked: Sequence[str]) -> Iterator[Doubt]:
    """What the baseline could tell and the run cannot: a gate that passes has not judged it."""
    for first, second in matching_trials(a, b):
        there = {estimate.metric.name for estimate in second.estimates if estimate.n}
        known = default_family((e.metric for e in first.estimates if e.n), first.declared)
        lost = [outer_name(name) for name in known if name not in there]
        if not second.ok or not lost or (asked and not {*lost} & {*asked}):
            continue
        told = ", ".join(f"'{name}'" for name in lost)
        yield Doubt(
            "unjudged",
            f"The baseline knows {told}, the run does not, so that is not judged.",
            f"See why: assay show {b.run.id}",
            second.name,
        )


def _about_runs(a: Report, b: Report) -> Iterator[Doubt]:
    if a.run.id == b.run.id and not _is_one_run(a, b):
        yield Doubt(
            "itself", "This run is the baseline, so the gate passes trivially.", "Make a new one: assay run"
        )
    if not _is_one_run(a, b):
        yield from about_state(a, "baseline")
    yield from about_state(b, "run")


def about_state(report: Report, role: str) -> Iterator[Doubt]:
    if report.run.state not in (RunState.COMPLETED, RunState.FAILED):
        state = report.run.state.value.replace("_", " ")
        hint = f"Finish it: assay run --resume {report.run.id}" if state != "running" else ""
        yield Doubt("unfinished", f"The {role} {report.run.id} is {state}: part of it is missing.", hint)

"""Judges a run against a baseline: may it pass?

The steps of `gate_sides` are: refuse sides that are not comparable, choose the metrics, compare them with the noise that is
known, and collect what else a reader must know (broken, unscored, incomplete and missing results). Whether the gate passes
is decided by `Gate` in `assay.model.regression`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from assay.analysis.comparison.comparability import list_comparability_doubts
from assay.analysis.comparison.compare import PERCENTILES, matching_trials
from assay.analysis.comparison.coverage import find_missing, warn_about_missing
from assay.analysis.comparison.default_metrics import default_family, judgeable
from assay.analysis.comparison.flips import find_scored_cases, flips_between
from assay.analysis.comparison.gate import (
    broken_trials,
    compare_within,
    family_of,
    find_common_metrics,
    find_unscored_trials,
)
from assay.analysis.comparison.policy import Tolerances
from assay.analysis.comparison.severity import depends_on_machine
from assay.analysis.estimates.completion import (
    COMPLETION,
    incomplete_trials,
    inner_name,
    outer_name,
    with_completion,
)
from assay.analysis.estimates.treatment import differing_params
from assay.errors import LookupFailed, Unlike, format_unknown_name
from assay.model import Doubt, Metric, Report, RunState
from assay.model.regression import Gate
from assay.pipeline.capacity_comparison import refuse_searches
from assay.pipeline.compare import side
from assay.pipeline.tolerances import read_noise, warn_about_floors
from assay.store.store import Store


def gate_refs(
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
    """Judge the second of two `sides`, where the first is the baseline's.

    Sides that took turns in one run are judged without the noise between runs.
    """
    # Sides are refused twice: first for what holds whatever is measured, so that the message is about the real difference and
    # not about a metric that one of them lacks; then again once it is known whether times are among the metrics, because only
    # these tie a comparison to one kind of machine.
    requested = [inner_name(name) for name in metrics]
    a, b = with_completion(*sides, always=COMPLETION in requested)
    shared = find_common_metrics(a, b)
    _refuse_unlike(a, b, baseline, [])
    asked_widths = tolerances or Tolerances()
    broken = broken_trials(a, b)
    named = [*requested, *([] if requested else map(inner_name, asked_widths.of_metric))]
    # What is broken has no times any more. That fails the gate, so metrics of the baseline alone are no mistake then.
    known_metrics = {e.metric.name: e.metric for trial in a.trials for e in trial.estimates} if broken else {}
    _refuse_unknown(named, {**known_metrics, **shared})
    candidates = requested or (*family_of(a, b, shared), *named)
    chosen = [name for name in dict.fromkeys(candidates) if _base(name, shared) in shared]
    _refuse_unlike(a, b, baseline, [shared[_base(name, shared)] for name in chosen])
    if not chosen and not broken:
        raise Unlike(f"Run '{b.run.id}' and the baseline '{baseline}' have no metric in common.")
    others = [name for name in judgeable(shared.values()) if name not in chosen] if not requested else []
    widths = asked_widths.without({*named} - {*chosen})
    known = read_noise(store, a, b)
    comparisons = compare_within(a, b, chosen, widths, others, known.noise)
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
        unscored=find_unscored_trials(a, b) if not requested or "score" in requested else (),
        incomplete=incomplete_trials(b, {second.name for _, second in matching_trials(a, b)}),
        flips=flips,
        unjudged=tuple(name for name in shared if name not in chosen) if not metrics else (),
        doubts=(
            *(doubt for doubt in list_comparability_doubts(*sides) if doubt.code != "unmatched"),
            *_check_runs(a, b),
            *warn_about_missing(a, b, missing),
            *_check_lost_metrics(a, b, metrics),
            *warn_about_floors(known.floors, comparisons),
        ),
        max_lost=max_lost,
        missing=missing,
        asked=(*(word for name in metrics for word in ("--metric", name)), *asked_widths.options),
    )


def _is_one_run(a: Report, b: Report) -> bool:
    """Whether the sides took turns in one run; a run that is compared with itself has the same trials on both sides."""
    return a.run.id == b.run.id and not {trial.name for trial in a.trials} & {
        trial.name for trial in b.trials
    }


def _refuse_unlike(a: Report, b: Report, baseline: str, metrics: Sequence[Metric]) -> None:
    if reason := unlike(a, b, metrics):
        raise Unlike(f"Run '{b.run.id}' cannot be compared with the baseline '{baseline}': {reason}")


def baseline_ref(store: Store, baseline: str) -> str:
    """What `side` takes for a baseline: `@NAME`, or a result file if there is no baseline of that name."""
    name = baseline.removeprefix("@")
    if name not in store.baselines() and Path(baseline).is_file():
        return baseline
    return f"@{name}"


def _refuse_unknown(requested: Sequence[str], shared: dict[str, Metric]) -> None:
    """Refuse metrics that one side lacks. If the sides share none at all, that is reported instead."""
    for name in requested if shared else ():
        if _base(name, shared) not in shared:
            raise LookupFailed(
                format_unknown_name(outer_name(name), "metrics that both sides have", map(outer_name, shared))
            )


def _base(name: str, shared: dict[str, Metric]) -> str:
    """The metric of a percentile: `seconds` for `seconds.p95`."""
    metric, _, place = name.rpartition(".")
    return metric if name not in shared and place in PERCENTILES else name


def unlike(a: Report, b: Report, metrics: Sequence[Metric]) -> str:
    """Why two sides are not comparable, with what to do about it; empty if they are.

    The reasons go from the general to the particular, so that the user learns of another suite before other params.
    """
    if reason := _refuse_other_suite(a, b) or _refuse_nothing_in_common(a, b):
        return reason
    for first, second in matching_trials(a, b):
        kinds = ["simulated" if trial.is_simulated else "measured" for trial in (first, second)]
        if kinds[0] != kinds[1]:
            return f"'{second.name}' is {kinds[1]}, but it is {kinds[0]} in the baseline. Simulated and measured results cannot be compared."
    return _refuse_other_machine(a, b, metrics)


def _refuse_other_suite(a: Report, b: Report) -> str:
    """Say that the sides ran different suites or different definitions of one; empty if not."""
    first, second = a.run.suite, b.run.suite
    if first is None or second is None or first.hash == second.hash:
        return ""
    if first.name != second.name:
        return f"it ran suite '{second.name}', but the baseline ran suite '{first.name}'."
    return (
        f"suite '{second.name}' has changed (definition {first.hash[:8]}, now {second.hash[:8]}). "
        "Run the baseline again with the current suite, and set it again."
    )


def _refuse_nothing_in_common(a: Report, b: Report) -> str:
    """Say that the sides share no benchmark, params or cases; empty if they do."""
    pairs = matching_trials(a, b)
    if not pairs:
        return (
            f"they share no benchmark with the same params ({_benchmarks(b)} here, {_benchmarks(a)} there)."
        )
    first, second = pairs[0]
    if first.stored.trial.benchmark != second.stored.trial.benchmark:
        return f"it measures {_benchmarks(b)}, but the baseline measures {_benchmarks(a)}."
    if names := differing_params(first, second):
        listed = ", ".join(f"'{name}'" for name in names)
        return f"the params differ in {listed}. Run both with the same params."
    cases = [(find_scored_cases(before), find_scored_cases(after)) for before, after in pairs]
    if all(before and after and {*before}.isdisjoint(after) for before, after in cases):
        return "they have no case in common. Run both on the same cases."
    return ""


def _benchmarks(report: Report) -> str:
    names = dict.fromkeys(trial.stored.trial.benchmark for trial in report.trials)
    return ", ".join(f"'{name}'" for name in names) or "nothing"


def _refuse_other_machine(a: Report, b: Report, metrics: Sequence[Metric]) -> str:
    """Say that times or memory would be compared across kinds of machines; empty if not."""
    machine_a, machine_b = a.run.environment.machine_class, b.run.environment.machine_class
    bound = [metric.name for metric in metrics if depends_on_machine(metric)]
    if machine_a == machine_b or not bound:
        return ""
    free = [metric.name for metric in metrics if not depends_on_machine(metric)]
    hint = (
        f", or judge only what does not depend on the machine: {' '.join(f'--metric {n}' for n in free)}"
        if free
        else ""
    )
    return f"it ran on a different kind of machine ({machine_b}; the baseline: {machine_a}). Run both on one machine{hint}."


def _check_lost_metrics(a: Report, b: Report, requested: Sequence[str]) -> Iterator[Doubt]:
    """Warnings about metrics that the baseline has and the run lacks: a gate that passes has not judged them."""
    for first, second in matching_trials(a, b):
        measured = {estimate.metric.name for estimate in second.estimates if estimate.n}
        known = default_family((e.metric for e in first.estimates if e.n), first.declared)
        lost = [outer_name(name) for name in known if name not in measured]
        if not second.ok or not lost or (requested and not {*lost} & {*requested}):
            continue
        listed = ", ".join(f"'{name}'" for name in lost)
        yield Doubt(
            "unjudged",
            f"Not judged: the baseline has {listed}, but the run does not.",
            f"See why: assay show {b.run.id}",
            second.name,
        )


def _check_runs(a: Report, b: Report) -> Iterator[Doubt]:
    """Warnings about the two runs themselves: a run that is compared with itself, and runs that are not finished."""
    if a.run.id == b.run.id and not _is_one_run(a, b):
        yield Doubt(
            "itself", "This run is the baseline, so the gate passes trivially.", "Start a new run: assay run"
        )
    if not _is_one_run(a, b):
        yield from warn_about_state(a, "baseline")
    yield from warn_about_state(b, "run")


def warn_about_state(report: Report, role: str) -> Iterator[Doubt]:
    if report.run.state not in (RunState.COMPLETED, RunState.FAILED):
        state = report.run.state.value.replace("_", " ")
        hint = f"Finish it: assay run --resume {report.run.id}" if state != "running" else ""
        yield Doubt("unfinished", f"The {role} {report.run.id} is {state}: part of it is missing.", hint)

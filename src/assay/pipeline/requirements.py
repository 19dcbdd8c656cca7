"""Checks the requirements of a gate: those of the suite and those of `--require`, with or without a baseline.

Requirements are absolute limits, so they can be a gate of their own where no baseline is set.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from assay.analysis.comparison.coverage import warn_about_cases_left_out
from assay.analysis.comparison.requirements import check_requirements
from assay.analysis.estimates.completion import incomplete_trials
from assay.errors import AssayError, LookupFailed
from assay.model import Report
from assay.model.regression import Gate
from assay.model.requirement import Requirement
from assay.pipeline.compare import side
from assay.pipeline.gate import warn_about_state
from assay.pipeline.success import keep_gate
from assay.spec.requirements import (
    parse_requirements,
    split_name,
    unknown_benchmark,
    unknown_name,
)
from assay.store.store import Store

DEFAULT_BASELINE = "main"


def gate_with_requirements(
    store: Store,
    ref: str,
    baseline: str | None,
    written: str | Sequence[str],
    compare: Callable[[str], Gate],
    *,
    needs_baseline: bool = False,
) -> Gate:
    """Judge a run against a baseline, by `compare`, and against its requirements.

    The default baseline is `main`. If there is none for the run's suite, requirements alone are a gate, unless the caller
    `needs_baseline` because of other options.
    """
    if baseline is None and not needs_baseline and not _has_baseline(store, ref):
        report = side(store, ref)
        if requirements := _all_of(report, written):
            doubts = (*warn_about_state(report, "run"), *warn_about_cases_left_out(report))
            alone = Gate(baseline="", a=report, b=report, comparisons=(), doubts=doubts)
            return _keep(store, ref, _with(alone, requirements))
    found = compare(baseline or DEFAULT_BASELINE)
    return _keep(store, ref, _with(found, _all_of(found.b, written)))


def _keep(store: Store, ref: str, gate: Gate) -> Gate:
    """The gate, remembered for the figures of success; what it says of a result file is about no stored run."""
    if not ref.endswith(".json"):
        keep_gate(store, gate)
    return gate


def _with(gate: Gate, requirements: Sequence[Requirement]) -> Gate:
    """The gate with its requirements checked.

    Requirements are about every trial of the run and not only about those that the baseline has, so all incomplete ones
    count now.
    """
    if not requirements:
        return gate
    return replace(
        gate,
        requirements=check_requirements(requirements, gate.b.trials),
        incomplete=incomplete_trials(gate.b, {trial.name for trial in gate.b.trials}),
    )


def _has_baseline(store: Store, ref: str) -> bool:
    """Whether there is a default baseline, and not of another suite."""
    known = store.baselines().get(DEFAULT_BASELINE)
    if known is None:
        return False
    runs = side(store, ref).run if ref.endswith(".json") else store.run(ref), store.run(known)
    return len({run.suite.name for run in runs if run.suite}) < 2


def _all_of(report: Report, written: str | Sequence[str]) -> list[Requirement]:
    """The requirements of the suite and those that were asked for, each once.

    Those of the suite were checked when it was read.
    """
    suite = report.suite or report.run.suite
    own = suite.require if suite is not None else ()
    requirements = _parse(written, "--require")
    _refuse_unknown(requirements, report)
    return list(dict.fromkeys((*_parse(own, "require of the suite"), *requirements)))


def _parse(written: str | Sequence[str], place: str) -> list[Requirement]:
    try:
        return parse_requirements(written)
    except ValueError as error:
        raise AssayError(f"{place}: {error}") from None


def _refuse_unknown(requirements: Sequence[Requirement], report: Report) -> None:
    benchmarks = {trial.stored.trial.benchmark for trial in report.trials}
    metrics = {estimate.metric.name for trial in report.trials for estimate in trial.estimates}
    for requirement in requirements:
        if {requirement.name, split_name(requirement.name)[1]} & metrics:
            continue
        if problem := unknown_name(requirement.name, metrics):
            raise LookupFailed(f"--require: {problem}")
    if problem := unknown_benchmark(requirements, benchmarks):
        raise LookupFailed(f"--require: {problem}")

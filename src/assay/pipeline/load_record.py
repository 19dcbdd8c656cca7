"""How a load test is stored: as a run of the experiment `load`, in which each execution is one load.

`assay load` and capacity searches make their plans and executions here, so that every command that reads runs (`show`,
`compare`, `report`) can read them too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

from assay.load.options import LoadOptions
from assay.model import Execution, Phase, Plan, Status
from assay.model.load import LoadResult
from assay.model.load_document import load_document, load_metrics
from assay.plan.target import Registry, RunRequest, plan_target
from assay.spec.settings import Settings


def plan_load(
    options: LoadOptions,
    settings: Settings,
    repetitions: int,
    tags: tuple[str, ...],
    levels: Sequence[int] = (),
) -> Plan:
    """The plan of a load test. Several `levels` of concurrency become a sweep with a trial for each."""
    changes: dict[str, object] = {
        "params": select_changed_options(options),
        "iterations": {"measured": repetitions, "warmup": 0},
        "isolation": "inline",
    }
    if tags:
        changes["tags"] = list(tags)
    if len(levels) > 1:
        changes["sweep"] = {"concurrency": list(levels)}
    plan = plan_target(RunRequest("load", changes), settings, Registry())
    trials = []
    for trial in plan.trials:
        axes = [f"{name}={value}" for name, value in trial.axes.items()]
        trials.append(replace(trial, name=" ".join([f"load {options.target}", *axes])))
    return replace(plan, name="load", trials=tuple(trials), label=next(iter(tags), ""))


def select_changed_options(options: LoadOptions) -> dict[str, object]:
    """The options that differ from their defaults, as params of a spec."""
    # Only what was chosen, as in a spec that a person writes: names of trials and reports would drown in defaults.
    plain = {field.name: getattr(options, field.name) for field in fields(options)}
    defaults = {field.name: field.default for field in fields(options)}
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in plain.items()
        if value != defaults[name]
    }


def execution_of(result: LoadResult, trial: int, repetition: int, started: float) -> Execution:
    """One load as an execution. It is ok if at least one request was answered, and only then has measurements.

    Figures of a load that lost a generator are in its document alone: the rest of that load was not requested.
    """
    is_lost = any(generator.lost for generator in result.generators)
    is_ok = result.requests_completed > 0 and not is_lost
    return Execution(
        trial=trial,
        process=0,
        phase=Phase.MEASURED,
        repetition=repetition,
        status=Status.HARNESS_ERROR if is_lost else Status.OK if is_ok else Status.FAILED,
        started=started,
        measurements=load_metrics(result) if is_ok else {},
        output=load_document(result),
        error=None if is_ok else result.aborted or next(iter(result.warnings), "no request was answered"),
        detail={"simulated": True} if result.is_simulated else None,
    )

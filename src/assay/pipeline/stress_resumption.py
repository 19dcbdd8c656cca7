"""Resumes a stress test that was interrupted: runs the scenarios that have no result.

Everything needed is in the store: the options in the source of the run, the sizes of each scenario in the params of its
trial, and the baseline of the first part beside each finding. `pipeline.run.resume` calls it for stress runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, NoReturn

from assay.analysis.load.stress import scenario_of, stress_finding
from assay.errors import PlanError
from assay.execute.signals import interruptible
from assay.load.options import LoadOptions
from assay.model import Batch, Run, RunState, Trial
from assay.model.stress import STRESS, StressFinding
from assay.pipeline.lifecycle import ActiveRun, reopen_run
from assay.pipeline.load import prepare_load
from assay.pipeline.stress import (
    Sizes,
    Start,
    StressObserver,
    StressOptions,
    decide_state,
    measure_base_rate,
    run_scenarios,
    subject_of,
)
from assay.plugin import lookup
from assay.plugin.scenario import Scenario
from assay.plugin.scenario_baseline import longest_in_calm
from assay.spec.settings import Settings
from assay.stats.means import share_difference
from assay.store.store import Store
from assay.text import shell_command
from assay.units import percent, seconds, significant

_STANDARD_ERRORS = 3.0
"""By how many standard errors two shares of failed requests must differ to be called different."""


def is_stress_run(run: Run) -> bool:
    return any(stored.trial.experiment == STRESS for stored in run.trials)


def resume_stress(
    run: Run,
    store: Store,
    settings: Settings,
    watch: Callable[[Batch], None] = lambda batch: None,
    sizes: Sizes | None = None,
) -> None:
    """Measure the baseline again, then run the scenarios that have no result.

    Load and objective stay those of the first part. Recovery is judged by the new baseline, since that is what the agent can
    return to now; where the two baselines differ, every scenario of the second part says so.
    """
    options = _read_options(run, store)
    observer = StressObserver(lambda text: None, lambda finding: None, lambda progress, load: None, watch)
    with (
        interruptible() as interrupt,
        reopen_run(run.id, store, interrupt, stays_open_on_error=True) as active,
    ):
        # Read only now: taking the run over may have stored a scenario that the first part could not store.
        outputs = _read_outputs(active)
        findings = [scenario_of(output["scenario"]) for output in outputs.values()]
        missing = [stored.trial for stored in active.run.trials if stored.trial.index not in outputs]
        if missing:
            prepare_load(options.load, settings, store)
            subject, sizes = subject_of(options.load, settings, store), sizes or options.sizes
            # Every scenario of the first part was stored with the same setting.
            stored_settings = [output.get("setting", {}) for output in outputs.values()]
            agent = run.trials[0].trial.agent.name
            earlier = stress_finding(agent, stored_settings[0], ()) if stored_settings else None
            start = measure_base_rate(options, subject, sizes, interrupt, observer, earlier)
            if earlier is not None:
                start = replace(start, remarks=_describe_difference(earlier, start))
            scenarios = {trial.index: _restore_scenario(trial) for trial in missing}
            findings += run_scenarios(active, scenarios, start, observer, sizes.settle)
        active.finish(lambda: decide_state(findings))


def _read_options(run: Run, store: Store) -> StressOptions:
    """The options of the first part, from the source of the run. JSON has lists where options have tuples."""
    written = run.source.get("options")
    if not isinstance(written, Mapping):
        _refuse(run, store)
    load: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in written.items()
    }
    base = run.source.get("base")
    return StressOptions(
        LoadOptions(**load),
        is_quick=bool(run.source.get("quick")),
        base=float(base) if isinstance(base, int | float) else None,
        tags=run.tags,
    )


def _refuse(run: Run, store: Store) -> NoReturn:
    """Refuse to resume a run of an earlier version, which did not store the options of stress tests.

    Opening the run first stores results that the run itself could not store.
    """
    if run.state is RunState.RUNNING:
        with interruptible() as interrupt, reopen_run(run.id, store, interrupt) as active:
            active.finish(lambda: RunState.INTERRUPTED)
    finished_trials = {trial for trial, _, _ in store.progress(run.id)}
    missing = [stored.trial.name for stored in run.trials if stored.trial.index not in finished_trials]
    scenarios = [word for name in missing for word in ("--scenario", name)]
    command = shell_command("stress", run.trials[0].trial.agent.name, options=scenarios)
    raise PlanError(
        f"Run '{run.id}' was made by an earlier version of Assay, which did not store the options of stress tests, so it "
        f"cannot be resumed. Run the missing scenarios instead: {command}"
    )


def _read_outputs(active: ActiveRun) -> dict[int, Mapping[str, Any]]:
    """The stored output of each finished scenario, by the index of its trial."""
    return {
        stored.trial.index: execution.output
        for stored in active.run.trials
        for execution in active.store.executions(stored.id)
        if isinstance(execution.output, Mapping) and "scenario" in execution.output
    }


def _restore_scenario(trial: Trial) -> Scenario:
    """The scenario with the sizes that were planned, which may differ from the defaults of this version of Assay."""
    member = lookup.find("scenarios", str(trial.params["scenario"]))
    scenario: Scenario = member.quick() if trial.params.get("quick") else member()
    if not is_dataclass(scenario):
        return scenario
    sizes = {
        size.name: _restore_tuples(trial.params[size.name])
        for size in fields(scenario)
        if size.init and size.name in trial.params
    }
    return replace(scenario, **sizes)


def _restore_tuples(value: object) -> Any:
    return tuple(map(_restore_tuples, value)) if isinstance(value, list) else value


def _describe_difference(earlier: StressFinding, start: Start) -> tuple[str, ...]:
    """A warning where the agent at the base rate is not what it was in the first part of the run."""
    calm, errors, quality = start.bench.calm, start.bench.calm_errors, start.bench.calm_quality
    before, errors_before = earlier.calm_latency, earlier.calm_errors
    changes = []
    if before is not None and (calm.p50 > longest_in_calm(before) or before.p50 > longest_in_calm(calm)):
        changes.append(f"latency P50 was {seconds(before.p50)} and is {seconds(calm.p50)}")
    if errors.ended and errors_before.ended:
        shares = (errors_before.rate, errors_before.ended), (errors.rate, errors.ended)
        low, high = share_difference(*shares, _STANDARD_ERRORS)
        if low > 0 or high < 0:
            changes.append(
                f"{percent(errors_before.rate)} of the requests failed before and {percent(errors.rate)} fail now"
            )
    if (score := earlier.calm_score) is not None and quality is not None:
        # The ends of both 95 % intervals: scores differ if the intervals do not overlap.
        ends = (score.low, score.high, quality.score.low, quality.score.high)
        if None not in ends and (ends[0] > ends[3] or ends[2] > ends[1]):  # type: ignore[operator]
            changes.append(
                f"the score was {significant(score.value)} and is {significant(quality.score.value)}"
            )
    if not changes:
        return ()
    return (
        f"The stress test was resumed, but the agent now behaves differently at the base rate: {'; '.join(changes)}. "
        "Scenarios from before and after the interruption are not comparable. To compare them, rerun the whole test.",
    )

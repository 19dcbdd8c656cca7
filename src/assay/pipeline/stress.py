"""A stress test: measure the agent at a base rate, then run each scenario and store its finding.

`measure_base_rate` finds the rate that the agent handles comfortably, and its latency, errors and score at that rate; they
give the load and the objective of the scenarios. `run_scenarios` runs the scenarios one after the other. Each is a trial
with one execution, whose output has the finding of the scenario and the setting, so that a report and a resumption need
nothing but the store. Between scenarios the agent gets time to recover (`pipeline.recovery`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from assay.analysis.load.stress import score_of, stress_finding
from assay.execute.environment import environment
from assay.execute.signals import interruptible
from assay.load.build import LoadOptions
from assay.load.failures import failures_in
from assay.load.stress.base_rate import (
    ENOUGH,
    comfortable,
    derive_objective,
    discomfort,
    errors_of,
    latency_of,
    unmet_in,
)
from assay.load.stress.bench import Interrupted, Look, StressBench, within
from assay.load.stress.resources import (
    Gauge,
    find_agent_processes,
    listening_on,
    running_its_code,
    with_children,
)
from assay.load.stress.subject import StressSubject
from assay.model import (
    AgentUse,
    AgentVersion,
    Batch,
    Execution,
    Isolation,
    Iterations,
    Order,
    Phase,
    Plan,
    RunState,
    Status,
    Trial,
)
from assay.model.error_details import gather
from assay.model.load import LoadResult
from assay.model.stress import STRESS, ScenarioFinding, StressFinding, stress_metrics
from assay.pipeline.lifecycle import ActiveRun, open_run
from assay.pipeline.load import data_of, prepare_load
from assay.pipeline.load_record import select_changed_options
from assay.pipeline.recovery import measure_recovery, warn_if_not_recovered
from assay.plan.load import find_agent
from assay.plugin import lookup
from assay.plugin.json_data import to_json_data
from assay.plugin.scenario import Scenario
from assay.plugin.scenario_baseline import calm_load
from assay.spec.load_settings import objectives_of
from assay.spec.settings import Settings
from assay.store.store import Store
from assay.units import significant


@dataclass(frozen=True, slots=True)
class StressOptions:
    """What the user asked for. `load` says how to send requests; no `scenarios` means all of them, and no `base` rate (in
    requests per second) means that it is searched for."""

    load: LoadOptions
    scenarios: tuple[str, ...] = ()
    is_quick: bool = False
    base: float | None = None
    tags: tuple[str, ...] = ()

    @property
    def sizes(self) -> Sizes:
        return QUICK if self.is_quick else FULL


@dataclass(frozen=True, slots=True)
class Sizes:
    """Durations in seconds: the search for the base rate, the measurement at it, and how long a breach of the objective has
    to last before it counts."""

    search: float
    calm: float
    sustain: float
    settle: float = 2.0
    """How long to wait at most for an agent that did not recover within its scenario."""


FULL = Sizes(search=10.0, calm=10.0, sustain=3.0, settle=60.0)
QUICK = Sizes(search=6.0, calm=2.0, sustain=1.0, settle=15.0)


@dataclass(frozen=True, slots=True)
class StressOutcome:
    run_id: str
    finding: StressFinding
    is_interrupted: bool


@dataclass(frozen=True, slots=True)
class StressObserver:
    """Callbacks of a stress test: `say` gets a line for each step, `found` each finding when its scenario ends, and `look`
    the progress of the current load several times a second."""

    say: Callable[[str], None]
    found: Callable[[ScenarioFinding], None]
    look: Look
    stored: Callable[[Batch], None] = lambda batch: None
    """Called with each batch after it was stored."""


def scenarios_named(names: Sequence[str], is_quick: bool) -> list[Scenario]:
    """The scenarios of these names, each once; or all, by their `order` and then by name."""
    wanted = dict.fromkeys(names or lookup.known("scenarios"))
    members = [lookup.find("scenarios", name) for name in wanted]
    if not names:
        members.sort(key=lambda member: getattr(member, "order", math.inf))
    return [member.quick() if is_quick else member() for member in members]


def run_stress(
    options: StressOptions,
    store: Store,
    settings: Settings,
    observer: StressObserver,
    scenarios: Sequence[Scenario] | None = None,
    sizes: Sizes | None = None,
) -> StressOutcome:
    """Measure the baseline and run the scenarios. Finished scenarios stay stored, whatever happens to later ones."""
    # Mistakes in names and options show before the first request; the run begins in the store only after the baseline, so that
    # an agent that cannot be reached leaves no empty run behind.
    chosen = scenarios_named(options.scenarios, options.is_quick) if scenarios is None else list(scenarios)
    prepare_load(options.load, settings, store)
    subject = subject_of(options.load, settings, store)
    sizes = sizes or options.sizes
    with interruptible() as interrupt:
        start = measure_base_rate(options, subject, sizes, interrupt, observer)
        plan = plan_stress(options, chosen, subject.use)
        with open_run(plan, store, interrupt, environment(Path.cwd())) as active:
            findings = run_scenarios(active, dict(enumerate(chosen)), start, observer, sizes.settle)
            active.finish(lambda: decide_state(findings))
    whole = stress_finding(strip_credentials(options.load.target), start.setting, findings)
    return StressOutcome(active.id, whole, interrupt())


def run_scenarios(
    active: ActiveRun,
    scenarios: Mapping[int, Scenario],
    start: Start,
    observer: StressObserver,
    settle_timeout: float,
) -> list[ScenarioFinding]:
    """Run the scenarios of these trials one after the other, until all are done or the user interrupts.

    `scenarios` maps the index of a trial to its scenario. Each finding is stored as soon as it exists. After a scenario, an
    agent that has not recovered gets up to `settle_timeout` seconds.
    """
    findings: list[ScenarioFinding] = []
    for trial, scenario in scenarios.items():
        started = time.time()
        # A scenario that was skipped sent nothing, so what the agent may still suffer from is the one before it.
        before = next((finding for finding in reversed(findings) if not finding.skipped), None)
        try:
            finding = _run_scenario(scenario, start.bench, observer, before, settle_timeout)
        except Interrupted:
            break
        finding = replace(finding, warnings=(*start.remarks, *finding.warnings))
        batch = Batch((_execution(finding, trial, started, start.setting),))
        active.add(batch)
        findings.append(finding)
        observer.found(finding)
        observer.stored(batch)
    return findings


def decide_state(findings: Sequence[ScenarioFinding]) -> RunState:
    """A stress test failed only if no request of any scenario was answered. An agent that breaks is a result, not a failure."""
    return RunState.COMPLETED if any(finding.completed for finding in findings) else RunState.FAILED


def subject_of(options: LoadOptions, settings: Settings, store: Store) -> StressSubject:
    """What is stressed: a URL, or an agent that is known by its name, with the inputs of `--dataset`."""
    data = data_of(options, settings)
    if data is not None:
        # Scenarios count single requests: of a session, what is said first.
        data = replace(data, sessions=())
    found = find_agent(options.target, settings, store.agents())
    return (
        StressSubject(options, data=data)
        if found is None
        else StressSubject(options, found.use, found.files, data)
    )


@dataclass(frozen=True, slots=True)
class Start:
    """The baseline that all scenarios start from: the agent at the base rate."""

    bench: StressBench
    base_text: str
    warnings: tuple[str, ...]
    remarks: tuple[str, ...] = ()
    """Warnings that belong beside every scenario that starts from here."""

    @property
    def objective(self) -> str:
        limits = ", ".join([*(objective.text for objective in self.bench.objectives), "error_rate<5%"])
        derived = "five times the P95 at the base rate or 50 ms more, because no --slo was given"
        return f"{limits} ({derived})" if self.bench.is_derived else limits

    @property
    def setting(self) -> dict[str, Any]:
        """What is stored with every scenario, for reports and for a resumption."""
        return {
            "base": self.bench.base,
            "base_text": self.base_text,
            "objective": self.objective,
            "warnings": list(self.warnings),
            "judged_by": self.judged_by,
            "calm_score": asdict(calm.score) if (calm := self.bench.calm_quality) else None,
            "calm_errors": to_json_data(asdict(self.bench.calm_errors)),
            "calm_latency": to_json_data(asdict(self.bench.calm)),
        }

    @property
    def judged_by(self) -> str:
        """The suite that scores answers and its pass marks; empty if answers are not scored."""
        subject = self.bench.subject
        if subject.check is None:
            return ""
        marks = sorted({benchmark.rubric.pass_mark for benchmark, _ in subject.check.pairs})
        return f"{subject.options.dataset}, pass mark {' or '.join(map(significant, marks))}"


def measure_base_rate(
    options: StressOptions,
    subject: StressSubject,
    sizes: Sizes,
    is_stopped: Callable[[], bool],
    observer: StressObserver,
    earlier: StressFinding | None = None,
) -> Start:
    """Find the rate that the agent handles comfortably, and measure its latency at that rate, which gives the objective.

    `earlier` is what the first part of a resumed run found: its base rate and its objective stay, so that all scenarios of the
    run are put and judged alike.
    """
    prepared = subject.loaded()
    base, text = options.base, "given"
    if earlier is not None and earlier.base is not None:
        base, text = earlier.base, earlier.base_text
    if base is None:
        observer.say("base: searching for the rate that the agent handles comfortably")
        comfort = comfortable(subject, prepared, sizes.search, is_stopped)
        base, text = comfort.rate, comfort.text
    observer.say(f"base: {significant(base)} requests/s, {text}")
    cases = len(subject.check.pairs) if subject.check is not None else 0
    # Long enough for every case to be asked and for a P95 to rest on enough answers, also where the base rate is low.
    load = within(calm_load(base, sizes.calm, cases, ENOUGH), subject)
    load = replace(load, seconds_each=prepared.load.seconds_each, workers=prepared.load.workers)
    # Details of failed requests come with the chunks that workers report; the result has only their counts.
    failures: list[list[Any]] = []
    result = prepared.at(load).measure(
        is_stopped=is_stopped, watch_chunk=lambda chunk: failures.extend(failures_in(chunk.facts))
    )
    if is_stopped():
        raise KeyboardInterrupt
    calm = latency_of(result, strip_credentials(options.load.target))
    doubt = discomfort(result, base)
    given = objectives_of(options.load.slo) if options.load.slo else ()
    objectives = given or (derive_objective((earlier and earlier.calm_latency) or calm),)
    bench = StressBench(subject, base, calm, objectives, not given, sizes.sustain, is_stopped, observer.look)
    bench.is_simulated, bench.calm_quality = result.is_simulated, result.quality
    bench.calm_errors = errors_of(result, gather(failures))
    bench.calm_unmet = unmet_in(result, objectives)
    doubts = [doubt, describe_missing_quality(subject, result)]
    return Start(bench, text, tuple(note for note in doubts if note))


def describe_missing_quality(subject: StressSubject, calm: LoadResult) -> str | None:
    if subject.check is None or calm.quality is not None:
        return None
    return f"No answer at the base rate could be scored with '{subject.options.dataset}', so correctness is not compared with the base rate."


def _run_scenario(
    scenario: Scenario,
    bench: StressBench,
    observer: StressObserver,
    before: ScenarioFinding | None,
    settle_timeout: float,
) -> ScenarioFinding:
    """Run one scenario while the gauge samples the agent's processes, then wait until the agent has recovered.

    A scenario that does not apply to the agent gives a finding with the reason and counts neither for nor against it. Raises
    Interrupted if the user stops the test.
    """
    reason = scenario.not_for(bench)
    if reason:
        return ScenarioFinding(scenario.name, skipped=reason)
    if bench.is_stopped():
        raise Interrupted
    observer.say(f"{scenario.name}: running")
    bench.gauge = gauge_of(bench.subject)
    with bench.gauge.watching():
        found = scenario.run(bench)
    is_simulated = found.is_simulated or bench.is_simulated
    resources = bench.gauge.summarize()
    if resources is not None and found.resources is not None and found.resources.samples:
        # The scenario has the samples from while its loads ran, on the time axis of these loads.
        resources = replace(resources, samples=found.resources.samples)
    warnings = (*warn_if_not_recovered(before), *found.warnings)
    found = replace(found, resources=resources, is_simulated=is_simulated, warnings=warnings)
    return measure_recovery(found, bench, settle_timeout)


def gauge_of(subject: StressSubject) -> Gauge:
    """The gauge of memory and CPU of the agent's processes: the server that listens on this machine, the programs that Assay
    started, or the workers that run the agent's code. A server on another machine cannot be observed."""
    if subject.is_command:
        return Gauge(subject.use.name if subject.use else "", find_agent_processes)
    if not subject.is_server:
        name = subject.use.name if subject.use else ""
        return Gauge(f"{name} (with the load worker that runs its code)", running_its_code)
    port = subject.port
    process = listening_on(port) if port is not None else None
    if process is None:
        return Gauge("", list)
    return Gauge(f"{process.name()} ({process.pid})", lambda: with_children(process))


def plan_stress(options: StressOptions, scenarios: Sequence[Scenario], use: AgentUse | None) -> Plan:
    """A trial for each scenario, with the sizes of the scenario as params.

    `source` has the options of the command line without credentials. `pipeline.stress_resumption` reads both.
    """
    target = strip_credentials(options.load.target)
    common: dict[str, object] = {"quick": options.is_quick}
    if options.load.slo:
        common["slo"] = options.load.slo
    if options.load.dataset:
        common["dataset"] = options.load.dataset
    trials = tuple(
        Trial(
            index=number,
            name=scenario.name,
            agent=AgentVersion(target, use.version if use else ""),
            benchmark=STRESS,
            experiment=STRESS,
            params={**common, "scenario": scenario.name, **_sizes(scenario)},
            iterations=Iterations(0, 1),
            isolation=Isolation.INLINE,
        )
        for number, scenario in enumerate(scenarios)
    )
    return Plan(
        f"stress {target}",
        trials,
        options.load.seed,
        Order.SEQUENTIAL,
        tags=options.tags,
        label=next(iter(options.tags), ""),
        source={
            "target": target,
            **common,
            "base": options.base,
            "options": {**select_changed_options(options.load), "target": target},
        },
    )


def _sizes(scenario: Any) -> dict[str, object]:
    """The fields of a scenario that is a dataclass, such as its seconds and rates, as plain data for the store."""
    sizes = asdict(scenario) if is_dataclass(scenario) and not isinstance(scenario, type) else {}
    return {name: to_json_data(value) for name, value in sizes.items()}


def strip_credentials(target: str) -> str:
    """The target without the user name and password that a URL may contain.

    >>> strip_credentials("http://me:secret@127.0.0.1:9000/v1")
    'http://127.0.0.1:9000/v1'
    """
    parts = urlsplit(target)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl() if "@" in parts.netloc else target


def _execution(found: ScenarioFinding, trial: int, started: float, setting: dict[str, Any]) -> Execution:
    """A finding as the one execution of its trial. A skipped scenario is ok, but has no score."""
    return Execution(
        trial=trial,
        process=0,
        phase=Phase.MEASURED,
        repetition=0,
        status=Status.OK if found.skipped or found.completed else Status.FAILED,
        started=started,
        measurements=stress_metrics(found, score_of(found)),
        output={"scenario": to_json_data(asdict(found)), "setting": setting},
        error=None if found.skipped or found.completed else "no request was answered",
        detail={"simulated": True} if found.is_simulated else None,
    )

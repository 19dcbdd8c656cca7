"""A stress test from the command line: what the agent bears at the base rate, then each scenario, stored as soon as it is done."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, is_dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from assay.analysis.stress import score_of, stress_finding
from assay.execute.environment import environment
from assay.execute.load.asking import LoadOptions
from assay.execute.load.failures import failures_in, gather
from assay.execute.signals import interruptible
from assay.execute.steady_clock import SteadyClock
from assay.execute.stress.bench import Interrupted, Look, StressBench, within
from assay.execute.stress.calm import (
    ENOUGH,
    calm_load,
    comfortable,
    derived_objective,
    discomfort,
    errors_of,
    latency_of,
    unmet_in,
)
from assay.execute.stress.resources import (
    Gauge,
    listening_on,
    running_its_code,
    started_by_us,
    with_children,
)
from assay.execute.stress.subject import StressSubject
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
from assay.model.load import LoadResult
from assay.model.stress import STRESS, Resources, ScenarioFinding, StressFinding
from assay.pipeline.loading import data_of, prepare_load
from assay.pipeline.ownership import own_run
from assay.pipeline.settling import aftermath_of, settled
from assay.plan.load import find_agent
from assay.plugin import lookup
from assay.plugin.scenario import Scenario
from assay.report.document import plain
from assay.report.stress import stress_metrics
from assay.spec.loading import objectives_of
from assay.spec.settings import Settings
from assay.store.processes import current_owner
from assay.store.store import Store
from assay.units import significant

ORDER = (
    "high_load",
    "sustained_load",
    "spike_load",
    "memory_pressure",
    "concurrent_requests",
    "large_inputs",
    "rate_limiting",
    "failure_recovery",
)


@dataclass(frozen=True, slots=True)
class StressOptions:
    """`load` says how requests are put; None where all scenarios are meant, or the base is to be found."""

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
    """Seconds of what comes before the scenarios, and how long a breach has to last."""

    search: float
    calm: float
    sustain: float
    settle: float = 2.0
    """How long to wait at the most for an agent that was not seen to recover."""


FULL = Sizes(search=10.0, calm=10.0, sustain=3.0, settle=60.0)
QUICK = Sizes(search=6.0, calm=2.0, sustain=1.0, settle=15.0)


@dataclass(frozen=True, slots=True)
class Stressed:
    run_id: str
    finding: StressFinding
    is_interrupted: bool


@dataclass(frozen=True, slots=True)
class StressObserver:
    """Whom to tell what: each step as a line, each finding as it is there, and the pulse of what goes on."""

    say: Callable[[str], None]
    found: Callable[[ScenarioFinding], None]
    look: Look


def scenarios_named(names: Sequence[str], is_quick: bool) -> list[Scenario]:
    """By name, each once; all that there are where none is named."""
    known = lookup.known("scenarios")
    wanted = list(dict.fromkeys(names)) or [
        *(one for one in ORDER if one in known),
        *sorted(set(known) - set(ORDER)),
    ]
    members = [lookup.find("scenarios", name) for name in wanted]
    return [member.quick() if is_quick else member() for member in members]


def run_stress(
    options: StressOptions,
    store: Store,
    settings: Settings,
    told: StressObserver,
    scenarios: Sequence[Scenario] | None = None,
    sizes: Sizes | None = None,
) -> Stressed:
    """Scenarios that were finished are kept, whatever happens to the next."""
    chosen = scenarios_named(options.scenarios, options.is_quick) if scenarios is None else list(scenarios)
    prepare_load(options.load, settings, store)
    subject = subject_of(options.load, settings, store)
    sizes = sizes or options.sizes
    with interruptible() as interrupt:
        start = _start(options, subject, sizes, interrupt, told)
        clock = SteadyClock()
        plan = plan_stress(options, chosen, subject.use)
        begun = store.begin(plan, environment(Path.cwd()), secrets.token_hex(5), clock.now(), current_owner())
        found: list[ScenarioFinding] = []
        with own_run(store, begun.id, interrupt, clock):
            for number, scenario in enumerate(chosen):
                started = time.time()
                try:
                    before = next((one for one in reversed(found) if not one.skipped), None)
                    one = _carried_out(scenario, start.bench, told, before, sizes.settle)
                except Interrupted:
                    break
                with interrupt.storing():
                    store.add(begun.id, Batch((_execution(one, number, started, start.setting),)))
                found.append(one)
                told.found(one)
            store.finish(begun.id, _state(found, interrupt()), clock.now())
    whole = stress_finding(shown(options.load.target), start.setting, found)
    return Stressed(begun.id, whole, interrupt())


def _state(found: Sequence[ScenarioFinding], is_interrupted: bool) -> RunState:
    if is_interrupted:
        return RunState.INTERRUPTED
    return RunState.COMPLETED if any(one.completed for one in found) else RunState.FAILED


def subject_of(options: LoadOptions, settings: Settings, store: Store) -> StressSubject:
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
    """What is known of the agent at the base rate."""

    bench: StressBench
    base_text: str
    warnings: tuple[str, ...]

    @property
    def objective(self) -> str:
        kept = ", ".join([*(one.text for one in self.bench.objectives), "error_rate<5%"])
        derived = "five times the P95 at the base rate or 50 ms more, as no --slo was given"
        return f"{kept} ({derived})" if self.bench.is_derived else kept

    @property
    def setting(self) -> dict[str, Any]:
        return {
            "base": self.bench.base,
            "base_text": self.base_text,
            "objective": self.objective,
            "warnings": list(self.warnings),
            "judged_by": self.judged_by,
            "calm_score": asdict(calm.score) if (calm := self.bench.calm_quality) else None,
            "calm_errors": plain(asdict(self.bench.calm_errors)),
            "calm_latency": plain(asdict(self.bench.calm)),
        }

    @property
    def judged_by(self) -> str:
        subject = self.bench.subject
        if subject.check is None:
            return ""
        marks = sorted({benchmark.rubric.pass_mark for benchmark, _ in subject.check.pairs})
        return f"{subject.options.dataset}, passed from {' or '.join(map(significant, marks))}"


def _start(
    options: StressOptions,
    subject: StressSubject,
    sizes: Sizes,
    is_stopped: Callable[[], bool],
    told: StressObserver,
) -> Start:
    """The rate it bears, its latency at that rate, and so the objective."""
    asked = subject.loaded()
    base, text = options.base, "given"
    if base is None:
        told.say("base: searching for the rate that the agent handles comfortably")
        comfort = comfortable(subject, asked, sizes.search, is_stopped)
        base, text = comfort.rate, comfort.text
    told.say(f"base: {significant(base)} requests/s, {text}")
    cases = len(subject.check.pairs) if subject.check is not None else 0
    load = within(calm_load(base, sizes.calm, cases, ENOUGH), subject)
    load = replace(load, seconds_each=asked.load.seconds_each, workers=asked.load.workers)
    failures: list[list[Any]] = []
    result = asked.at(load).measured(
        is_stopped=is_stopped, watch_chunk=lambda chunk: failures.extend(failures_in(chunk.facts))
    )
    if is_stopped():
        raise KeyboardInterrupt
    calm = latency_of(result, shown(options.load.target))
    doubt = discomfort(result, base)
    given = objectives_of(options.load.slo) if options.load.slo else ()
    objectives = given or (derived_objective(calm),)
    bench = StressBench(subject, base, calm, objectives, not given, sizes.sustain, is_stopped, told.look)
    bench.is_simulated, bench.calm_quality = result.is_simulated, result.quality
    bench.calm_errors = errors_of(result, gather(failures))
    bench.calm_unmet = unmet_in(result, objectives)
    doubts = [doubt, unjudged(subject, result)]
    return Start(bench, text, tuple(one for one in doubts if one))


def unjudged(subject: StressSubject, calm: LoadResult) -> str | None:
    if subject.check is None or calm.quality is not None:
        return None
    return f"Not one answer at the base rate could be scored by '{subject.options.dataset}': correctness is not compared with it."


def _carried_out(
    scenario: Scenario,
    bench: StressBench,
    told: StressObserver,
    before: ScenarioFinding | None,
    patience: float,
) -> ScenarioFinding:
    reason = scenario.not_for(bench)
    if reason:
        return ScenarioFinding(scenario.name, skipped=reason)
    if bench.is_stopped():
        raise Interrupted
    told.say(f"{scenario.name}: running")
    bench.gauge = gauge_of(bench.subject)
    with bench.gauge.watching():
        found = scenario.run(bench)
    is_simulated = found.is_simulated or bench.is_simulated
    resources = _resources_under_load(found, bench.gauge)
    warnings = (*aftermath_of(before), *found.warnings)
    found = replace(found, resources=resources, is_simulated=is_simulated, warnings=warnings)
    return settled(found, bench, patience)


def _resources_under_load(found: ScenarioFinding, gauge: Gauge) -> Resources | None:
    """What was seen while loads were on, on their axis of time; all of it where the scenario does not tell."""
    taken = gauge.taken()
    if taken is None or found.resources is None or not found.resources.samples:
        return taken
    return replace(taken, samples=found.resources.samples)


def gauge_of(subject: StressSubject) -> Gauge:
    """Of the server that listens on this machine, of the programs that we started, or of the workers that run an agent's own
    code; of anything else nothing is seen."""
    if subject.is_command:
        return Gauge(subject.use.name if subject.use else "", started_by_us)
    if not subject.is_server:
        name = subject.use.name if subject.use else ""
        return Gauge(f"{name} (with the load worker that runs its code)", running_its_code)
    port = subject.port
    process = listening_on(port) if port is not None else None
    if process is None:
        return Gauge("", list)
    return Gauge(f"{process.name()} ({process.pid})", lambda: with_children(process))


def plan_stress(options: StressOptions, scenarios: Sequence[Scenario], use: AgentUse | None) -> Plan:
    target = shown(options.load.target)
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
        source={"target": target, **common},
    )


def _sizes(scenario: Any) -> dict[str, object]:
    sizes = asdict(scenario) if is_dataclass(scenario) and not isinstance(scenario, type) else {}
    return {name: plain(value) for name, value in sizes.items()}


def shown(target: str) -> str:
    """Without a name and password that may stand in a URL.

    >>> shown("http://me:secret@127.0.0.1:9000/v1")
    'http://127.0.0.1:9000/v1'
    """
    parts = urlsplit(target)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl() if "@" in parts.netloc else target


def _execution(found: ScenarioFinding, trial: int, started: float, setting: dict[str, Any]) -> Execution:
    return Execution(
        trial=trial,
        process=0,
        phase=Phase.MEASURED,
        repetition=0,
        status=Status.OK if found.skipped or found.completed else Status.FAILED,
        started=started,
        measurements=stress_metrics(found, score_of(found)),
        output={"scenario": plain(asdict(found)), "setting": setting},
        error=None if found.skipped or found.completed else "no request was answered",
        detail={"simulated": True} if found.is_simulated else None,
    )

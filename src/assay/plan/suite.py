"""A suite and agents become a Plan: a trial for each agent on each benchmark."""

from __future__ import annotations

import inspect
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from assay.errors import AssayError, PlanError, did_you_mean, no_such
from assay.model import (
    Agent,
    AgentUse,
    Benchmark,
    Budget,
    InstrumentUse,
    Isolation,
    Iterations,
    Order,
    Plan,
    ScorerUse,
    Suite,
    Trial,
)
from assay.plan.sweep import points
from assay.plugin import lookup


@dataclass(frozen=True, slots=True)
class CaseFilter:
    """Which cases of a suite to put to the agents; nothing set is all of them."""

    limit: int | None = None
    ids: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()
    failed: Mapping[str, frozenset[str]] | None = None
    """Benchmark to ids of cases that were not passed before."""

    def chosen(self, benchmark: Benchmark) -> tuple[str, ...]:
        cases = [case for case in benchmark.cases if not self.ids or case.id in self.ids]
        cases = [case for case in cases if not self.tags or self.tags & set(case.tags)]
        if self.failed is not None:
            cases = [case for case in cases if case.id in self.failed.get(benchmark.id, ())]
        return tuple(case.id for case in cases[: self.limit])


@dataclass(frozen=True, slots=True)
class SuiteOptions:
    """How to run a suite, beyond what it says itself."""

    repetitions: int | None = None
    warmup: int | None = None
    concurrency: int = 1
    isolation: Isolation = Isolation.PROCESS
    seed: int | None = None
    order: Order = Order.INTERLEAVED
    executor: str = "local"
    parallelism: int = 1
    instruments: tuple[InstrumentUse, ...] = (InstrumentUse("timing"),)
    budget: Budget = field(default_factory=Budget)
    cases: CaseFilter = field(default_factory=CaseFilter)
    agent_options: Mapping[str, object] = field(default_factory=dict)
    axes: Mapping[str, Sequence[object]] = field(default_factory=dict)
    """Options of the agents to sweep."""
    load: tuple[str, ...] = ()
    output_dir: str | None = None
    tags: tuple[str, ...] = ()
    notes: str = ""
    source: Mapping[str, object] = field(default_factory=dict)


def expand_suite(suite: Suite, agents: Sequence[AgentUse], options: SuiteOptions) -> Plan:
    """All trials; PlanError when an agent or a scorer is not to be had, or no case is left."""
    _check_names(suite, agents)
    seed = options.seed if options.seed is not None else secrets.randbelow(2**32)
    chosen = {benchmark.id: options.cases.chosen(benchmark) for benchmark in suite.benchmarks}
    if not any(chosen.values()):
        raise PlanError(f"No case of suite '{suite.name}' is left by --limit, --case, --tag and --failed.")
    trials: list[Trial] = []
    for benchmark in suite.benchmarks:
        for use, point in _variants(agents, options):
            if chosen[benchmark.id]:
                trials.append(
                    _trial(len(trials), suite, benchmark, use, point, chosen[benchmark.id], options)
                )
    return Plan(
        name=suite.name,
        trials=tuple(trials),
        seed=seed,
        order=options.order,
        parallelism=options.parallelism,
        executor=options.executor,
        load=options.load,
        output_dir=options.output_dir,
        tags=options.tags,
        notes=options.notes,
        source=options.source,
        suite=suite,
        budget=options.budget,
    )


def _variants(agents: Iterable[AgentUse], options: SuiteOptions) -> list[tuple[AgentUse, dict[str, Any]]]:
    """Each agent, with the options set on the command line, at each point of the sweep."""
    axes = {name: list(values) for name, values in options.axes.items()}
    return [
        (replace(use, options=_laid_over(use.options, {**options.agent_options, **point})), point)
        for use in agents
        for point in points(axes, "cartesian", None, 0)
    ]


def _laid_over(base: Mapping[str, object], over: Mapping[str, object]) -> dict[str, object]:
    """Options of the agent itself, or of its `params` where it has such a key of its own."""
    result = dict(base)
    for name, value in over.items():
        inner = result.get("params")
        if isinstance(inner, Mapping) and name not in result:
            result["params"] = {**inner, name: value}
        else:
            result[name] = value
    return result


def _trial(
    index: int,
    suite: Suite,
    benchmark: Benchmark,
    use: AgentUse,
    point: Mapping[str, Any],
    cases: tuple[str, ...],
    options: SuiteOptions,
) -> Trial:
    label = ", ".join(f"{name}={value}" for name, value in point.items())
    name = f"{benchmark.id} · {use.name}"
    return Trial(
        index=index,
        name=f"{name}[{label}]" if label else name,
        agent=Agent(use.name, use.version),
        benchmark=benchmark.id,
        experiment=benchmark.experiment,
        params=dict(point),
        axes=dict(point),
        iterations=Iterations(
            warmup=benchmark.iterations.warmup if options.warmup is None else options.warmup,
            measured=options.repetitions or benchmark.iterations.measured,
        ),
        instruments=options.instruments,
        isolation=options.isolation,
        limits=benchmark.limits,
        agent_use=use,
        suite=suite.name,
        cases=cases,
        concurrency=options.concurrency,
    )


def _check_names(suite: Suite, agents: Sequence[AgentUse]) -> None:
    """Every type of agent, scorer and experiment that the run needs, looked up now."""
    problems: list[str] = []
    if not agents:
        problems.append(
            f"Suite '{suite.name}' names no agent. Give one: --agent NAME (see: assay list agents)"
        )
    for use in agents:
        problems += _problem(f"Agent '{use.name}'", "agents", use.type, {**use.options, "folder": ""})
    for benchmark in suite.benchmarks:
        for scorer in _scorers(benchmark):
            problems += _problem(f"Benchmark '{benchmark.id}'", "scorers", scorer.name, scorer.options)
    if problems:
        raise PlanError("\n".join(dict.fromkeys(problems)))


def _scorers(benchmark: Benchmark) -> list[ScorerUse]:
    of_turns = [use for case in benchmark.cases for turn in case.turns for use in turn.scorers]
    return [*benchmark.scorers, *of_turns]


def _problem(who: str, kind: str, name: str, options: Mapping[str, object]) -> list[str]:
    try:
        member = lookup.find(kind, name)
    except AssayError as error:
        return [f"{who}: {error}"]
    parameters = inspect.signature(member).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()) or not inspect.isclass(member):
        return []
    known = [parameter for parameter in parameters if parameter not in ("self", "stable")]
    unknown = [key for key in options if key not in parameters and key != "folder"]
    return [
        f"{who}: '{key}' is not an option of '{name}' ({', '.join(k for k in known if k != 'folder')}). {did_you_mean(key, known)}".strip()
        for key in unknown
    ]


def with_judges(suite: Suite, defined: Mapping[str, AgentUse]) -> Suite:
    """Judges that are named like an agent get its definition, so that the suite is complete in itself."""

    def resolved(use: ScorerUse) -> ScorerUse:
        agent = use.options.get("agent")
        if not isinstance(agent, str):
            return use
        found = chosen_agents([agent], defined)[0]
        definition = {"name": found.name, "type": found.type, **found.options, "folder": found.folder}
        return replace(use, options={**use.options, "agent": definition})

    return replace(
        suite,
        benchmarks=tuple(
            replace(benchmark, scorers=tuple(resolved(use) for use in benchmark.scorers))
            for benchmark in suite.benchmarks
        ),
    )


def chosen_agents(wanted: Sequence[str], defined: Mapping[str, AgentUse]) -> list[AgentUse]:
    """Agents by name; types that need no options may be named directly."""
    found = []
    for name in wanted:
        if name in defined:
            found.append(defined[name])
        elif name in lookup.known("agents"):
            found.append(AgentUse(name, name))
        else:
            raise PlanError(no_such(name, "agents", {*defined, *lookup.known("agents")}))
    return found

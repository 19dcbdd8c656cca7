"""A suite and agents become a `Plan`: a trial for each agent on each benchmark.

The suite has been read and its names checked (`target` calls this module). Here options that were set or swept reach the agents
(`overrides`), cases are selected, and trials are made: of a benchmark that asks agents, one for each agent and point of a sweep over
its options; of one that runs an experiment, those of `suite_experiments`. The second half of the module finds agents by name and
checks the options of agents and scorers, each mistake with the place where it was written.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from assay.errors import Mistake, PlanError, format_unknown_name
from assay.model import (
    AgentUse,
    AgentVersion,
    Benchmark,
    Budget,
    Case,
    InstrumentUse,
    Isolation,
    Iterations,
    Order,
    Plan,
    ScorerUse,
    Suite,
    Trial,
)
from assay.model.secret import plain_secrets
from assay.model.suite import SUITE_ITERATIONS
from assay.plan.overrides import options_for
from assay.plan.suite_experiments import NOWHERE, experiment_trials, takes_agents
from assay.plan.sweep import points
from assay.plugin import lookup
from assay.plugin.options import OF_EVERY_AGENT, OptionProblem, option_model, option_problems
from assay.spec.agents import INSTEAD, WRITTEN_OUT
from assay.spec.document import Document, Place, read_document

Variant = tuple[AgentUse, dict[str, Any]]
"""An agent, and the point of a sweep over its options that it stands for."""


@dataclass(frozen=True, slots=True)
class CaseFilter:
    """Which cases of a suite to put to the agents: `--limit`, `--case`, `--tag` and `--failed`, all of which must hold.

    With nothing set, all cases are selected.
    """

    limit: int | None = None
    ids: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()
    failed: Mapping[str, frozenset[str]] | None = None
    """Benchmark to ids of cases that were not passed before."""

    def problems(self, suite: Suite) -> list[str]:
        """Cases and tags that were asked for and are in no benchmark of the suite."""
        cases = [case for benchmark in suite.benchmarks for case in benchmark.cases]
        requested = {
            "cases": (self.ids, {case.id for case in cases}),
            "tags": (self.tags, {tag for case in cases for tag in case.tags}),
        }
        return [
            format_unknown_name(name, f"{kind} of suite '{suite.name}'", known)
            for kind, (names, known) in requested.items()
            for name in sorted(names - known)
        ]

    @property
    def options(self) -> list[str]:
        """The options that select cases, as far as they were given."""
        options = {"--limit": self.limit, "--case": self.ids, "--tag": self.tags}
        return [
            *(name for name, value in options.items() if value),
            *(["--failed"] if self.failed is not None else []),
        ]

    @property
    def chooses_by_name(self) -> bool:
        """Whether only certain cases are wanted, and so nothing that has none."""
        return bool(self.ids or self.tags or self.failed is not None)

    def select(self, benchmark: Benchmark) -> tuple[str, ...]:
        """Ids of the selected cases of a benchmark, in their order."""
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
    parallelism: int = 0
    budget: Budget = field(default_factory=Budget)
    default_warmup: Callable[[AgentUse], int] = lambda use: SUITE_ITERATIONS.warmup
    """Warm-ups of a trial of that agent where the number is not set."""
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
    """All trials of a suite for these agents, with the suite itself as part of the plan.

    PlanError for options that an agent does not have, for cases that the suite does not have, for limits that cannot be enforced,
    and when no case is left.
    """
    # Refused here, so that --dry-run and validate refuse it too.
    lookup.find("executors", options.executor)
    variants = _variants(agents, options)
    problems = [problem for use, _ in variants for problem in check_agent_options(use)]
    problems += options.cases.problems(suite)
    watched = [
        benchmark.id for benchmark in suite.benchmarks if benchmark.asks_agents and benchmark.instruments
    ]
    if watched and options.concurrency > 1:
        problems.append(
            f"The instruments of benchmark '{watched[0]}' watch one execution at a time, but concurrency is "
            f"{options.concurrency}. Use --concurrency 1, or leave 'instrumentation' out."
        )
    if problems:
        raise PlanError("\n".join(dict.fromkeys(problems)))
    if options.isolation is Isolation.INLINE:
        _refuse_unenforceable(suite)
    # A seed is drawn where none is given, and stored: any run can be repeated in the same order.
    seed = options.seed if options.seed is not None else secrets.randbelow(2**32)
    trials: list[Trial] = []
    for benchmark in suite.benchmarks:
        new_trials = _trials_of(benchmark, variants, options, seed)
        trials += [
            replace(trial, index=index, suite=suite.name)
            for index, trial in enumerate(new_trials, len(trials))
        ]
    if not trials:
        raise PlanError(f"No case of suite '{suite.name}' matches {' and '.join(options.cases.options)}.")
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


def _refuse_unenforceable(suite: Suite) -> None:
    """Refuse limits on time and memory without a process of its own: only a process can be ended."""
    for benchmark in suite.benchmarks:
        ceilings = {"seconds": benchmark.limits.seconds, "memory_mb": benchmark.limits.memory_bytes}
        if benchmark.cleanup is not None:
            raise PlanError(
                f"Benchmark '{benchmark.id}' has a cleanup command, which has no effect with isolation 'inline'. "
                "Use isolation 'process', or remove the command."
            )
        if limited := [name for name, ceiling in ceilings.items() if ceiling is not None]:
            raise PlanError(
                f"Benchmark '{benchmark.id}' limits {' and '.join(limited)}, which isolation 'inline' cannot enforce. "
                "Use isolation 'process', which needs functions that other processes can import, or remove the limits."
            )


def _variants(agents: Sequence[AgentUse], options: SuiteOptions) -> list[Variant]:
    """Yield each agent with its options at each point of its sweep."""
    variants: list[Variant] = []
    for use in agents:
        own_options = options_for(use, agents, options.agent_options)
        axes = {name: list(values) for name, values in options_for(use, agents, options.axes).items()}
        variants += [
            (overlay_options(use, {**own_options, **point}), point)
            for point in points(axes, "cartesian", None, 0)
        ]
    return variants


def overlay_options(use: AgentUse, given: Mapping[str, object]) -> AgentUse:
    """The agent with these options changed.

    A name that its type does not know is a param of the model behind the agent, and goes into `params`, if its type has that.
    A name with dots reaches into an option that is a mapping: `headers.X-Team`, `params.temperature`.
    """
    # `--set temperature=0` should work for every agent behind a model, whatever its type calls the place for it. An option of
    # the agent goes before a param of its model, and a name that was set before goes before both, as it may contain dots.
    parameters = option_model("agents", lookup.find("agents", use.type)).model_fields
    changed = dict(use.options)
    for name, value in given.items():
        option, *inner = [name] if name in changed else name.split(".")
        is_own = option in parameters or option in changed or option in OF_EVERY_AGENT
        if not is_own and not inner and "params" in parameters:
            option, inner = "params", [option]
        elif not is_own and inner:
            raise PlanError(
                f"Agent '{use.name}': '{name}' is not an option of '{use.type}' ({', '.join(parameters)}). "
                f"{f'A field of its requests is written params.{name}.' if 'params' in parameters else ''}".strip()
            )
        changed[option] = _with_inner(changed.get(option), inner, value)
    return replace(use, options=changed)


def _with_inner(option: object, path: Sequence[str], value: object) -> object:
    """The option with the value at the end of the path changed; mappings on the way to it are created where missing."""
    if not path:
        return value
    known = option if isinstance(option, Mapping) else {}
    return {**known, path[0]: _with_inner(known.get(path[0]), path[1:], value)}


def _trials_of(
    benchmark: Benchmark, variants: Sequence[Variant], options: SuiteOptions, seed: int
) -> list[Trial]:
    """The trials of one benchmark; none where no case of it was chosen."""
    # A benchmark whose cases were all filtered out is left out; one that never had any, because it runs code, stays unless
    # the user asked for certain cases.
    cases = options.cases.select(benchmark)
    if benchmark.cases and not cases:
        return []
    if benchmark.asks_agents:
        return [_asking_trial(benchmark, use, point, cases, options) for use, point in variants]
    if not benchmark.cases and options.cases.chooses_by_name:
        return []
    tested: Sequence[tuple[AgentUse | None, dict[str, Any]]] = [(None, {})]
    if takes_agents(benchmark.experiment):
        tested = variants
    return [
        _experiment_trial(trial, benchmark, use, {**trial.axes, **point}, cases, options)
        for use, point in tested
        for trial in experiment_trials(benchmark, NOWHERE, (use,) if use else (), seed, [])
    ]


def _experiment_trial(
    trial: Trial,
    benchmark: Benchmark,
    use: AgentUse | None,
    axes: Mapping[str, Any],
    cases: tuple[str, ...],
    options: SuiteOptions,
) -> Trial:
    """A trial that was planned like one of a spec, with what the suite and the request say about it."""
    iterations = trial.iterations
    return replace(
        trial,
        name=_name(benchmark, use, axes),
        benchmark=benchmark.id,
        axes=dict(axes),
        iterations=replace(
            iterations,
            warmup=iterations.warmup if options.warmup is None else options.warmup,
            measured=options.repetitions or iterations.measured,
        ),
        isolation=options.isolation,
        cases=cases,
        cleanup=benchmark.cleanup,
    )


def _name(benchmark: Benchmark, use: AgentUse | None, axes: Mapping[str, Any]) -> str:
    name = f"{benchmark.id} · {use.name}" if use else benchmark.id
    label = ", ".join(f"{axis}={value}" for axis, value in axes.items())
    return f"{name}[{label}]" if label else name


def _asking_trial(
    benchmark: Benchmark,
    use: AgentUse,
    point: Mapping[str, Any],
    cases: tuple[str, ...],
    options: SuiteOptions,
) -> Trial:
    """One agent on the cases of one benchmark. Its index and suite are set when all trials are known."""
    warmup = options.warmup
    if warmup is None:
        warmup = options.default_warmup(use) if benchmark.has_default_warmup else benchmark.iterations.warmup
    return Trial(
        index=0,
        name=_name(benchmark, use, point),
        agent=AgentVersion(use.name, use.version),
        benchmark=benchmark.id,
        experiment=benchmark.experiment,
        params=dict(point),
        axes=dict(point),
        iterations=Iterations(
            warmup=warmup,
            measured=options.repetitions or benchmark.iterations.measured,
        ),
        instruments=(InstrumentUse("timing"), *benchmark.instruments),
        isolation=options.isolation,
        limits=benchmark.limits,
        agent_use=use,
        cases=cases,
        concurrency=min(options.concurrency, most_at_once(use) or options.concurrency),
        resources=use.resources,
    )


def most_at_once(use: AgentUse) -> int | None:
    """How many executions of an agent its definition allows in flight; None where it does not say."""
    most = use.options.get("concurrency")
    return most if type(most) is int and most > 0 else None


@dataclass(frozen=True, slots=True)
class Written:
    """The place where something is written in a file, so that mistakes are reported with their line."""

    document: Document
    place: Place = ()

    def at(self, *place: str | int) -> Written:
        return replace(self, place=(*self.place, *place))

    def mistake(self, problem: str, key: str = "") -> Mistake:
        return self.document.mistake((*self.place, key) if key else self.place, problem)


def scorer_mistakes(suite: Suite, places: Sequence[Written]) -> list[Mistake]:
    """Scorers that do not exist, and options that they do not have; `places` are those of the benchmarks."""
    mistakes = []
    for benchmark, written in zip(suite.benchmarks, places, strict=True):
        for index, use in enumerate(benchmark.scorers):
            problems = option_problems("scorers", use.name, use.options)
            place = written.at(*scorer_place(written, index))
            mistakes += [place.mistake(problem.text, problem.key) for problem in problems]
        for case, use in _list_turn_scorers(benchmark):
            problems = option_problems("scorers", use.name, use.options)
            mistakes += [
                written.at("cases").mistake(f"Case '{case}': {problem.text}") for problem in problems
            ]
    return mistakes


def scorer_place(written: Written, index: int) -> Place:
    """Find where a scorer is written in a benchmark: in a list or alone, under either name of the key."""
    lines = written.document.lines
    for key in ("scorer", "scorers"):
        if (*written.place, key, index) in lines:
            return key, index
        if (*written.place, key) in lines:
            return (key,)
    return "scorer", index


def scorers_of(suite: Suite) -> list[ScorerUse]:
    """All scorers of a suite, those of single turns as well; each once."""
    uses = [
        use
        for benchmark in suite.benchmarks
        for use in (*benchmark.scorers, *(use for _, use in _list_turn_scorers(benchmark)))
    ]
    # By their text, as options are mappings, which cannot be members of a set.
    return list({repr(use): use for use in uses}.values())


def _list_turn_scorers(benchmark: Benchmark) -> list[tuple[str, ScorerUse]]:
    return [(case.id, use) for case in benchmark.cases for turn in case.turns for use in turn.scorers]


def agent_problems(use: AgentUse) -> list[OptionProblem]:
    """What is wrong with a definition: a type that does not exist, options that it does not have, needs, or cannot read."""
    return [
        OptionProblem(problem.key, f"Agent '{use.name}': {problem.text}")
        for problem in option_problems("agents", use.type, use.options)
    ]


def check_agent_options(use: AgentUse) -> list[str]:
    """What is wrong with an agent once params and the command line have changed its options.

    Besides `agent_problems` that is a secret in plain text: options are stored with the run.
    """
    secret_keys = [".".join(map(str, place)) for place in plain_secrets(use.options)]
    if "concurrency" in use.options and most_at_once(use) is None:
        return [f"Agent '{use.name}': 'concurrency' must be a whole number of at least 1."]
    problems = [problem.text for problem in agent_problems(use)]
    return [*problems, *(f"Agent '{use.name}': '{key}' {WRITTEN_OUT} {INSTEAD}" for key in secret_keys)]


@dataclass(slots=True)
class Agents:
    """Agents that can be named, where they are defined, and what is wrong with those that were asked for.

    Only agents that are asked for are checked: a project may define many, some of which need packages that are not
    installed here. `mistakes` collects what `named` finds; the caller raises it together with all others.
    """

    defined: Mapping[str, AgentUse]
    documents: Sequence[Document] = ()
    """Files read already that may define agents."""
    files: Sequence[Path] = ()
    """Files of the project that define agents."""
    mistakes: list[Mistake] = field(default_factory=list)

    def find(self, name: str, written: Written) -> AgentUse | None:
        """The agent of that name: defined, a type that needs no options, or a function of a loaded file."""
        use = self.defined.get(name)
        if use is None and lookup.is_known("agents", name):
            use = AgentUse(name, name)
        if use is None and (use := function_agent(name)) is None:
            known = {*self.defined, *lookup.known("agents")}
            self.mistakes.append(written.mistake(format_unknown_name(name, "agents", known)))
            return None
        if problems := agent_problems(use):
            place = self._definition(name) or written
            self.mistakes += [place.mistake(problem.text, problem.key) for problem in problems]
        return use

    def _definition(self, name: str) -> Written | None:
        """Find where an agent is defined, so that a mistake in it is reported there and not where it is used."""
        for document in (*self.documents, *map(read_document, self.files)):
            items = document.value.get("agents") if isinstance(document.value, Mapping) else None
            for index, item in enumerate(items if isinstance(items, list) else ()):
                if isinstance(item, Mapping) and item.get("name") == name:
                    return Written(document, ("agents", index))
        return None


def function_agent(name: str) -> AgentUse | None:
    """The agent that a plain function of a loaded file is."""
    file = lookup.find_file_of_function(name)
    return AgentUse(name, "python", {"target": f"{file}:{name}"}) if file is not None else None


def with_judges(suite: Suite, agents: Agents, places: Sequence[Written]) -> Suite:
    """Judges that are named like an agent get its definition, so that the suite is complete in itself.

    The suite is stored with every run. `assay rescore` then asks the judge that the run was made with, also years later and on
    a machine that does not have the file in which the judge was defined.
    """

    def resolve_scorer(use: ScorerUse, written: Written) -> ScorerUse:
        name = use.options.get("agent")
        judge = agents.find(name, written) if isinstance(name, str) else None
        if judge is None:
            return use
        definition = {"name": judge.name, "type": judge.type, **judge.options, "folder": judge.folder}
        if judge.price is not None:
            definition["price"] = dict(judge.price)
        return replace(use, options={**use.options, "agent": definition})

    def resolve_case(case: Case, written: Written) -> Case:
        turns = tuple(
            replace(turn, scorers=tuple(resolve_scorer(use, written) for use in turn.scorers))
            for turn in case.turns
        )
        return replace(case, turns=turns)

    def complete(benchmark: Benchmark, written: Written) -> Benchmark:
        uses = tuple(resolve_scorer(use, written) for use in benchmark.scorers)
        cases = tuple(resolve_case(case, written) if case.turns else case for case in benchmark.cases)
        return replace(benchmark, scorers=uses, cases=cases)

    return replace(suite, benchmarks=tuple(map(complete, suite.benchmarks, places)))

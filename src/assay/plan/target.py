"""What a person names on the command line becomes a `Plan`: a spec, a suite, a team, a Python file or an experiment.

`plan_target` is the entry to this folder; `pipeline.planning` calls it. A target with the ending of a document is a
file, and its keys say what kind of file. Any other target is looked up by name: experiments first, then specs, teams and
suites that come with Assay or belong to the project, then suites registered in the store. What was given beside the target, such as
`--set`, `--agent` or `--case`, is in the `RunRequest`, and is refused where it means nothing for that kind of target.

Imports within functions keep the reader of suites and its dependencies out of runs that need none.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from assay.errors import (
    AssayError,
    LookupFailed,
    Mistake,
    PlanError,
    SpecError,
    did_you_mean,
    format_unknown_name,
)
from assay.model import AgentUse, Budget, Isolation, Order, Plan, Suite
from assay.model.suite import SUITE_ITERATIONS
from assay.plan.expand import expand
from assay.plan.overrides import SECTIONS, assign_overrides
from assay.plan.question import add_question, question_problems
from assay.plan.suite import (
    Agents,
    CaseFilter,
    SuiteOptions,
    Written,
    expand_suite,
    scorer_mistakes,
    with_judges,
)
from assay.plan.suite_agents import SuiteAgent, SuiteAgents, suite_files
from assay.plan.suite_experiments import benchmark_mistakes, takes_agents
from assay.plugin import lookup
from assay.spec.agents import agents_in, read_agents
from assay.spec.document import Document, read_document
from assay.spec.files import builtin_specs, builtin_suites, builtin_teams, match_files
from assay.spec.read import REQUEST, KeyOrigin, Spec, load_spec, merge_mappings, spec_of, validate_model
from assay.spec.schema import UntilDecidedSection
from assay.spec.settings import Settings
from assay.text import shell_command

if TYPE_CHECKING:
    from assay.spec.suite import ReadSuite

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A target and everything that was given beside it, on the command line or as arguments of `assay.run`."""

    target: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Keys of a spec, laid over those of the file."""
    agents: tuple[str | AgentUse, ...] = ()
    """Names of agents, or agents that were given as they are."""
    cases: CaseFilter = field(default_factory=CaseFilter)
    concurrency: int | None = None
    budget: Budget = field(default_factory=Budget)
    suite: Document | None = None
    """A suite that was given as data; then the target is only what messages call it."""
    label: str = ""
    groups: tuple[str, ...] = ()
    """Only the experiments of a spec that belong to one of them; `all` is every one."""
    executor_options: Mapping[str, object] = field(default_factory=dict)
    """Settings of the executor, laid over those of assay.toml."""


def build_changes(given: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a spec that keywords of `assay.run`, or options of a command, stand for; what is left out has no key."""
    iterations = {"measured": given.get("repetitions"), "warmup": given.get("warmup")}
    until = {
        "decided": given.get("until_decided"),
        "tolerance": given.get("tolerance"),
        "max": given.get("max_pairs"),
    }
    changes = {
        "params": dict(given.get("params", {})),
        "sweep": {name: list(values) for name, values in given.get("sweep", {}).items()},
        "iterations": {key: value for key, value in iterations.items() if value is not None},
        **{name: given.get(name) for name in ("processes", "seed", "isolation", "executor")},
        "until": {key: value for key, value in until.items() if value is not None},
        "load": [str(file) for file in given.get("load", ())],
        "tags": list(given.get("label", ())),
        "output_dir": None if given.get("out") is None else str(given["out"]),
    }
    return {key: value for key, value in changes.items() if value not in ({}, [], None)}


@dataclass(frozen=True, slots=True)
class Registry:
    """What is known by name beyond the files of the project: agents and suites registered in the store."""

    agents: Callable[[], Mapping[str, AgentUse]] = dict
    suite: Callable[[str], Suite | None] = lambda name: None
    default_warmup: Callable[[AgentUse], int] = lambda use: SUITE_ITERATIONS.warmup
    """Warm-ups of an agent where the number is not set: it depends on where the agent is and what it costs."""


def plan_target(request: RunRequest, settings: Settings, registry: Registry) -> Plan:
    """Read what the target names and plan it; nothing has run yet, and every name is known to exist."""
    own = load_project_files(settings)
    # Before anything is looked up: the target, agents and scorers may be defined there.
    requested = _load_given(request.changes.get("load"))
    plan = _plan_by_kind(request, settings, registry)
    # Workers import these files in this order, each once: later ones may use what earlier ones register.
    return replace(plan, load=tuple(dict.fromkeys((*plan.load, *requested, *own))))


def load_project_files(settings: Settings) -> list[str]:
    """Import the files under `load` in assay.toml, so that what they define is known by name; their absolute paths."""
    files = [str(file.resolve()) for file in settings.files_to_load()]
    for file in files:
        _load(Path(file))
    return files


def _load_given(patterns: Any) -> tuple[str, ...]:
    """Import the files that are named beside the target; everything that is wrong with them is reported at once."""
    files: list[str] = []
    mistakes: list[Mistake] = []
    for pattern in [patterns] if isinstance(patterns, str) else patterns or []:
        try:
            files += load_files(Path.cwd(), [pattern])
        except PlanError:
            mistakes.append(Mistake(REQUEST, None, "load", f"There is no file '{pattern}'."))
        except LookupFailed as error:
            mistakes.append(Mistake(REQUEST, None, "load", str(error)))
    if mistakes:
        raise SpecError(mistakes)
    return tuple(files)


def _plan_by_kind(request: RunRequest, settings: Settings, registry: Registry) -> Plan:
    """Find out what kind of thing the target is, and plan it; the order of the questions is the order of precedence.

    A file is asked for by its ending, never by whether it exists: a name must not change its meaning because somebody made a
    folder called like it. Experiments go before suites because they are looked up without reading any file.
    """
    if request.suite is not None:
        return _plan_suite(_read(request.suite, Path.cwd()), request, settings, registry)
    target, path = request.target, Path(request.target)
    if path.suffix in (".yaml", ".yml", ".json") or path.is_dir():
        return _plan_document(read_document(path), path.resolve().parent, request, settings, registry)
    if path.suffix == ".py" or ".py::" in target:
        return _plan_python_file(request, settings, registry)
    if lookup.is_known("experiments", target) or ":" in target:
        return _plan_experiments(
            _with_overrides(partial(spec_of, [target], Path.cwd()), request), request, settings, registry
        )
    if target in builtin_specs():
        spec = _with_overrides(partial(load_spec, builtin_specs()[target]), request)
        plan = _plan_experiments(spec, request, settings, registry)
        return replace(plan, output_dir=_here(request.changes.get("output_dir")))
    if target in builtin_teams():
        file = builtin_teams()[target]
        plan = _plan_team(read_document(file), file.parent, request, settings, registry)
        return replace(plan, output_dir=_here(request.changes.get("output_dir")))
    read = _suite_named(target, settings, registry)
    if read is not None:
        return _plan_suite(read, request, settings, registry)
    known = {*lookup.known("experiments"), *builtin_specs(), *suite_names(settings)}
    near_team = did_you_mean(target, builtin_teams())
    message = format_unknown_name(target, "experiments, specs and suites", known)
    hint = f" {near_team}" if near_team and "Did you mean" not in message else ""
    raise LookupFailed(f"{message}{hint} A file name must end in .yaml, .yml, .json or .py.")


def _plan_document(
    document: Document, folder: Path, request: RunRequest, settings: Settings, registry: Registry
) -> Plan:
    """The keys of a file say whether it is a suite, a spec that names a suite, a team file or a spec of experiments."""
    value = document.value if isinstance(document.value, dict) else {}
    if _is_suite(value):
        return _plan_suite(_read(document, folder), request, settings, registry)
    if "suite" in value or "suite_id" in value:
        return _plan_suite_spec(document, folder, request, settings, registry)
    if "team" in value or "teams" in value:
        return _plan_team(document, folder, request, settings, registry)
    spec = _with_overrides(partial(load_spec, Path(request.target)), request)
    return _plan_experiments(spec, request, settings, registry)


def _is_suite(value: Mapping[str, Any]) -> bool:
    """Whether a file is a suite: it has benchmarks, or a key that can only be that word misspelt."""
    from assay.spec.suite import SuiteSpec

    return "benchmarks" in value or any(
        did_you_mean(str(key), ["benchmarks"]) for key in value.keys() - SuiteSpec.model_fields.keys()
    )


def _plan_team(
    document: Document, folder: Path, request: RunRequest, settings: Settings, registry: Registry
) -> Plan:
    """The plan of a team file; options that mean nothing for a team are refused."""
    from assay.plan.team import check_options, expand_teams
    from assay.spec.team import team_of

    spec, changes = team_of(document, folder), request.changes
    check_options(
        {
            **_only_for_suites(request),
            "--group": request.groups,
            "--processes": "processes" in changes,
            "--isolation": changes.get("isolation", "process") != "process",
            "--executor": changes.get("executor", "local") != "local",
        }
    )
    load = load_files(spec.folder, spec.run.load)
    plan = expand_teams(spec, known_agents(settings, registry), changes)
    return replace(plan, load=load, budget=request.budget)


def _only_for_suites(request: RunRequest) -> dict[str, object]:
    """The options that only a suite can use, and their values; an empty value means that the option was not given."""
    return {
        "--agent": request.agents,
        "--concurrency": request.concurrency,
        "--limit": request.cases.limit,
        "--case": request.cases.ids,
        "--tag": request.cases.tags,
        "--failed": request.cases.failed is not None,
    }


def _plan_experiments(spec: Spec, request: RunRequest, settings: Settings, registry: Registry) -> Plan:
    """The plan of experiments, which have no cases to choose from; agents only where they test one."""
    suite_options = _only_for_suites(request)
    misplaced = [option for option, value in suite_options.items() if value and option != "--agent"]
    if misplaced:
        verb = "does" if len(misplaced) == 1 else "do"
        raise PlanError(f"'{request.target}' is not a suite: {', '.join(misplaced)} {verb} not apply to it.")
    agents, files = _find_tested_agents(spec, request, settings, registry)
    plan = expand(spec, agents)
    return replace(plan, budget=request.budget, load=(*plan.load, *(f for f in files if f not in plan.load)))


def _find_tested_agents(
    spec: Spec, request: RunRequest, settings: Settings, registry: Registry
) -> tuple[list[AgentUse], list[str]]:
    """The agents that experiments are to test, none where none are named; and the Python files that they need."""
    if not (request.agents or spec.run.agents):
        return [], []
    mistakes = list(spec.mistakes)
    document = spec.origin.document
    inline = agents_in(document, ("agents",), spec.run.agents, spec.folder, mistakes)
    known = {**known_agents(settings, registry), **inline}
    in_suites = _suite_agents(request, known, settings)
    defined = {**{name: agent.use for name, agent in in_suites.items()}, **known}
    agents = Agents(defined, [document], settings.agent_files())
    uses = _select_agents(request, spec.run.agents, document, agents)
    mistakes += agents.mistakes
    if mistakes:
        raise SpecError(dict.fromkeys(mistakes))
    return uses, [file for agent in in_suites.values() for file in load_files(agent.folder, agent.load)]


def _suite_agents(
    request: RunRequest, known: Mapping[str, AgentUse], settings: Settings
) -> dict[str, SuiteAgent]:
    """Agents asked for by names that only suites define: those of assay.toml and of the current folder."""
    unknown = [name for name in request.agents if isinstance(name, str) and name not in known]
    if not unknown:
        return {}
    suites = SuiteAgents.read(suite_files(settings))
    return {name: suites.find(name) for name in unknown if name in suites.found}


def _with_overrides(read: Callable[..., Spec], request: RunRequest) -> Spec:
    """The spec with what is given beside it; params and axes reach the experiments that they are meant for."""
    # Read twice: which experiments have a param is known only once the spec has been read and its files imported, and
    # mistakes have to be reported against the keys as they are after the overrides.
    changes = {key: value for key, value in request.changes.items() if key not in SECTIONS}
    spec = _select_groups(read(changes), request)
    if not request.changes.keys() & set(SECTIONS):
        return spec
    with contextlib.suppress(AssayError):  # Planning reports files that cannot be imported, with their lines.
        load_files(spec.folder, spec.run.load)
    requested = (agent.name if isinstance(agent, AgentUse) else agent for agent in request.agents)
    agents = [*requested, *map(_name_of, spec.run.agents)]
    return _select_groups(read(changes, assign_overrides(spec, request.changes, agents)), request)


_EVERY_GROUP = "all"


def _select_groups(spec: Spec, request: RunRequest) -> Spec:
    """The spec with the experiments of the groups that were asked for; PlanError names the groups there are."""
    known = list(dict.fromkeys(located.entry.group for located in spec.entries if located.entry.group))
    unknown = [group for group in request.groups if group not in (_EVERY_GROUP, *known)]
    if unknown and not known:
        raise PlanError(
            f"'{request.target}' has no groups of experiments, so --group cannot select '{unknown[0]}'. "
            f"To label the run: --label {unknown[0]}"
        )
    if unknown:
        raise PlanError(
            format_unknown_name(unknown[0], f"groups of '{request.target}'", [_EVERY_GROUP, *known])
        )
    if not request.groups or _EVERY_GROUP in request.groups:
        return spec
    chosen = tuple(located for located in spec.entries if located.entry.group in request.groups)
    return replace(spec, entries=chosen)


def _here(output_dir: str | None) -> str | None:
    return str(Path.cwd() / output_dir) if output_dir else None


def _plan_python_file(request: RunRequest, settings: Settings, registry: Registry) -> Plan:
    """Every experiment that a Python file defines, or the one named after `::`."""
    file, _, name = request.target.partition("::")
    path = Path(file)
    if not path.is_file():
        raise PlanError(f"There is no file '{file}'.")
    lookup.load_file(path)
    names = [request.target] if name else lookup.find_registered_names(path, "experiments")
    if not names:
        raise PlanError(
            f"'{file}' defines no experiment. Mark one with @benchmark or @register_experiment(\"name\")."
        )
    spec = _with_overrides(partial(spec_of, names, Path.cwd()), request)
    plan = _plan_experiments(spec, request, settings, registry)
    return replace(plan, load=tuple(dict.fromkeys((str(path.resolve()), *plan.load))))


def _suite_named(target: str, settings: Settings, registry: Registry) -> ReadSuite | None:
    """A suite by its name: one of the project's files, a shipped one, or one that was registered."""
    for file in (*settings.suite_files(), *builtin_suites().values()):
        document = read_document(file)
        value = document.value if isinstance(document.value, dict) else {}
        if target in (file.stem, value.get("suite"), value.get("suite_id")):
            return _read(document, file.resolve().parent)
    registered = registry.suite(target)
    if registered is None:
        return None
    from assay.spec.suite import ReadSuite, SuiteFile

    # A registered suite has no file; an empty document stands in for it, so that mistakes can still name their place.
    places = tuple(("benchmarks", index) for index in range(len(registered.benchmarks)))
    keys = SuiteFile.model_validate({"suite": registered.name, "benchmarks": [{}]})
    return ReadSuite(registered, keys, Document(target, {}), Path.cwd(), places, ())


def _read(document: Document, folder: Path) -> ReadSuite:
    """The suite that a document holds. The files under its `load` are imported first: its scorers may be defined there."""
    from assay.spec.suite import suite_of

    value = document.value if isinstance(document.value, dict) else {}
    load_files(folder, value.get("load"))
    return suite_of(document, folder)


def suite_names(settings: Settings) -> list[str]:
    return list(dict.fromkeys([*(file.stem for file in settings.suite_files()), *builtin_suites()]))


def suite_schedules(settings: Settings) -> dict[str, str | None]:
    """Suite of the project to its schedule as written; None where it has none. The shipped ones are not included."""
    schedules: dict[str, str | None] = {}
    for file in settings.suite_files():
        value = read_document(file).value
        schedule = value.get("schedule") if isinstance(value, dict) else None
        schedules[file.stem] = schedule if isinstance(schedule, str) else None
    return schedules


def find_suite(target: str, settings: Settings, registry: Registry | None = None) -> ReadSuite:
    """A suite by file or by name, with its mistakes; LookupFailed if there is none of that name."""
    path = Path(target)
    if path.suffix:
        return _read(read_document(path), path.resolve().parent)
    read = _suite_named(target, settings, registry or Registry())
    if read is None:
        raise LookupFailed(format_unknown_name(target, "suites", suite_names(settings)))
    return read


def contents_of(path: Path) -> str:
    """What a file is for: "agents", "suite without agents", or anything that can be run."""
    value = read_document(path).value if path.suffix in (".yaml", ".yml", ".json") else None
    if not isinstance(value, dict):
        return "something to run"
    if _is_suite(value):
        return "something to run" if value.get("agents") else "suite without agents"
    runs = {"suite", "experiment", "experiments", "team", "teams"}
    is_only_agents = "agents" in value and not value.keys() & runs
    return "agents" if is_only_agents else "something to run"


def find_case_warnings(target: str, settings: Settings) -> tuple[Mistake, ...]:
    """Warnings about the cases of a suite file that has no mistakes, each with its place; none for other files.

    The target may also be a spec that names a suite, by file or by name.
    """
    from assay.plan.case_warnings import case_warnings

    path = Path(target)
    value = read_document(path).value if path.suffix in (".yaml", ".yml", ".json") else None
    if not isinstance(value, dict) or not value.keys() & {"benchmarks", "suite"}:
        return ()
    elsewhere = str(value.get("suite", "")) if "benchmarks" not in value else ""
    named = path.parent / elsewhere
    read = find_suite(str(named) if elsewhere and named.is_file() else elsewhere or target, settings)
    return tuple(warning.to_mistake(read.document) for warning in case_warnings(read.suite))


def load_suite(target: str, settings: Settings) -> Suite:
    """A suite by file or by name, without an agent; SpecError with every mistake in it."""
    load_project_files(settings)
    read = find_suite(target, settings)
    mistakes = list(read.mistakes)
    inline = agents_in(read.document, ("agents",), read.file.agents, read.folder, mistakes)
    known = {**known_agents(settings, Registry()), **inline}
    return _complete(read, Agents(known, [read.document], settings.agent_files()), mistakes)


def _complete(read: ReadSuite, agents: Agents, mistakes: list[Mistake]) -> Suite:
    """The suite with the definitions of its judges, and with its scorers, instruments and experiments checked.

    SpecError with every mistake, those found so far (`mistakes`) included.
    """
    places = [Written(read.document, place) for place in read.places]
    mistakes += scorer_mistakes(read.suite, places)
    for benchmark, written in zip(read.suite.benchmarks, places, strict=True):
        mistakes += benchmark_mistakes(benchmark, KeyOrigin(written.document, written.place))
    suite = with_judges(read.suite, agents, places)
    mistakes += agents.mistakes
    if mistakes:
        raise SpecError(dict.fromkeys(mistakes))
    return suite


def _plan_suite(read: ReadSuite, request: RunRequest, settings: Settings, registry: Registry) -> Plan:
    """A suite file: with no --agent, every agent that it names, or else every one of the project."""
    file, mistakes = read.file, list(read.mistakes)
    inline = agents_in(read.document, ("agents",), file.agents, read.folder, mistakes)
    agents = Agents({**known_agents(settings, registry), **inline}, [read.document], settings.agent_files())
    # Inline definitions go before those of the project, and these before registered ones: the nearest counts.
    uses = _select_agents(request, file.agents, read.document, agents)
    if not uses and not agents.mistakes:
        uses = list(_project_agents(settings).values())
    options = SuiteOptions(
        concurrency=request.concurrency or file.concurrency,
        order=Order(file.order),
        default_warmup=registry.default_warmup,
        seed=file.seed,
        tags=tuple(file.tags),
        notes=file.notes,
        output_dir=str(read.folder / file.output_dir) if file.output_dir else None,
        load=load_files(read.folder, file.load),
        source={"suite": read.suite.name, "version": read.suite.version, "hash": read.suite.hash},
    )
    suite = _complete(read, agents, mistakes)
    plan = expand_suite(suite, _check_agents(uses, suite, request), _apply_request(options, request))
    return _with_question(plan, file.until, read.document, request)


def _plan_suite_spec(
    document: Document, folder: Path, request: RunRequest, settings: Settings, registry: Registry
) -> Plan:
    """A spec that names a suite and the agents to put through it."""
    from assay.spec.suite import SuiteSpec

    mistakes = list(document.mistakes)
    spec = validate_model(SuiteSpec, document.value, KeyOrigin(document), mistakes)
    if spec is None:
        raise SpecError(mistakes)
    load = load_files(folder, spec.load)
    target = str(folder / spec.suite) if (folder / spec.suite).is_file() else spec.suite
    read = find_suite(target, settings, registry)
    inline = {
        **agents_in(read.document, ("agents",), read.file.agents, read.folder, mistakes),
        **agents_in(document, ("agents",), spec.agents, folder, mistakes),
    }
    known = {**known_agents(settings, registry), **inline}
    agents = Agents(known, [document, read.document], settings.agent_files())
    uses = _select_agents(request, spec.agents, document, agents)
    iterations = spec.iterations
    options = SuiteOptions(
        repetitions=iterations.measured if iterations else None,
        warmup=iterations.warmup if iterations else None,
        default_warmup=registry.default_warmup,
        concurrency=request.concurrency or spec.concurrency or read.file.concurrency,
        isolation=Isolation(spec.isolation),
        seed=spec.seed,
        order=Order(spec.order),
        executor=spec.executor,
        parallelism=spec.parallelism or 0,
        budget=Budget(spec.budget.usd, spec.budget.tokens),
        agent_options=spec.params,
        axes=spec.sweep,
        load=(*load_files(read.folder, read.file.load), *load),
        output_dir=str(folder / spec.output_dir) if spec.output_dir else None,
        tags=tuple(spec.tags),
        notes=spec.notes,
        source=dict(document.value),
    )
    suite = _complete(read, agents, [*mistakes, *read.mistakes])
    plan = expand_suite(suite, _check_agents(uses, suite, request), _apply_request(options, request))
    return _with_question(plan, spec.until, document, request)


def _with_question(
    plan: Plan, written: UntilDecidedSection | None, document: Document, request: RunRequest
) -> Plan:
    """The plan, to be ended by what the file or the request says under `until`."""
    requested = request.changes.get("until", {})
    keys = merge_mappings(written.model_dump(exclude_none=True) if written else {}, requested)
    if not keys:
        return plan
    origin = KeyOrigin(document, (), {"until": requested} if requested else {})
    if "decided" not in keys:
        hint = "Add: decided: seconds (or --until-decided seconds)"
        raise SpecError([origin.mistake(("until",), "names no metric to decide by.", hint)])
    section = UntilDecidedSection.model_validate(keys)
    problems = list(question_problems(plan, section))
    if problems:
        raise SpecError([origin.mistake(("until",), problem) for problem in problems])
    return add_question(plan, section)


def _select_agents(
    request: RunRequest, items: Iterable[Any], document: Document, agents: Agents
) -> list[AgentUse]:
    """The agents asked for on the command line, else those that the file names."""
    if request.agents:
        _refuse_repeated([agent for agent in request.agents if isinstance(agent, str)])
        written = Written(Document(REQUEST, {}), ("agent",))
        uses = [
            agent if isinstance(agent, AgentUse) else agents.find(agent, written) for agent in request.agents
        ]
    else:
        uses = [
            agents.find(_name_of(item), Written(document, ("agents", index)))
            for index, item in enumerate(items)
            if _name_of(item) in agents.defined or isinstance(item, str)
        ]
    return [use for use in uses if use is not None]


def _refuse_repeated(names: Sequence[str]) -> None:
    """Two trials of one agent would be ranked against each other."""
    if repeated := next((name for name in names if names.count(name) > 1), None):
        raise PlanError(
            f"Agent '{repeated}' is named more than once. Name it once; "
            f"to compare it with itself: {shell_command('noise', 'SUITE', options=['--agent', repeated])}"
        )


def _check_agents(uses: list[AgentUse], suite: Suite, request: RunRequest) -> list[AgentUse]:
    """The agents to put through a suite: at least one, or none where all of its benchmarks test code; PlanError otherwise."""
    if any(benchmark.asks_agents or takes_agents(benchmark.experiment) for benchmark in suite.benchmarks):
        if not uses:
            raise PlanError(
                f"Suite '{suite.name}' names no agent. Give one: --agent NAME (see: assay list agents)"
            )
        return uses
    if request.agents:
        names = [agent.name if isinstance(agent, AgentUse) else agent for agent in request.agents]
        listed = ", ".join(f"'{name}'" for name in names)
        verb = "was" if len(names) == 1 else "were"
        raise PlanError(f"Suite '{suite.name}' tests code and takes no agent, but {listed} {verb} given.")
    if request.changes.get("params") or request.changes.get("sweep"):
        raise PlanError(
            f"Suite '{suite.name}' has no agents whose options --set or --sweep could change. "
            "Write 'params' or 'sweep' into its benchmarks: they are part of what the suite measures."
        )
    return []


def _apply_request(options: SuiteOptions, request: RunRequest) -> SuiteOptions:
    """The options with those of the request, which override the file; tags are added to its tags."""
    changes = request.changes
    if request.groups:
        raise PlanError(
            f"'{request.target}' is a suite: --group selects experiments of a spec. "
            f"To label the run: --label {request.groups[0]}"
        )
    if "processes" in changes:
        raise PlanError(
            f"'{request.target}' is a suite: --processes does not apply to it. Use --repetitions, or write "
            "'processes' into benchmarks that run a different experiment."
        )
    # Two ways to combine: what the request says once replaces what the file says, and what may be said several times is added
    # or laid over it key by key.
    iterations = changes.get("iterations", {})
    overrides: dict[str, Any] = {
        "repetitions": iterations.get("measured"),
        "warmup": iterations.get("warmup"),
        "seed": changes.get("seed"),
        "executor": changes.get("executor"),
        "isolation": Isolation(changes["isolation"]) if "isolation" in changes else None,
        "output_dir": changes.get("output_dir"),
        "budget": request.budget if request.budget != Budget() else None,
        "cases": request.cases,
    }
    merged: dict[str, Any] = {
        "agent_options": {**options.agent_options, **changes.get("params", {})},
        "axes": {**options.axes, **changes.get("sweep", {})},
        "tags": (*options.tags, *changes.get("tags", ())),
    }
    return replace(options, **{key: value for key, value in overrides.items() if value is not None}, **merged)


def load_files(folder: Path, patterns: Any) -> tuple[str, ...]:
    """Import the Python files that a `load` key names, counted from `folder`; their absolute paths.

    PlanError if a name or pattern matches no file, before anything is imported.
    """
    files: list[Path] = []
    # All files are found before the first is imported: importing may have effects, and half of them would be worse than none.
    for pattern in [patterns] if isinstance(patterns, str) else patterns or []:
        matches = match_files(folder, str(pattern))
        if not matches:
            raise PlanError(f"'load' names '{pattern}', but there is no such file.")
        files += [file.resolve() for file in matches]
    for file in files:
        _load(file)
    return tuple(map(str, files))


def _load(file: Path) -> None:
    start = perf_counter()
    lookup.load_file(file)
    _log.info("loaded %s in %.1f ms", file, 1000 * (perf_counter() - start))


def _name_of(item: Any) -> str:
    """The name of an agent that is named or defined; "" for what is neither, which has been reported."""
    name = item.get("name", "") if isinstance(item, Mapping) else item
    return name if isinstance(name, str) else ""


def _project_agents(settings: Settings) -> dict[str, AgentUse]:
    return {name: use for file in settings.agent_files() for name, use in read_agents(file).items()}


def known_agents(settings: Settings, registry: Registry) -> dict[str, AgentUse]:
    """Every agent that can be named: registered ones, and those of the project's files."""
    return {**registry.agents(), **_project_agents(settings)}

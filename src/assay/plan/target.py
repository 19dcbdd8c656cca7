"""What a person names on the command line becomes a Plan: a spec, a suite, a Python file or an experiment."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from assay.errors import AssayError, LookupFailed, Mistake, PlanError, SpecError, did_you_mean, no_such
from assay.model import AgentUse, Budget, Isolation, Order, Plan, Suite
from assay.model.suite import SUITE_ITERATIONS
from assay.plan.case_warnings import case_warnings
from assay.plan.expand import expand
from assay.plan.overrides import SECTIONS, assign_overrides
from assay.plan.question import asking, question_problems
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
from assay.spec.files import matching
from assay.spec.load import REQUEST, KeyOrigin, Spec, load_spec, overlaid, spec_of, validated
from assay.spec.schema import UntilDecidedSection
from assay.spec.settings import Settings
from assay.spec.shipped import shipped_specs, shipped_suites, shipped_teams
from assay.spec.suite import ReadSuite, SuiteFile, SuiteSpec, suite_of
from assay.text import shell_command

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A target and what is asked about it beside the file."""

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


@dataclass(frozen=True, slots=True)
class Registry:
    """What is known by name beyond the files of the project: agents and suites registered in the store."""

    agents: Mapping[str, AgentUse] = field(default_factory=dict)
    suite: Callable[[str], Suite | None] = lambda name: None
    default_warmup: Callable[[AgentUse], int] = lambda use: SUITE_ITERATIONS.warmup
    """Warm-ups of an agent where nobody said how many: it depends on where the agent is and what it costs."""


def plan_target(request: RunRequest, settings: Settings, registry: Registry) -> Plan:
    """Read what the target names and plan it; nothing has run yet, and every name is known to exist."""
    own = load_project_files(settings)
    # Before anything is looked up: the target, agents and scorers may be defined there.
    given = _load_given(request.changes.get("load"))
    plan = _planned(request, settings, registry)
    return replace(plan, load=tuple(dict.fromkeys((*plan.load, *given, *own))))


def load_project_files(settings: Settings) -> list[str]:
    """What the files under `load` in assay.toml define is known by name from now on."""
    files = [str(file.resolve()) for file in settings.loaded_files()]
    for file in files:
        _load(Path(file))
    return files


def _load_given(patterns: Any) -> tuple[str, ...]:
    """Load the files that are named beside the target; all that is wrong with them is told at once."""
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


def _planned(request: RunRequest, settings: Settings, registry: Registry) -> Plan:
    if request.suite is not None:
        return _planned_suite(_read(request.suite, Path.cwd()), request, settings, registry)
    target, path = request.target, Path(request.target)
    if path.suffix in (".yaml", ".yml", ".json") or path.is_dir():
        return _planned_from_document(read_document(path), path.resolve().parent, request, settings, registry)
    if path.suffix == ".py" or ".py::" in target:
        return _planned_from_python(request, settings, registry)
    if lookup.is_known("experiments", target) or ":" in target:
        return _expanded(
            _with_overrides(partial(spec_of, [target], Path.cwd()), request), request, settings, registry
        )
    if target in shipped_specs():
        spec = _with_overrides(partial(load_spec, shipped_specs()[target]), request)
        plan = _expanded(spec, request, settings, registry)
        return replace(plan, output_dir=_here(request.changes.get("output_dir")))
    if target in shipped_teams():
        file = shipped_teams()[target]
        plan = _planned_team(read_document(file), file.parent, request, settings, registry)
        return replace(plan, output_dir=_here(request.changes.get("output_dir")))
    read = _suite_named(target, settings, registry)
    if read is not None:
        return _planned_suite(read, request, settings, registry)
    known = {*lookup.known("experiments"), *shipped_specs(), *suite_names(settings)}
    near_team = did_you_mean(target, shipped_teams())
    message = no_such(target, "experiments, specs and suites", known)
    hint = f" {near_team}" if near_team and "Did you mean" not in message else ""
    raise LookupFailed(f"{message}{hint} A file ends in .yaml, .json or .py.")


def _planned_from_document(
    document: Document, folder: Path, request: RunRequest, settings: Settings, registry: Registry
) -> Plan:
    value = document.value if isinstance(document.value, dict) else {}
    if _is_suite(value):
        return _planned_suite(_read(document, folder), request, settings, registry)
    if "suite" in value or "suite_id" in value:
        return _planned_suite_spec(document, folder, request, settings, registry)
    if "team" in value or "teams" in value:
        return _planned_team(document, folder, request, settings, registry)
    spec = _with_overrides(partial(load_spec, Path(request.target)), request)
    return _expanded(spec, request, settings, registry)


def _is_suite(value: Mapping[str, Any]) -> bool:
    """Whether a file is a suite: it has benchmarks, or a key that can only be that word misspelt."""
    return "benchmarks" in value or any(
        did_you_mean(str(key), ["benchmarks"]) for key in value.keys() - SuiteSpec.model_fields.keys()
    )


def _planned_team(
    document: Document, folder: Path, request: RunRequest, settings: Settings, registry: Registry
) -> Plan:
    from assay.plan.team import check_options, expand_teams
    from assay.spec.team import team_of

    spec, changes = team_of(document, folder), request.changes
    check_options(
        {
            **_only_for_suites(request),
            "--processes": "processes" in changes,
            "--isolation": changes.get("isolation", "process") != "process",
            "--executor": changes.get("executor", "local") != "local",
        }
    )
    load = load_files(spec.folder, spec.run.load)
    plan = expand_teams(spec, known_agents(settings, registry), changes)
    return replace(plan, load=load, budget=request.budget)


def _only_for_suites(request: RunRequest) -> dict[str, object]:
    return {
        "--agent": request.agents,
        "--concurrency": request.concurrency,
        "--limit": request.cases.limit,
        "--case": request.cases.ids,
        "--tag": request.cases.tags,
        "--failed": request.cases.failed is not None,
    }


def _expanded(spec: Spec, request: RunRequest, settings: Settings, registry: Registry) -> Plan:
    """The plan of experiments, which have no cases to choose from; agents only where they test one."""
    asked = _only_for_suites(request)
    given = [option for option, value in asked.items() if value and option != "--agent"]
    if given:
        raise PlanError(f"'{request.target}' is not a suite: {', '.join(given)} means nothing for it.")
    agents, files = _tested(spec, request, settings, registry)
    plan = expand(spec, agents)
    return replace(plan, budget=request.budget, load=(*plan.load, *(f for f in files if f not in plan.load)))


def _tested(
    spec: Spec, request: RunRequest, settings: Settings, registry: Registry
) -> tuple[list[AgentUse], list[str]]:
    """The agents that experiments are to test, none where nobody names any; and the Python files that they need."""
    if not (request.agents or spec.run.agents):
        return [], []
    mistakes = list(spec.mistakes)
    document = spec.origin.document
    inline = agents_in(document, ("agents",), spec.run.agents, spec.folder, mistakes)
    known = {**known_agents(settings, registry), **inline}
    in_suites = _suite_agents(request, known, settings)
    defined = {**{name: one.use for name, one in in_suites.items()}, **known}
    agents = Agents(defined, [document], settings.agent_files())
    uses = _wanted(request, spec.run.agents, document, agents)
    mistakes += agents.mistakes
    if mistakes:
        raise SpecError(dict.fromkeys(mistakes))
    return uses, [file for one in in_suites.values() for file in load_files(one.folder, one.load)]


def _suite_agents(
    request: RunRequest, known: Mapping[str, AgentUse], settings: Settings
) -> dict[str, SuiteAgent]:
    """Agents asked for by names that only suites define: those of assay.toml and of the current folder."""
    unknown = [name for name in request.agents if isinstance(name, str) and name not in known]
    if not unknown:
        return {}
    suites = SuiteAgents.read(suite_files(settings))
    return {name: suites.named(name) for name in unknown if name in suites.found}


def _with_overrides(read: Callable[..., Spec], request: RunRequest) -> Spec:
    """The spec with what is given beside it; params and axes reach the experiments that they are meant for."""
    changes = {key: value for key, value in request.changes.items() if key not in SECTIONS}
    spec = read(changes)
    if not request.changes.keys() & set(SECTIONS):
        return spec
    with contextlib.suppress(AssayError):  # Planning tells of files that cannot be loaded, with their lines.
        load_files(spec.folder, spec.run.load)
    asked = (one.name if isinstance(one, AgentUse) else one for one in request.agents)
    agents = [*asked, *map(_name_of, spec.run.agents)]
    return read(changes, assign_overrides(spec, request.changes, agents))


def _here(output_dir: str | None) -> str | None:
    return str(Path.cwd() / output_dir) if output_dir else None


def _planned_from_python(request: RunRequest, settings: Settings, registry: Registry) -> Plan:
    """Every experiment that a Python file defines, or the one named after `::`."""
    file, _, name = request.target.partition("::")
    path = Path(file)
    if not path.is_file():
        raise PlanError(f"There is no file '{file}'.")
    lookup.load_file(path)
    names = [request.target] if name else lookup.registered_in(path, "experiments")
    if not names:
        raise PlanError(
            f"'{file}' defines no experiment. Mark one with @benchmark or @register_experiment(\"name\")."
        )
    spec = _with_overrides(partial(spec_of, names, Path.cwd()), request)
    plan = _expanded(spec, request, settings, registry)
    return replace(plan, load=tuple(dict.fromkeys((str(path.resolve()), *plan.load))))


def _suite_named(target: str, settings: Settings, registry: Registry) -> ReadSuite | None:
    """A suite by its name: one of the project's files, a shipped one, or one that was registered."""
    for file in (*settings.suite_files(), *shipped_suites().values()):
        document = read_document(file)
        value = document.value if isinstance(document.value, dict) else {}
        if target in (file.stem, value.get("suite"), value.get("suite_id")):
            return _read(document, file.resolve().parent)
    registered = registry.suite(target)
    if registered is None:
        return None
    places = tuple(("benchmarks", index) for index in range(len(registered.benchmarks)))
    keys = SuiteFile.model_validate({"suite": registered.name, "benchmarks": [{}]})
    return ReadSuite(registered, keys, Document(target, {}), Path.cwd(), places, ())


def _read(document: Document, folder: Path) -> ReadSuite:
    """What the suite loads is loaded first: its scorers may be defined there."""
    value = document.value if isinstance(document.value, dict) else {}
    load_files(folder, value.get("load"))
    return suite_of(document, folder)


def suite_names(settings: Settings) -> list[str]:
    return [file.stem for file in (*settings.suite_files(), *shipped_suites().values())]


def suite_schedules(settings: Settings) -> dict[str, str | None]:
    """The schedules that suite files name, as written."""
    found: dict[str, str | None] = {}
    for file in (*settings.suite_files(), *shipped_suites().values()):
        value = read_document(file).value
        schedule = value.get("schedule") if isinstance(value, dict) else None
        found[file.stem] = schedule if isinstance(schedule, str) else None
    return found


def find_suite(target: str, settings: Settings, registry: Registry | None = None) -> ReadSuite:
    """A suite by file or by name, as far as it can be read."""
    path = Path(target)
    if path.suffix:
        return _read(read_document(path), path.resolve().parent)
    read = _suite_named(target, settings, registry or Registry())
    if read is None:
        raise LookupFailed(no_such(target, "suites", suite_names(settings)))
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


def located_warnings(target: str, settings: Settings) -> tuple[Mistake, ...]:
    """What is odd about the cases of a suite file that has no mistakes, each with its place; nothing for other files."""
    path = Path(target)
    value = read_document(path).value if path.suffix in (".yaml", ".yml", ".json") else None
    if not isinstance(value, dict) or not value.keys() & {"benchmarks", "suite"}:
        return ()
    elsewhere = str(value.get("suite", "")) if "benchmarks" not in value else ""
    named = path.parent / elsewhere
    read = find_suite(str(named) if elsewhere and named.is_file() else elsewhere or target, settings)
    return tuple(warning.located(read.document) for warning in case_warnings(read.suite))


def checked_suite(target: str, settings: Settings) -> Suite:
    """A suite by file or by name, without an agent; SpecError with every mistake in it."""
    load_project_files(settings)
    read = find_suite(target, settings)
    mistakes = list(read.mistakes)
    inline = agents_in(read.document, ("agents",), read.file.agents, read.folder, mistakes)
    known = {**known_agents(settings, Registry()), **inline}
    return _complete(read, Agents(known, [read.document], settings.agent_files()), mistakes)


def _complete(read: ReadSuite, agents: Agents, mistakes: list[Mistake]) -> Suite:
    """The suite with its judges; SpecError where it, or anything else noted so far, has mistakes."""
    places = [Written(read.document, place) for place in read.places]
    mistakes += scorer_mistakes(read.suite, places)
    for benchmark, written in zip(read.suite.benchmarks, places, strict=True):
        mistakes += benchmark_mistakes(benchmark, KeyOrigin(written.document, written.place))
    suite = with_judges(read.suite, agents, places)
    mistakes += agents.mistakes
    if mistakes:
        raise SpecError(dict.fromkeys(mistakes))
    return suite


def _planned_suite(read: ReadSuite, request: RunRequest, settings: Settings, registry: Registry) -> Plan:
    """A suite file: with no --agent, every agent that it names, or else every one of the project."""
    file, mistakes = read.file, list(read.mistakes)
    inline = agents_in(read.document, ("agents",), file.agents, read.folder, mistakes)
    agents = Agents({**known_agents(settings, registry), **inline}, [read.document], settings.agent_files())
    uses = _wanted(request, file.agents, read.document, agents)
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
    plan = expand_suite(suite, _some(uses, suite, request), _asked_for(options, request))
    return _with_question(plan, file.until, read.document, request)


def _planned_suite_spec(
    document: Document, folder: Path, request: RunRequest, settings: Settings, registry: Registry
) -> Plan:
    """A spec that names a suite and the agents to put through it."""
    mistakes = list(document.mistakes)
    spec = validated(SuiteSpec, document.value, document, (), mistakes)
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
    uses = _wanted(request, spec.agents, document, agents)
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
        parallelism=spec.parallelism,
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
    plan = expand_suite(suite, _some(uses, suite, request), _asked_for(options, request))
    return _with_question(plan, spec.until, document, request)


def _with_question(
    plan: Plan, written: UntilDecidedSection | None, document: Document, request: RunRequest
) -> Plan:
    """The plan, to be ended by what the file or the request says under `until`."""
    given = request.changes.get("until", {})
    keys = overlaid(written.model_dump(exclude_none=True) if written else {}, given)
    if not keys:
        return plan
    origin = KeyOrigin(document, (), {"until": given} if given else {})
    mistakes: list[Mistake] = []
    section = _section(keys, origin, mistakes)
    if section is not None:
        mistakes += [origin.mistake(("until",), told) for told in question_problems(plan, section)]
    if section is None or mistakes:
        raise SpecError(mistakes)
    return asking(plan, section)


def _section(
    keys: Mapping[str, Any], origin: KeyOrigin, mistakes: list[Mistake]
) -> UntilDecidedSection | None:
    if "decided" not in keys:
        mistakes.append(
            origin.mistake(
                ("until",),
                "names no metric to decide by.",
                "Add: decided: seconds (or --until-decided seconds)",
            )
        )
        return None
    return UntilDecidedSection.model_validate(dict(keys))


def _wanted(request: RunRequest, items: Iterable[Any], document: Document, agents: Agents) -> list[AgentUse]:
    """The agents asked for on the command line, else those that the file names."""
    if request.agents:
        _refuse_repeated([one for one in request.agents if isinstance(one, str)])
        written = Written(Document(REQUEST, {}), ("agent",))
        found = [one if isinstance(one, AgentUse) else agents.named(one, written) for one in request.agents]
    else:
        found = [
            agents.named(_name_of(item), Written(document, ("agents", index)))
            for index, item in enumerate(items)
            if _name_of(item) in agents.defined or isinstance(item, str)
        ]
    return [use for use in found if use is not None]


def _refuse_repeated(names: Sequence[str]) -> None:
    """Two trials of one agent would be ranked against each other."""
    if repeated := next((name for name in names if names.count(name) > 1), None):
        raise PlanError(
            f"Agent '{repeated}' is named more than once. Name it once; "
            f"to compare it with itself: {shell_command('noise', 'SUITE', options=['--agent', repeated])}"
        )


def _names(request: RunRequest) -> str:
    return ", ".join(f"'{one.name if isinstance(one, AgentUse) else one}'" for one in request.agents)


def _some(uses: list[AgentUse], suite: Suite, request: RunRequest) -> list[AgentUse]:
    """The agents, which a suite needs unless all of its experiments test code."""
    if any(one.asks_agents or takes_agents(one.experiment) for one in suite.benchmarks):
        if not uses:
            raise PlanError(
                f"Suite '{suite.name}' names no agent. Give one: --agent NAME (see: assay list agents)"
            )
        return uses
    if request.agents:
        raise PlanError(
            f"Suite '{suite.name}' tests code and takes no agent, but {_names(request)} was given."
        )
    if request.changes.get("params") or request.changes.get("sweep"):
        raise PlanError(
            f"Suite '{suite.name}' has no agents whose options --set or --sweep could change. "
            "Write 'params' or 'sweep' into its benchmarks: they are part of what is asked."
        )
    return []


def _asked_for(options: SuiteOptions, request: RunRequest) -> SuiteOptions:
    """What was given beside the file goes before what stands in it."""
    changes = request.changes
    if "processes" in changes:
        raise PlanError(
            f"'{request.target}' is a suite: --processes means nothing for it. Use --repetitions, or write "
            "'processes' into benchmarks that run another experiment."
        )
    iterations = changes.get("iterations", {})
    given: dict[str, Any] = {
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
    return replace(options, **{key: value for key, value in given.items() if value is not None}, **merged)


def load_files(folder: Path, patterns: Any) -> tuple[str, ...]:
    """Load the Python files that a `load` key names."""
    names = [patterns] if isinstance(patterns, str) else patterns or []
    files = [file.resolve() for pattern in names for file in _found(folder, str(pattern))]
    for file in files:
        _load(file)
    return tuple(map(str, files))


def _load(file: Path) -> None:
    start = perf_counter()
    lookup.load_file(file)
    _log.info("loaded %s in %.1f ms", file, 1000 * (perf_counter() - start))


def _found(folder: Path, pattern: str) -> list[Path]:
    files = matching(folder, pattern)
    if not files:
        raise PlanError(f"'load' names '{pattern}', but there is no such file.")
    return files


def _name_of(item: Any) -> str:
    """Of an agent that is named or defined; "" for what is neither, which has been told."""
    name = item.get("name", "") if isinstance(item, Mapping) else item
    return name if isinstance(name, str) else ""


def _project_agents(settings: Settings) -> dict[str, AgentUse]:
    return {name: use for file in settings.agent_files() for name, use in read_agents(file).items()}


def known_agents(settings: Settings, registry: Registry) -> dict[str, AgentUse]:
    """Every agent that can be named: registered ones, and those of the project's files."""
    return {**registry.agents, **_project_agents(settings)}

"""What a person names on the command line becomes a Plan: a spec, a suite, a Python file or an experiment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from assay.errors import LookupFailed, Mistake, PlanError, SpecError, no_such
from assay.model import AgentUse, Budget, Isolation, Order, Plan, Suite
from assay.plan.expand import expand
from assay.plan.suite import CaseFilter, SuiteOptions, chosen_agents, expand_suite, with_judges
from assay.plugin import lookup
from assay.spec.agents import agents_in, read_agents
from assay.spec.document import Document, read_document
from assay.spec.files import matching
from assay.spec.load import Spec, load_spec, overlaid, spec_of, validated
from assay.spec.settings import Settings
from assay.spec.shipped import shipped_specs, shipped_suites
from assay.spec.suite import SuiteFile, SuiteSpec, suite_of


@dataclass(frozen=True, slots=True)
class Request:
    """A target and what is asked about it beside the file."""

    target: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Keys of a spec, laid over those of the file."""
    agents: tuple[str, ...] = ()
    cases: CaseFilter = field(default_factory=CaseFilter)
    concurrency: int | None = None
    budget: Budget = field(default_factory=Budget)


@dataclass(frozen=True, slots=True)
class Registry:
    """Agents that are known by name beyond the files of the project: those registered in the store."""

    agents: Mapping[str, AgentUse] = field(default_factory=dict)


def plan_target(request: Request, settings: Settings, registry: Registry) -> Plan:
    """Read what the target names and plan it; nothing has run yet, and every name is known to exist."""
    for file in settings.loaded_files():
        lookup.load_file(file)
    plan = _planned(request, settings, registry)
    own = tuple(str(file.resolve()) for file in settings.loaded_files())
    return replace(plan, load=tuple(dict.fromkeys((*plan.load, *own))))


def _planned(request: Request, settings: Settings, registry: Registry) -> Plan:
    target, path = request.target, Path(request.target)
    if path.suffix in (".yaml", ".yml", ".json") or path.is_dir():
        return _planned_from_document(read_document(path), path.resolve().parent, request, settings, registry)
    if path.suffix == ".py" or ".py::" in target:
        return _planned_from_python(request)
    if target in lookup.known("experiments") or ":" in target:
        return _expanded(spec_of([target], Path.cwd(), request.changes), request)
    if target in shipped_specs():
        plan = _expanded(load_spec(shipped_specs()[target], request.changes), request)
        return replace(plan, output_dir=_here(request.changes.get("output_dir")))
    suite = _suite_named(target, settings)
    if suite is not None:
        return _planned_suite(*suite, request, settings, registry)
    known = {*lookup.known("experiments"), *shipped_specs(), *suite_names(settings)}
    raise LookupFailed(
        no_such(target, "experiments, specs and suites", known) + " A file ends in .yaml, .json or .py."
    )


def _planned_from_document(
    document: Document, folder: Path, request: Request, settings: Settings, registry: Registry
) -> Plan:
    value = document.value if isinstance(document.value, dict) else {}
    if "benchmarks" in value:
        return _planned_suite(document, folder, request, settings, registry)
    if "suite" in value or "suite_id" in value:
        return _planned_suite_spec(document, folder, request, settings, registry)
    return _expanded(load_spec(Path(request.target), request.changes), request)


def _expanded(spec: Spec, request: Request) -> Plan:
    """The plan of experiments, which have neither agents nor cases to choose from."""
    only_for_suites = {
        "--agent": request.agents,
        "--concurrency": request.concurrency,
        "--limit": request.cases.limit,
        "--case": request.cases.ids,
        "--tag": request.cases.tags,
        "--failed": request.cases.failed is not None,
    }
    given = [option for option, value in only_for_suites.items() if value]
    if given:
        raise PlanError(f"'{request.target}' is not a suite: {', '.join(given)} means nothing for it.")
    return replace(expand(spec), budget=request.budget)


def _here(output_dir: str | None) -> str | None:
    return str(Path.cwd() / output_dir) if output_dir else None


def _planned_from_python(request: Request) -> Plan:
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
    plan = _expanded(spec_of(names, Path.cwd(), request.changes), request)
    return replace(plan, load=tuple(dict.fromkeys((str(path.resolve()), *plan.load))))


def _suite_named(target: str, settings: Settings) -> tuple[Document, Path] | None:
    """A suite by its name: one of the project's files, or a shipped one."""
    for file in (*settings.suite_files(), *shipped_suites().values()):
        document = read_document(file)
        value = document.value if isinstance(document.value, dict) else {}
        if target in (file.stem, value.get("suite"), value.get("suite_id")):
            return document, file.resolve().parent
    return None


def suite_names(settings: Settings) -> list[str]:
    return [file.stem for file in (*settings.suite_files(), *shipped_suites().values())]


def find_suite(target: str, settings: Settings) -> tuple[Suite, SuiteFile, Document, Path]:
    """A suite by file or by name."""
    path = Path(target)
    found = (read_document(path), path.resolve().parent) if path.suffix else _suite_named(target, settings)
    if found is None:
        raise LookupFailed(no_such(target, "suites", suite_names(settings)))
    document, folder = found
    return *suite_of(document, folder), folder


def _planned_suite(
    document: Document, folder: Path, request: Request, settings: Settings, registry: Registry
) -> Plan:
    """A suite file: with no --agent, every agent that it names."""
    file_value = document.value if isinstance(document.value, dict) else {}
    load = _loaded(folder, file_value.get("load"))
    suite, file, document = suite_of(document, folder)
    defined = {**known_agents(settings, registry), **_inline(document, file.agents, folder)}
    wanted = (
        list(request.agents) or [_name_of(item) for item in file.agents] or list(_project_agents(settings))
    )
    options = SuiteOptions(
        concurrency=request.concurrency or file.concurrency,
        order=Order(file.order),
        seed=file.seed,
        tags=tuple(file.tags),
        notes=file.notes,
        output_dir=str(folder / file.output_dir) if file.output_dir else None,
        load=load,
        source={"suite": suite.name, "version": suite.version, "hash": suite.hash},
    )
    judged = with_judges(suite, defined)
    return expand_suite(judged, chosen_agents(wanted, defined), _asked_for(options, request))


def _planned_suite_spec(
    document: Document, folder: Path, request: Request, settings: Settings, registry: Registry
) -> Plan:
    """A spec that names a suite and the agents to put through it."""
    mistakes: list[Mistake] = []
    spec = validated(SuiteSpec, overlaid(document.value, {}), document, (), mistakes)
    if mistakes or spec is None:
        raise SpecError(mistakes)
    target = str(folder / spec.suite) if (folder / spec.suite).is_file() else spec.suite
    load = _loaded(folder, spec.load)
    suite, _, suite_document, suite_folder = find_suite(target, settings)
    defined = {
        **known_agents(settings, registry),
        **_inline(suite_document, suite_document.value.get("agents", ()), suite_folder),
        **_inline(document, spec.agents, folder),
    }
    iterations = spec.iterations
    options = SuiteOptions(
        repetitions=iterations.measured if iterations else None,
        warmup=iterations.warmup if iterations else None,
        concurrency=request.concurrency or spec.concurrency or 1,
        isolation=Isolation(spec.isolation),
        seed=spec.seed,
        order=Order(spec.order),
        executor=spec.executor,
        parallelism=spec.parallelism,
        budget=Budget(spec.budget.usd, spec.budget.tokens),
        agent_options=spec.params,
        axes=spec.sweep,
        load=load,
        output_dir=str(folder / spec.output_dir) if spec.output_dir else None,
        tags=tuple(spec.tags),
        notes=spec.notes,
        source=dict(document.value),
    )
    wanted = list(request.agents) or [_name_of(item) for item in spec.agents]
    judged = with_judges(suite, defined)
    return expand_suite(judged, chosen_agents(wanted, defined), _asked_for(options, request))


def _asked_for(options: SuiteOptions, request: Request) -> SuiteOptions:
    """What was given beside the file goes before what stands in it."""
    changes = request.changes
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
        "agent_options": {**options.agent_options, **_of_agent(changes.get("params", {}))},
        "axes": {**options.axes, **_of_agent(changes.get("sweep", {}))},
        "load": (*options.load, *_loaded(Path.cwd(), changes.get("load"))),
        "tags": (*options.tags, *changes.get("tags", ())),
    }
    return replace(options, **{key: value for key, value in given.items() if value is not None}, **merged)


def _of_agent(options: Mapping[str, Any]) -> dict[str, Any]:
    """`agent.num_ctx` and `num_ctx` both mean the agent's option."""
    return {name.removeprefix("agent."): value for name, value in options.items()}


def _loaded(folder: Path, patterns: Any) -> tuple[str, ...]:
    names = [patterns] if isinstance(patterns, str) else patterns or []
    files = [file.resolve() for pattern in names for file in _found(folder, str(pattern))]
    for file in files:
        lookup.load_file(file)
    return tuple(map(str, files))


def _found(folder: Path, pattern: str) -> list[Path]:
    files = matching(folder, pattern)
    if not files:
        raise PlanError(f"'load' names '{pattern}', but there is no such file.")
    return files


def _name_of(item: Any) -> str:
    return item if isinstance(item, str) else str(item.get("name", ""))


def _inline(document: Document, items: Any, folder: Path) -> dict[str, AgentUse]:
    mistakes: list[Mistake] = []
    found = agents_in(document, ("agents",), items, folder, mistakes)
    if mistakes:
        raise SpecError(mistakes)
    return found


def _project_agents(settings: Settings) -> dict[str, AgentUse]:
    return {name: use for file in settings.agent_files() for name, use in read_agents(file).items()}


def known_agents(settings: Settings, registry: Registry) -> dict[str, AgentUse]:
    """Every agent that can be named: registered ones, and those of the project's files."""
    return {**registry.agents, **_project_agents(settings)}

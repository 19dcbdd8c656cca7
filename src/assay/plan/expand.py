"""A spec of experiments becomes a `Plan`.

For each experiment of the spec: the experiment is looked up, the axes of its sweep become points, each point's params are checked
against the params that the experiment declares, and each point becomes a trial, once for each agent where the experiment tests
agents. Mistakes of all experiments are collected and raised together. `suite_experiments` uses `trials_of_entry` for the benchmarks
of a suite that run an experiment.
"""

from __future__ import annotations

import inspect
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from assay.errors import LookupFailed, MissingExtra, Mistake, PlanError, SpecError
from assay.model import (
    AgentUse,
    AgentVersion,
    Cleanup,
    InstrumentUse,
    Isolation,
    Iterations,
    Order,
    Plan,
    Trial,
    Until,
)
from assay.model.secret import plain_secrets
from assay.plan.codebase import code_base
from assay.plan.list_params import resolve_list_params
from assay.plan.question import add_question, question_problems
from assay.plan.sweep import Point, as_text, count, points
from assay.plugin import lookup
from assay.plugin.agent import BadAgent
from assay.plugin.experiment import experiment_class
from assay.plugin.instrument import NotMeasurable
from assay.plugin.params import check_params, is_axis, is_experiment, param_model
from assay.plugin.sandbox import find_sandbox
from assay.spec.agents import INSTEAD_OF_PARAM, WRITTEN_OUT
from assay.spec.files import match_files, resolve_experiment
from assay.spec.read import KeyOrigin, LocatedEntry, Spec
from assay.spec.schema import ExperimentEntry, IterationsSection, UntilSection

MAX_TRIALS = 100_000
"""More than a year of trials of five minutes: that is not intended. Plan, store and report work up to here."""


def expand(spec: Spec, agents: Sequence[AgentUse] = ()) -> Plan:
    """All trials of a spec; SpecError has every mistake of the file and of the names and params in it.

    With agents, each of them at each point; then every experiment must be one that takes agents.
    """
    # Files first: they may define the executor, the experiments and the instruments that are looked up below.
    mistakes = list(spec.mistakes)
    load = _load_files(spec, mistakes)
    try:
        lookup.find("executors", spec.run.executor)
    except (LookupFailed, MissingExtra) as error:
        mistakes.append(spec.origin.mistake(("executor",), str(error)))
    seed = spec.run.seed if spec.run.seed is not None else secrets.randbelow(2**32)
    trials: list[Trial] = []
    for located in spec.entries:
        trials += trials_of_entry(located, seed, len(trials), mistakes, spec.folder, agents)
    _refuse(mistakes)
    trials = _distinguish(trials)
    plan = Plan(
        name=spec.run.name or "+".join(dict.fromkeys(trial.benchmark for trial in trials)),
        trials=tuple(trials),
        seed=seed,
        order=Order(spec.run.order),
        parallelism=spec.run.parallelism or 0,
        executor=spec.run.executor,
        load=load,
        output_dir=str(spec.folder / spec.run.output_dir) if spec.run.output_dir else None,
        tags=tuple(spec.run.tags),
        notes=spec.run.notes,
        source=spec.source,
    )
    if spec.run.until is None:
        return plan
    problems = question_problems(plan, spec.run.until)
    _refuse([spec.origin.mistake(("until",), problem) for problem in problems])
    return add_question(plan, spec.run.until)


def _refuse(mistakes: list[Mistake]) -> None:
    """SpecError if there are any mistakes, each once and in the order of their lines."""
    if mistakes:
        raise SpecError(sorted(dict.fromkeys(mistakes), key=lambda mistake: mistake.line or 0))


def _load_files(spec: Spec, mistakes: list[Mistake]) -> tuple[str, ...]:
    """Import the Python files that the spec names, so that what they define is known; their absolute paths."""
    files: list[str] = []
    for pattern in spec.run.load:
        matches = match_files(spec.folder, pattern)
        if not matches:
            mistakes.append(spec.origin.mistake(("load",), f"There is no file '{pattern}'."))
        for file in matches:
            try:
                lookup.load_file(file)
                files.append(str(file.resolve()))
            except LookupFailed as error:
                mistakes.append(spec.origin.mistake(("load",), str(error)))
    return tuple(files)


def trials_of_entry(
    located: LocatedEntry,
    seed: int,
    first: int,
    mistakes: list[Mistake],
    folder: Path,
    agents: Sequence[AgentUse],
) -> list[Trial]:
    """The trials of one experiment of a spec, numbered from `first` on.

    What is wrong is added to `mistakes`, and there are no trials of it.
    """
    entry, origin = located.entry, located.origin
    reference = resolve_experiment(entry.experiment, folder)
    instruments = [InstrumentUse(use.name, use.model_extra or {}) for use in entry.instrumentation]
    own_mistakes = [*_contradictions(located), *instrument_mistakes(instruments, origin)]
    try:
        member = _experiment(reference, entry.experiment)
        located = resolve_list_params(member, located, own_mistakes)
        entry, origin = located.entry, located.origin
        axes, fixed = _axes(member, entry)
        own_mistakes += _axis_mistakes(located, axes)
        own_mistakes += [
            origin.mistake(_param_place(entry, str(place[0])), WRITTEN_OUT, INSTEAD_OF_PARAM)
            for place in plain_secrets({**axes, **fixed})
        ]
        tested = _pair_agents_with_params(member, entry, agents)
    except (LookupFailed, MissingExtra, PlanError) as error:
        problem = str(error)
        if isinstance(error, LookupFailed) and ":" not in entry.experiment and "Did you mean" not in problem:
            problem += " If one of your files defines it, name that file in the spec (load: FILE.py) or with --load FILE.py."
        own_mistakes.append(origin.mistake(("experiment",), problem))
    if own_mistakes:
        mistakes += own_mistakes
        return []
    # Only now is the sweep written out: `_axis_mistakes` has refused one that would not fit into memory.
    swept = points(axes, entry.strategy, entry.samples, seed)
    trials: list[Trial] = []
    for use, own in tested:
        known = len(mistakes)
        settled = _resolve_params(member, located, {**own, **fixed}, swept, mistakes)
        if len(mistakes) > known:
            continue
        find_agent = _agent_finder(reference, member, use)
        for params, point in zip(settled, swept, strict=True):
            agent = find_agent(params)
            trials.append(_trial(entry, first + len(trials), agent, reference, member, params, point, use))
    cleanup = Cleanup(tuple(entry.cleanup), str(folder.resolve())) if entry.cleanup else None
    return [replace(trial, cleanup=cleanup) for trial in trials] if cleanup else trials


def _pair_agents_with_params(
    member: Any, entry: ExperimentEntry, agents: Sequence[AgentUse]
) -> list[tuple[AgentUse | None, dict[str, Any]]]:
    """Pair each agent with its params; without agents, return one pair without an agent."""
    tested: list[tuple[AgentUse | None, dict[str, Any]]]
    if not agents:
        return [(None, {})]
    params_of = getattr(experiment_class(member), "params_of", None)
    if params_of is None:
        names = ", ".join(f"'{use.name}'" for use in agents)
        raise PlanError(f"'{entry.experiment}' takes no agent, but {names} was given.")
    try:
        all_pairs = [(use, params_of(use)) for use in agents]
    except BadAgent as problem:
        raise PlanError(str(problem)) from None
    tested = [(use, dict(params)) for use, params in all_pairs if params is not None]
    # Agents that have no part in the experiment stand for one trial of it without an agent, however many they are.
    return tested if len(tested) == len(all_pairs) else [*tested, (None, {})]


def _experiment(reference: str, written: str) -> Any:
    """The class or function of an experiment, whose params are known to be readable; PlanError if it is neither."""
    member = lookup.find("experiments", reference)
    if is_experiment(member):
        param_model(member)
        if getattr(experiment_class(member), "needs_sandbox", False):
            find_sandbox(f"The experiment {written}")
        return member
    raise PlanError(
        f"'{written}' is neither a class with execute_once nor a function marked with @benchmark."
    )


def _resolve_params(
    member: Any, located: LocatedEntry, fixed: dict[str, Any], swept: list[Point], mistakes: list[Mistake]
) -> list[dict[str, Any]]:
    """All params of each point; what is wrong with them is reported once, not once for each point."""
    entry, called = located.entry, f"'{_slug(member, located.entry)}'"
    checked = [check_params(member, {**fixed, **point}, called) for point in swept]
    wrong = dict.fromkeys(fault for _, faults in checked for fault in faults)
    for fault in wrong:
        mistakes.append(located.origin.mistake(_param_place(entry, fault.name), fault.problem, fault.hint))
    if not wrong and (twice := _twice(checked, swept)):
        mistakes.append(located.origin.mistake(("sweep",), f"has the same point twice: {twice}."))
    return [params for params, _ in checked]


def _twice(checked: list[tuple[dict[str, Any], Any]], swept: list[Point]) -> str:
    """The label of a point whose params equal those of an earlier one; "" if all differ.

    Two equal trials would be two names for one thing, and a comparison between them would find nothing but noise.
    """
    seen = set()
    for (params, _), point in zip(checked, swept, strict=True):
        text = as_text(params)
        if text in seen:
            return _label(point)
        seen.add(text)
    return ""


def _agent_finder(
    reference: str, member: Any, use: AgentUse | None
) -> Callable[[Mapping[str, Any]], AgentVersion]:
    """The function that gives the agent of a point by its params.

    An experiment may derive its agent from the params (`agent_of`). Otherwise it is the agent that the user named, or the
    code base, which is looked up once for all points.
    """
    agent_of: Callable[[Mapping[str, Any]], AgentVersion] | None = getattr(
        experiment_class(member), "agent_of", None
    )
    if use is None and agent_of is not None:
        return agent_of
    agent = (
        AgentVersion(use.name, use.version)
        if use is not None
        else code_base(member, distribution_of(reference))
    )
    return lambda params: agent


def distribution_of(reference: str) -> str | None:
    """The package that an experiment was installed with; None where it is in a file of the user's."""
    origins = {source.name: source.origin for source in lookup.sources("experiments")}
    is_installed = reference in origins and not origins[reference].endswith(".py")
    return origins[reference] if is_installed else None


def _axes(member: Any, entry: ExperimentEntry) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    """The axes of a sweep, and the params that stay fixed.

    Axes come from `sweep`; a list in `params` is an axis as well where the experiment declares a single value (`is_axis`).
    """
    implied = {name: value for name, value in entry.params.items() if is_axis(member, name, value)}
    fixed = {
        name: value for name, value in entry.params.items() if name not in implied and name not in entry.sweep
    }
    return {**implied, **entry.sweep}, fixed


def _axis_mistakes(located: LocatedEntry, axes: Mapping[str, list[Any]]) -> list[Mistake]:
    """What is wrong with the axes, found by counting: the points themselves are not made before their number is known to be
    possible."""
    entry, origin = located.entry, located.origin
    empty = [name for name, values in axes.items() if not values]
    mistakes = [origin.mistake(("sweep", name), "has no values.") for name in empty]
    lengths = {name: len(values) for name, values in axes.items()}
    if entry.strategy == "zip" and len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} {length}" for name, length in lengths.items())
        mistakes.append(origin.mistake(("sweep",), f"'strategy: zip' needs axes of equal length ({listed})."))
    total = count(axes, entry.strategy, entry.samples)
    if total > MAX_TRIALS:
        hint = f"At most {MAX_TRIALS:,} can be run: use strategy: random with samples: N, or fewer values."
        mistakes.append(origin.mistake(("sweep",), f"has {total:,} points.", hint))
    return mistakes


def instrument_mistakes(uses: Sequence[InstrumentUse], origin: KeyOrigin) -> list[Mistake]:
    """Instruments that do not exist, and options that they do not take.

    Options that make no sense show when an instrument is made, so each is made once. One that cannot measure on this machine is
    no mistake: the run says so and continues without it.
    """
    mistakes = []
    for index, use in enumerate(uses):
        try:
            member = lookup.find("instruments", use.name)
            if hasattr(member, "start"):
                member(**use.options)
            else:
                inspect.signature(member).bind({}, **use.options)
        except NotMeasurable:
            continue
        except (LookupFailed, MissingExtra, PlanError) as error:
            mistakes.append(origin.mistake(("instrumentation", index), str(error)))
        except TypeError as error:
            problem = f"'{use.name}' does not take these options: {error}."
            mistakes.append(origin.mistake(("instrumentation", index), problem))
    return mistakes


def _contradictions(located: LocatedEntry) -> Iterator[Mistake]:
    """Keys that are right by themselves but cannot be combined."""
    entry, mistake = located.entry, located.origin.mistake
    iterations, limits = entry.iterations, entry.limits
    if entry.strategy == "random" and entry.samples is None:
        problem = "'random' needs samples, the number of points to draw."
        yield mistake(("strategy",), problem, "Add: samples: 10")
    if iterations.until is not None and iterations.measured != "auto":
        yield mistake(
            ("iterations", "until"), "works only with measured: auto.", "Set that, or remove until."
        )
    if entry.isolation == "cold" and iterations.measured == "auto":
        problem = "'cold' cannot be combined with measured: auto."
        yield mistake(("isolation",), problem, "Set iterations.measured to a number.")
    if entry.isolation != "inline":
        return
    hint = "Use: isolation: process"
    if limits.seconds is not None or limits.memory_mb is not None:
        yield mistake(("isolation",), "'inline' cannot enforce seconds or memory.", hint)
    if entry.cleanup:
        problem = "has no effect with isolation 'inline', which kills no process."
        yield mistake(("cleanup",), problem, hint)
    if entry.processes > 1:
        yield mistake(("isolation",), "'inline' has one process only.", hint)


def _param_place(entry: ExperimentEntry, name: str) -> tuple[str, ...]:
    """Return where the entry sets a param, for messages; `name` may reach into a param: `server.port`."""
    top = name.split(".")[0]
    return ("sweep", top) if top in entry.sweep else ("params", top)


def _trial(
    entry: ExperimentEntry,
    index: int,
    agent: AgentVersion,
    reference: str,
    member: Any,
    params: dict[str, Any],
    point: Point,
    use: AgentUse | None,
) -> Trial:
    """The trial of one point.

    `axes` has the values as the experiment reads them, so that "1e3" and 1000 are one value in reports.
    """
    slug, label = _slug(member, entry), _label(point)
    name = slug if use is None else f"{slug} · {use.name}"
    return Trial(
        index=index,
        name=f"{name}[{label}]" if label else name,
        agent=agent,
        benchmark=slug,
        experiment=reference,
        params=params,
        axes={name: params.get(name, value) for name, value in point.items()},
        iterations=_iterations(entry.iterations, member),
        processes=entry.processes,
        instruments=tuple(
            InstrumentUse(use.name, dict(use.model_extra or {})) for use in entry.instrumentation
        ),
        isolation=Isolation(entry.isolation),
        limits=entry.limits.to_noun(),
        resources=(use.resources if use else None)
        or (entry.resources.to_noun() if entry.resources else None),
    )


def _distinguish(trials: Sequence[Trial]) -> list[Trial]:
    """The trials with different names: entries of one file may run the same experiment with other params.

    Equal names get the params that differ. Trials that differ in nothing but limits or the like are numbered.
    """
    trials_by_name: dict[str, list[Trial]] = {}
    for trial in trials:
        trials_by_name.setdefault(trial.name, []).append(trial)
    taken: Counter[str] = Counter()
    named = []
    for trial in trials:
        name = _name_differences(trial, trials_by_name[trial.name])
        taken[name] += 1
        if taken[name] > 1:
            name = f"{name} ({taken[name]})"
        named.append(trial if name == trial.name else replace(trial, name=name))
    return named


def _name_differences(trial: Trial, namesakes: Sequence[Trial]) -> str:
    different = {
        name: value
        for name, value in trial.params.items()
        if any(other.params.get(name) != value for other in namesakes)
    }
    # An agent that is defined in place is called by its name.
    label = _label(
        {
            name: value.get("name", value) if isinstance(value, Mapping) else value
            for name, value in different.items()
        }
    )
    if not label:
        return trial.name
    return f"{trial.name[:-1]}, {label}]" if trial.axes else f"{trial.name}[{label}]"


def _slug(member: Any, entry: ExperimentEntry) -> str:
    return str(getattr(member, "slug", None) or entry.experiment.split("::")[-1])


def _label(point: Point) -> str:
    return ", ".join(f"{name}={_short(value)}" for name, value in point.items())


def _short(value: Any) -> str:
    """A value as part of a name: a long one is cut, and a hash keeps it apart from others that begin alike."""
    text = str(value)
    return text if len(text) <= 40 else f"{text[:30]}…{sha256(text.encode()).hexdigest()[:6]}"


def _iterations(section: IterationsSection, member: Any) -> Iterations:
    """What the spec says; where it is silent, what the experiment itself was declared with."""
    # Key by key: `@benchmark(iterations=50)` keeps its 50 in a spec that only says `warmup: 5`.
    declared: Iterations = getattr(member, "defaults", Iterations())
    written = section.model_fields_set
    until = None
    if section.measured == "auto":
        chosen = section.until or UntilSection.model_validate({})
        until = Until(chosen.interval, chosen.max, metric=chosen.metric)
    measured = until.max if until else section.measured if "measured" in written else declared.measured
    loops = declared.loops if section.loops is None else section.loops
    return Iterations(
        warmup=section.warmup if "warmup" in written else declared.warmup,
        measured=int(measured),
        until=until,
        loops=None if loops == "auto" else loops,
    )

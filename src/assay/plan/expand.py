"""Spec to Plan."""

from __future__ import annotations

import inspect
import secrets
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
    Limits,
    Order,
    Plan,
    Trial,
    Until,
)
from assay.model.secret import plain_secrets
from assay.plan.codebase import code_base
from assay.plan.question import asking, question_problems
from assay.plan.sweep import Point, as_text, count, points
from assay.plugin import lookup
from assay.plugin.agent import BadAgent
from assay.plugin.experiment import experiment_class
from assay.plugin.instrument import NotMeasurable
from assay.plugin.params import checked, is_axis, is_experiment, param_model
from assay.spec.agents import INSTEAD_OF_PARAM, WRITTEN_OUT
from assay.spec.files import matching, rooted
from assay.spec.load import KeyOrigin, LocatedEntry, Spec
from assay.spec.schema import ExperimentEntry, IterationsSection, LimitsSection, UntilSection

MAX_TRIALS = 100_000


def expand(spec: Spec, agents: Sequence[AgentUse] = ()) -> Plan:
    """All trials of a spec; SpecError tells every mistake of the file and of the names and params in it.

    With agents, each of them at each point; then every experiment must be one that takes agents.
    """
    mistakes = list(spec.mistakes)
    load = _load_files(spec, mistakes)
    mistakes += _executor_mistakes(spec)
    seed = spec.run.seed if spec.run.seed is not None else secrets.randbelow(2**32)
    trials: list[Trial] = []
    for located in spec.entries:
        trials += trials_of_entry(located, seed, len(trials), mistakes, spec.folder, agents)
    _refuse(mistakes)
    plan = Plan(
        name=spec.run.name or "+".join(dict.fromkeys(trial.benchmark for trial in trials)),
        trials=tuple(trials),
        seed=seed,
        order=Order(spec.run.order),
        parallelism=spec.run.parallelism,
        executor=spec.run.executor,
        load=load,
        output_dir=str(spec.folder / spec.run.output_dir) if spec.run.output_dir else None,
        tags=tuple(spec.run.tags),
        notes=spec.run.notes,
        source=spec.source,
    )
    if spec.run.until is None:
        return plan
    _refuse([spec.origin.mistake(("until",), told) for told in question_problems(plan, spec.run.until)])
    return asking(plan, spec.run.until)


def _refuse(mistakes: list[Mistake]) -> None:
    if mistakes:
        raise SpecError(sorted(dict.fromkeys(mistakes), key=lambda mistake: mistake.line or 0))


def _load_files(spec: Spec, mistakes: list[Mistake]) -> tuple[str, ...]:
    """Load the Python files that the spec names, so that what they define is known."""
    files: list[str] = []
    for pattern in spec.run.load:
        found = matching(spec.folder, pattern)
        if not found:
            mistakes.append(spec.origin.mistake(("load",), f"There is no file '{pattern}'."))
        for file in found:
            try:
                lookup.load_file(file)
                files.append(str(file.resolve()))
            except LookupFailed as error:
                mistakes.append(spec.origin.mistake(("load",), str(error)))
    return tuple(files)


def _executor_mistakes(spec: Spec) -> list[Mistake]:
    try:
        lookup.find("executors", spec.run.executor)
    except (LookupFailed, MissingExtra) as error:
        return [spec.origin.mistake(("executor",), str(error))]
    return []


def _where_else(name: str, error: Exception) -> str:
    """A hint for an experiment that is written, but in a file that nobody has named."""
    if not isinstance(error, LookupFailed) or ":" in name or "Did you mean" in str(error):
        return ""
    return " Is it in a file of yours? Name it in the spec, load: FILE.py, or with --load FILE.py."


def trials_of_entry(
    located: LocatedEntry,
    seed: int,
    first: int,
    mistakes: list[Mistake],
    folder: Path,
    agents: Sequence[AgentUse],
) -> list[Trial]:
    """The trials of one entry; none when something other than its params is wrong."""
    entry, origin = located.entry, located.origin
    reference = rooted(entry.experiment, folder)
    instruments = [InstrumentUse(use.name, use.model_extra or {}) for use in entry.instrumentation]
    found = [*_contradictions(located), *instrument_mistakes(instruments, origin)]
    try:
        member = _experiment(reference, entry.experiment)
        axes, fixed = _axes(member, entry)
        found += _axis_mistakes(located, axes)
        found += [
            origin.mistake(_param_place(entry, str(place[0])), WRITTEN_OUT, INSTEAD_OF_PARAM)
            for place in plain_secrets({**axes, **fixed})
        ]
        tested = _tested(member, entry, agents)
    except (LookupFailed, MissingExtra, PlanError) as error:
        found.append(origin.mistake(("experiment",), f"{error}{_where_else(entry.experiment, error)}"))
    if found:
        mistakes += found
        return []
    swept = points(axes, entry.strategy, entry.samples, seed)
    trials: list[Trial] = []
    for use, own in tested:
        settled = _settled(member, located, {**own, **fixed}, swept, mistakes)
        find_agent = _agent_finder(reference, member, use)
        for params, point in zip(settled, swept, strict=True):
            agent = find_agent(params)
            trials.append(_trial(entry, first + len(trials), agent, reference, member, params, point, use))
    cleanup = Cleanup(tuple(entry.cleanup), str(folder.resolve())) if entry.cleanup else None
    return [replace(trial, cleanup=cleanup) for trial in trials] if cleanup else trials


def _tested(
    member: Any, entry: ExperimentEntry, agents: Sequence[AgentUse]
) -> list[tuple[AgentUse | None, dict[str, Any]]]:
    """Each agent with the params that it stands for; where none was named, nothing with none."""
    if not agents:
        return [(None, {})]
    params_of = getattr(experiment_class(member), "params_of", None)
    if params_of is None:
        names = ", ".join(f"'{use.name}'" for use in agents)
        raise PlanError(f"'{entry.experiment}' takes no agent, but {names} was given.")
    try:
        return [(use, dict(params_of(use))) for use in agents]
    except BadAgent as problem:
        raise PlanError(str(problem)) from None


def _experiment(reference: str, written: str) -> Any:
    member = lookup.find("experiments", reference)
    if is_experiment(member):
        param_model(member)
        return member
    raise PlanError(
        f"'{written}' is neither a class with execute_once nor a function marked with @benchmark."
    )


def _settled(
    member: Any, located: LocatedEntry, fixed: dict[str, Any], swept: list[Point], mistakes: list[Mistake]
) -> list[dict[str, Any]]:
    """All params of each point; what is wrong with them is told once, not once a point."""
    entry, called = located.entry, f"'{_slug(member, located.entry)}'"
    every = [checked(member, {**fixed, **point}, called) for point in swept]
    wrong = dict.fromkeys(fault for _, faults in every for fault in faults)
    for fault in wrong:
        mistakes.append(located.origin.mistake(_param_place(entry, fault.name), fault.problem, fault.hint))
    if not wrong and (twice := _twice(every, swept)):
        mistakes.append(located.origin.mistake(("sweep",), f"makes the same point twice: {twice}."))
    return [params for params, _ in every]


def _twice(every: list[tuple[dict[str, Any], Any]], swept: list[Point]) -> str:
    seen = set()
    for (params, _), point in zip(every, swept, strict=True):
        text = as_text(params)
        if text in seen:
            return _label(point)
        seen.add(text)
    return ""


def _agent_finder(
    reference: str, member: Any, use: AgentUse | None
) -> Callable[[Mapping[str, Any]], AgentVersion]:
    """What tells the agent of each point by its params; the code base, found once, where they do not matter."""
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
    """Axes from `sweep`, and by the documented rule from lists in `params`; the other params stay fixed."""
    implied = {name: value for name, value in entry.params.items() if is_axis(member, name, value)}
    fixed = {
        name: value for name, value in entry.params.items() if name not in implied and name not in entry.sweep
    }
    return {**implied, **entry.sweep}, fixed


def _axis_mistakes(located: LocatedEntry, axes: Mapping[str, list[Any]]) -> list[Mistake]:
    entry, origin = located.entry, located.origin
    empty = [name for name, values in axes.items() if not values]
    mistakes = [origin.mistake(("sweep", name), "has no values.") for name in empty]
    lengths = {name: len(values) for name, values in axes.items()}
    if entry.strategy == "zip" and len(set(lengths.values())) > 1:
        told = ", ".join(f"{name} {length}" for name, length in lengths.items())
        mistakes.append(origin.mistake(("sweep",), f"'strategy: zip' needs axes of equal length ({told})."))
    total = count(axes, entry.strategy, entry.samples)
    if total > MAX_TRIALS:
        hint = f"At most {MAX_TRIALS:,} can be run: use strategy: random with samples: N, or fewer values."
        mistakes.append(origin.mistake(("sweep",), f"makes {total:,} points.", hint))
    return mistakes


def instrument_mistakes(uses: Sequence[InstrumentUse], origin: KeyOrigin) -> list[Mistake]:
    """Instruments that there are not, and options that they do not take."""
    mistakes = []
    for index, use in enumerate(uses):
        try:
            _try_out(lookup.find("instruments", use.name), use.options)
        except NotMeasurable:
            continue
        except (LookupFailed, MissingExtra, PlanError) as error:
            mistakes.append(origin.mistake(("instrumentation", index), str(error)))
        except TypeError as error:
            told = f"'{use.name}' does not take these options: {error}."
            mistakes.append(origin.mistake(("instrumentation", index), told))
    return mistakes


def _try_out(member: Any, options: Mapping[str, Any]) -> None:
    """Options that make no sense show when an instrument is made, and so before the run."""
    if hasattr(member, "start"):
        member(**options)
    else:
        inspect.signature(member).bind({}, **options)


def _contradictions(located: LocatedEntry) -> Iterator[Mistake]:
    entry, tell = located.entry, located.origin.mistake
    if entry.strategy == "random" and entry.samples is None:
        yield tell(("strategy",), "'random' needs samples, the number of points to draw.", "Add: samples: 10")
    if entry.iterations.until is not None and entry.iterations.measured != "auto":
        yield tell(("iterations", "until"), "holds only with measured: auto.", "Take one of them away.")
    if entry.isolation == "cold" and entry.iterations.measured == "auto":
        yield tell(("isolation",), "'cold' cannot stop by itself.", "Give iterations.measured a number.")
    if entry.isolation == "inline" and (
        entry.limits.seconds is not None or entry.limits.memory_mb is not None
    ):
        yield tell(("isolation",), "'inline' cannot enforce seconds or memory.", "Use: isolation: process")
    if entry.isolation == "inline" and entry.cleanup:
        yield tell(
            ("cleanup",),
            "has no effect with isolation 'inline', which kills no process.",
            "Use: isolation: process",
        )
    if entry.isolation == "inline" and entry.processes > 1:
        yield tell(("isolation",), "'inline' has one process only.", "Use: isolation: process")


def _param_place(entry: ExperimentEntry, name: str) -> tuple[str, ...]:
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
        limits=_limits(entry.limits),
    )


def _slug(member: Any, entry: ExperimentEntry) -> str:
    return str(getattr(member, "slug", None) or entry.experiment.split("::")[-1])


def _label(point: Point) -> str:
    return ", ".join(f"{name}={_short(value)}" for name, value in point.items())


def _short(value: Any) -> str:
    """A value as a name can hold it; long ones are told apart by a hash."""
    text = str(value)
    return text if len(text) <= 40 else f"{text[:30]}…{sha256(text.encode()).hexdigest()[:6]}"


def _iterations(section: IterationsSection, member: Any) -> Iterations:
    """What the spec says; where it is silent, what the experiment itself was declared with."""
    declared: Iterations = getattr(member, "defaults", Iterations())
    given = section.model_fields_set
    until = None
    if section.measured == "auto":
        chosen = section.until or UntilSection.model_validate({})
        until = Until(chosen.interval, chosen.max, metric=chosen.metric)
    measured = until.max if until else section.measured if "measured" in given else declared.measured
    loops = declared.loops if section.loops is None else section.loops
    return Iterations(
        warmup=section.warmup if "warmup" in given else declared.warmup,
        measured=int(measured),
        until=until,
        loops=None if loops == "auto" else loops,
    )


def _limits(section: LimitsSection) -> Limits:
    memory = int(section.memory_mb * 2**20) if section.memory_mb is not None else None
    return Limits(section.seconds, memory, section.tokens, section.usd)

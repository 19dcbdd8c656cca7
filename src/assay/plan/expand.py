"""Spec to Plan."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from assay.errors import LookupFailed, MissingExtra, Mistake, PlanError, SpecError, no_such
from assay.model import Agent, InstrumentUse, Isolation, Iterations, Limits, Order, Plan, Trial, Until
from assay.plan.codebase import code_base
from assay.plan.sweep import points
from assay.plugin import lookup
from assay.plugin.params import checked, experiment_class, is_axis
from assay.spec.load import Located, Spec
from assay.spec.schema import Entry, IterationsSection, LimitsSection, UntilSection

MAX_TRIALS = 100_000


def expand(spec: Spec) -> Plan:
    """All trials of a spec; SpecError tells every mistake of the file and of the names and params in it."""
    mistakes = list(spec.mistakes)
    load = _load_files(spec, mistakes)
    seed = spec.run.seed if spec.run.seed is not None else secrets.randbelow(2**32)
    if spec.run.executor not in lookup.known("executors") and ":" not in spec.run.executor:
        mistakes.append(_unknown(spec.entries, ("executor",), "executors", spec.run.executor))
    trials: list[Trial] = []
    for located in spec.entries:
        trials += _trials(located, seed, len(trials), mistakes, spec.folder)
    if mistakes:
        raise SpecError(mistakes)
    return Plan(
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


def _load_files(spec: Spec, mistakes: list[Mistake]) -> tuple[str, ...]:
    """Load the Python files that the spec names, so that what they define is known."""
    files: list[str] = []
    for pattern in spec.run.load:
        found = sorted(spec.folder.glob(pattern)) if not Path(pattern).is_absolute() else [Path(pattern)]
        if not found:
            mistakes.append(_at(spec.entries, ("load",), f"names '{pattern}', but there is no such file."))
        for file in found:
            try:
                lookup.load_file(file)
                files.append(str(file.resolve()))
            except LookupFailed as error:
                mistakes.append(_at(spec.entries, ("load",), str(error)))
    return tuple(files)


def _trials(
    located: Located, seed: int, first: int, mistakes: list[Mistake], folder: Path
) -> Iterator[Trial]:
    entry = located.entry
    reference = _rooted(entry.experiment, folder)
    try:
        member = lookup.find("experiments", reference)
    except (LookupFailed, MissingExtra) as error:
        mistakes.append(located.mistake(("experiment",), str(error)))
        return
    if not _is_experiment(experiment_class(member)):
        mistakes.append(
            located.mistake(
                ("experiment",), f"'{entry.experiment}' is not an experiment: it has no execute_once."
            )
        )
        return
    mistakes += _contradictions(located)
    axes, fixed = _axes(member, entry)
    found = [*_instrument_mistakes(located), *_axis_mistakes(located, axes)]
    if found:
        mistakes += found
        return
    agent = _agent(reference, member)
    told: set[Mistake] = set()
    for offset, point in enumerate(points(axes, entry.strategy, entry.samples, seed)):
        params, wrong = checked(member, {**fixed, **point})
        for fault in wrong:
            mistake = located.mistake(_param_place(entry, fault.name), fault.problem, fault.hint)
            if mistake not in told:
                told.add(mistake)
                mistakes.append(mistake)
        yield _trial(entry, first + offset, agent, reference, member, params, point)


def _is_experiment(experiment: Any) -> bool:
    return callable(getattr(experiment, "execute_once", None)) or not isinstance(experiment, type)


def _agent(reference: str, member: Any) -> Agent:
    origins = {source.name: source.origin for source in lookup.sources("experiments")}
    is_installed = reference in origins and not origins[reference].endswith(".py")
    return code_base(member, origins[reference] if is_installed else None)


def _rooted(experiment: str, folder: Path) -> str:
    """`file.py::name` relative to the file that names it."""
    file, separator, name = experiment.partition("::")
    return f"{(folder / file).resolve()}::{name}" if separator and file.endswith(".py") else experiment


def _axes(member: Any, entry: Entry) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    """Axes from `sweep`, and by the documented rule from lists in `params`; the other params stay fixed."""
    implied = {name: value for name, value in entry.params.items() if is_axis(member, name, value)}
    fixed = {
        name: value for name, value in entry.params.items() if name not in implied and name not in entry.sweep
    }
    return {**implied, **entry.sweep}, fixed


def _axis_mistakes(located: Located, axes: Mapping[str, list[Any]]) -> list[Mistake]:
    mistakes = [
        located.mistake(("sweep", name), "has no values.") for name, values in axes.items() if not values
    ]
    lengths = {name: len(values) for name, values in axes.items()}
    if located.entry.strategy == "zip" and len(set(lengths.values())) > 1:
        told = ", ".join(f"{name} {length}" for name, length in lengths.items())
        mistakes.append(located.mistake(("sweep",), f"'strategy: zip' needs axes of equal length ({told})."))
    total = 1
    for length in lengths.values():
        total *= length
    if located.entry.strategy == "cartesian" and total > MAX_TRIALS:
        mistakes.append(
            located.mistake(
                ("sweep",),
                f"makes {total:,} points.",
                "Use strategy: random with samples: N, or fewer values.",
            )
        )
    return mistakes


def _instrument_mistakes(located: Located) -> list[Mistake]:
    mistakes = []
    for index, instrument in enumerate(located.entry.instrumentation):
        try:
            lookup.find("instruments", instrument.name)
        except (LookupFailed, MissingExtra) as error:
            mistakes.append(located.mistake(("instrumentation", index), str(error)))
        except PlanError as error:
            mistakes.append(located.mistake(("instrumentation", index), str(error)))
    return mistakes


def _contradictions(located: Located) -> list[Mistake]:
    entry = located.entry
    mistakes = []
    if entry.isolation == "cold" and entry.iterations.measured == "auto":
        mistakes.append(
            located.mistake(
                ("isolation",), "'cold' cannot stop by itself.", "Give iterations.measured a number."
            )
        )
    if entry.isolation != "inline":
        return mistakes
    if entry.limits.seconds is not None or entry.limits.memory_mb is not None:
        mistakes.append(
            located.mistake(
                ("isolation",), "'inline' cannot enforce seconds or memory.", "Use: isolation: process"
            )
        )
    if entry.processes > 1:
        mistakes.append(
            located.mistake(("isolation",), "'inline' has one process only.", "Use: isolation: process")
        )
    return mistakes


def _param_place(entry: Entry, name: str) -> tuple[str, ...]:
    top = name.split(".")[0]
    return ("sweep", top) if top in entry.sweep else ("params", top)


def _trial(
    entry: Entry,
    index: int,
    agent: Agent,
    reference: str,
    member: Any,
    params: dict[str, Any],
    point: dict[str, Any],
) -> Trial:
    slug = getattr(member, "slug", None) or entry.experiment.split("::")[-1]
    label = ", ".join(f"{name}={value}" for name, value in point.items())
    return Trial(
        index=index,
        name=f"{slug}[{label}]" if label else slug,
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


def _at(entries: tuple[Located, ...], place: tuple[str, ...], problem: str, hint: str = "") -> Mistake:
    if entries:
        return entries[0].document.mistake(place, problem, hint)
    return Mistake("spec", None, ".".join(place), problem, hint)


def _unknown(entries: tuple[Located, ...], place: tuple[str, ...], kind: str, name: str) -> Mistake:
    return _at(entries, place, no_such(name, kind, lookup.known(kind)))

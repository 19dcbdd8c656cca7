"""Benchmarks of a suite that run an experiment of their own instead of asking agents.

Such a benchmark is planned like an experiment of a spec: its keys become an `ExperimentEntry`, and `expand.trials_of_entry` makes the
trials. Its cases, if it has any, are params: the input of a case is a mapping that is laid over the params of the benchmark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from assay.errors import AssayError, Mistake, did_you_mean
from assay.model import DIMENSIONS, AgentUse, Benchmark, Trial
from assay.model.metric import KNOWN_METRICS
from assay.plan.expand import instrument_mistakes, trials_of_entry
from assay.plan.sweep import Point
from assay.plugin import lookup
from assay.plugin.experiment import experiment_class
from assay.plugin.params import check_params
from assay.spec.document import Document
from assay.spec.read import KeyOrigin, LocatedEntry
from assay.spec.schema import ExperimentEntry

_OF_AGENTS = (
    "rss_max_bytes",
    "import_seconds",
    "setup_seconds",
    "total_seconds",
    "load_seconds",
    "prompt_eval_seconds",
    "eval_seconds",
)
"""Metrics of executions that no plug-in declares: of the worker, and durations that model servers report."""


NOWHERE = KeyOrigin(Document("suite", {}))
"""Origin of the keys of benchmarks that have been checked already."""


def benchmark_mistakes(benchmark: Benchmark, origin: KeyOrigin) -> list[Mistake]:
    """What is wrong with a benchmark's instruments, metrics and, unless it asks agents, its experiment."""
    mistakes = _metric_mistakes(benchmark, origin)
    if benchmark.asks_agents:
        return [*mistakes, *instrument_mistakes(benchmark.instruments, origin)]
    experiment_trials(benchmark, origin, (), 0, mistakes)
    return mistakes


def experiment_trials(
    benchmark: Benchmark, origin: KeyOrigin, agents: Sequence[AgentUse], seed: int, mistakes: list[Mistake]
) -> list[Trial]:
    """A trial for each point, and for each agent where the experiment tests agents.

    What is tested is otherwise the code base, as in a spec, however many agents the suite names.
    """
    base = dict(benchmark.params)
    first = benchmark.cases[0].input if benchmark.cases else {}
    over = first if isinstance(first, Mapping) else {}
    located = LocatedEntry(_entry(benchmark, {**base, **over}), origin)
    tested = agents if takes_agents(benchmark.experiment) else ()
    before = len(mistakes)
    trials = trials_of_entry(located, seed, 0, mistakes, Path(), tested)
    if benchmark.cases and len(mistakes) == before:
        mistakes += _case_mistakes(benchmark, origin, trials)
    # The params that a case brings are the job's: of the trial there are those that all cases have in common.
    return [
        replace(
            trial,
            params={name: base.get(name, value) for name, value in trial.params.items()
                    if name not in over or name in base},
        )
        for trial in trials
    ]  # fmt: skip


def _entry(benchmark: Benchmark, params: Mapping[str, object]) -> ExperimentEntry:
    """The benchmark as the entry of a spec; timing is measured in any case."""
    limits = benchmark.limits
    memory = limits.memory_bytes / 2**20 if limits.memory_bytes else None
    ceilings = {"seconds": limits.seconds, "memory_mb": memory, "tokens": limits.tokens, "usd": limits.usd}
    return ExperimentEntry.model_validate(
        {
            "experiment": benchmark.experiment,
            "params": dict(params),
            "sweep": {name: list(values) for name, values in benchmark.sweep.items()},
            "processes": benchmark.processes,
            "iterations": {
                "warmup": benchmark.iterations.warmup,
                "measured": benchmark.iterations.measured,
            },
            "instrumentation": [
                *({"name": use.name, **use.options} for use in benchmark.instruments),
                {"name": "timing"},
            ],
            "limits": {name: value for name, value in ceilings.items() if value is not None},
        }
    )


def takes_agents(experiment: str) -> bool:
    """Whether an experiment tests agents, and not the code base that it belongs to."""
    try:
        member = lookup.find("experiments", experiment)
    except AssayError:
        return False
    return getattr(experiment_class(member), "params_of", None) is not None


def _case_mistakes(benchmark: Benchmark, origin: KeyOrigin, trials: Sequence[Trial]) -> Iterator[Mistake]:
    """A case's input is laid over the params: it must be a mapping, and together they must be params."""
    member = lookup.find("experiments", benchmark.experiment)
    points: list[Point] = [dict(trial.axes) for trial in trials]
    for case in benchmark.cases:
        at = f"Case '{case.id}'"
        if not isinstance(case.input, Mapping):
            hint = "Write: input: {NAME: VALUE}"
            yield origin.mistake(
                ("cases",), f"{at}: the input must be a mapping of params of '{benchmark.experiment}'.", hint
            )
            continue
        if swept := [name for name in case.input if name in benchmark.sweep]:
            yield origin.mistake(("cases",), f"{at}: '{swept[0]}' is swept, so a case cannot set it.")
        for point in points[:1]:
            params = {**benchmark.params, **point, **case.input}
            for fault in check_params(member, params, f"'{benchmark.experiment}'")[1]:
                problem = f"{at}: {fault.name} {fault.problem}"
                yield origin.mistake(("cases",), problem, fault.hint)


def _metric_mistakes(benchmark: Benchmark, origin: KeyOrigin) -> list[Mistake]:
    """Metrics that nothing can measure. An experiment may return any metric, so only near misses of known ones are refused."""
    known = known_metrics(benchmark)
    mistakes = []
    for index, name in enumerate(benchmark.metrics_measured):
        near = did_you_mean(name, known)
        if name in known or (not benchmark.asks_agents and not near):
            continue
        listed = "" if near else f"Known: {', '.join(sorted(known))}."
        problem = f"'{name}' is not a metric of this benchmark."
        mistakes.append(origin.mistake(("metrics_measured", index), problem, near or listed))
    return mistakes


def known_metrics(benchmark: Benchmark) -> set[str]:
    """Metrics of every execution, the benchmark's scores, those that its experiment and instruments declare, and dimensions."""
    known = {
        *KNOWN_METRICS,
        *_OF_AGENTS,
        *DIMENSIONS,
        *(f"score.{use.score_name}" for use in benchmark.scorers),
    }
    members = [("instruments", use.name) for use in benchmark.instruments]
    if not benchmark.asks_agents:
        members.append(("experiments", benchmark.experiment))
    for kind, name in members:
        try:
            declared: Any = getattr(experiment_class(lookup.find(kind, name)), "metrics", {})
        except AssayError:
            continue
        known |= set(declared)
    return known

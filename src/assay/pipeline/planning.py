"""Plans a run: spec → plan. Everything that can be known to be wrong is found here, before anything runs.

`prepare` is what `assay run` and `assay.run` call, `check` what `assay validate` calls. Agents and scorers are made once, without being
opened, so that a missing package, option or variable ends the command here and not half way through a run.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

from assay.errors import AssayError, Mistake, PlanError
from assay.model import AgentUse, Plan, Suite, Trial
from assay.model.settings import RECORDED
from assay.model.suite import SUITE_ITERATIONS
from assay.pipeline.executor import check_executor_options
from assay.plan.codebase import forget_commits
from assay.plan.suite import scorers_of
from assay.plan.target import (
    Registry,
    RunRequest,
    contents_of,
    find_case_warnings,
    load_suite,
    plan_target,
)
from assay.plugin import lookup
from assay.plugin.executor import BoundedExecutor
from assay.plugin.experiment import find_trait
from assay.spec.agents import read_agents
from assay.spec.settings import Settings

if TYPE_CHECKING:
    from assay.store.store import Store

_log = logging.getLogger(__name__)


def prepare(
    request: RunRequest | str, settings: Settings, store: Store | Callable[[], Store] | None = None
) -> Plan:
    """Plan what is asked for: every name is known to exist, and every agent can be made, before anything runs.

    The store, or what opens it, is asked only for agents and suites that are registered there.
    """
    # `module:attribute` in a spec means a module of the user's project. At the end of the path, so that a file of the project
    # that is called like a package does not take its place.
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    # A program that plans twice, as a notebook does, may have committed in between.
    forget_commits()
    request = RunRequest(request) if isinstance(request, str) else request
    start = perf_counter()
    registry = replace(registry_of(store), default_warmup=default_warmup)
    plan = plan_target(request, settings, registry)
    options = {**settings.executors.get(plan.executor, {}), **request.executor_options}
    plan = replace(
        _with_registered_agents(plan, settings, registry), label=request.label, executor_options=options
    )
    check_executor_options(plan.executor, options)
    check_makeable(plan)
    plan = _with_recorded_repetitions(plan)
    _log.info(
        "planned %s: %d trials in %.1f ms", plan.name, len(plan.trials), 1000 * (perf_counter() - start)
    )
    return plan


def _with_recorded_repetitions(plan: Plan) -> Plan:
    """Recorded agents have at most as many repetitions as answers, and a remark where that is fewer than asked for."""
    if not any(trial.is_recorded for trial in plan.trials):
        return plan
    from assay.execute.jobs import count_recorded_repetitions

    trials, remarks = list(plan.trials), {}
    for place, trial in enumerate(trials):
        counts = count_recorded_repetitions(trial) if trial.is_recorded and trial.cases else {}
        planned = trial.iterations.measured
        if counts and min(counts.values()) < planned:
            most = min(planned, max(counts.values()))
            trials[place] = replace(trial, iterations=replace(trial.iterations, measured=most))
            remarks[trial.index] = _format_few_recorded(counts, planned)
    return replace(plan, trials=tuple(trials), remarks=remarks)


def _format_few_recorded(counts: Mapping[str, int], planned: int) -> str:
    """The remark for a recorded agent that has fewer answers than repetitions were asked for."""
    short = [number for number in counts.values() if number < planned]
    fewest, most = min(short), max(short)
    many = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    of_cases = "each case" if len(short) == len(counts) else f"{len(short)} of {len(counts)} cases"
    answers = "answer" if fewest == most == 1 else "answers"
    return (
        f"{many} recorded {answers} for {of_cases}, fewer than the {planned} repetitions asked for: "
        "a case has at most as many repetitions as recorded answers"
    )


def _with_registered_agents(plan: Plan, settings: Settings, registry: Registry) -> Plan:
    """Agents that params name can be made, or the run is refused; registered ones are defined for workers, which have no store."""
    params = {name: find_trait(name, "agent_name_param") for name in {t.experiment for t in plan.trials}}
    if not any(params.values()):
        return plan
    from assay.plan.load import find_agent

    registered = registry.agents()
    in_files: list[AgentUse] = []

    def define_agent(trial: Trial) -> Trial:
        name = trial.params.get(params[trial.experiment] or "")
        if not isinstance(name, str) or trial.params.get("agent") is not None:
            return trial
        found = find_agent(name, settings, registered)
        if found is not None and name in registered:
            return replace(trial, params={**trial.params, "agent": asdict(found.use)})
        if found is not None:
            in_files.append(found.use)
        return trial

    plan = replace(plan, trials=tuple(map(define_agent, plan.trials)))
    _check_agents_and_scorers(in_files, None)
    return plan


def default_warmup(use: AgentUse) -> int:
    """One where a try costs nothing but time on this machine: none for agents that are remote or have a price."""
    from assay.plugin.agent_pool import make_agent
    from assay.plugin.prices import Price

    try:
        agent = make_agent(use)
    except AssayError:
        return 0  # the check of the agents says what is wrong
    is_remote = use.type == RECORDED or bool(getattr(agent, "is_remote", False))
    return 0 if is_remote or Price(use, agent).is_priced else SUITE_ITERATIONS.warmup


def registry_of(store: Store | Callable[[], Store] | None) -> Registry:
    """Agents and suites that are registered in a store, which is opened when one of them is asked for."""
    if store is None:
        return Registry()
    open_store = store if callable(store) else lambda: store

    def find_registered(name: str) -> Suite | None:
        suites = open_store().suites()
        return open_store().suite(name) if any(suite.name == name for suite in suites) else None

    return Registry(lambda: open_store().agents(), find_registered)


def check_makeable(plan: Plan) -> None:
    """Make each agent and scorer once, unopened, so that what is wrong with any of them is told before anything runs."""
    uses = [t.agent_use for t in plan.trials if t.agent_use is not None]
    for trial in plan.trials:
        if agents_in := find_trait(trial.experiment, "agents_in"):
            uses += agents_in(trial.params)
    if uses or plan.suite is not None:
        _check_agents_and_scorers(uses, plan.suite)
    _check_resources(plan)


def _check_resources(plan: Plan) -> None:
    """PlanError for trials that ask for more than the executor can ever give."""
    asking = [trial for trial in plan.trials if trial.resources is not None]
    executor = lookup.find("executors", plan.executor) if asking else None
    if not isinstance(executor, BoundedExecutor):
        return
    shortages = [
        f"'{trial.name}' asks for {shortage}. Change its 'resources', or run it where there is enough, as on a cluster."
        for trial in asking
        if trial.resources and (shortage := executor.find_shortage(trial.resources))
    ]
    if shortages:
        raise PlanError("\n".join(shortages))


def _check_agents_and_scorers(uses: Sequence[AgentUse], suite: Suite | None) -> None:
    """Make every agent and scorer once; PlanError with everything that is wrong with any of them."""
    from assay.plugin.agent_pool import agent_key, make_agent
    from assay.plugin.scorers import make_scorer

    # Each different agent once, however many trials it has, and all problems at once instead of the first one.
    agents = {agent_key(use): use for use in uses}
    makings: list[Callable[[], object]] = [partial(make_agent, use) for use in agents.values()]
    makings += [partial(make_scorer, use) for use in (scorers_of(suite) if suite else ())]
    problems: dict[str, None] = {}
    for make in makings:
        try:
            make()
        except AssayError as error:
            problems[str(error)] = None
    if problems:
        raise PlanError("\n".join(problems))


def check(target: str, settings: Settings, store: Store | None = None) -> Checked:
    """What a spec, a suite or a file of agents holds, if all of it is fine."""
    contents = contents_of(Path(target))
    summary = _summary(target, contents, settings, store)
    warnings = find_case_warnings(target, settings) if contents != "agents" else ()
    return Checked(contents, summary, warnings)


class Checked(NamedTuple):
    """A file without mistakes: what it holds, in a few words, and what is odd about it."""

    contents: str
    """What it is for: see `contents_of`."""
    summary: str
    warnings: tuple[Mistake, ...]


def _summary(target: str, contents: str, settings: Settings, store: Store | None) -> str:
    """What a file holds, after everything in it was checked in the way in which it would be used."""
    if contents == "agents":
        from assay.plugin.agent_pool import make_agent

        uses = read_agents(Path(target), checks_options=True)
        for use in uses.values():
            make_agent(use)
        return _format_count(len(uses), "agent")
    if contents == "suite without agents":
        suite = load_suite(target, settings)
        _check_agents_and_scorers((), suite)
        cases = sum(len(benchmark.cases) for benchmark in suite.benchmarks)
        return f"{_format_count(len(suite.benchmarks), 'benchmark')}, {_format_count(cases, 'case')}"
    return _format_count(len(prepare(target, settings, store).trials), "trial")


def _format_count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"

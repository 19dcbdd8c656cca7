"""Plans a profile: the trials of any run, each with sampled executions between unsampled ones.

Everything else is `assay run`: the plan is executed, stored, resumed and reported like any other. What profiling adds are the
instrument `profile`, listed once for each sampled execution, and the finding of the same name.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from assay.errors import LookupFailed, PlanError
from assay.model import InstrumentUse, Isolation, Limits, Order, Plan, Trial
from assay.model.profile import PROFILE as PROFILE
from assay.pipeline.planning import prepare
from assay.plan.load import find_agent
from assay.plan.suite import CaseFilter
from assay.plan.suite_agents import DOCUMENTS, format_path, suite_files
from assay.plan.target import RunRequest
from assay.plugin import lookup
from assay.spec.document import Document, read_document
from assay.spec.settings import Settings
from assay.store.store import Store
from assay.text import shell_command

SAMPLER_BYTES = 256 * 2**20
"""Memory that py-spy and the program that starts it may take."""


@dataclass(frozen=True, slots=True)
class ProfileOptions:
    """What was asked for beside the target."""

    suite: str | None = None
    input: str | None = None
    case: str | None = None
    pairs: int = 5
    rate: float = 100.0
    has_memory: bool = True
    changes: dict[str, Any] | None = None


def plan_profile(target: str, options: ProfileOptions, settings: Settings, store: Store) -> Plan:
    """The plan for an agent on a suite, on one input, or for anything that `assay run` takes."""
    request = replace(_request(target, options, settings, store), changes=options.changes or {})
    plan = prepare(request, settings, store)
    if recorded := [trial.agent.name for trial in plan.trials if trial.is_recorded]:
        raise PlanError(f"Agent '{recorded[0]}' replays recorded answers, so there is nothing to profile.")
    trials = tuple(_add_profiling(trial, options) for trial in plan.trials)
    return replace(plan, trials=trials, order=Order.SEQUENTIAL, parallelism=1, tags=(*plan.tags, PROFILE))


def _request(target: str, options: ProfileOptions, settings: Settings, store: Store) -> RunRequest:
    cases = CaseFilter(None if options.case else 1, frozenset([options.case] if options.case else ()))
    if options.suite is not None:
        return RunRequest(options.suite, agents=(target,), cases=cases)
    if options.input is not None:
        found = find_agent(target, settings, store.agents())
        benchmark = {"id": "input", "cases": [{"id": "input", "input": options.input}]}
        suite = Document("--input", {"suite": PROFILE, "benchmarks": [benchmark]})
        return RunRequest("--input", agents=(target if found is None else found.use,), suite=suite)
    is_file = Path(target).suffix in (*DOCUMENTS, ".py") or ".py::" in target
    if is_file or lookup.is_known("experiments", target):
        is_suite = is_file and Path(target).suffix in DOCUMENTS
        return RunRequest(target, cases=cases) if is_suite else RunRequest(target)
    try:
        find_agent(target, settings, store.agents())
    except LookupFailed as error:
        raise LookupFailed(f"{error} Or name an experiment: assay list experiments") from None
    return RunRequest(_only_suite(target, settings, store), agents=(target,), cases=cases)


def _only_suite(agent: str, settings: Settings, store: Store) -> str:
    """The suite to put an agent through where none was named: the only one there is."""
    values = {str(file): read_document(file).value for file in suite_files(settings)}
    files = [file for file, value in values.items() if isinstance(value, dict) and "benchmarks" in value]
    registered = [suite.name for suite in store.suites()] if not files else []
    found = [*files, *registered]
    if len(found) == 1:
        return found[0]
    command = shell_command("profile", agent, options=["--suite", "SUITE"])
    if not found:
        either = shell_command("profile", agent, options=["--input", "TEXT"])
        raise PlanError(f"There is no suite to run agent '{agent}' on. Name one: {command}. Or: {either}")
    names = ", ".join(format_path(Path(name)) for name in found[:5])
    raise PlanError(f"There are several suites ({names}). Name one: {command}")


def _allow_sampler(limits: Limits) -> Limits:
    """A limit of memory counts all that a worker starts, and so the sampler as well."""
    most = limits.memory_bytes
    return limits if most is None else replace(limits, memory_bytes=most + SAMPLER_BYTES)


def _add_profiling(trial: Trial, options: ProfileOptions) -> Trial:
    """The trial with pairs of executions, one unsampled and one sampled, then one that counts JSON documents and one that traces memory."""
    sampling = InstrumentUse(PROFILE, {"rate": options.rate})
    is_local = trial.agent_use is None or getattr(
        lookup.find("agents", trial.agent_use.type), "is_local", False
    )
    # memray sees C libraries as well, but is not part of any extra.
    tracer = "memray" if find_spec("memray") is not None else "memory"
    counting = (InstrumentUse("repeats"),) if is_local else ()
    tracing = (InstrumentUse(tracer),) if options.has_memory and is_local else ()
    return replace(
        trial,
        iterations=replace(trial.iterations, measured=options.pairs, until=None),
        instruments=(InstrumentUse("timing"), *[sampling] * options.pairs, *counting, *tracing),
        limits=_allow_sampler(trial.limits),
        isolation=Isolation.PROCESS,
        processes=1,
        concurrency=1,
    )

"""`assay.run`: what the command `assay run` does, from Python and with Python objects.

The keywords become a `RunRequest`, the same that the command makes of its options; planning, running and reporting are the
same from there on. Messages about what was written in the call name its keywords in place of options and spec keys.
"""

from __future__ import annotations

import asyncio
import contextvars
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from assay.api.objects import CALL, SessionFunctions, build_agents, build_suite
from assay.api.options import RunOptions, as_list, check_options
from assay.api.results import RunResult
from assay.errors import Mistake, PlanError, SpecError
from assay.execute.signals import interruptible
from assay.model import Budget, Isolation, Plan, Run, RunState
from assay.pipeline import run as running
from assay.pipeline.budget import budget_blind_spots
from assay.pipeline.planning import prepare
from assay.pipeline.ratings import find_failed_cases
from assay.pipeline.report import report_of, write_reports
from assay.plan.case_warnings import case_doubts
from assay.plan.suite import CaseFilter
from assay.plan.target import RunRequest, build_changes
from assay.plugin import lookup
from assay.plugin.sandbox import chosen_sandbox
from assay.plugin.session import session_functions
from assay.report.console.progress import Watch, show_all_progress
from assay.spec.read import REQUEST
from assay.spec.settings import Settings, find_settings
from assay.store.store import Store

if TYPE_CHECKING:
    from typing_extensions import Unpack

T = TypeVar("T")
_ONLY_WITH_CASES = ("scorer", "suite", "limits")
_OF_RESUME = {"resume", "sandbox", "budget_usd", "budget_tokens", "report", "out", "progress", "db"}
_KEYWORDS = {
    "agent": "agents",
    "iterations.measured": "repetitions",
    "iterations.warmup": "warmup",
    "output_dir": "out",
    "tags": "label",
    "until": "until_decided",
    "benchmarks.0.cases": "cases",
    "benchmarks.0.scorer": "scorer",
    "benchmarks.0.limits": "limits",
}
"""Keys of specs and suites, and the keywords that set them."""
_OPTIONS = {"agent": "agents", "case": "cases", "tag": "tags", "set": "params"}
"""Options of the command that have another name here."""
_SIGNAL_SECONDS = 0.1
"""The longest time until a signal is handled that the kernel gave to another thread than the main one."""


def run(target: str | Path | None = None, **options: Unpack[RunOptions]) -> RunResult:
    """Run a suite, a spec, a Python file or an experiment, or `cases` of your own, and return the result.

    Takes the options of `assay run`. Functions that other processes can import run in a process of their own; lambdas,
    closures and functions of the script or notebook itself run inline, which `result.isolation` says.

    Example:
        result = run("suite.yaml", agents=["fast"], repetitions=3)
        result = run(cases=[{"input": "2+2", "expected": "4"}], agents={"mine": function}, scorer="exact")
    """
    given = check_options("run", RunOptions, options)
    # A script that calls run() at its top level is imported by the workers of that very run, to find its functions.
    if (file := lookup.file_being_imported()) is not None:
        raise PlanError(
            f"assay.run() was called while Assay imported '{file}', which would start runs endlessly. "
            'Put the call below: if __name__ == "__main__":'
        )
    _check_combination(target, given)
    return run_outside_event_loop(lambda: _run(None if target is None else str(target), given))


def _check_combination(target: str | Path | None, given: Mapping[str, Any]) -> None:
    """Refuse keywords that mean nothing together; types were checked before, key by key.

    A keyword is never ignored: a user who passes `limits` beside a suite believes that they hold.
    """
    if "resume" in given:
        if target is not None or given.keys() - _OF_RESUME:
            raise PlanError(
                "run(resume=…) takes no target, and of the keywords only: "
                f"{', '.join(sorted(_OF_RESUME - {'resume'}))}."
            )
        return
    if target is None and "cases" not in given:
        raise PlanError("run() needs something to run: a target such as 'suite.yaml', or cases=[…].")
    if target is not None and (extra := [name for name in _ONLY_WITH_CASES if name in given]):
        raise PlanError(
            f"run(): {', '.join(extra)} works only with your own cases; '{target}' sets this itself. Leave one of them out."
        )
    if target is None and "agents" not in given:
        raise PlanError('run(cases=…) needs agents to ask, such as agents={"mine": function}.')


def _run(target: str | None, given: Mapping[str, Any]) -> RunResult:
    """Execute the call: a new run, or the rest of an earlier one. The store is open only for the time of the call."""
    # A format that does not exist is refused before the run and not after an hour of it.
    settings = find_settings(Path.cwd())
    formats = as_list(given.get("report"))
    for name in formats:
        lookup.find("reporters", name)
    with open_store(given.get("db"), settings) as store, chosen_sandbox(given.get("sandbox")):
        if "resume" in given:
            interrupted = store.run(given["resume"])
            count = sum(store.progress(interrupted.id).values())
            with watching(running.plan_of(interrupted, store), given, count) as watch:
                run = running.resume(interrupted.id, store, watch, _budget(given))
        else:
            run = _run_new(target, given, settings, store)
        report = report_of(store, run.id)
        folder = Path(given.get("out") or run.output_dir or f"report-{run.id}")
        files = write_reports(report, formats, folder) if formats else []
    # Results and reports are written by now. In Python, Ctrl-C is an exception, and a caller in a loop has to see it.
    if run.state is RunState.INTERRUPTED:
        raise KeyboardInterrupt(f"Run '{run.id}' was interrupted. Resume it: run(resume='{run.id}')")
    return RunResult(report, tuple(files))


def _run_new(target: str | None, given: Mapping[str, Any], settings: Settings, store: Store) -> Run:
    """Plan and run. Functions of the session stay known by name until the run has ended, and no longer.

    Warnings that the command line prints become Python warnings, so that a program can turn them into errors.
    """
    session = SessionFunctions()
    request = _request(target, given, session, store)
    with session_functions(session.all):
        with _naming_keywords():
            plan = prepare(request, settings, store)
        # Experiments measure code in fresh processes, and functions of this session cannot get there.
        if session.all and plan.suite is None:
            raise PlanError(
                f"'{plan.name}' starts processes of its own, and these cannot use {session.explain()} "
                "Move it to a module."
            )
        for text in (*budget_blind_spots(plan), *map(str, case_doubts(plan.suite))):
            warnings.warn(text, stacklevel=2)
        with watching(plan, given) as watch:
            return running.run_plan(plan, store, watch)


def open_store(db: str | Path | None, settings: Settings) -> Store:
    url = f"sqlite:///{db}" if isinstance(db, Path) else db or settings.db
    return Store.open(url, workspace=settings.workspace, retry_seconds=settings.db_retry)


def watching(plan: Plan, given: Mapping[str, Any], done: int = 0) -> AbstractContextManager[Watch]:
    return show_all_progress(plan, done) if given.get("progress") else nullcontext(running.ignore_batch)


def _request(
    target: str | None, given: Mapping[str, Any], session: SessionFunctions, store: Store
) -> RunRequest:
    """Build the request that the command builds from its options. With a target, `cases` are ids; without one, the cases themselves."""
    agents = build_agents(given.get("agents"), session)
    suite = build_suite(given, session) if target is None else None
    ids = frozenset(as_list(given.get("cases"))) if target is not None else frozenset()
    if not all(isinstance(case, str) for case in ids):
        raise PlanError(f"run('{target}', cases=…) chooses cases of the suite by their ids, which are texts.")
    failed = find_failed_cases(store, given["failed"]) if "failed" in given else None
    return RunRequest(
        target or CALL,
        _changes(given, session),
        agents,
        CaseFilter(given.get("limit"), ids, frozenset(as_list(given.get("tags"))), failed),
        given.get("concurrency"),
        _budget(given),
        suite,
        next(iter(as_list(given.get("label"))), ""),
        tuple(as_list(given.get("group"))),
    )


def _budget(given: Mapping[str, Any]) -> Budget:
    return Budget(given.get("budget_usd"), given.get("budget_tokens"))


def _changes(given: Mapping[str, Any], session: SessionFunctions) -> dict[str, Any]:
    """The keys of a spec that the keywords stand for."""
    several = {name: as_list(given.get(name)) for name in ("load", "label")}
    isolation = {"isolation": _inline(given, session)} if session.all else {}
    return build_changes({**given, **several, **isolation})


def _inline(given: Mapping[str, Any], session: SessionFunctions) -> str:
    """The one isolation that functions of this session can have; all agents of the run get it, to be comparable."""
    if given.get("isolation", "inline") != "inline":
        raise PlanError(
            f"isolation='{given['isolation']}' is not possible: {session.explain()} "
            "Move it to a module, or leave isolation out to run inline."
        )
    if given.get("executor", "local") != "local":
        raise PlanError(f"executor='{given['executor']}' is not possible: {session.explain()}")
    return Isolation.INLINE.value


@contextmanager
def _naming_keywords() -> Iterator[None]:
    """Errors that are raised within name the keywords of the call."""
    try:
        yield
    except SpecError as error:
        raise SpecError(map(_by_keyword, error.mistakes)) from None
    except PlanError as error:
        raise PlanError(_name_keywords(str(error))) from None


def _name_keywords(message: str) -> str:
    """The message with keywords for options; not in commands that it suggests."""

    def name_keyword(option: re.Match[str]) -> str:
        name = option[1].replace("-", "_")
        keyword = _OPTIONS.get(name, name)
        return f"{keyword}=" if keyword in RunOptions.__annotations__ else option[0]

    # From the first command on, options are options: "Run it: assay run X --agent A" is to be typed into a shell.
    text, command, rest = message.partition("assay ")
    return re.sub(r"--([a-z]+(?:-[a-z]+)*)", name_keyword, text) + command + rest


def _by_keyword(mistake: Mistake) -> Mistake:
    """A mistake in what the call says, under the name of its keyword; one in a file stays where it is."""
    mistake = replace(mistake, problem=_name_keywords(mistake.problem), hint=_name_keywords(mistake.hint))
    if mistake.file not in (REQUEST, CALL):
        return mistake
    for key, keyword in _KEYWORDS.items():
        if mistake.key == key or mistake.key.startswith(f"{key}."):
            return replace(mistake, file=CALL, key=keyword + mistake.key[len(key) :])
    return replace(mistake, file=CALL)


def run_outside_event_loop(act: Callable[[], T]) -> T:
    """Act at once or, where an event loop is running as in a notebook, in a thread: async agents need a loop of their own."""
    # Not within the `except` below: what `act` raises must not carry this RuntimeError as its context.
    is_loop_running = True
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        is_loop_running = False
    if not is_loop_running:
        return act()
    # Only the main thread handles signals, so it does so here while the run continues in the other one. Context variables are
    # copied, as a library may have set its tracing in them.
    with interruptible(), ThreadPoolExecutor(1, thread_name_prefix="assay-run") as pool:
        acting = pool.submit(contextvars.copy_context().run, act)
        # The kernel may deliver a signal to any thread, above all on a busy machine. Python then notes it, but does not wake
        # the main thread: without a timeout, a Ctrl-C would be handled when the run is over.
        while not acting.done():
            wait([acting], timeout=_SIGNAL_SECONDS)
        return acting.result()

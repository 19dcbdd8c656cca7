"""Resolves the target and the data set of a load or stress test.

`assay load` and `assay stress` take a URL or the name of an agent. Names are looked up in more places than for `assay run`, as no suite
is named on the command line: agents that only a suite of the project defines are found as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from assay.errors import LookupFailed, PlanError, did_you_mean
from assay.model import AgentUse, Benchmark, Case
from assay.model.conversation import UserSession
from assay.model.settings import RECORDED
from assay.plan.suite import function_agent
from assay.plan.suite_agents import DOCUMENTS, SuiteAgents, format_path, suite_files
from assay.plan.target import Registry, known_agents, load_files, load_project_files, load_suite
from assay.spec.datasets import read_sessions
from assay.spec.settings import Settings

_URLS = ("http://", "https://")


@dataclass(frozen=True, slots=True)
class Dataset:
    """What is asked in turn and, of a suite, the cases that answers are scored by."""

    prompts: Sequence[object]
    scored: tuple[tuple[Benchmark, Case], ...] = ()
    sessions: tuple[UserSession, ...] = ()
    """For a file of prompts: what each row says, in one turn or several, of which `prompts` are the first."""


def read_dataset(name: str, settings: Settings) -> Dataset:
    """The cases of a suite (a file, or its name), or the prompts of a .jsonl, .csv or text file."""
    path = Path(name)
    if path.suffix not in DOCUMENTS and (path.suffix or path.is_file()):
        sessions = read_sessions(path)
        return Dataset([session.turns[0].prompt for session in sessions], sessions=sessions)
    suite = load_suite(name, settings)
    pairs = tuple(
        (benchmark, case) for benchmark in suite.benchmarks for case in benchmark.cases if not case.turns
    )
    if not pairs:
        raise PlanError(f"'{name}' has no single-turn case to send.")
    return Dataset([case.input for _, case in pairs], pairs)


@dataclass(frozen=True, slots=True)
class FoundAgent:
    """An agent, and the Python files that define what it needs."""

    use: AgentUse
    files: tuple[str, ...] = ()


def find_agent(
    target: str, settings: Settings, registered: Mapping[str, AgentUse] | None = None
) -> FoundAgent | None:
    """The agent that a target names; None for a URL.

    Looked for among registered agents, those of the project's files, functions of loaded files, and agents that suites
    define: the suites of assay.toml and those in the current folder.
    """
    if target.startswith(_URLS):
        return None
    agent = _find_defined_agent(target, settings, registered)
    if agent.use.type == RECORDED:
        raise PlanError(
            f"Agent '{agent.use.name}' replays recorded answers: it cannot be load-tested, only run on a suite."
        )
    return agent


def _find_defined_agent(
    target: str, settings: Settings, registered: Mapping[str, AgentUse] | None
) -> FoundAgent:
    """An agent by name, from the nearest to the farthest: defined in the project, registered, a function of a loaded file,
    or defined in a suite. LookupFailed names all that are known."""
    files = tuple(load_project_files(settings))
    known = known_agents(settings, Registry(lambda: registered or {}))
    if target in known:
        return FoundAgent(known[target], files)
    if (function := function_agent(target)) is not None:
        return FoundAgent(function, files)
    suites = SuiteAgents.read(suite_files(settings))
    if target in suites.found:
        agent = suites.find(target)
        return FoundAgent(agent.use, tuple(dict.fromkeys((*files, *load_files(agent.folder, agent.load)))))
    raise LookupFailed(_not_found(target, settings, {*known, *suites.found}, suites))


def _not_found(target: str, settings: Settings, known: set[str], suites: SuiteAgents) -> str:
    """The message for an unknown name: the nearest known one, and every file that was searched."""
    searched = [format_path(file) for file in (*settings.agent_files(), *suites.searched)]
    where = f"Searched: {', '.join(['registered agents', *searched])}."
    if not searched:
        where += " Neither assay.toml nor this folder has an agents file or a suite."
    unread = (
        f" Could not be read: {', '.join(map(format_path, suites.unreadable))}." if suites.unreadable else ""
    )
    hint = did_you_mean(target, known) or (f"Known: {', '.join(sorted(known))}." if known else "")
    sentences = (f"'{target}' is neither a URL nor an agent.", hint, where + unread)
    return " ".join(sentence for sentence in sentences if sentence)

"""Whom a load or stress test asks, and what: an agent found by its name, and a data set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay.errors import LookupFailed, Mistake, PlanError, SpecError, did_you_mean
from assay.model import AgentUse, Benchmark, Case
from assay.plan.suite import function_agent
from assay.plan.target import Registry, checked_suite, known_agents, load_files, load_project_files
from assay.spec.agents import agents_in
from assay.spec.document import read_document
from assay.spec.loading import read_prompts
from assay.spec.settings import Settings

_DOCUMENTS = (".yaml", ".yml", ".json")
_URLS = ("http://", "https://")


@dataclass(frozen=True, slots=True)
class Dataset:
    """What is asked in turn and, of a suite, the cases that answers are scored by."""

    prompts: Sequence[object]
    scored: tuple[tuple[Benchmark, Case], ...] = ()


def read_dataset(name: str, settings: Settings) -> Dataset:
    """The cases of a suite (a file, or its name), or the prompts of a .jsonl, .csv or text file."""
    path = Path(name)
    if path.suffix not in _DOCUMENTS and (path.suffix or path.is_file()):
        return Dataset(read_prompts(path))
    suite = checked_suite(name, settings)
    pairs = tuple(
        (benchmark, case) for benchmark in suite.benchmarks for case in benchmark.cases if not case.turns
    )
    if not pairs:
        raise PlanError(f"'{name}' has no case that can be asked in one turn.")
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
    files = tuple(load_project_files(settings))
    known = known_agents(settings, Registry(registered or {}))
    if target in known:
        return FoundAgent(known[target], files)
    if (function := function_agent(target)) is not None:
        return FoundAgent(function, files)
    suites = _SuiteAgents.read(_suite_files(settings))
    if target in suites.found:
        found = suites.named(target)
        return FoundAgent(found.use, tuple(dict.fromkeys((*files, *load_files(found.folder, found.load)))))
    raise LookupFailed(_not_found(target, settings, {*known, *suites.found}, suites))


def _suite_files(settings: Settings) -> list[Path]:
    here = [file for file in sorted(Path.cwd().iterdir()) if file.suffix in _DOCUMENTS and file.is_file()]
    return list({file.resolve(): file for file in (*settings.suite_files(), *here)})


@dataclass(frozen=True, slots=True)
class _Defined:
    """An agent of a suite, and where it is defined."""

    use: AgentUse
    file: Path
    load: Any

    @property
    def folder(self) -> Path:
        return self.file.parent


@dataclass(slots=True)
class _SuiteAgents:
    """The agents that suites define. Mistakes elsewhere in a suite do not matter here."""

    found: dict[str, list[_Defined]] = field(default_factory=dict)
    searched: list[Path] = field(default_factory=list)
    unreadable: list[Path] = field(default_factory=list)

    @classmethod
    def read(cls, files: Sequence[Path]) -> _SuiteAgents:
        made = cls()
        for file in files:
            try:
                for defined in made._agents(file):
                    made.found.setdefault(defined.use.name, []).append(defined)
            except SpecError:
                made.unreadable.append(file)
        return made

    def _agents(self, file: Path) -> Iterator[_Defined]:
        document = read_document(file)
        value = document.value
        if not isinstance(value, dict) or not {"benchmarks", "suite", "suite_id"} & value.keys():
            return
        self.searched.append(file)
        items = value.get("agents")
        mistakes: list[Mistake] = []
        uses = agents_in(
            document, ("agents",), items if isinstance(items, list) else (), file.parent, mistakes
        )
        for use in uses.values():
            yield _Defined(use, file, value.get("load"))

    def named(self, name: str) -> _Defined:
        first, *others = self.found[name]
        for other in others:
            if (other.use.type, other.use.options) != (first.use.type, first.use.options):
                raise PlanError(
                    f"Agent '{name}' is defined differently in '{_shown(first.file)}' and in '{_shown(other.file)}'. "
                    "Rename one of them, or put it into a file of agents: assay agent add FILE"
                )
        return first


def _not_found(target: str, settings: Settings, known: set[str], suites: _SuiteAgents) -> str:
    searched = [_shown(file) for file in (*settings.agent_files(), *suites.searched)]
    where = f"Searched: {', '.join(['registered agents', *searched])}."
    if not searched:
        where += " There is no file of agents and no suite in assay.toml or in this folder."
    unread = f" Could not be read: {', '.join(map(_shown, suites.unreadable))}." if suites.unreadable else ""
    hint = did_you_mean(target, known) or (f"Known: {', '.join(sorted(known))}." if known else "")
    told = (f"'{target}' is neither a URL nor an agent.", hint, where + unread)
    return " ".join(part for part in told if part)


def _shown(file: Path) -> str:
    return str(file.relative_to(Path.cwd())) if file.is_relative_to(Path.cwd()) else str(file)

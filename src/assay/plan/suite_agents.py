"""The agents that the suites of a project define.

`assay run EXPERIMENT --agent NAME`, `assay load NAME` and `assay stress NAME` find an agent that is only defined inside a suite: in the
suites of assay.toml and in the YAML and JSON files of the current folder. Two suites may define the same agent alike, but
not differently.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay.errors import Mistake, PlanError, SpecError
from assay.model import AgentUse
from assay.spec.agents import agents_in
from assay.spec.document import read_document
from assay.spec.settings import Settings

DOCUMENTS = (".yaml", ".yml", ".json")


def suite_files(settings: Settings) -> list[Path]:
    """Files that may be suites, each once: those that the settings name, and those in the current folder."""
    here = [file for file in sorted(Path.cwd().iterdir()) if file.suffix in DOCUMENTS and file.is_file()]
    return list({file.resolve(): file for file in (*settings.suite_files(), *here)})


@dataclass(frozen=True, slots=True)
class SuiteAgent:
    """An agent of a suite, and where it is defined."""

    use: AgentUse
    file: Path
    load: Any

    @property
    def folder(self) -> Path:
        return self.file.parent


@dataclass(slots=True)
class SuiteAgents:
    """The agents that suites define. Mistakes elsewhere in a suite do not matter here."""

    found: dict[str, list[SuiteAgent]] = field(default_factory=dict)
    searched: list[Path] = field(default_factory=list)
    unreadable: list[Path] = field(default_factory=list)

    @classmethod
    def read(cls, files: Sequence[Path]) -> SuiteAgents:
        """The agents that these suites define.

        A suite with mistakes does not keep the others from being found, and is named if nothing is.
        """
        agents = cls()
        for file in files:
            try:
                for defined in agents._agents(file):
                    agents.found.setdefault(defined.use.name, []).append(defined)
            except SpecError:
                agents.unreadable.append(file)
        return agents

    def _agents(self, file: Path) -> Iterator[SuiteAgent]:
        """The agents of one file, if it is a suite.

        Mistakes in single agents are left to the command that runs the suite.
        """
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
            yield SuiteAgent(use, file, value.get("load"))

    def find(self, name: str) -> SuiteAgent:
        """The agent of that name, which must be known; PlanError if suites define it differently."""
        first, *others = self.found[name]
        for other in others:
            if (other.use.type, other.use.options) != (first.use.type, first.use.options):
                raise PlanError(
                    f"Agent '{name}' is defined differently in '{format_path(first.file)}' and in '{format_path(other.file)}'. "
                    "Rename one of them, or put it into a file of agents: assay agent add FILE"
                )
        return first


def format_path(file: Path) -> str:
    return str(file.relative_to(Path.cwd())) if file.is_relative_to(Path.cwd()) else str(file)

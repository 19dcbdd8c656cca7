"""What the operator of a server has registered: the agents and suites of `assay.toml` and of the database.

Only these can be run over the network. Nothing of them is imported to list them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from assay.errors import LookupFailed, format_unknown_name
from assay.model import AgentUse, Suite
from assay.plan.target import Registry, known_agents
from assay.plugin import lookup
from assay.spec.document import read_document
from assay.spec.settings import Settings
from assay.store.store import Store


@dataclass(frozen=True, slots=True)
class RegisteredSuite:
    """A suite that can be run by its name."""

    name: str
    version: str
    category: str
    file: Path | None = None
    """None for a suite that is in the database."""
    agents: tuple[str, ...] = ()
    """Agents that its file defines; they can be run on it."""
    named: tuple[str, ...] = ()
    """Agents that its file names or defines: those that its schedule runs."""
    schedule: str | None = None

    @property
    def target(self) -> str:
        """What `pipeline.planning` takes for it: a file, so that no other thing of that name is meant, or a name."""
        return self.name if self.file is None else str(self.file)

    def read(self, store: Store) -> Suite:
        """The suite as its file or the database has it, without importing what it loads."""
        if self.file is None:
            return store.suite(self.name)
        from assay.spec.suite import suite_of

        return suite_of(read_document(self.file), self.file.resolve().parent).suite


def find_registered_agents(settings: Settings, store: Store) -> dict[str, AgentUse]:
    return known_agents(settings, Registry(store.agents))


def find_registered_suites(settings: Settings, store: Store) -> dict[str, RegisteredSuite]:
    """Return the registered suites by name.

    Files of the project come before the database, as everywhere.
    """
    # A name that the planner would take for a file or an experiment cannot stand for a suite in the database.
    schedules = store.read_registered_schedules()
    found = {
        suite.name: RegisteredSuite(
            suite.name, suite.version, suite.category, schedule=schedules.get(suite.name)
        )
        for suite in store.suites()
        if not Path(suite.name).suffix
        and ":" not in suite.name
        and not lookup.is_known("experiments", suite.name)
    }
    for file in settings.suite_files():
        written = file.stat()
        suite = _read_file(file, written.st_mtime_ns, written.st_size)
        if suite is not None:
            found[suite.name] = suite
    return found


@lru_cache(maxsize=1000)
def _read_file(file: Path, modified: int, size: int) -> RegisteredSuite | None:
    """Read a suite from a file; None for a file of something else.

    A file is read again only after it has changed: a server asks for its suites all the time.
    """
    value = read_document(file).value
    return _read_suite(file, value) if isinstance(value, dict) and "benchmarks" in value else None


def _read_suite(file: Path, value: Mapping[str, Any]) -> RegisteredSuite:
    name = str(value.get("suite") or value.get("suite_id") or file.stem)
    defined = value.get("agents")
    listed = defined if isinstance(defined, list) else []
    inline = [str(entry["name"]) for entry in listed if isinstance(entry, dict) and "name" in entry]
    named = [
        entry if isinstance(entry, str) else str(entry.get("name", ""))
        for entry in listed
        if isinstance(entry, str | dict)
    ]
    schedule = value.get("schedule")
    return RegisteredSuite(
        name,
        str(value.get("version", "")),
        str(value.get("category", "")),
        file.absolute(),
        tuple(inline),
        tuple(part for part in named if part),
        schedule if isinstance(schedule, str) else None,
    )


def find_registered(settings: Settings, store: Store, agent: str, suite: str) -> RegisteredSuite:
    """The suite, if both names are registered; LookupFailed otherwise."""
    suites = find_registered_suites(settings, store)
    if suite not in suites:
        raise LookupFailed(format_unknown_name(suite, "registered suites", suites))
    found = suites[suite]
    known = {*find_registered_agents(settings, store), *found.agents}
    if agent not in known:
        raise LookupFailed(format_unknown_name(agent, "registered agents", known))
    return found

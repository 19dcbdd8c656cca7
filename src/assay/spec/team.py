"""A team file: agents that work at the same time, and what they are asked.

As in a spec, a file holds one team, or several under `teams` with the other keys as their defaults. The models declare the keys, and
their docstrings and descriptions end up in the JSON schema and the reference pages. `team_of` reads a file with its cases and
collects every mistake; `plan.team` finds the agents and makes the trials.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, Field

from assay.errors import Mistake, SpecError, did_you_mean
from assay.model import Case
from assay.spec import cases
from assay.spec.document import Document, Place
from assay.spec.read import (
    KeyOrigin,
    find_unknown_keys,
    list_parts,
    merge_mappings,
    select_keys,
    validate_model,
)
from assay.spec.schema import (
    Count,
    LimitsSection,
    Names,
    Notes,
    Number,
    OutputDir,
    Section,
    Seed,
    Tags,
    no_items,
)


class TeamIterationsSection(Section):
    warmup: Count = Field(
        1, description="Warm-ups: how often each agent is asked its first case before measuring starts."
    )
    measured: Number = Field(10, description="Pairs of legs; fewer than six make wide intervals.")


class TeamSection(Section):
    """One team and how to run it."""

    team: str = Field(description="Any name.")
    agents: list[Any] = Field(
        min_length=1, description="Names or definitions; a name that is listed twice is two agents."
    )
    cases: str | list[Any] = Field(
        description="A file or the cases themselves; a case with `agent: NAME` is for that agent alone."
    )
    permits: Number | None = Field(None, description="How many agents may work at once. Default: all.")
    iterations: TeamIterationsSection = Field(
        default_factory=lambda: TeamIterationsSection.model_validate({}),
        description="Warm-ups and measured pairs of legs.",
    )
    params: dict[str, Any] = Field(
        default_factory=dict, description="Options of all agents or, with the prefix `NAME.`, of one."
    )
    sweep: dict[str, list[Any]] = Field(
        default_factory=dict, description="Options with the values to try: each point is a team."
    )
    strategy: Literal["cartesian", "zip"] = Field(
        "cartesian", description="How the axes of the sweep are combined into points."
    )
    limits: LimitsSection = Field(
        default_factory=lambda: LimitsSection.model_validate({}),
        description="Upper limits of one leg.",
    )


class TeamRunSection(Section):
    """What holds for the whole run."""

    name: str | None = Field(None, description="Name of the run. Default: the teams.")
    load: Names = Field(default_factory=no_items, description="Python files that define agents of your own.")
    seed: Seed | None = Field(None, description="Seed for the order of legs and agents.")
    output_dir: OutputDir
    tags: Tags
    notes: Notes


class OwnTeam(TeamSection):
    """One of several teams; the keys of the file are its defaults."""

    team: str = Field("", description="Any name.")
    agents: list[Any] = Field(default_factory=no_items, description="Names or definitions of agents.")
    cases: str | list[Any] = Field("", description="A file or the cases themselves.")


class TeamFile(TeamRunSection, OwnTeam):
    """A team file: one team, or several under `teams` with the other keys as their defaults."""

    model_config = ConfigDict(json_schema_extra={"anyOf": [{"required": ["team"]}, {"required": ["teams"]}]})

    teams: list[OwnTeam] = Field(
        default_factory=no_items,
        min_length=1,
        description="A list, each entry with the keys of a single one.",
    )


RUN_KEYS = frozenset(TeamRunSection.model_fields)
TEAM_KEYS = frozenset(TeamSection.model_fields)


@dataclass(frozen=True, slots=True)
class ReadTeam:
    """One team of a file, where its keys stand, and its cases."""

    section: TeamSection
    origin: KeyOrigin
    cases: tuple[Case, ...]

    def agents_place(self) -> Place:
        """Find where the agents of the team are written: in its own part of the file, or among the common keys."""
        own = (*self.origin.prefix, "agents")
        return own if own in self.origin.document.lines else ("agents",)


@dataclass(frozen=True, slots=True)
class TeamSpec:
    """A team file with the mistakes found so far: planning adds its own, so that all are reported at once."""

    run: TeamRunSection
    teams: tuple[ReadTeam, ...]
    source: Mapping[str, Any]
    folder: Path
    document: Document
    mistakes: tuple[Mistake, ...]


def is_team(value: Any) -> bool:
    return isinstance(value, Mapping) and ("team" in value or "teams" in value)


def team_of(document: Document, folder: Path) -> TeamSpec:
    """The teams that a document holds, with every mistake in it and in its files of cases; paths count from `folder`."""
    if not is_team(document.value):
        problem = "is not a team file. A team file starts with: team: NAME"
        raise SpecError([*document.mistakes, document.mistake((), problem)])
    mistakes = list(document.mistakes)
    value = {key: item for key, item in document.value.items() if item is not None}
    origin = KeyOrigin(document)
    mistakes += find_unknown_keys(value, sorted(RUN_KEYS | TEAM_KEYS | {"teams"}), origin)
    run = validate_model(TeamRunSection, select_keys(value, RUN_KEYS), origin, mistakes)
    teams = []
    if "teams" in value:
        parts = list_parts(value, "team", sorted(TEAM_KEYS), origin, mistakes)
    else:
        parts = [({}, origin)]
    for own, origin in parts:
        keys = merge_mappings(select_keys(value, TEAM_KEYS), select_keys(own, TEAM_KEYS))
        section = validate_model(TeamSection, keys, origin, mistakes)
        if section is not None:
            teams.append(ReadTeam(section, origin, _cases(section, origin, folder, mistakes)))
    run = run or TeamRunSection.model_validate({})
    return TeamSpec(run, tuple(teams), value, folder, document, tuple(mistakes))


def _cases(
    section: TeamSection, origin: KeyOrigin, folder: Path, mistakes: list[Mistake]
) -> tuple[Case, ...]:
    """The cases of a team. A case may name the agents that it is for under `agent`; each must be in the team."""
    before = len(mistakes)
    if isinstance(section.cases, str):
        root = (folder / section.cases).parent
        rows = list(cases.rows_in_file(folder / section.cases, mistakes))
    else:
        root, rows = folder, cases.rows_written(section.cases, origin.document, (*origin.prefix, "cases"))
    names = [str(item.get("name", "")) if isinstance(item, Mapping) else str(item) for item in section.agents]
    unknown = [(row, name) for row in rows for name in for_agents(row.value) if name not in names]
    for row, name in unknown:
        problem = f"There is no agent '{name}' in this team. {did_you_mean(name, names)}".strip()
        mistakes.append(row.mistake(problem, "agent"))
    read = cases.cases_of(rows, None, root, mistakes)
    if not read and before == len(mistakes):
        mistakes.append(origin.mistake(("cases",), "has no cases."))
    return tuple(read)


def for_agents(value: Any) -> list[str]:
    """The agents that a case is for; none named is all of them."""
    named = value.get("agent") if isinstance(value, Mapping) else None
    return [str(name) for name in named] if isinstance(named, list) else [] if named is None else [str(named)]

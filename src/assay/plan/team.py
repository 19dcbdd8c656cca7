"""A team file becomes a `Plan`: two trials for each point of a sweep, one for each leg.

In the sequential leg the agents of a team work one after the other, in the concurrent leg all at once; the runner takes the legs in turn,
so that they can be compared pair by pair. The agents and their cases are params of the trial, as plain data: the team experiment
makes the agents in its own process.
"""

from __future__ import annotations

import math
import secrets
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import reduce
from typing import Any

from assay.errors import Mistake, PlanError, SpecError, did_you_mean
from assay.model import AgentUse, AgentVersion, Case, Iterations, Plan, ResourceRequest, Trial
from assay.model.settings import RECORDED
from assay.model.team import Leg
from assay.plan.suite import Agents, Written, check_agent_options, overlay_options
from assay.plan.sweep import Point, points
from assay.spec.agents import agents_in
from assay.spec.team import ReadTeam, TeamSpec, for_agents
from assay.units import format_count

EXPERIMENT = "team"
MAX_POINTS = 10_000


def expand_teams(spec: TeamSpec, known: Mapping[str, AgentUse], changes: Mapping[str, Any]) -> Plan:
    """All trials; SpecError has every mistake of the file and of the agents, options and cases in it.

    `known` are the agents that can be named; `changes` are the options of the command line, which override the file.
    """
    mistakes = list(spec.mistakes)
    trials: list[Trial] = []
    for read in spec.teams:
        trials += _trials(read, known, changes, len(trials), spec, mistakes)
    mistakes += _check_team_names(spec)
    if mistakes:
        raise SpecError(sorted(dict.fromkeys(mistakes), key=lambda mistake: mistake.line or 0))
    seed = changes.get("seed", spec.run.seed)
    return Plan(
        name=spec.run.name or "+".join(dict.fromkeys(trial.benchmark for trial in trials)),
        trials=tuple(trials),
        seed=secrets.randbelow(2**32) if seed is None else seed,
        output_dir=changes.get("output_dir")
        or (str(spec.folder / spec.run.output_dir) if spec.run.output_dir else None),
        tags=(*spec.run.tags, *changes.get("tags", ())),
        notes=spec.run.notes,
        source=dict(spec.source),
    )


def _check_team_names(spec: TeamSpec) -> list[Mistake]:
    """Names tell the teams of a run apart."""
    counts = Counter(read.section.team for read in spec.teams)
    return [
        read.origin.mistake(("team",), f"'{read.section.team}' is already the name of another team.")
        for number, read in enumerate(spec.teams)
        if counts[read.section.team] > 1
        and any(before.section.team == read.section.team for before in spec.teams[:number])
    ]


def _trials(
    read: ReadTeam,
    known: Mapping[str, AgentUse],
    changes: Mapping[str, Any],
    first: int,
    spec: TeamSpec,
    mistakes: list[Mistake],
) -> list[Trial]:
    """The trials of one team, numbered from `first` on; none where anything but the options of an agent is wrong."""
    before = len(mistakes)
    members = _members(read, known, spec, mistakes)
    params = {**read.section.params, **changes.get("params", {})}
    sweep = {k: v for k, v in read.section.sweep.items() if k not in changes.get("params", {})}
    sweep |= changes.get("sweep", {})
    names = [use.name for use in members]
    mistakes += _option_mistakes(read, names, params, sweep)
    mistakes += _other_mistakes(read, names, sweep)
    if len(mistakes) > before:
        return []
    trials: list[Trial] = []
    # A value that is written twice, or one that --set has fixed, makes no second point.
    distinct = {repr(sorted(point.items())): point for point in points(sweep, read.section.strategy, None, 0)}
    for point in distinct.values():
        uses = [_with_options(use, {**params, **point}) for use in members]
        problems = dict.fromkeys(problem for use in uses for problem in check_agent_options(use))
        mistakes += [read.origin.mistake(("agents",), problem) for problem in problems]
        index = first + len(trials)
        trials += [_trial(read, leg, uses, point, changes, index + n) for n, leg in enumerate(Leg)]
    return trials


def _members(
    read: ReadTeam, known: Mapping[str, AgentUse], spec: TeamSpec, mistakes: list[Mistake]
) -> list[AgentUse]:
    """The agents in the order of the file; those that are there several times get numbers."""
    document, place = read.origin.document, read.agents_place()
    inline = agents_in(document, place, read.section.agents, spec.folder, mistakes)
    agents = Agents({**known, **inline})
    uses: list[AgentUse] = []
    for index, item in enumerate(read.section.agents):
        name = item.get("name", "") if isinstance(item, Mapping) else item
        if not isinstance(name, str) or not (isinstance(item, str) or name in inline):
            continue
        if (use := agents.find(name, Written(document, (*place, index)))) is not None:
            uses.append(use)
    mistakes += agents.mistakes
    mistakes += [
        read.origin.mistake(
            ("agents",),
            f"Agent '{use.name}' replays recorded answers, so it does no work that a team could time.",
        )
        for use in uses
        if use.type == RECORDED
    ]
    counts, seen = Counter(use.name for use in uses), Counter[str]()
    numbered = []
    for use in uses:
        seen[use.name] += 1
        numbered.append(replace(use, name=f"{use.name}#{seen[use.name]}") if counts[use.name] > 1 else use)
    return numbered


def _option_mistakes(
    read: ReadTeam, names: list[str], params: Mapping[str, Any], sweep: Mapping[str, Any]
) -> list[Mistake]:
    """An option with a dot names its agent; a name that is mistyped would otherwise reach the model as an option."""
    known = {*names, *(name.partition("#")[0] for name in names), "agent"}
    mistakes = []
    for kind, options in (("params", params), ("sweep", sweep)):
        for key, value in options.items():
            prefix = key.partition(".")[0] if "." in key else ""
            if prefix and not any(key.startswith(f"{name}.") for name in known):
                problem = f"There is no agent '{prefix}' in this team. {did_you_mean(prefix, known)}".strip()
                mistakes.append(read.origin.mistake((kind, key), problem))
            if kind == "sweep" and not value:
                mistakes.append(read.origin.mistake((kind, key), "has no values."))
    return mistakes


def _other_mistakes(read: ReadTeam, names: list[str], sweep: Mapping[str, list[Any]]) -> list[Mistake]:
    """Too few agents, too many permits, agents without a case, and sweeps that cannot be run."""
    section, mistake = read.section, read.origin.mistake
    mistakes = []
    if len(names) == len(section.agents) == 1:
        hint = "To measure one: assay run SUITE --agent A"
        mistakes.append(mistake(("agents",), "A team needs at least two agents.", hint))
    if section.permits is not None and section.permits > len(section.agents):
        number = format_count(len(section.agents), "agent")
        mistakes.append(mistake(("permits",), f"is {section.permits}, but the team has only {number}."))
    idle = [name for name in names if not _select_cases(name, read.cases)]
    if read.cases and idle:
        mistakes.append(mistake(("cases",), f"There is no case for {', '.join(map(repr, idle))}."))
    lengths = {key: len(values) for key, values in sweep.items()}
    if section.strategy == "zip" and len(set(lengths.values())) > 1:
        listed = ", ".join(f"{key} {length}" for key, length in lengths.items())
        mistakes.append(mistake(("sweep",), f"'strategy: zip' needs axes of equal length ({listed})."))
    total = math.prod(max(1, length) for length in lengths.values())
    if section.strategy == "cartesian" and total > MAX_POINTS:
        problem = f"makes {total:,} points; at most {MAX_POINTS:,} can be run."
        mistakes.append(mistake(("sweep",), problem))
    return mistakes


def _select_cases(name: str, cases: Iterable[Case]) -> list[Case]:
    """The cases for an agent, without the key that says so. A case without that key is for every agent."""
    plain = name.partition("#")[0]
    return [
        replace(case, metadata={key: value for key, value in case.metadata.items() if key != "agent"})
        for case in cases
        if not (chosen := for_agents(case.metadata)) or name in chosen or plain in chosen
    ]


def _with_options(use: AgentUse, options: Mapping[str, Any]) -> AgentUse:
    """The agent with the options of all agents and, over them, its own: those of its name, then of its name and number."""
    own = (use.name.partition("#")[0], use.name)
    general = {
        k.removeprefix("agent."): v for k, v in options.items() if "." not in k or k.startswith("agent.")
    }
    special = {
        key.removeprefix(f"{prefix}."): value
        for prefix in own
        for key, value in options.items()
        if key.startswith(f"{prefix}.")
    }
    return overlay_options(use, {**general, **special})


def _trial(
    read: ReadTeam, leg: Leg, uses: list[AgentUse], point: Point, changes: Mapping[str, Any], index: int
) -> Trial:
    """Plan one leg of a team as a trial.

    Each repetition is a process of its own, so that pairs of legs are independent of each other. The
    definitions of the agents and their cases are in the params, since a job is plain data and a worker
    reads nothing else.
    """
    section = read.section
    axes = {"leg": leg.value, **point}
    label = ", ".join(f"{name}={value}" for name, value in axes.items())
    iterations = changes.get("iterations", {})
    members = [
        {
            **{
                name: value
                for name in use.__slots__
                if ((value := getattr(use, name)) or name == "name") and name != "resources"
            },
            "cases": [_plain_case(case) for case in _select_cases(use.name, read.cases)],
        }
        for use in uses
    ]
    return Trial(
        index=index,
        name=f"{section.team}[{label}]",
        agent=AgentVersion(" + ".join(use.name for use in uses)),
        benchmark=section.team,
        experiment=EXPERIMENT,
        params={
            "leg": leg.value,
            "permits": min(changes.get("permits") or section.permits or len(uses), len(uses)),
            "agents": members,
        },
        axes=axes,
        iterations=Iterations(warmup=iterations.get("warmup", section.iterations.warmup), measured=1),
        processes=iterations.get("measured", section.iterations.measured),
        limits=section.limits.to_noun(),
        resources=_add_resources([use.resources for use in uses]),
    )


def _add_resources(requests: Sequence[ResourceRequest | None]) -> ResourceRequest | None:
    """What all agents of a team need together, as they work at the same time; None where no agent says."""
    if not any(requests):
        return None
    return reduce(ResourceRequest.together_with, [request or ResourceRequest() for request in requests])


def _plain_case(case: Case) -> dict[str, Any]:
    """A case as plain data, without empty fields: people read the params of a trial."""
    return {name: value for name, value in asdict(case).items() if value or name in ("id", "input")}


def check_options(given: Mapping[str, object]) -> None:
    """PlanError for options that do not apply to a team."""
    if misplaced := [option for option, value in given.items() if value]:
        verb = "does" if len(misplaced) == 1 else "do"
        raise PlanError(f"{', '.join(misplaced)} {verb} not apply to a team.")

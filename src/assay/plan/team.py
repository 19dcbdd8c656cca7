"""A team file becomes a Plan: two trials a point, one for each leg, which the runner takes in turn."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any

from assay.errors import Mistake, PlanError, SpecError, did_you_mean
from assay.model import AgentUse, AgentVersion, Case, Iterations, Limits, Plan, Trial
from assay.model.plan import RECORDED
from assay.model.team import Leg
from assay.plan.suite import Agents, Written, given_problems, laid_over
from assay.plan.sweep import Point, points
from assay.spec.agents import agents_in
from assay.spec.team import ReadTeam, TeamSpec, for_agents

EXPERIMENT = "team"
MAX_POINTS = 10_000


def expand_teams(spec: TeamSpec, known: Mapping[str, AgentUse], changes: Mapping[str, Any]) -> Plan:
    """All trials; SpecError tells every mistake of the file and of the agents, options and cases in it."""
    mistakes = list(spec.mistakes)
    trials: list[Trial] = []
    for read in spec.teams:
        trials += _trials(read, known, changes, len(trials), spec, mistakes)
    mistakes += _called_alike(spec)
    if mistakes:
        raise SpecError(sorted(dict.fromkeys(mistakes), key=lambda mistake: mistake.line or 0))
    given = changes.get("seed", spec.run.seed)
    return Plan(
        name=spec.run.name or _joined(trial.benchmark for trial in trials),
        trials=tuple(trials),
        seed=secrets.randbelow(2**32) if given is None else given,
        output_dir=changes.get("output_dir")
        or (str(spec.folder / spec.run.output_dir) if spec.run.output_dir else None),
        tags=(*spec.run.tags, *changes.get("tags", ())),
        notes=spec.run.notes,
        source=dict(spec.source),
    )


def _joined(names: Iterable[str]) -> str:
    return "+".join(dict.fromkeys(names))


def _called_alike(spec: TeamSpec) -> list[Mistake]:
    """Names tell the teams of a run apart."""
    counts = Counter(read.section.team for read in spec.teams)
    return [
        read.origin.mistake(("team",), f"'{read.section.team}' is the name of another team already.")
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
    found: list[Trial] = []
    for point in _distinct(points(sweep, read.section.strategy, None, 0)):
        uses = [_with_options(use, {**params, **point}, names) for use in members]
        problems = dict.fromkeys(problem for use in uses for problem in given_problems(use))
        mistakes += [read.origin.mistake(("agents",), problem) for problem in problems]
        found += [
            _trial(read, leg, uses, point, changes, first + len(found) + n) for n, leg in enumerate(Leg)
        ]
    return found


def _distinct(found: Iterable[Point]) -> list[Point]:
    """A value that is written twice, or one that --set has fixed, makes no second point."""
    return list({repr(sorted(point.items())): point for point in found}.values())


def _members(
    read: ReadTeam, known: Mapping[str, AgentUse], spec: TeamSpec, mistakes: list[Mistake]
) -> list[AgentUse]:
    """The agents in the order of the file; those that are there several times get numbers."""
    document, place = read.origin.document, read.agents_place()
    inline = agents_in(document, place, read.section.agents, spec.folder, mistakes)
    agents = Agents({**known, **inline})
    found = []
    for index, item in enumerate(read.section.agents):
        name = item.get("name", "") if isinstance(item, Mapping) else item
        if isinstance(name, str) and (isinstance(item, str) or name in inline):
            found.append(agents.named(name, Written(document, (*place, index))))
    mistakes += agents.mistakes
    uses = [use for use in found if use is not None]
    mistakes += [
        read.origin.mistake(
            ("agents",),
            f"Agent '{use.name}' gives recorded answers: there is no work of it to time in a team.",
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
    found = []
    for kind, options in (("params", params), ("sweep", sweep)):
        for key, value in options.items():
            prefix = key.partition(".")[0] if "." in key else ""
            if prefix and not any(key.startswith(f"{name}.") for name in known):
                problem = f"There is no agent '{prefix}' in this team. {did_you_mean(prefix, known)}".strip()
                found.append(read.origin.mistake((kind, key), problem))
            if kind == "sweep" and not value:
                found.append(read.origin.mistake((kind, key), "has no values."))
    return found


def _other_mistakes(read: ReadTeam, names: list[str], sweep: Mapping[str, list[Any]]) -> list[Mistake]:
    section, tell = read.section, read.origin.mistake
    found = []
    if len(names) == len(section.agents) == 1:
        found.append(
            tell(("agents",), "A team is two agents or more.", "To measure one: assay run SUITE --agent A")
        )
    if section.permits is not None and section.permits > len(section.agents):
        problem = f"{section.permits} may work at once, but there are {len(section.agents)} agents."
        found.append(tell(("permits",), problem))
    idle = [name for name in names if not _asked(name, read.cases)]
    if read.cases and idle:
        found.append(tell(("cases",), f"No case is for {', '.join(map(repr, idle))}."))
    lengths = {key: len(values) for key, values in sweep.items()}
    if section.strategy == "zip" and len(set(lengths.values())) > 1:
        told = ", ".join(f"{key} {length}" for key, length in lengths.items())
        found.append(tell(("sweep",), f"'strategy: zip' needs axes of equal length ({told})."))
    total = 1
    for length in lengths.values():
        total *= max(1, length)
    if section.strategy == "cartesian" and total > MAX_POINTS:
        found.append(tell(("sweep",), f"makes {total:,} points; at most {MAX_POINTS:,} can be run."))
    return found


def _asked(name: str, cases: Iterable[Case]) -> list[Case]:
    """The cases for an agent, without the word that says so."""
    plain = name.partition("#")[0]
    return [
        replace(case, metadata={key: value for key, value in case.metadata.items() if key != "agent"})
        for case in cases
        if not (chosen := for_agents(case.metadata)) or name in chosen or plain in chosen
    ]


def _with_options(use: AgentUse, options: Mapping[str, Any], names: list[str]) -> AgentUse:
    """Options of all agents first, then those of this one."""
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
    return laid_over(use, {**general, **special})


def _trial(
    read: ReadTeam, leg: Leg, uses: list[AgentUse], point: Point, changes: Mapping[str, Any], index: int
) -> Trial:
    """Each pair of legs has processes of its own, so that pairs are independent of each other."""
    section = read.section
    axes = {"leg": leg.value, **point}
    label = ", ".join(f"{name}={value}" for name, value in axes.items())
    given = changes.get("iterations", {})
    members = [
        {**_plain(use), "cases": [_plain_case(case) for case in _asked(use.name, read.cases)]} for use in uses
    ]
    limits = section.limits
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
        iterations=Iterations(warmup=given.get("warmup", section.iterations.warmup), measured=1),
        processes=given.get("measured", section.iterations.measured),
        limits=Limits(
            limits.seconds,
            int(limits.memory_mb * 2**20) if limits.memory_mb is not None else None,
            limits.tokens,
            limits.usd,
        ),
    )


def team_agents(trials: Iterable[Trial]) -> list[AgentUse]:
    """The agents of all teams among the trials, as they will be made."""
    definitions: list[Mapping[str, Any]] = [
        definition
        for trial in trials
        if trial.experiment == EXPERIMENT
        for definition in trial.params.get("agents", ())  # type: ignore[attr-defined]
    ]
    return [AgentUse(**{k: v for k, v in one.items() if k != "cases"}) for one in definitions]


def _plain(use: AgentUse) -> dict[str, Any]:
    return {name: value for name in use.__slots__ if (value := getattr(use, name)) or name == "name"}


def _plain_case(case: Case) -> dict[str, Any]:
    """Only what it has: the params of a trial are read by people."""
    return {name: value for name, value in asdict(case).items() if value or name in ("id", "input")}


def check_options(given: Mapping[str, object]) -> None:
    """PlanError for what means nothing to a team."""
    if told := [option for option, value in given.items() if value]:
        raise PlanError(f"A team has no use for {', '.join(told)}.")

"""Texts, figures and documents of teams, shared by all formats.

Deltas are always concurrent − sequential, so a positive delta of a time means that working at the same time was slower.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from assay.model import Verdict
from assay.model.codec import to_plain
from assay.model.figure import Figure
from assay.model.page import Cell, Table
from assay.model.precision import TOLERANCE
from assay.model.team import Contention, Round, TeamFinding, Teammate
from assay.plugin import Column, build_table
from assay.plugin.figures import NOTHING, format_known, interval_text
from assay.units import count, percent, seconds


def figure_text(figure: Figure | None) -> str:
    """
    >>> figure_text(Figure(1.98, 1.95, 2.01, "")), figure_text(Figure(0.12, None, None, "s")), figure_text(None)
    ('1.98 [1.95, 2.01]', '120 ms', '–')
    """
    return NOTHING if figure is None else interval_text(figure.value, figure.low, figure.high, figure.unit)


def times_text(figure: Figure | None) -> str:
    """A ratio: `1.98 × [1.95, 2.01]`."""
    if figure is None:
        return NOTHING
    middle, bracket, ends = interval_text(figure.value, figure.low, figure.high, "").partition(" [")
    return f"{middle} ×{bracket}{ends}"


def share_text(figure: Figure | None) -> str:
    """A share: `99 % [97, 101]`."""
    if figure is None:
        return NOTHING
    low, high = (None if end is None else 100 * end for end in (figure.low, figure.high))
    return interval_text(100 * figure.value, low, high, "%")


def delta_text(figure: Figure | None) -> str:
    """A difference with its sign, which is concurrent − sequential: `+12 ms [+8, +15]`."""
    if figure is None:
        return NOTHING
    text = interval_text(figure.value, figure.low, figure.high, figure.unit)
    return f"+{text}" if figure.value > 0 else text


def heading(team: TeamFinding) -> str:
    at_once = "all at once" if team.at_once == len(team.agents) else f"{team.at_once} at once"
    return f"{count(len(team.agents))} agents, {at_once} · {count(len(team.rounds))} pairs of legs"


def verdict(team: TeamFinding) -> str:
    """What working at once gains, by the rules of every comparison."""
    found = team.comparison
    if found is None or found.ratio is None:
        return "There is no complete pair of legs to compare."
    share = percent(1 / found.ratio)
    match found.verdict:
        case Verdict.BETTER:
            return f"Working concurrently is faster: it takes {share} of the sequential time."
        case Verdict.WORSE:
            return f"Working concurrently is slower: it takes {share} of the sequential time."
        case Verdict.SAME:
            return f"Working concurrently takes as long as working sequentially, within {percent(found.tolerance)}."
    return f"It is undecided whether working concurrently is faster. {found.reason}".strip()


def best_text(teams: Sequence[TeamFinding]) -> str:
    """Which of several teams gains most, and how many are not apart from it; nothing for a single one."""
    known = [(team, team.speedup) for team in teams if team.speedup is not None]
    if len(known) < 2:
        return ""
    best, figure = max(known, key=lambda entry: entry[1].value)
    others = [speedup for team, speedup in known if team is not best]
    reach = [other for other in others if not _is_apart(figure, other)]
    if not reach:
        return f"'{best.label}' has the highest speedup; its interval overlaps none of the others ({len(others)})"
    return (
        f"'{best.label}' has the highest speedup, but {len(reach)} of the {len(others)} others may be as high"
    )


def _is_apart(best: Figure, other: Figure) -> bool:
    """Say whether the best figure is significantly higher than the other one.

    Their intervals must not overlap, and they must differ by more than the tolerance.
    """
    if best.low is None or other.high is None:
        return False
    return best.low > other.high and best.value > other.value * (1 + TOLERANCE)


def contention_text(contention: Contention | None) -> str:
    if contention is None:
        return NOTHING
    return f"{share_text(contention.rate)} of {count(contention.requests)} requests"


def contention_brief(contention: Contention | None) -> str:
    if contention is None:
        return ""
    if contention.verdict is Verdict.UNSURE and contention.rate.low:
        return "too few pairs to tell"
    if contention.verdict is Verdict.WORSE:
        return f"waits of {seconds(contention.delay_seconds or 0.0)}"
    return "none found" if contention.verdict is Verdict.SAME else "none established"


def contention_note(contention: Contention | None) -> str:
    if contention is None:
        return ""
    faster = round(contention.by_chance * contention.requests)
    counted = f"{count(contention.events)} slower than alone, {count(faster)} faster"
    return f"{contention_brief(contention)}; {counted}, by more than 3 % and 5 ms"


def skew_text(team: TeamFinding) -> str:
    """Describe the start skew; empty if a single permit makes the agents start one after another."""
    if not team.rounds or team.at_once == 1:
        return NOTHING
    most = max(team_round.skew_seconds for team_round in team.rounds)
    typical = team.figures.get("skew_seconds")
    if not most:
        return seconds(0.0)
    return f"{seconds(typical.value) if typical else NOTHING}, {seconds(most)} at the most"


class TeamRow(NamedTuple):
    """A figure of the team as a whole; `brief` is for narrow places."""

    name: str
    value: str
    brief: str
    note: str


def rows(team: TeamFinding) -> Iterator[TeamRow]:
    figures = team.figures
    sequential, concurrent = (_middle(figures.get(f"{leg}_seconds")) for leg in ("sequential", "concurrent"))
    walls = f"sequential {sequential} ÷ concurrent {concurrent}, both measured"
    yield TeamRow("speedup", times_text(team.speedup), f"{sequential} ÷ {concurrent}", walls)
    share = share_text(figures.get("efficiency"))
    yield TeamRow(
        "efficiency", share, f"÷ {team.at_once} at once", f"speedup ÷ {team.at_once} at work at once"
    )
    if "throughput_concurrent" in figures:
        before = f"{_middle(figures.get('throughput_sequential'))} sequential"
        note = f"all agents together; {times_text(figures.get('throughput_gain'))} of {before}"
        yield TeamRow("throughput", figure_text(figures["throughput_concurrent"]), before, note)
    worked = "time at work of all agents, concurrent ÷ sequential"
    yield TeamRow("slowdown", times_text(figures.get("slowdown")), "time at work", worked)
    brief, note = contention_brief(team.contention), contention_note(team.contention)
    yield TeamRow("contention", contention_text(team.contention), brief, note)
    skewed = "between the first and the last agent to begin a concurrent leg"
    alone = "one permit: one after another"
    brief, note = (alone, alone) if team.at_once == 1 else ("", skewed)
    yield TeamRow("start skew", skew_text(team), brief, note)
    balance = share_text(figures.get("balance_ratio"))
    yield TeamRow(
        "balance", balance, "mean ÷ longest", "mean ÷ longest duration: how alike they are in length"
    )
    seed = "concurrent durations added up ÷ wall: it cannot see contention"
    yield TeamRow("naive speedup", times_text(figures.get("seed_speedup")), "blind to contention", seed)


def _middle(figure: Figure | None) -> str:
    return NOTHING if figure is None else interval_text(figure.value, None, None, figure.unit)


def agent_table(agents: Sequence[Teammate]) -> Table:
    """A row for each agent. Pairs of figures are sequential → concurrent, and differences are concurrent − sequential."""
    return build_table(
        agents,
        Column("Agent", lambda agent: agent.name + (f" ({agent.model})" if agent.model else "")),
        Column("Slowdown", lambda agent: times_text(agent.figures.get("slowdown"))),
        Column("TTFT", lambda agent: _from_to(agent.figures, "ttft")),
        Column("Δ TTFT", lambda agent: delta_text(agent.figures.get("ttft_delta")), is_minor=True),
        Column("tok/s", lambda agent: _from_to(agent.figures, "tokens_per_second").replace(" tok/s", "")),
        Column(
            "Δ tok/s",
            lambda agent: delta_text(agent.figures.get("tokens_per_second_delta")).replace(" tok/s", ""),
            is_minor=True,
        ),
        Column("Contention", lambda agent: format_known(agent.contention, lambda c: percent(c.rate.value))),
        caption=Cell(
            "Sequential → concurrent; Δ is concurrent − sequential.", brief="Sequential → concurrent."
        ),
    )


def _from_to(figures: Any, name: str) -> str:
    before, after = figures.get(f"{name}_sequential"), figures.get(f"{name}_concurrent")
    return NOTHING if before is None or after is None else f"{_middle(before)} → {_middle(after)}"


def grades_text(team: TeamFinding) -> str:
    """Targets, compared with the true figures."""
    return " · ".join(f"{grade.figure} {grade.target}: {grade.verdict}" for grade in team.grades)


def typical_round(team: TeamFinding) -> Round | None:
    """The one whose speedup is the middle one."""
    ordered = sorted(team.rounds, key=lambda team_round: team_round.speedup)
    return ordered[len(ordered) // 2] if ordered else None


def team_document(team: TeamFinding) -> dict[str, Any]:
    """A team as plain data; deltas are concurrent − sequential."""
    return {
        "team": team.name,
        "label": team.label,
        "axes": dict(team.axes),
        "at_once": team.at_once,
        "pairs": len(team.rounds),
        "simulated": team.is_simulated,
        "verdict": verdict(team),
        "speedup_verdict": team.comparison.verdict if team.comparison else None,
        "tolerance": team.comparison.tolerance if team.comparison else None,
        "figures": {name: _plain(figure) for name, figure in team.figures.items()},
        "contention": _plain_contention(team.contention),
        "skew_seconds_max": max((team_round.skew_seconds for team_round in team.rounds), default=None),
        "delta_sign": "concurrent − sequential",
        "agents": [
            {
                "name": agent.name,
                "type": agent.type,
                "model": agent.model or None,
                "requests": agent.requests,
                "figures": {name: _plain(figure) for name, figure in agent.figures.items()},
                "contention": _plain_contention(agent.contention),
            }
            for agent in team.agents
        ],
        "grades": [to_plain(grade) for grade in team.grades],
        "rounds": [
            {
                "number": team_round.number,
                "sequential_seconds": team_round.sequential_seconds,
                "concurrent_seconds": team_round.concurrent_seconds,
                "speedup": team_round.speedup,
                "skew_seconds": team_round.skew_seconds,
            }
            for team_round in team.rounds
        ],
        "warnings": list(team.doubts),
    }


def _plain(figure: Figure) -> dict[str, Any]:
    ends = None if figure.low is None or figure.high is None else [figure.low, figure.high]
    return {
        "value": figure.value,
        "interval": ends,
        "unit": figure.unit,
        "pairs": figure.pairs,
        "method": figure.method,
    }


def _plain_contention(contention: Contention | None) -> dict[str, Any] | None:
    if contention is None:
        return None
    return {
        "events": contention.events,
        "requests": contention.requests,
        "rate": _plain(contention.rate),
        "limit_seconds": contention.limit_seconds,
        "expected_by_chance": contention.by_chance,
        "delay_seconds": contention.delay_seconds,
        "verdict": contention.verdict,
    }

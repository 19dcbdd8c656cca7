"""Teams: both legs of each point compared pair by pair."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from assay.model import Execution, Kind, Phase, Status, TrialReport
from assay.model.figure import Figure
from assay.model.team import Contention, Grade, Leg, Round, Stint, TeamFinding, Teammate
from assay.stats.effect import Effect
from assay.stats.paired_figures import FEWEST_RANKED, difference_of_pairs, level_of, ratio_of_pairs
from assay.stats.summary import percentile
from assay.stats.verdicts import effective_n, wilson

EXPERIMENT = "team"
LATE_SECONDS = 3.0
"""Seed 002's own mark of contention."""
SKEW_SHARE = 0.01
SKEW_SECONDS = 0.005
"""A start is called simultaneous when no agent began later than this, or than this share of the leg."""
TOKENS_APART = 0.05


def is_team(trial: TrialReport) -> bool:
    return trial.stored.trial.experiment == EXPERIMENT and "leg" in trial.stored.trial.axes


def team_findings(trials: Iterable[TrialReport]) -> tuple[TeamFinding, ...]:
    """One finding a point of each team, in the order of the plan."""
    points: dict[tuple[str, int], dict[str, TrialReport]] = {}
    seen: Counter[tuple[str, str]] = Counter()
    for trial in filter(is_team, trials):
        planned = trial.stored.trial
        others = {name: value for name, value in planned.axes.items() if name != "leg"}
        point, leg = f"{planned.benchmark} {others!r}", str(planned.axes["leg"])
        seen[point, leg] += 1
        points.setdefault((point, seen[point, leg]), {})[leg] = trial
    return tuple(_finding(legs) for legs in points.values() if len(legs) == len(Leg))


def marked(trial: TrialReport) -> TrialReport:
    """With every metric called simulated, where a simulated agent or server stood behind it."""
    if not any((one.detail or {}).get("simulated") for one in trial.executions):
        return trial
    estimates = tuple(
        replace(one, metric=replace(one.metric, kind=Kind.SIMULATED)) for one in trial.estimates
    )
    return replace(trial, estimates=estimates)


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Executions of both legs that are ok, by the number of their pair."""

    sequential: tuple[Execution, ...]
    concurrent: tuple[Execution, ...]
    planned: int

    def __len__(self) -> int:
        return len(self.sequential)

    def column(self, leg: Leg, metric: str) -> list[float]:
        made = self.sequential if leg is Leg.SEQUENTIAL else self.concurrent
        return [one.measurements.get(metric, math.nan) for one in made]

    def both(self, metric: str) -> tuple[list[float], list[float]] | None:
        """Sequential and concurrent; None where some pair lacks it."""
        columns = self.column(Leg.SEQUENTIAL, metric), self.column(Leg.CONCURRENT, metric)
        return columns if columns[0] and all(map(math.isfinite, (*columns[0], *columns[1]))) else None


def _pairs(legs: Mapping[str, TrialReport]) -> _Pairs:
    made = {
        leg: {
            one.process: one
            for one in legs[leg].executions
            if one.phase is Phase.MEASURED and one.status is Status.OK
        }
        for leg in Leg
    }
    shared = sorted(made[Leg.SEQUENTIAL].keys() & made[Leg.CONCURRENT].keys())
    planned = legs[Leg.SEQUENTIAL].stored.trial.processes
    return _Pairs(
        tuple(made[Leg.SEQUENTIAL][n] for n in shared),
        tuple(made[Leg.CONCURRENT][n] for n in shared),
        planned,
    )


def _finding(legs: Mapping[str, TrialReport]) -> TeamFinding:
    trial = legs[Leg.CONCURRENT].stored.trial
    pairs = _pairs(legs)
    definitions: list[Mapping[str, Any]] = list(trial.params["agents"])  # type: ignore[call-overload]
    at_once = int(trial.params["permits"])  # type: ignore[call-overload]
    rounds = tuple(map(_round, pairs.sequential, pairs.concurrent))
    agents = tuple(_teammate(definition, pairs, rounds) for definition in definitions)
    figures = _figures(pairs, rounds, at_once, [agent.name for agent in agents])
    contention = _contention([_lateness(agent.name, rounds) for agent in agents])
    axes = {name: value for name, value in trial.axes.items() if name != "leg"}
    label = ", ".join(f"{name}={value}" for name, value in axes.items())
    found = TeamFinding(
        name=trial.benchmark,
        label=f"{trial.benchmark}[{label}]" if label else trial.benchmark,
        axes=axes,
        agents=agents,
        at_once=at_once,
        figures=figures,
        contention=contention,
        grades=_grades(figures, contention, agents, at_once),
        rounds=rounds,
        prompts={str(d["name"]): {str(one["id"]): one["input"] for one in d["cases"]} for d in definitions},
        options={
            str(d["name"]): {k: v for k, v in d.items() if k not in ("cases", "folder")} for d in definitions
        },
        is_simulated=any(
            (one.detail or {}).get("simulated") for one in (*pairs.sequential, *pairs.concurrent)
        ),
    )
    return replace(found, doubts=tuple(_doubts(found, pairs)))


def _round(sequential: Execution, concurrent: Execution) -> Round:
    output = concurrent.output if isinstance(concurrent.output, Mapping) else {}
    return Round(
        number=concurrent.process,
        sequential_seconds=sequential.measurements["seconds"],
        concurrent_seconds=concurrent.measurements["seconds"],
        sequential=_stints(sequential),
        concurrent=_stints(concurrent),
        skew_seconds=concurrent.measurements.get("skew_seconds", 0.0),
        answers=output.get("answers", {}),
    )


def _stints(execution: Execution) -> tuple[Stint, ...]:
    written = execution.output.get("stints", ()) if isinstance(execution.output, Mapping) else ()
    return tuple(
        Stint(
            row["agent"],
            row["case"],
            row["start"],
            row["end"],
            row.get("ttft"),
            row.get("waited", 0.0),
            row.get("tokens"),
            "error" not in row,
        )
        for row in written
    )


def _figures(pairs: _Pairs, rounds: Sequence[Round], at_once: int, names: Sequence[str]) -> dict[str, Figure]:
    found: dict[str, Figure | None] = {}
    seconds = pairs.both("seconds")
    if seconds is not None:
        sequential, concurrent = seconds
        speedup = _figure(ratio_of_pairs(concurrent, sequential), len(pairs))
        found["speedup"] = speedup
        found["efficiency"] = speedup and _scaled(speedup, 1 / at_once)
        found["sequential_seconds"] = _figure(level_of(sequential), len(pairs), "s")
        found["concurrent_seconds"] = _figure(level_of(concurrent), len(pairs), "s")
    if (throughput := pairs.both("tokens_per_second")) is not None:
        found["throughput_sequential"] = _figure(level_of(throughput[0]), len(pairs), "tok/s")
        found["throughput_concurrent"] = _figure(level_of(throughput[1]), len(pairs), "tok/s")
        found["throughput_gain"] = _figure(ratio_of_pairs(*throughput), len(pairs))
    if rounds:
        # With one permit nobody begins together with another: there is no skew to tell.
        apart = [one.skew_seconds for one in rounds if one.skew_seconds > 0]
        found["skew_seconds"] = _figure(level_of(apart), len(apart), "s") if apart else None
        found["balance_ratio"] = _figure(level_of([_balance(one, names) for one in rounds]), len(pairs))
        found["seed_speedup"] = _figure(level_of([_overlap(one, names) for one in rounds]), len(pairs))
        found["seed_efficiency"] = found["seed_speedup"] and _scaled(found["seed_speedup"], 1 / len(names))
    return {name: figure for name, figure in found.items() if figure is not None}


def _durations(one: Round, names: Sequence[str]) -> list[float]:
    """From the beginning of the concurrent leg to the end of each agent."""
    return [max((s.end for s in one.concurrent if s.agent == name), default=0.0) for name in names]


def _balance(one: Round, names: Sequence[str]) -> float:
    """Mean ÷ longest of the agents' durations: 1 where all end together. It says nothing of contention."""
    durations = _durations(one, names)
    return float(np.mean(durations)) / max(durations)


def _overlap(one: Round, names: Sequence[str]) -> float:
    """What seed 002 called speedup: the durations of the concurrent leg, added up, ÷ its wall time."""
    return sum(_durations(one, names)) / one.concurrent_seconds


def _figure(effect: Effect | None, pairs: int, unit: str = "") -> Figure | None:
    if effect is None:
        return None
    is_bounded = math.isfinite(effect.high) and math.isfinite(effect.low) and "one pair" not in effect.method
    low, high = (effect.low, effect.high) if is_bounded else (None, None)
    return Figure(effect.value, low, high, unit, pairs, effect.method)


def _scaled(figure: Figure, by: float) -> Figure:
    low, high = (None if end is None else end * by for end in (figure.low, figure.high))
    return replace(figure, value=figure.value * by, low=low, high=high)


_OF_AGENTS = (
    ("seconds", "s"),
    ("ttft_seconds", "s"),
    ("tokens_per_second", "tok/s"),
    ("eval_tokens_per_second", "tok/s"),
)


def _teammate(definition: Mapping[str, Any], pairs: _Pairs, rounds: Sequence[Round]) -> Teammate:
    name = str(definition["name"])
    figures: dict[str, Figure | None] = {}
    for metric, unit in _OF_AGENTS:
        both = pairs.both(f"{name}.{metric}")
        if both is None:
            continue
        plain = metric.removesuffix("_seconds")
        figures[f"{plain}_sequential"] = _figure(level_of(both[0]), len(pairs), unit)
        figures[f"{plain}_concurrent"] = _figure(level_of(both[1]), len(pairs), unit)
        figures[f"{plain}_delta"] = _figure(difference_of_pairs(*both), len(pairs), unit)
        if metric == "seconds":
            figures["slowdown"] = _figure(ratio_of_pairs(*both), len(pairs))
    mine = [[s for s in one.concurrent if s.agent == name] for one in rounds]
    return Teammate(
        name=name,
        type=str(definition["type"]),
        model=_model(name, pairs),
        requests=sum(map(len, mine)),
        figures={key: figure for key, figure in figures.items() if figure is not None},
        contention=_contention([_lateness(name, rounds)]),
    )


def _model(name: str, pairs: _Pairs) -> str:
    for one in pairs.concurrent:
        if isinstance(one.output, Mapping) and (model := one.output.get("models", {}).get(name)):
            return str(model)
    return ""


@dataclass(frozen=True, slots=True)
class _Lateness:
    """Of one agent: whether the first token of each request came late, round by round."""

    rounds: tuple[tuple[float, ...], ...]
    limit: float
    by_chance: float


def _lateness(name: str, rounds: Sequence[Round]) -> _Lateness | None:
    before = _firsts(name, rounds, lambda one: one.sequential)
    after = _firsts(name, rounds, lambda one: one.concurrent)
    usual = [ttft for row in before for ttft in row]
    if not usual or not any(after):
        return None
    limit = min(LATE_SECONDS, percentile(usual, 99))
    by_chance = 0.0 if limit == LATE_SECONDS else max(0.01, 1 / (len(usual) + 1))
    return _Lateness(tuple(tuple(float(ttft > limit) for ttft in row) for row in after), limit, by_chance)


def _firsts(
    name: str, rounds: Sequence[Round], leg: Callable[[Round], tuple[Stint, ...]]
) -> list[list[float]]:
    return [[s.ttft for s in leg(one) if s.agent == name and s.ttft is not None] for one in rounds]


def _contention(agents: Sequence[_Lateness | None]) -> Contention | None:
    """Of one agent or of several together; requests of one round are alike, so they are worth less than their number."""
    known = [one for one in agents if one is not None]
    if not known:
        return None
    together = [
        tuple(late for row in rows for late in row)
        for rows in zip(*(one.rounds for one in known), strict=True)
    ]
    rows = [row for row in together if row]
    requests, events = sum(map(len, rows)), int(sum(map(sum, rows)))
    means = np.array([float(np.mean(row)) for row in rows])
    low, high = wilson(events / requests, effective_n(means, requests))
    rate = Figure(events / requests, low if events else 0.0, high, "", len(rows), "Wilson over rounds")
    asked = [sum(map(len, one.rounds)) for one in known]
    chance = sum(one.by_chance * number for one, number in zip(known, asked, strict=True)) / sum(asked)
    return Contention(events, requests, rate, min(one.limit for one in known), chance)


def _grades(
    figures: Mapping[str, Figure], contention: Contention | None, agents: Sequence[Teammate], at_once: int
) -> tuple[Grade, ...]:
    """Seed 002's targets, on the true figures: speedup above 1.9 of 2, efficiency above 95 %, contention below 10 %,
    throughput above 100 tok/s and TTFT below 450 ms of each agent."""
    found = []
    if (speedup := figures.get("speedup")) is not None:
        target = 0.95 * at_once
        found.append(Grade("speedup", f"> {target:.3g} ×", _held(speedup, above=target)))
        found.append(Grade("efficiency", "> 95 %", _held(figures["efficiency"], above=0.95)))
    if contention is not None:
        found.append(
            Grade("contention", "< 10 % acceptable, > 30 % problematic", _contention_grade(contention))
        )
    for agent in agents:
        if (rate := _generation(agent)) is not None:
            found.append(Grade(f"{agent.name} throughput", "> 100 tok/s", _held(rate, above=100.0)))
        if (first := agent.figures.get("ttft_concurrent")) is not None:
            found.append(Grade(f"{agent.name} TTFT", "< 450 ms", _held(first, below=0.45)))
    return tuple(found)


def _generation(agent: Teammate) -> Figure | None:
    """The seed's throughput: tokens ÷ the time that the server took to make them; where it does not tell, ÷ all of the time."""
    told = agent.figures.get("eval_tokens_per_second_concurrent")
    return told or agent.figures.get("tokens_per_second_concurrent")


def _held(figure: Figure, above: float | None = None, below: float | None = None) -> str:
    """Met only where the whole interval is beyond the target."""
    low, high = (figure.value if end is None else end for end in (figure.low, figure.high))
    if above is not None:
        return "met" if low > above else "missed" if high <= above else "unsure"
    assert below is not None
    return "met" if high < below else "missed" if low >= below else "unsure"


def _contention_grade(contention: Contention) -> str:
    acceptable = _held(contention.rate, below=0.10)
    if acceptable != "missed":
        return acceptable
    if (contention.rate.low or 0.0) <= contention.by_chance:
        return "unsure"
    return "problematic" if (contention.rate.low or 0.0) > 0.30 else "missed"


def _doubts(found: TeamFinding, pairs: _Pairs) -> Iterable[str]:
    if not len(pairs):
        yield "No pair of legs is whole, so there is nothing to compare."
        return
    if len(pairs) < pairs.planned:
        yield f"Only {len(pairs)} of {pairs.planned} pairs are whole: where one leg failed, the other counts neither."
    if len(pairs) < FEWEST_RANKED:
        yield (
            f"Only {len(pairs)} pairs: the intervals take for granted that log ratios are spread normally. "
            f"From {FEWEST_RANKED} pairs on they need not: iterations: {{measured: 10}}."
        )
    yield from _about_skew(found)
    yield from _about_work(pairs)
    yield from _about_contention(found)


def _about_skew(found: TeamFinding) -> Iterable[str]:
    late = [
        one
        for one in found.rounds
        if one.skew_seconds > max(SKEW_SECONDS, SKEW_SHARE * one.concurrent_seconds)
    ]
    if late:
        worst = max(late, key=lambda one: one.skew_seconds)
        yield (
            f"In {len(late)} of {len(found.rounds)} concurrent legs the agents did not begin together: they were up to "
            f"{worst.skew_seconds * 1e3:.3g} ms apart, of {worst.concurrent_seconds:.3g} s. The speedup is too low for it."
        )


def _about_work(pairs: _Pairs) -> Iterable[str]:
    """Answers of another length are other work."""
    tokens = pairs.both("output_tokens")
    if tokens is None or not (sum(tokens[0]) and sum(tokens[1])):
        return
    ratio = sum(tokens[1]) / sum(tokens[0])
    if abs(ratio - 1) > TOKENS_APART:
        yield (
            f"The legs did not do the same work: answers were {abs(ratio - 1):.1%} "
            f"{'longer' if ratio > 1 else 'shorter'} in the concurrent leg. Compare throughput, or fix temperature, seed "
            "and the most tokens of the model."
        )


def _about_contention(found: TeamFinding) -> Iterable[str]:
    unseen = [agent.name for agent in found.agents if agent.contention is None]
    if unseen:
        yield f"TTFT, and so contention, is not measurable of {', '.join(unseen)}: the answers were not streamed."

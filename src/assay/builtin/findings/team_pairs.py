"""The analysis of teams: both legs of each point compared pair by pair.

A pair is one sequential and one concurrent leg with the same work. Ratios and differences are computed within pairs and then
summed up with an interval over the pairs, so that drift of the machine between pairs cancels out.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from assay.analysis.comparison.policy import judge
from assay.analysis.comparison.verdict import Contrast
from assay.builtin.findings.team_contention import Delay, contention_grade, find_contention, find_delays
from assay.model import Better, Comparison, Execution, Kind, Metric, Phase, Status, TrialReport
from assay.model.figure import Figure
from assay.model.team import Contention, Grade, Leg, Round, Stint, TeamFinding, Teammate
from assay.stats.effect import Effect
from assay.stats.paired_figures import FEWEST_RANKED, difference_of_pairs, level_of, ratio_of_pairs
from assay.units import percent

_SPEEDUP = Metric("speedup", "", Better.HIGHER, Kind.DERIVED)
SKEW_SHARE = 0.01
SKEW_SECONDS = 0.005
"""A start is called simultaneous when no agent began later than this, or than this share of the leg."""
TOKENS_APART = 0.05


def is_team(trial: TrialReport) -> bool:
    """Whether a trial of a team is one of its two legs."""
    return "leg" in trial.stored.trial.axes


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


def without_unit_doubts(trial: TrialReport) -> TrialReport:
    """Drop warnings about too few units of single legs: the finding gives one for the pairs, with advice that fits a team."""
    estimates = tuple(
        replace(estimate, doubts=()) if estimate.n and estimate.low is None else estimate
        for estimate in trial.estimates
    )
    return replace(trial, estimates=estimates)


@dataclass(frozen=True, slots=True)
class _LegPairs:
    """Executions of both legs that are ok, by the number of their pair."""

    sequential: tuple[Execution, ...]
    concurrent: tuple[Execution, ...]
    planned: int

    def __len__(self) -> int:
        return len(self.sequential)

    def column(self, leg: Leg, metric: str) -> list[float]:
        executions = self.sequential if leg is Leg.SEQUENTIAL else self.concurrent
        return [execution.measurements.get(metric, math.nan) for execution in executions]

    def both(self, metric: str) -> tuple[list[float], list[float]] | None:
        """Sequential and concurrent; None where some pair lacks it."""
        columns = self.column(Leg.SEQUENTIAL, metric), self.column(Leg.CONCURRENT, metric)
        return columns if columns[0] and all(map(math.isfinite, (*columns[0], *columns[1]))) else None


def _pairs(legs: Mapping[str, TrialReport]) -> _LegPairs:
    executions_by_leg = {
        leg: {
            execution.process: execution
            for execution in legs[leg].executions
            if execution.phase is Phase.MEASURED and execution.status is Status.OK
        }
        for leg in Leg
    }
    shared = sorted(executions_by_leg[Leg.SEQUENTIAL].keys() & executions_by_leg[Leg.CONCURRENT].keys())
    planned = legs[Leg.SEQUENTIAL].stored.trial.processes
    return _LegPairs(
        tuple(executions_by_leg[Leg.SEQUENTIAL][n] for n in shared),
        tuple(executions_by_leg[Leg.CONCURRENT][n] for n in shared),
        planned,
    )


def _finding(legs: Mapping[str, TrialReport]) -> TeamFinding:
    trial = legs[Leg.CONCURRENT].stored.trial
    pairs = _pairs(legs)
    definitions: list[Mapping[str, Any]] = list(trial.params["agents"])  # type: ignore[call-overload]
    at_once = int(trial.params["permits"])  # type: ignore[call-overload]
    rounds = tuple(map(_round, pairs.sequential, pairs.concurrent))
    delays = [find_delays((team_round.sequential, team_round.concurrent)) for team_round in rounds]
    agents = tuple(_teammate(definition, pairs, delays) for definition in definitions)
    figures = _figures(pairs, rounds, at_once, [agent.name for agent in agents])
    contention = find_contention(delays, figures.get("slowdown"))
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
        rounds=tuple(
            replace(team_round, slower=sum(delay.sign > 0 for delay in row))
            for team_round, row in zip(rounds, delays, strict=True)
        ),
        comparison=_judge_speedup(legs, pairs),
        prompts={
            str(d["name"]): {str(case["id"]): case["input"] for case in d["cases"]} for d in definitions
        },
        options={
            str(d["name"]): {k: v for k, v in d.items() if k not in ("cases", "folder")} for d in definitions
        },
        is_simulated=any(
            (execution.detail or {}).get("simulated") for execution in (*pairs.sequential, *pairs.concurrent)
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


def _figures(
    pairs: _LegPairs, rounds: Sequence[Round], at_once: int, names: Sequence[str]
) -> dict[str, Figure]:
    found: dict[str, Figure | None] = {}
    seconds = pairs.both("seconds")
    if seconds is not None:
        sequential, concurrent = seconds
        speedup = _figure(ratio_of_pairs(concurrent, sequential), len(pairs))
        found["speedup"] = speedup
        found["efficiency"] = speedup and _scale_figure(speedup, 1 / at_once)
        found["sequential_seconds"] = _figure(level_of(sequential), len(pairs), "s")
        found["concurrent_seconds"] = _figure(level_of(concurrent), len(pairs), "s")
        found["slowdown"] = _slowdown(pairs, names)
    if (throughput := pairs.both("tokens_per_second")) is not None:
        found["throughput_sequential"] = _figure(level_of(throughput[0]), len(pairs), "tok/s")
        found["throughput_concurrent"] = _figure(level_of(throughput[1]), len(pairs), "tok/s")
        found["throughput_gain"] = _figure(ratio_of_pairs(*throughput), len(pairs))
    if rounds:
        # With one permit no agent begins together with another, so there is no skew.
        apart = [team_round.skew_seconds for team_round in rounds if team_round.skew_seconds > 0]
        found["skew_seconds"] = _figure(level_of(apart), len(apart), "s") if apart else None
        found["balance_ratio"] = _figure(
            level_of([_balance(team_round, names) for team_round in rounds]), len(pairs)
        )
        found["seed_speedup"] = _figure(
            level_of([_overlap(team_round, names) for team_round in rounds]), len(pairs)
        )
        found["seed_efficiency"] = found["seed_speedup"] and _scale_figure(
            found["seed_speedup"], 1 / len(names)
        )
    return {name: figure for name, figure in found.items() if figure is not None}


def _slowdown(pairs: _LegPairs, names: Sequence[str]) -> Figure | None:
    """Time at work of all agents together, concurrent ÷ sequential: what working at once costs the work itself."""
    seconds_of_legs = [pairs.both(f"{name}.seconds") for name in names]
    if not names or None in seconds_of_legs:
        return None
    before, after = (np.sum([legs[leg] for legs in seconds_of_legs if legs], axis=0) for leg in (0, 1))
    return _figure(ratio_of_pairs(before, after), len(pairs))


def _judge_speedup(legs: Mapping[str, TrialReport], pairs: _LegPairs) -> Comparison | None:
    """Judge the speedup by the rules of every comparison.

    A speedup within the tolerance is the same. A claim must be significant, and its interval must lie
    beyond the tolerance.
    """
    seconds = pairs.both("seconds")
    effect = seconds and ratio_of_pairs(seconds[1], seconds[0])
    if not seconds or not effect:
        return None
    lone = "One pair of legs has no interval." if len(pairs) == 1 else ""
    levels = [level.value if (level := level_of(column)) else math.nan for column in seconds]
    contrast = Contrast(
        metric=_SPEEDUP,
        trial_a=legs[Leg.SEQUENTIAL].name,
        trial_b=legs[Leg.CONCURRENT].name,
        value_a=levels[0],
        value_b=levels[1],
        units_a=len(pairs),
        units_b=len(pairs),
        effect=effect,
        is_paired=True,
        refusal=lone,
        unit="pair of legs",
    )
    return judge([contrast])[0]


def _durations(team_round: Round, names: Sequence[str]) -> list[float]:
    """Return, for each agent, the seconds from the beginning of the concurrent leg to the end of its last answer."""
    return [max((s.end for s in team_round.concurrent if s.agent == name), default=0.0) for name in names]


def _balance(team_round: Round, names: Sequence[str]) -> float:
    """Mean ÷ longest of the agents' durations: 1 where all end together. It says nothing of contention."""
    durations = _durations(team_round, names)
    return float(np.mean(durations)) / max(durations)


def _overlap(team_round: Round, names: Sequence[str]) -> float:
    """What seed 002 called speedup: the durations of the concurrent leg, added up, ÷ its wall time."""
    return sum(_durations(team_round, names)) / team_round.concurrent_seconds


def _figure(effect: Effect | None, pairs: int, unit: str = "") -> Figure | None:
    if effect is None:
        return None
    is_bounded = math.isfinite(effect.high) and math.isfinite(effect.low) and "one pair" not in effect.method
    low, high = (effect.low, effect.high) if is_bounded else (None, None)
    return Figure(effect.value, low, high, unit, pairs, effect.method)


def _scale_figure(figure: Figure, by: float) -> Figure:
    low, high = (None if end is None else end * by for end in (figure.low, figure.high))
    return replace(figure, value=figure.value * by, low=low, high=high)


_OF_AGENTS = (
    ("seconds", "s"),
    ("ttft_seconds", "s"),
    ("tokens_per_second", "tok/s"),
    ("eval_tokens_per_second", "tok/s"),
)


def _teammate(definition: Mapping[str, Any], pairs: _LegPairs, delays: Sequence[Sequence[Delay]]) -> Teammate:
    name = str(definition["name"])
    figures: dict[str, Figure | None] = {}
    for metric, unit in _OF_AGENTS:
        values_of_legs = pairs.both(f"{name}.{metric}")
        if values_of_legs is None:
            continue
        plain = metric.removesuffix("_seconds")
        figures[f"{plain}_sequential"] = _figure(level_of(values_of_legs[0]), len(pairs), unit)
        figures[f"{plain}_concurrent"] = _figure(level_of(values_of_legs[1]), len(pairs), unit)
        figures[f"{plain}_delta"] = _figure(difference_of_pairs(*values_of_legs), len(pairs), unit)
        if metric == "seconds":
            figures["slowdown"] = _figure(ratio_of_pairs(*values_of_legs), len(pairs))
    outputs = [execution.output for execution in pairs.concurrent if isinstance(execution.output, Mapping)]
    models = filter(None, (output.get("models", {}).get(name) for output in outputs))
    return Teammate(
        name=name,
        type=str(definition["type"]),
        model=str(next(models, "")),
        requests=sum(delay.agent == name for row in delays for delay in row),
        figures={key: figure for key, figure in figures.items() if figure is not None},
        contention=find_contention(delays, figures.get("slowdown"), name),
    )


def _grades(
    figures: Mapping[str, Figure], contention: Contention | None, agents: Sequence[Teammate], at_once: int
) -> tuple[Grade, ...]:
    """Seed 002's targets, on the true figures: speedup above 1.9 of 2, efficiency above 95 %, contention below 10 %,
    throughput above 100 tok/s and TTFT below 450 ms of each agent."""
    found = []
    if (speedup := figures.get("speedup")) is not None:
        target = 0.95 * at_once
        found.append(Grade("speedup", f"> {target:.3g} ×", _judge_target(speedup, above=target)))
        found.append(Grade("efficiency", "> 95 %", _judge_target(figures["efficiency"], above=0.95)))
    if contention is not None:
        found.append(
            Grade("contention", "< 10 % acceptable, > 30 % problematic", contention_grade(contention))
        )
    for agent in agents:
        if (rate := _generation(agent)) is not None:
            found.append(Grade(f"{agent.name} throughput", "> 100 tok/s", _judge_target(rate, above=100.0)))
        if (first := agent.figures.get("ttft_concurrent")) is not None:
            found.append(Grade(f"{agent.name} TTFT", "< 450 ms", _judge_target(first, below=0.45)))
    return tuple(found)


def _generation(agent: Teammate) -> Figure | None:
    """The seed's throughput: tokens ÷ the time that the server took to make them; where it does not tell, ÷ all of the time."""
    eval_rate = agent.figures.get("eval_tokens_per_second_concurrent")
    return eval_rate or agent.figures.get("tokens_per_second_concurrent")


def _judge_target(figure: Figure, above: float | None = None, below: float | None = None) -> str:
    """Met only where the whole interval is beyond the target; one pair has none."""
    low, high = figure.low, figure.high
    if low is None or high is None:
        return "unsure"
    if above is not None:
        return "met" if low > above else "missed" if high <= above else "unsure"
    assert below is not None
    return "met" if high < below else "missed" if low >= below else "unsure"


def _doubts(found: TeamFinding, pairs: _LegPairs) -> Iterable[str]:
    if not len(pairs):
        yield "No pair of legs is complete, so there is nothing to compare."
        return
    if len(pairs) < pairs.planned:
        yield f"Only {len(pairs)} of {pairs.planned} pairs are complete: if one leg failed, the other is not counted either."
    if len(pairs) == 1:
        yield "One pair of legs has no intervals. Run at least 6: --repetitions 6."
    elif len(pairs) < FEWEST_RANKED:
        yield (
            f"With only {len(pairs)} pairs, the intervals assume that log ratios are normally distributed. "
            f"With {FEWEST_RANKED} pairs or more they need no such assumption: --repetitions 10."
        )
    yield from _check_skew(found)
    yield from _check_work(pairs)


def _check_skew(found: TeamFinding) -> Iterable[str]:
    late = [
        team_round
        for team_round in found.rounds
        if team_round.skew_seconds > max(SKEW_SECONDS, SKEW_SHARE * team_round.concurrent_seconds)
    ]
    if late:
        worst = max(late, key=lambda team_round: team_round.skew_seconds)
        yield (
            f"In {len(late)} of {len(found.rounds)} concurrent legs the agents did not start together: they began up to "
            f"{worst.skew_seconds * 1e3:.3g} ms apart, in a leg of {worst.concurrent_seconds:.3g} s. That makes the speedup look too low."
        )


def _check_work(pairs: _LegPairs) -> Iterable[str]:
    """Answers of a different length are other work; lengths that only vary from leg to leg are in the intervals already."""
    tokens = pairs.both("output_tokens")
    if tokens is None or not (sum(tokens[0]) and sum(tokens[1])):
        return
    ratio = sum(tokens[1]) / sum(tokens[0])
    found = ratio_of_pairs(*tokens)
    is_chance = found is not None and len(pairs) > 1 and not found.excludes_neutral
    if abs(ratio - 1) > TOKENS_APART and not is_chance:
        yield (
            f"The legs did not do the same work: answers were {percent(abs(ratio - 1))} "
            f"{'longer' if ratio > 1 else 'shorter'} in the concurrent leg. Compare throughput, or set the temperature, "
            "seed and token limit of the model."
        )

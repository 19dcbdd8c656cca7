"""Key figures at the head of the page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.model import Better, Estimate, Kind, Rating, Report
from assay.model.stress import StressFinding
from assay.model.team import TeamFinding
from assay.report import figures
from assay.report.capacity import interval_text, stored_capacity
from assay.report.charts import labels
from assay.report.contests import Contest, ContestRow, marked, rating_text, usd_text
from assay.report.stored_loads import StoredLoad, stored_loads
from assay.report.stress import spanned
from assay.report.teams import contention_brief, figure_text, share_text, times_text
from assay.report.warnings import run_warnings
from assay.units import count, counted, seconds, significant


@dataclass(frozen=True, slots=True)
class Tile:
    """A key figure at the head of the page."""

    label: str
    value: str
    note: str = ""


def tiles(report: Report, held: Sequence[Contest]) -> list[Tile]:
    """What the page leads with, all of it computed from the figures below."""
    if report.teams:
        return [*_of_teams(report.teams), _completion(report), _caution(report)]
    if report.stress is not None and report.stress.resilience is not None:
        return [*_of_stress(report.stress), _completion(report), _caution(report)]
    if (capacity := stored_capacity(report)) is not None:
        return [*_of_capacity(capacity), _completion(report), _caution(report)]
    if loads := stored_loads(report):
        return [*_of_loads(loads), _completion(report), _caution(report)]
    if held:
        return [*_of_contests(held), _completion(report), _caution(report)]
    shown = [
        (label, e)
        for label, t in zip(labels(report), report.trials, strict=True)
        if (e := figures.leading(t))
    ]
    findings = _one(shown[0][1]) if len(shown) == 1 else list(_several(shown))
    return [*findings, _completion(report), _caution(report)]


def _of_stress(found: StressFinding) -> Iterator[Tile]:
    mark = " (simulated)" if found.is_simulated else ""
    assert found.resilience is not None
    many = f"over {counted(len(found.scores), 'scenario')}"
    yield Tile("resilience", spanned(found.resilience), f"{many}{mark}")
    weakest = min(found.scores, key=lambda one: one.value)
    yield Tile("weakest scenario", f"{weakest.value:.3f}", weakest.scenario)
    if found.base is not None:
        yield Tile("comfortable rate", f"{significant(found.base)}/s", f"the base of the scenarios{mark}")


def _of_capacity(found: Mapping[str, Any]) -> Iterator[Tile]:
    mark = " (simulated)" if found["simulated"] else ""
    sustained, broken = found["sustained_rate"], found["breaking_rate"]
    shown = "none" if sustained is None else f"{significant(sustained)}{interval_text(found)}"
    yield Tile(
        "sustained requests per second",
        shown,
        f"{'confirmed' if found['confirmed'] else 'not confirmed'}{mark}",
    )
    if broken is not None:
        yield Tile("broke at", f"{significant(broken)}/s", f"{found['cause']}{mark}")


def _of_loads(loads: Sequence[StoredLoad]) -> Iterator[Tile]:
    """Of the load that brought the most answers."""
    best = max(loads, key=lambda load: float(load.document["throughput_rps"])).document
    mark = " (simulated)" if best["simulated"] else ""
    most = "highest " if len(loads) > 1 else ""
    ends = best["intervals"]["throughput_rps"]
    interval = f" [{significant(ends[0])}, {significant(ends[1])}]" if ends else ""
    note = f"{significant(best['concurrency'])} in flight{mark}"
    yield Tile(f"{most}answers per second", f"{significant(best['throughput_rps'])}{interval}", note)
    if best["latency_ms"]:
        ends = best["latency_ms"]["intervals"]["p95"]
        interval = (
            f"{seconds(ends[0] / 1e3)} to {seconds(ends[1] / 1e3)}"
            if ends
            else "too few answers for an interval"
        )
        yield Tile(
            "latency P95" if len(loads) == 1 else "latency P95 at that load",
            seconds(best["latency_ms"]["p95"] / 1e3),
            f"{interval}{mark}",
        )


def _of_teams(teams: Sequence[TeamFinding]) -> Iterator[Tile]:
    """Of the team with the highest speedup."""
    best = max(teams, key=lambda team: team.speedup.value if team.speedup else 0.0)
    mark = " (simulated)" if best.is_simulated else ""
    name = best.label if len(teams) > 1 else f"{len(best.agents)} agents"
    most = "highest " if len(teams) > 1 else ""
    yield Tile(f"{most}true speedup", times_text(best.speedup), name + mark)
    yield Tile(
        "parallel efficiency",
        share_text(best.figures.get("efficiency")),
        f"of {best.at_once} at work at once",
    )
    if best.contention is not None:
        yield Tile("contention", share_text(best.contention.rate), contention_brief(best.contention))
    elif (throughput := best.figures.get("throughput_concurrent")) is not None:
        yield Tile("throughput of the team", figure_text(throughput), "all agents together")


def _one(estimate: Estimate) -> list[Tile]:
    level = significant(estimate.level * 100)
    interval = (
        f"{level} % interval of the median" if estimate.low is not None else "too few units for an interval"
    )
    return [
        Tile(f"median {_kind(estimate)}{estimate.metric.name}", figures.with_interval(estimate), interval),
        Tile("coefficient of variation", figures.cv_text(estimate), _behind(estimate)),
    ]


def _kind(estimate: Estimate) -> str:
    return "" if estimate.metric.kind is Kind.MEASURED else f"{estimate.metric.kind.value} "


def _behind(estimate: Estimate) -> str:
    return f"{count(estimate.n)} executions, {count(estimate.units)} independent"


def _several(shown: Sequence[tuple[str, Estimate]]) -> Iterator[Tile]:
    metrics = {estimate.metric for _, estimate in shown}
    if len(metrics) != 1:
        return
    metric = metrics.pop()
    ranked = sorted(shown, key=lambda pair: pair[1].median, reverse=metric.better is Better.HIGHER)
    best, worst = ranked[0], ranked[-1]
    words = ("lowest", "highest") if metric.better is not Better.HIGHER else ("highest", "lowest")
    yield Tile(f"{words[0]} {_kind(best[1])}{metric.name}", figures.with_interval(best[1]), best[0])
    yield Tile(f"{words[1]} {_kind(worst[1])}{metric.name}", figures.with_interval(worst[1]), worst[0])
    low, high = sorted((best[1].median, worst[1].median))
    if low > 0:
        yield Tile("spread of the trials", f"{significant(high / low)} ×", _separation(ranked))


def _separation(ranked: Sequence[tuple[str, Estimate]]) -> str:
    """Whether the first is apart from the second, by their intervals alone."""
    first, second = ranked[0][1], ranked[1][1]
    if None in (first.low, first.high, second.low, second.high):
        return "too few units to tell the first two apart"
    apart = max(first.low or 0, second.low or 0) > min(first.high or 0, second.high or 0)
    return "intervals of the first two are apart" if apart else "intervals of the first two overlap"


def _completion(report: Report) -> Tile:
    ok = sum(trial.ok for trial in report.trials)
    made = sum(figures.total(trial) for trial in report.trials)
    # Rounded down: a single failure among many must not read as all.
    share = (
        f"{significant(math.floor(1000 * ok / made) / 10)} % of {count(made)}" if made else "none was made"
    )
    return Tile("executions ok", count(ok), share)


def _caution(report: Report) -> Tile:
    warnings = len(run_warnings(report))
    return Tile("warnings", count(warnings), "shown below" if warnings else "none")


def _of_contests(held: Sequence[Contest]) -> Iterator[Tile]:
    """Of one contest its leaders; several have no common scale, so only their size is told."""
    real = [contest for contest in held if not contest.is_simulated] or held
    if len(real) == 1:
        yield from _leaders(real[0])
        return
    agents = dict.fromkeys(
        entry.trial.stored.trial.agent.name for contest in real for entry in contest.entries
    )
    asked = sum(max(entry.ratings.cases for entry in contest.entries) for contest in real)
    solved = sum(entry.ratings.solved for contest in real for entry in contest.entries)
    done = sum(entry.ratings.cases for contest in real for entry in contest.entries)
    yield Tile("agents", count(len(agents)), ", ".join(agents))
    yield Tile("cases", count(asked), f"in {count(len(real))} benchmarks")
    yield Tile(
        "cases solved", f"{significant(100 * solved / done) if done else 0} %", "of all that were put to them"
    )


def _leaders(contest: Contest) -> Iterator[Tile]:
    for name in ("overall", "accuracy") if contest.is_comparable else ("accuracy",):
        ranked = sorted(contest.entries, key=lambda entry: -(entry.rating(name).value or 0.0))
        note = f"{marked(ranked[0], contest)}{_apart([entry.rating(name) for entry in ranked])}"
        yield Tile(f"highest {name}", rating_text(ranked[0].rating(name)), note)
    if timed := [(e.median, entry, e) for entry in contest.entries if (e := entry.estimate("seconds"))]:
        _, entry, estimate = min(timed, key=lambda item: item[0])
        yield Tile("shortest median time", figures.with_interval(estimate), marked(entry, contest))
    if cheapest := _cheapest(contest):
        yield Tile("cheapest solved case", usd_text(cheapest.ratings), marked(cheapest, contest))


def _apart(ranked: Sequence[Rating]) -> str:
    """Whether the first is apart from the second, by their intervals alone."""
    if len(ranked) < 2 or ranked[0].low is None or ranked[1].high is None:
        return ""
    return "; its interval is apart" if ranked[0].low > ranked[1].high else "; its interval overlaps the next"


def _cheapest(contest: Contest) -> ContestRow | None:
    """None while a cost is unknown: it might be lower."""
    costs = [entry.ratings.usd_per_solved for entry in contest.entries]
    if len(costs) < 2 or any(cost is None for cost in costs) or not any(costs):
        return None
    return min(contest.entries, key=lambda entry: entry.ratings.usd_per_solved or 0.0)

"""The tiles at the top of the HTML page: the key figures of a run.

Of suites they name the leaders of each contest, of code the median or the best trial, and findings add tiles of their own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from assay.model import Better, Estimate, Kind, Report
from assay.model.page import Tile
from assay.report import figures
from assay.report.charts.run import labels
from assay.report.side_by_side import Contest, ContestRow, format_marked_label, rating_text, usd_text
from assay.report.warnings import run_warnings
from assay.units import count, format_count, significant


def tiles(report: Report, held: Sequence[Contest]) -> list[Tile]:
    """What the page leads with, all of it computed from the figures below."""
    for finding in report.findings.values():
        if found := finding.tiles():
            return [*found, _completion(report), _caution(report)]
    if held:
        return [*_build_contest_tiles(held), _completion(report), _caution(report)]
    estimates = [
        (label, e)
        for label, t in zip(labels(report), report.trials, strict=True)
        if (e := figures.leading(t))
    ]
    benchmarks = {trial.stored.trial.benchmark for trial in report.trials}
    if len(benchmarks) > 1:
        # The quickest of several things that do different work is no finding.
        findings = [Tile("benchmarks", count(len(benchmarks)), format_count(len(report.trials), "trial"))]
    else:
        findings = _build_trial_tiles(estimates[0][1]) if len(estimates) == 1 else list(_several(estimates))
    return [*findings, _completion(report), _caution(report)]


def _build_trial_tiles(estimate: Estimate) -> list[Tile]:
    """Key figures of a run with one trial: the median, and how much it varies."""
    level = significant(estimate.level * 100)
    interval = (
        f"{level} % interval of the median" if estimate.low is not None else "too few units for an interval"
    )
    sample = f"{format_count(estimate.n, 'execution')}, {count(estimate.units)} independent"
    return [
        Tile(f"median {_kind(estimate)}{estimate.metric.name}", figures.with_interval(estimate), interval),
        Tile("coefficient of variation", figures.cv_text(estimate), sample),
    ]


def _kind(estimate: Estimate) -> str:
    return "" if estimate.metric.kind is Kind.MEASURED else f"{estimate.metric.kind.value} "


def _several(estimates: Sequence[tuple[str, Estimate]]) -> Iterator[Tile]:
    """Key figures of several trials by one metric: the best, the worst, and how far they are apart.

    None if they lead with different metrics.
    """
    metrics = {estimate.metric for _, estimate in estimates}
    if len(metrics) != 1:
        return
    metric = metrics.pop()
    ranked = sorted(estimates, key=lambda pair: pair[1].median, reverse=metric.better is Better.HIGHER)
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
    return "intervals of the first two do not overlap" if apart else "intervals of the first two overlap"


def _completion(report: Report) -> Tile:
    ok = sum(trial.ok for trial in report.trials)
    executed = sum(figures.total(trial) for trial in report.trials)
    # Rounded down: a single failure among many must not read as all.
    share = (
        f"{significant(math.floor(1000 * ok / executed) / 10)} % of {count(executed)}"
        if executed
        else "no executions"
    )
    return Tile("executions ok", count(ok), share)


def _caution(report: Report) -> Tile:
    warnings = len(run_warnings(report))
    return Tile("warnings", count(warnings), "shown below" if warnings else "none")


def _build_contest_tiles(held: Sequence[Contest]) -> Iterator[Tile]:
    """Yield the leaders of a single contest; several have no common scale, so only their size is shown."""
    real = [contest for contest in held if not contest.is_simulated] or held
    if len(real) == 1:
        yield from _leaders(real[0])
        return
    agents = dict.fromkeys(
        entry.trial.stored.trial.agent.name for contest in real for entry in contest.entries
    )
    cases = sum(max(entry.ratings.cases for entry in contest.entries) for contest in real)
    solved = sum(entry.ratings.solved for contest in real for entry in contest.entries)
    asked_cases = sum(entry.ratings.cases for contest in real for entry in contest.entries)
    yield Tile("agents", count(len(agents)), ", ".join(agents))
    yield Tile("cases", count(cases), f"in {count(len(real))} benchmarks")
    yield Tile(
        "cases solved", f"{significant(100 * solved / asked_cases) if asked_cases else 0} %", "of all cases"
    )


def _leaders(contest: Contest) -> Iterator[Tile]:
    """Who is first in what. Whether the lead is certain is said beside it, so that a tile alone does not mislead."""
    for name in ("overall", "accuracy") if contest.is_comparable else ("accuracy",):
        ranked = sorted(contest.entries, key=lambda entry: -(entry.rating(name).value or 0.0))
        note = format_marked_label(ranked[0], contest)
        low = ranked[0].rating(name).low
        next_high = ranked[1].rating(name).high if len(ranked) > 1 else None
        if low is not None and next_high is not None:
            note += (
                "; its interval does not overlap that of the next"
                if low > next_high
                else "; its interval overlaps that of the next"
            )
        yield Tile(f"highest {name}", rating_text(ranked[0].rating(name)), note)
    if timed := [(e.median, entry, e) for entry in contest.entries if (e := entry.estimate("seconds"))]:
        _, entry, estimate = min(timed, key=lambda item: item[0])
        yield Tile(
            "shortest median time", figures.with_interval(estimate), format_marked_label(entry, contest)
        )
    if cheapest := _cheapest(contest):
        yield Tile("cheapest solved case", usd_text(cheapest.ratings), format_marked_label(cheapest, contest))


def _cheapest(contest: Contest) -> ContestRow | None:
    """None while a cost is unknown: it might be lower."""
    costs = [entry.ratings.usd_per_solved for entry in contest.entries]
    if len(costs) < 2 or any(cost is None for cost in costs) or not any(costs):
        return None
    return min(contest.entries, key=lambda entry: entry.ratings.usd_per_solved or 0.0)

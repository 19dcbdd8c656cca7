"""Reads the contenders of each suite from the store and ranks them; also checks the health of a suite.

The store returns the latest usable trial of each agent on each benchmark (`store/standings.py`). Here they become contenders,
with what makes a result stale or partial, and `analysis/ranking` ranks them. Heavy modules are imported where they are used,
because `assay leaderboard` should start quickly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from assay.analysis.comparison.pairing import Pairings
from assay.analysis.ranking.leaderboard import leaderboard
from assay.errors import LookupFailed, PlanError, format_unknown_name
from assay.model import DIMENSIONS, CaseTable, Contender, Leaderboard, Ratings
from assay.model.coverage import STALE_DAYS
from assay.model.standing import Across, Boards, Matrix, RankedSuite, Unranked
from assay.store.standings import Filter, RankedTrial
from assay.store.store import Store

if TYPE_CHECKING:
    from assay.model.suite import SuiteHealth
    from assay.spec.settings import Settings

METRICS = ("overall", *DIMENSIONS)


def check_suite(target: str, settings: Settings, store: Store) -> SuiteHealth:
    """Give right and empty answers to the scorers of a suite, and look at the results of real agents."""
    from assay.analysis.estimates.suite_health import suite_health
    from assay.execute.case_checks import check_benchmark
    from assay.pipeline.planning import prepare, registry_of
    from assay.plan.target import RunRequest, find_suite

    find_suite(target, settings, registry_of(store))
    plan = prepare(RunRequest(target, agents=("oracle",)), settings, store)
    assert plan.suite is not None
    checks = {benchmark.id: check_benchmark(benchmark) for benchmark in plan.suite.benchmarks}
    history: dict[str, dict[str, CaseTable]] = {}
    for latest in store.latest_trials(suite=plan.suite.name):
        history.setdefault(latest.agent, {})[latest.benchmark] = store.case_table(latest.trial_id)
    return suite_health(plan.suite, checks, list(history.values()))


def filter_of(
    suite: str | None = None,
    category: str | None = None,
    days: int | None = None,
    since: datetime | None = None,
    tag: str | None = None,
) -> Filter:
    """Which trials to rank; the later of `days` and `since` counts."""
    begins = [
        *([since.replace(tzinfo=UTC)] if since else []),
        *([datetime.now(UTC) - timedelta(days=days)] if days else []),
    ]
    return Filter(suite, category, max(begins, default=None), tag)


def leaderboards(
    store: Store, chosen: Filter | None = None, metric: str = "overall", now: datetime | None = None
) -> list[Leaderboard]:
    """A board for each suite that has results, the one that was run last first."""
    return [_board(suite, metric, Pairings()) for suite in _read_contests(store, chosen, metric, now)]


def overview(
    store: Store, chosen: Filter | None = None, metric: str = "overall", now: datetime | None = None
) -> Boards:
    suites = _read_contests(store, chosen, metric, now)
    boards = [_board(suite, metric, Pairings()) for suite in suites]
    return Boards(boards, {suite.name: suite.contenders for suite in suites}, metric, _rank_across)


def _rank_across(contenders: Mapping[str, Sequence[Contender]], metric: str) -> Across | None:
    from assay.analysis.ranking.across_suites import rank_across_suites

    return rank_across_suites(contenders, metric)


def rank_suite(store: Store, suite: str, metric: str, now: datetime) -> RankedSuite | None:
    """The board of one suite; None while none of its results can be ranked."""
    from assay.analysis.ranking.matrix import matrix

    try:
        [contest] = _read_contests(store, Filter(suite), metric, now)
    except PlanError:
        return None
    kept = Pairings()
    board = _board(contest, metric, kept)
    suite_matrix = matrix(
        suite, contest.contenders, board.benchmarks, board.category, pairings=kept, with_duels=False
    )
    return RankedSuite(board, suite_matrix, contest.expires)


def rank_across(store: Store, category: str | None, metric: str, now: datetime) -> Across | None:
    """All suites of a category together; None with too few benchmarks, and while there is nothing to rank."""
    from assay.analysis.ranking.across_suites import rank_across_suites

    try:
        contests = _read_contests(store, Filter(category=category), metric, now)
    except PlanError:
        return None
    return rank_across_suites({contest.name: contest.contenders for contest in contests}, metric)


def _read_contests(store: Store, chosen: Filter | None, metric: str, now: datetime | None) -> list[_Contest]:
    if metric not in METRICS:
        raise LookupFailed(format_unknown_name(metric, "metrics of a leaderboard", METRICS))
    return _contests(store, chosen or Filter(), now or datetime.now(UTC))


def _board(suite: _Contest, metric: str, pairings: Pairings) -> Leaderboard:
    """The board of a suite, with the warnings of the ranking and those about results that are not ranked."""
    board = leaderboard(suite.name, suite.contenders, suite.benchmarks, metric, suite.category, pairings)
    return replace(board, doubts=(*board.doubts, *suite.doubts), unranked=tuple(suite.unranked))


def matrices(store: Store, chosen: Filter | None = None, now: datetime | None = None) -> list[Matrix]:
    """A matrix for each suite that has results, the one that was run last first."""
    from assay.analysis.ranking.matrix import matrix

    return [
        replace(
            suite_matrix := matrix(suite.name, suite.contenders, suite.benchmarks, suite.category),
            doubts=(*suite_matrix.doubts, *suite.doubts),
        )
        for suite in _contests(store, chosen or Filter(), now or datetime.now(UTC))
    ]


@dataclass(frozen=True, slots=True)
class _Contest:
    """A suite with all agents that have a result on it, and with those that are not ranked."""

    name: str
    category: str
    benchmarks: Sequence[str]
    contenders: Sequence[Contender]
    doubts: Sequence[str]
    expires: datetime
    unranked: Sequence[Unranked] = ()


def _contests(store: Store, chosen: Filter, now: datetime) -> list[_Contest]:
    """The suites with results, the one that ran last first; refuses filters that match nothing."""
    categories = store.categories()
    if categories and chosen.suite is not None and chosen.suite not in categories:
        raise LookupFailed(format_unknown_name(chosen.suite, "suites with results", categories))
    known = set(categories.values())
    if categories and chosen.category is not None and chosen.category not in known:
        raise LookupFailed(format_unknown_name(chosen.category, "categories with results", known))
    entries = store.entries(chosen)
    if not any(entry.ok for entry in entries):
        raise PlanError(_describe_nothing_to_rank(chosen, sorted({entry.contender for entry in entries})))
    by_suite: dict[str, list[RankedTrial]] = {}
    for entry in entries:
        by_suite.setdefault(entry.suite, []).append(entry)
    found = (
        _contest(store, name, category, by_suite[name], now)
        for name, category in categories.items()
        if name in by_suite
    )
    return [contest for contest in found if contest.contenders]


def _contest(
    store: Store, name: str, category: str, entries: Sequence[RankedTrial], now: datetime
) -> _Contest:
    """The contenders of one suite, and why others have no rank on some of its benchmarks."""
    succeeded = [entry for entry in entries if entry.ok]
    unranked = _find_unranked(store, [entry for entry in entries if not entry.ok])
    left_out = {(missing_agent.agent, missing_agent.benchmark) for missing_agent in unranked}
    failed: dict[str, list[str]] = {}
    for entry in entries:
        if not entry.ok and (entry.contender, entry.benchmark) not in left_out:
            failed.setdefault(entry.contender, []).append(entry.benchmark)
    return _Contest(
        name,
        category,
        store.benchmarks(name),
        _contenders(store, succeeded, now) if succeeded else [],
        [
            f"{agent} has no successful, scored execution on {', '.join(names)}, so it is not ranked there."
            for agent, names in failed.items()
        ]
        + [
            f"{missing_agent.agent} on {missing_agent.benchmark}: {missing_agent.reason}. See why: assay show {missing_agent.run}"
            for missing_agent in unranked
        ],
        min((_find_next_age(entry, now) for entry in succeeded), default=now + timedelta(days=1)),
        unranked,
    )


def _find_unranked(store: Store, entries: Sequence[RankedTrial]) -> list[Unranked]:
    """The trials among these that are incomplete; the others have no result at all."""
    from assay.analysis.ranking.ratings import describe_incomplete

    ratings = store.ratings([entry.trial_id for entry in entries]) if entries else {}
    return [
        Unranked(
            entry.contender,
            entry.agent_version,
            entry.benchmark,
            entry.run_id,
            rated.overall,
            describe_incomplete(rated),
        )
        for entry in entries
        if (rated := ratings.get(entry.trial_id)) is not None and rated.is_incomplete
    ]


def _describe_nothing_to_rank(chosen: Filter, failed: Sequence[str]) -> str:
    """Why there is nothing to rank, with what to do: nothing ran, everything failed, or the filters are too narrow."""
    filters = [
        f" of suite '{chosen.suite}'" if chosen.suite else "",
        f" of category '{chosen.category}'" if chosen.category else "",
        f" with the tag '{chosen.tag}'" if chosen.tag else "",
        f" since {chosen.since:%Y-%m-%d %H:%M}" if chosen.since else "",
    ]
    missing = f"There are no results{''.join(filters)} to rank."
    if failed:
        return f"{missing} {', '.join(failed)}: incomplete, or no execution was successful and scored. See why: assay show last"
    if chosen.tag or chosen.since:
        return f"{missing} Remove --tag, --days or --since."
    return f"{missing} Run a suite first: assay run SUITE --agent A --agent B"


def _contenders(store: Store, entries: Sequence[RankedTrial], now: datetime) -> list[Contender]:
    """The agents that are ranked, each with all of its trials on the suite."""
    from assay.pipeline.ratings import read_ratings

    ratings = read_ratings(store, entries)
    by_name: dict[str, list[RankedTrial]] = {}
    for entry in entries:
        by_name.setdefault(entry.contender, []).append(entry)
    return [_contender(name, trials, ratings, now) for name, trials in by_name.items()]


def _contender(
    name: str, entries: Sequence[RankedTrial], ratings: Mapping[int, Ratings], now: datetime
) -> Contender:
    """An agent with its ratings by benchmark, and with all that makes some of them count less: old, partial, or outdated
    results."""
    newest = max(entries, key=lambda entry: entry.ended)
    return Contender(
        name,
        newest.agent_version,
        {entry.benchmark: ratings[entry.trial_id] for entry in entries},
        any(entry.simulated for entry in entries),
        newest.ended,
        hashes={entry.benchmark: entry.benchmark_hash for entry in entries},
        stale={entry.benchmark: why for entry in entries if (why := _why_stale(entry, now))},
        partial={e.benchmark: f"{e.cases} of {e.all_cases}" for e in entries if not e.is_whole},
        runs={entry.benchmark: entry.run_id for entry in entries},
        outdated=frozenset(entry.benchmark for entry in entries if not entry.is_current),
    )


def _find_next_age(entry: RankedTrial, now: datetime) -> datetime:
    """When `_why_stale` will say something else of it, if nothing changes but the time."""
    return entry.ended + timedelta(days=max((now - entry.ended).days, STALE_DAYS) + 1)


def _why_stale(entry: RankedTrial, now: datetime) -> str:
    """Why a result may not describe the agent of today; empty if it does. The most serious reason comes first."""
    if not entry.is_current:
        return "the benchmark has changed since, so it does not count for the rank"
    if entry.given_up is not None and entry.given_up > entry.started:
        return "a newer run was interrupted"
    if entry.failed is not None and entry.failed > entry.started:
        return "a newer run is incomplete, or has no successful, scored execution"
    days = (now - entry.ended).days
    return f"{days} days old" if days > STALE_DAYS else ""

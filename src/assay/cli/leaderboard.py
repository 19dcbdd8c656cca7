"""`assay leaderboard`: who leads, and who is really apart."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from assay.cli.session import Session, common

if TYPE_CHECKING:
    from assay.model import Leaderboard, Standing
    from assay.model.standing import Across, Overview
    from assay.store.standings import Filter


@click.command()
@click.option("--suite", metavar="S", help="Only of this suite.")
@click.option("--category", metavar="C", help="Only of suites of this category.")
@click.option(
    "--metric",
    metavar="M",
    default="overall",
    show_default=True,
    help="overall, accuracy, speed, efficiency, cost or reliability.",
)
@click.option(
    "--limit", type=click.IntRange(min=1), default=20, show_default=True, metavar="N", help="At most N rows."
)
@click.option("--days", type=click.IntRange(min=1), metavar="N", help="Only runs of the last N days.")
@click.option(
    "--since",
    type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M"]),
    metavar="DATE",
    help="Only runs since then, UTC.",
)
@click.option("--tag", metavar="T", help="Only runs with this tag.")
@common
def leaderboard(session: Session, metric: str, limit: int, **chosen: Any) -> None:
    """Agents by their latest results, with intervals; agents of one tier are not really apart."""
    from assay.pipeline import standing

    with session.store() as store:
        found = standing.overview(store, filter_of(**chosen), metric)
    boards = found.each
    if session.is_json:
        across = [_across(found.across, limit)] if found.across else []
        session.emit([*(_document(board, limit) for board in boards), *across])
        return
    from assay.report.board import print_across, print_board

    console = session.console()
    for number, board in enumerate(boards):
        if number:
            console.print()
        print_board(board, console, limit)
    if found.across is not None:
        console.print()
        print_across(found.across, console, limit)
    _name_next(session, boards)


def filter_of(
    suite: str | None = None,
    category: str | None = None,
    days: int | None = None,
    since: datetime | None = None,
    tag: str | None = None,
) -> Filter:
    """Which trials to rank; of --days and --since the later goes."""
    from assay.store.standings import Filter

    begins = [
        *([since.replace(tzinfo=UTC)] if since else []),
        *([datetime.now(UTC) - timedelta(days=days)] if days else []),
    ]
    return Filter(suite, category, max(begins, default=None), tag)


def _name_next(session: Session, boards: list[Leaderboard]) -> None:
    agents = [row.contender.agent for row in boards[0].standings]
    best = [quote(name) for name in agents if "[" not in name][
        :2
    ]  # points of a sweep are no agents to be named
    if len(best) == 2:
        session.next(f"assay compare {' '.join(best)}", "assay matrix --head-to-head")
    else:
        session.next(f"assay run {quote(boards[0].suite)} --agent A --agent B", "assay matrix")


def _document(board: Leaderboard, limit: int) -> dict[str, Any]:
    return {
        "suite": board.suite,
        "category": board.category,
        "metric": board.metric,
        "benchmarks": list(board.benchmarks),
        "dimensions": list(board.dimensions),
        "pareto_dimensions": list(board.pareto),
        "standings": [_row(row) for row in board.standings[:limit]],
        "simulated": [_row(row) for row in board.simulated[:limit]],
        "warnings": list(board.doubts),
    }


def _across(across: Across, limit: int) -> dict[str, Any]:
    """Comes after the boards, and has `across` where they have the name of a suite."""
    return {
        "suite": None,
        "across": list(across.suites),
        "metric": across.metric,
        "statistic": "interquartile mean over benchmarks",
        "benchmarks": across.benchmarks,
        "standings": [_overview(row) for row in across.rows[:limit]],
        "simulated": [_overview(row) for row in across.simulated[:limit]],
        "warnings": list(across.doubts),
    }


def _overview(row: Overview) -> dict[str, Any]:
    return {
        "agent": row.agent,
        "rank": [row.place.best, row.place.worst],
        "score": row.score.value,
        "interval": [row.score.low, row.score.high],
        "mean": row.mean,
    }


def _row(row: Standing) -> dict[str, Any]:
    return {
        "agent": row.contender.agent,
        "version": row.contender.version,
        "tier": row.tier,
        "rank": [row.best_rank, row.worst_rank],
        "score": row.score.value,
        "interval": [row.score.low, row.score.high],
        "dimensions": {name: rating.value for name, rating in row.dimensions.items()},
        "benchmarks_completed": row.coverage,
        "partial": dict(row.contender.partial),
        "stale": dict(row.contender.stale),
        "is_pareto": row.is_pareto,
        "dominated_by": list(row.dominated_by),
        "latest": row.contender.latest,
    }

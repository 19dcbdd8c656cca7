"""`assay leaderboard`: who leads, and who is really apart."""

from __future__ import annotations

from typing import Any

import click

from assay.cli.session import Session, common

METRICS = ("overall", "accuracy", "speed", "efficiency", "cost", "reliability")


@click.command()
@click.option("--suite", metavar="S", help="Of this suite; default: that of the latest run.")
@click.option("--category", metavar="C", help="Only if the suite is of this category.")
@click.option("--metric", type=click.Choice(METRICS), default="overall", show_default=True)
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, metavar="N")
@common
def leaderboard(session: Session, suite: str | None, category: str | None, metric: str, limit: int) -> None:
    """Agents by their latest results, with intervals; agents of one tier are not really apart."""
    from assay.pipeline import standing

    with session.store() as store:
        boards = standing.leaderboards(store, suite=suite, category=category, metric=metric)
    if session.is_json:
        session.emit([_document(board, limit) for board in boards])
        return
    from assay.report.board import print_board

    for board in boards:
        print_board(board, session.console(), limit)
    best = [row.contender.agent for row in boards[0].standings[:2]] if boards else []
    session.next(
        f"assay compare {' '.join(best)}" if len(best) == 2 else "assay run SUITE --agent A --agent B"
    )


def _document(board: Any, limit: int) -> dict[str, Any]:
    return {
        "suite": board.suite,
        "metric": board.metric,
        "dimensions": list(board.dimensions),
        "standings": [_row(row) for row in board.standings[:limit]],
        "simulated": [_row(row) for row in board.simulated[:limit]],
        "warnings": list(board.doubts),
    }


def _row(row: Any) -> dict[str, Any]:
    return {
        "agent": row.contender.agent,
        "version": row.contender.version,
        "tier": row.tier,
        "rank": [row.best_rank, row.worst_rank],
        "score": row.score.value,
        "interval": [row.score.low, row.score.high],
        "dimensions": {name: rating.value for name, rating in row.dimensions.items()},
        "benchmarks_completed": row.coverage,
        "dominated_by": list(row.dominated_by),
        "latest": row.contender.latest,
    }

"""`assay leaderboard`: rank agents by their latest results.

Agents whose difference may be noise share a tier. With results of several suites there is a board for each and one across
all of them.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from assay.cli.options import shared_option
from assay.cli.pages import format_names, page_options, show
from assay.cli.session import Session, common
from assay.text import shell_command

if TYPE_CHECKING:
    from assay.model import Leaderboard


@click.command()
@click.option("--suite", metavar="S", help="Only results of this suite.")
@click.option("--category", metavar="C", help="Only results of suites in this category.")
@click.option(
    "--metric",
    metavar="M",
    default="overall",
    show_default=True,
    help="overall, accuracy, speed, efficiency, cost or reliability.",
)
@shared_option("--limit", "At most N rows.", default=20, show_default=True)
@click.option("--days", type=click.IntRange(min=1), metavar="N", help="Only runs of the last N days.")
@click.option(
    "--since",
    type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M"]),
    metavar="DATE",
    help="Only runs since this date (UTC).",
)
@click.option("--tag", metavar="T", help="Only runs with this tag.")
@page_options
@common
def leaderboard(
    session: Session, metric: str, limit: int, formats: str | None, out: Path | None, **chosen: Any
) -> None:
    """Rank agents by their latest results, with intervals. Agents in one tier are tied."""
    from assay.pipeline import leaderboard as standing

    names = format_names(formats, out)
    with session.store() as store:
        found = standing.overview(store, standing.filter_of(**chosen), metric)
    from assay.report.documents.leaderboard import leaderboard_document
    from assay.report.pages.board import leaderboard_page

    page = partial(leaderboard_page, found, limit)
    if show(session, page, lambda: leaderboard_document(found, limit), names, out):
        _name_next(session, found.each)


def _name_next(session: Session, boards: list[Leaderboard]) -> None:
    """Suggest to compare the two best agents, or to run more of them where there are not two."""
    agents = [row.contender.agent for row in boards[0].standings]
    best = [name for name in agents if "[" not in name][:2]  # points of a sweep cannot be named as agents
    if len(best) == 2:
        session.next(shell_command("compare", *best), "assay matrix --head-to-head")
    else:
        session.next(
            shell_command("run", boards[0].suite, options=["--agent", "A", "--agent", "B"]), "assay matrix"
        )

"""`assay matrix`: show the ratings of every agent on every dimension, and who wins against whom.

It has the evidence of the leaderboard, dimension by dimension. Which agent is significantly better is corrected over all pairs of agents and
all dimensions, so a large matrix needs stronger evidence for each of its claims than a comparison of two agents.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from assay.cli.pages import format_names, page_options, show
from assay.cli.session import Session, common
from assay.text import shell_command

if TYPE_CHECKING:
    from assay.report.pages.page import Page


@click.command()
@click.option("--suite", metavar="S", help="Only results of this suite.")
@click.option("--head-to-head", is_flag=True, help="Each pair of agents: dimensions won, lost and undecided.")
@page_options
@common
def matrix(
    session: Session, suite: str | None, head_to_head: bool, formats: str | None, out: Path | None
) -> None:
    """Show every agent on the five dimensions and overall. Agents that share a rank do not differ significantly."""
    from assay.pipeline import leaderboard as standing

    names = format_names(formats, out)
    with session.store() as store:
        matrices = standing.matrices(store, standing.filter_of(suite))
    from assay.report.documents.leaderboard import matrix_document
    from assay.report.pages.board import matrix_page

    def page() -> Page:
        return matrix_page(matrices, has_duels=head_to_head or bool(names))

    if not show(session, page, lambda: [matrix_document(found) for found in matrices], names, out):
        return
    more = [] if head_to_head else ["assay matrix --head-to-head"]
    session.next(
        *more, shell_command("leaderboard", options=["--suite", matrices[0].suite, "--metric", "accuracy"])
    )

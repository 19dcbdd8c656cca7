"""Radar charts of ratings: those of a contest, and those over all benchmarks of a suite."""

from __future__ import annotations

from collections.abc import Collection

from assay.model import DIMENSIONS, Leaderboard
from assay.plugin.charts import Spec
from assay.plugin.radar import draw_radar
from assay.report.side_by_side import Contest, heading, rating_text

_FEWEST = 3
"""With fewer corners there is no polygon."""


def radar(contest: Contest) -> Spec:
    """Ratings on the dimensions that every agent has; a point farther out is better."""
    corners = {
        entry.label: [
            (entry.rating(name).value or 0.0, rating_text(entry.rating(name))) for name in contest.shared
        ]
        for entry in contest.entries
    }
    return draw_radar(
        f"Ratings, {heading(contest)}", "0 at the centre, 1 at the rim", contest.shared, corners
    )


def draw_standings(board: Leaderboard, agents: Collection[str]) -> Spec | None:
    """The ratings of these agents over all benchmarks of a suite, on the dimensions that all of them have; None below three."""
    rows = [row for row in board.standings or board.simulated if row.contender.agent in agents]
    names = [
        name for name in DIMENSIONS if rows and all(row.dimensions[name].value is not None for row in rows)
    ]
    if len(names) < _FEWEST:
        return None
    corners = {
        row.contender.agent: [
            (row.dimensions[name].value or 0.0, rating_text(row.dimensions[name])) for name in names
        ]
        for row in rows
    }
    return draw_radar(f"Ratings, {board.suite}", "0 at the centre, 1 at the rim", names, corners)

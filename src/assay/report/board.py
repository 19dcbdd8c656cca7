"""A leaderboard for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from assay.model import DIMENSIONS, Leaderboard, Rating, Standing
from assay.report.contests import value_text
from assay.report.figures import NOTHING
from assay.report.screen import NARROW, bullet, joined, literal, new_table

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

_SHORT = {"accuracy": "Acc", "speed": "Speed", "efficiency": "Eff", "cost": "Cost", "reliability": "Rel"}


def print_board(board: Leaderboard, console: Console, limit: int = 20) -> None:
    """Tiers are set apart by a line: within one, nobody is certainly better than another."""
    console.print(joined(literal(board.suite, "bold"), literal(f" by {board.metric}")))
    if board.standings:
        _print_rows(board.standings[:limit], board.metric, console)
    if board.simulated:
        console.print(
            "\nSimulated: these figures are made up, not measured, so they have a board of their own"
        )
        _print_rows(board.simulated[:limit], board.metric, console)
    for doubt in board.doubts:
        console.print(bullet("!", doubt, "yellow"))
    for row in board.standings:
        if row.dominated_by:
            told = f"{row.contender.agent} is dominated by {', '.join(row.dominated_by)} in quality, cost and speed"
            console.print(literal(told, "dim"))


def _print_rows(rows: Sequence[Standing], metric: str, console: Console) -> None:
    is_wide = console.width >= NARROW
    table = _table(metric, is_wide)
    tier = rows[0].tier
    for row in rows:
        if row.tier != tier:
            table.add_section()
            tier = row.tier
        table.add_row(*_cells(row, metric, is_wide))
    console.print(table)


def _table(metric: str, is_wide: bool) -> Table:
    table = new_table()
    table.add_column("Rank", justify="right", no_wrap=True)
    table.add_column("Agent", overflow="fold")
    table.add_column(literal(f"{metric.capitalize()} [interval]"), justify="right", no_wrap=True)
    for name in DIMENSIONS:
        if name != metric:
            table.add_column(name.capitalize() if is_wide else _SHORT[name], justify="right", no_wrap=True)
    table.add_column("Benchmarks" if is_wide else "Bench", justify="right", no_wrap=True)
    return table


def _cells(row: Standing, metric: str, is_wide: bool) -> list[Text]:
    place = str(row.best_rank) if row.best_rank == row.worst_rank else f"{row.best_rank}–{row.worst_rank}"
    version = f" {row.contender.version}" if is_wide and row.contender.version else ""
    name = joined(literal(row.contender.agent), literal(version, "dim"))
    others = [_short(row.dimensions[dimension]) for dimension in DIMENSIONS if dimension != metric]
    return [literal(place), name, _full(row.score), *others, literal(row.coverage)]


def _full(rating: Rating) -> Text:
    if rating.value is None:
        return literal(NOTHING)
    interval = "" if rating.low is None else f" [{rating.low:.3f}, {rating.high:.3f}]"
    return joined(literal(f"{rating.value:.3f}", "bold"), literal(interval, "dim"))


def _short(rating: Rating) -> Text:
    return literal(value_text(rating))

"""A leaderboard for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from assay.model import DIMENSIONS, Leaderboard, Rating, Standing

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


def print_board(board: Leaderboard, console: Console, limit: int = 20) -> None:
    """Tiers are set apart by a line: within one, nobody is certainly better than another."""
    console.print(_text(board.suite, "bold").append(f" by {board.metric}", style="not bold"))
    _print_rows(board.standings[:limit], board.metric, console)
    if board.simulated:
        console.print("\nSimulated agents, on a board of their own: their figures are made up, not measured")
        _print_rows(board.simulated[:limit], board.metric, console)
    for doubt in board.doubts:
        console.print(f"[yellow]![/] {doubt}")
    dominated = [row for row in board.standings if row.dominated_by]
    for row in dominated:
        console.print(
            f"[dim]{row.contender.agent} is dominated by {', '.join(row.dominated_by)} in quality, cost and speed[/]"
        )


def _print_rows(rows: Sequence[Standing], metric: str, console: Console) -> None:
    from rich import box
    from rich.table import Table

    is_wide = console.width >= 100
    table = Table(
        box=box.SIMPLE_HEAD,
        header_style="dim",
        show_edge=False,
        pad_edge=False,
        padding=(0, 1),
        collapse_padding=True,
    )
    table.add_column("Rank", justify="right", no_wrap=True)
    table.add_column("Agent", overflow="fold")
    table.add_column(f"{metric.capitalize()} [interval]", justify="right", no_wrap=True)
    for name in DIMENSIONS:
        if name != metric:
            table.add_column(name.capitalize() if is_wide else _SHORT[name], justify="right", no_wrap=True)
    table.add_column("Benchmarks" if is_wide else "Bench", justify="right", no_wrap=True)
    tier = 1
    for row in rows:
        if row.tier != tier:
            table.add_section()
            tier = row.tier
        table.add_row(*_cells(row, metric, is_wide))
    console.print(table)


_SHORT = {"accuracy": "Acc", "speed": "Speed", "efficiency": "Eff", "cost": "Cost", "reliability": "Rel"}


def _cells(row: Standing, metric: str, is_wide: bool) -> list[Text]:
    place = str(row.best_rank) if row.best_rank == row.worst_rank else f"{row.best_rank}–{row.worst_rank}"
    others = [_short(row.dimensions[name]) for name in DIMENSIONS if name != metric]
    name = (
        f"{row.contender.agent} [dim]{row.contender.version}[/]"
        if row.contender.version
        else row.contender.agent
    )
    return [place, name, _full(row.score), *others, row.coverage]


def _full(rating: Rating) -> str:
    if rating.value is None:
        return "–"
    return f"{rating.value:.3f} [dim]{rating.low:.3f} to {rating.high:.3f}[/]"


def _short(rating: Rating) -> str:
    return "–" if rating.value is None else f"{rating.value:.2f}"

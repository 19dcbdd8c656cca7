"""A leaderboard for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from assay.model import DIMENSIONS, Leaderboard, Rating, Standing

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

_SHORT = {"accuracy": "Acc", "speed": "Speed", "efficiency": "Eff", "cost": "Cost", "reliability": "Rel"}
_WIDE = 100


def print_board(board: Leaderboard, console: Console, limit: int = 20) -> None:
    """Tiers are set apart by a line: within one, nobody is certainly better than another."""
    console.print(_text(board.suite, "bold").append(f" by {board.metric}", style="not bold"))
    if board.standings:
        _print_rows(board.standings[:limit], board.metric, console)
    if board.simulated:
        console.print(
            "\nSimulated: these figures are made up, not measured, so they have a board of their own"
        )
        _print_rows(board.simulated[:limit], board.metric, console)
    for doubt in board.doubts:
        console.print(_text("! ", "yellow").append(doubt, style="not yellow"))
    for row in board.standings:
        if row.dominated_by:
            told = f"{row.contender.agent} is dominated by {', '.join(row.dominated_by)} in quality, cost and speed"
            console.print(_text(told, "dim"))


def _print_rows(rows: Sequence[Standing], metric: str, console: Console) -> None:
    is_wide = console.width >= _WIDE
    table = _table(metric, is_wide)
    tier = rows[0].tier
    for row in rows:
        if row.tier != tier:
            table.add_section()
            tier = row.tier
        table.add_row(*_cells(row, metric, is_wide))
    console.print(table)


def _table(metric: str, is_wide: bool) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(
        box=box.SIMPLE_HEAD, header_style="dim", show_edge=False, pad_edge=False, collapse_padding=True
    )
    table.add_column("Rank", justify="right", no_wrap=True)
    table.add_column("Agent", overflow="fold")
    table.add_column(f"{metric.capitalize()} [interval]".replace("[", r"\["), justify="right", no_wrap=True)
    for name in DIMENSIONS:
        if name != metric:
            table.add_column(name.capitalize() if is_wide else _SHORT[name], justify="right", no_wrap=True)
    table.add_column("Benchmarks" if is_wide else "Bench", justify="right", no_wrap=True)
    return table


def _cells(row: Standing, metric: str, is_wide: bool) -> list[Text]:
    place = str(row.best_rank) if row.best_rank == row.worst_rank else f"{row.best_rank}–{row.worst_rank}"
    name = _text(row.contender.agent)
    if is_wide and row.contender.version:
        name.append(f" {row.contender.version}", style="dim")
    others = [_short(row.dimensions[dimension]) for dimension in DIMENSIONS if dimension != metric]
    return [_text(place), name, _full(row.score), *others, _text(row.coverage)]


def _full(rating: Rating) -> Text:
    if rating.value is None:
        return _text("–")
    interval = "" if rating.low is None else f" [{rating.low:.3f}, {rating.high:.3f}]"
    return _text(f"{rating.value:.3f}", "bold").append(interval, style="not bold dim")


def _short(rating: Rating) -> Text:
    return _text("–" if rating.value is None else f"{rating.value:.2f}")


def _text(text: str, style: str = "") -> Text:
    """Data as it is: an agent's name is not read as markup."""
    from rich.text import Text

    return Text(text, style)

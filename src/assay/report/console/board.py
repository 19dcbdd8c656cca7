"""Leaderboards and matrices for the terminal.

A rank is shown as a range such as 1–3 where the intervals of agents overlap, because the data does not decide their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from assay.model import DIMENSIONS, Leaderboard, Rating, Standing
from assay.model.rating import QUANTITIES
from assay.model.standing import Across, Contender, Duel, Matrix, MatrixRow, Overview, RankRange
from assay.report.console.screen import NARROW, bullet, join_texts, literal, new_table
from assay.report.documents.references import used_references
from assay.report.figures import NOTHING
from assay.report.leads import board_sentence
from assay.report.side_by_side import ends_text, value_text
from assay.report.sides import print_sides
from assay.text import shell_command
from assay.units import and_list

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from assay.model.comparison import ComparisonSides
    from assay.model.standing import Boards

_SHORT = {
    "overall": "Overall",
    "accuracy": "Acc",
    "speed": "Speed",
    "efficiency": "Eff",
    "cost": "Cost",
    "reliability": "Rel",
}
_SIMULATED = "Simulated agents, ranked separately: their figures come from a model"
_QUALITY = {"accuracy": "quality", "cost": "cost", "speed": "latency"}


def print_boards(found: Boards, console: Console, limit: int = 20) -> None:
    """A leaderboard for each suite, then one across all of them."""
    for number, board in enumerate(found.each):
        if number:
            console.print()
        print_board(board, console, limit)
    if len(found.each) > 1 and found.across is not None:
        console.print()
        print_across(found.across, console, limit)


def print_board(board: Leaderboard, console: Console, limit: int = 20) -> None:
    """Tiers are set apart by a line: every agent above it is significantly better than every agent below."""
    console.print(
        join_texts(literal(board.suite, "bold"), literal(f" by {board.metric}"), _category(board.category))
    )
    # One width for both tables, so that their columns line up.
    widest = max((len(row.contender.agent) for row in (*board.standings, *board.simulated)), default=0)
    if board.standings:
        _print_rows(board.standings[:limit], board, console, widest)
    if board.simulated:
        console.print(literal(_SIMULATED, "yellow"))
        _print_rows(board.simulated[:limit], board, console, widest, has_header=not board.standings)
    for line in legend_lines(board):
        console.print(literal(line, "dim"))
    left_out = max(0, len(board.standings) - limit) + max(0, len(board.simulated) - limit)
    if left_out:
        console.print(literal(f"{left_out} more: --limit {limit + left_out}", "dim"))
    _print_doubts(board.doubts, console)
    if sentence := board_sentence(board):
        console.print(bullet("=", sentence, "cyan"))


def print_across(across: Across, console: Console, limit: int = 20) -> None:
    """All benchmarks at once, by the middle half of an agent's results."""
    suites = f"{len(across.suites)} suites" if len(across.suites) > 1 else across.suites[0]
    title = f"Across {suites}" if len(across.suites) > 1 else f"Across the benchmarks of {suites}"
    console.print(
        join_texts(literal(title, "bold"), literal(f" by {across.metric}, {across.benchmarks} benchmarks"))
    )
    if across.rows:
        console.print(_across_table(across.rows[:limit]))
    if across.simulated:
        console.print(join_texts(literal("\n" if across.rows else ""), literal(_SIMULATED, "yellow")))
        console.print(_across_table(across.simulated[:limit]))
    console.print(
        literal(
            "The interquartile mean leaves out the best and the worst quarter of an agent's benchmarks", "dim"
        )
    )
    _print_doubts(across.doubts, console)


def _across_table(rows: Sequence[Overview]) -> Table:
    table = new_table()
    table.add_column("Rank", justify="right", no_wrap=True)
    table.add_column("Agent", overflow="fold", min_width=12)
    for title in ("Interquartile mean [interval]", "Mean"):
        table.add_column(literal(title), justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            _place(row.place), literal(row.agent), _full(row.score), literal(f"{row.mean:.3f}", "dim")
        )
    return table


def _category(category: str) -> Text:
    return literal(f" · category {category}" if category else "", "dim")


def _print_doubts(doubts: Iterable[str], console: Console) -> None:
    for doubt in doubts:
        console.print(bullet("!", doubt, "yellow"))


def legend_lines(board: Leaderboard) -> Iterator[str]:
    rows = (*board.standings, *board.simulated)
    if any(row.is_pareto for row in rows) and len(rows) > 1:
        axes = [_QUALITY[name] for name in board.pareto]
        yield f"◆ on the Pareto front of {and_list(axes)}"
    for row in rows:
        if row.dominated_by:
            yield f"{row.contender.agent} is dominated by {', '.join(row.dominated_by)}"
    yield from _references(board)


def _references(board: Leaderboard) -> Iterator[str]:
    """List where the references come from; another command shows their values."""
    sources: dict[str, dict[str, None]] = {}
    for row in (*board.standings, *board.simulated):
        for ratings in row.contender.ratings.values():
            for name, reference in used_references(ratings).items():
                sources.setdefault(str(reference), {})[QUANTITIES[name]] = None
    if sources:
        listed = "; ".join(f"{', '.join(names)}: {source}" for source, names in sources.items())
        yield f"Relative to a reference ({listed}); see {shell_command('suite reference', board.suite)}"


def _print_rows(
    rows: Sequence[Standing], board: Leaderboard, console: Console, widest: int, *, has_header: bool = True
) -> None:
    """One table of agents, with a line between tiers."""
    is_wide = console.width >= NARROW
    # Measured and simulated agents stand in two tables whose columns line up.
    table = _table(board.metric, is_wide, max(12, min(widest + 2, 24)))
    table.show_header = has_header
    tier = rows[0].tier
    for row in rows:
        if row.tier != tier:
            table.add_section()
            tier = row.tier
        table.add_row(*_cells(row, board.metric, is_wide, is_alone=len(rows) == 1))
    console.print(table)


def _table(metric: str, is_wide: bool, name_width: int) -> Table:
    """The columns of a leaderboard. Widths are fixed, so that the tables of measured and simulated agents line up."""
    table = new_table(tight=not is_wide)
    table.add_column("Rank", justify="right", no_wrap=True, min_width=4)
    table.add_column("Agent", overflow="fold", min_width=name_width)
    titles = [
        f"{metric.capitalize()} [interval]",
        *(name.capitalize() if is_wide else _SHORT[name] for name in DIMENSIONS if name != metric),
        "Benchmarks" if is_wide else "Done",
    ]
    for title in titles:
        width = len("0.000 [0.000, 0.000]") if "[" in title else max(4, len(title))
        table.add_column(literal(title), justify="right", no_wrap=True, min_width=width)
    return table


def _cells(row: Standing, metric: str, is_wide: bool, *, is_alone: bool) -> list[Text]:
    front = literal(" ◆" if row.is_pareto and not is_alone else "", "cyan")
    name = join_texts(_format_agent(row.contender, is_wide), front)
    others = [
        literal(value_text(row.dimensions[dimension])) for dimension in DIMENSIONS if dimension != metric
    ]
    return [
        _place(RankRange(row.best_rank, row.worst_rank)),
        name,
        _full(row.score),
        *others,
        literal(row.coverage),
    ]


def _format_agent(contender: Contender, is_wide: bool) -> Text:
    version = f" {contender.version[:12]}" if is_wide and contender.version else ""
    kinds = {"recorded": contender.is_recorded, "partial": contender.partial, "stale": contender.stale}
    marks = [name for name, holds in kinds.items() if holds]
    marked = literal(f" ({', '.join(marks)})" if marks else "", "yellow")
    return join_texts(literal(contender.agent), literal(version, "dim"), marked)


def _place(place: RankRange | None) -> Text:
    if place is None:
        return literal(NOTHING, "dim")
    return literal(str(place.best) if place.best == place.worst else f"{place.best}–{place.worst}")


def _full(rating: Rating) -> Text:
    if rating.value is None:
        return literal(NOTHING)
    interval = "" if rating.low is None else f" [{rating.low:.3f}, {rating.high:.3f}]"
    return join_texts(literal(f"{rating.value:.3f}", "bold"), literal(interval, "dim"))


def print_matrix(matrix: Matrix, console: Console) -> None:
    """A rank is a range where agents are not really apart."""
    console.print(
        join_texts(literal(matrix.suite, "bold"), literal(" agents × dimensions"), _category(matrix.category))
    )
    if matrix.rows:
        console.print(_matrix_table(matrix.rows, console.width))
    if matrix.simulated:
        console.print(join_texts(literal("\n" if matrix.rows else ""), literal(_SIMULATED, "yellow")))
        console.print(_matrix_table(matrix.simulated, console.width))
    console.print(literal("#: the rank on that dimension, a range where the order is uncertain", "dim"))
    _print_doubts(matrix.doubts, console)


def _matrix_table(rows: Sequence[MatrixRow], width: int) -> Table:
    is_wide = width >= NARROW
    table = new_table(tight=not is_wide)
    table.add_column("Agent", overflow="fold", min_width=12)
    for name in ("overall", *DIMENSIONS):
        table.add_column(name.capitalize() if is_wide else _SHORT[name], justify="right", no_wrap=True)
    table.add_column("Benchmarks" if is_wide else "Done", justify="right", no_wrap=True)
    for row in rows:
        cells = [_format_rating(row, name, is_wide) for name in ("overall", *DIMENSIONS)]
        table.add_row(_format_agent(row.contender, is_wide), *cells, literal(row.coverage))
    return table


def _format_rating(row: MatrixRow, name: str, is_wide: bool) -> Text:
    rating, place = row.ratings[name], row.places.get(name)
    if rating.value is None:
        return literal(NOTHING, "dim")
    leads = place is not None and place.best == place.worst == 1
    value = literal(value_text(rating), "bold green" if leads else "bold" if name == "overall" else "")
    rank = join_texts(literal(" #" if is_wide else "\n#", "dim"), _place(place))
    return join_texts(value, rank, literal(f"\n{ends_text(rating)}" if is_wide else "", "dim"))


def print_all_pairs(matrix: Matrix, refs: Sequence[str], sides: ComparisonSides, console: Console) -> None:
    """Several agents compared with each other, and the runs that their figures come from."""
    print_sides(refs, sides.reports, console)
    print_matrix(matrix, console)
    console.print()
    print_head_to_head(matrix, console)
    _print_doubts(map(str, sides.doubts), console)


def print_head_to_head(matrix: Matrix, console: Console) -> None:
    """Row against column: dimensions that the row's agent has won significantly, and those that it has lost."""
    sides = [[row.contender.agent for row in rows] for rows in (matrix.rows, matrix.simulated)]
    if not matrix.duels:
        console.print(literal("Head to head: fewer than two agents to compare.", "dim"))
    for names in sides:
        if len(names) > 1:
            console.print(
                literal("Head to head: dimensions won – lost significantly, row against column", "bold")
            )
            _print_duels(names, _count_duels(matrix.duels), console)


def _count_duels(duels: Iterable[Duel]) -> dict[tuple[str, str], tuple[int, int, int]]:
    found = {}
    for duel in duels:
        won, lost, open_ = len(duel.won), len(duel.lost), len(duel.undecided)
        found[duel.a, duel.b], found[duel.b, duel.a] = (won, lost, open_), (lost, won, open_)
    return found


def _print_duels(
    names: Sequence[str], pairs: dict[tuple[str, str], tuple[int, int, int]], console: Console
) -> None:
    """The whole square where it fits; the sums in any case."""
    fits = len(names) * 6 + 50 <= console.width
    table = new_table(tight=console.width < NARROW)
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("Agent", overflow="fold", min_width=12)
    for number in range(1, len(names) + 1) if fits else ():
        table.add_column(literal(f"v{number}"), justify="right", no_wrap=True)
    for title in ("Won", "Lost", "Undecided"):
        table.add_column(title, justify="right", no_wrap=True)
    for number, name in enumerate(names, 1):
        against = [pairs.get((name, other)) for other in names]
        sums = [sum(counts) for counts in zip(*filter(None, against), strict=True)]
        cells = [_duel(counts) for counts in against] if fits else []
        totals = [
            literal(str(total), style) for total, style in zip(sums, ("green", "red", "dim"), strict=True)
        ]
        table.add_row(literal(str(number), "dim"), literal(name), *cells, *totals)
    console.print(table)


def _duel(counts: tuple[int, int, int] | None) -> Text:
    if counts is None:
        return literal("")
    won, lost, _ = counts
    style = "green" if won > lost else "red" if lost > won else "dim"
    return literal(f"{won}–{lost}", style)

"""Leaderboards and matrices as a `Page`, from which Markdown and HTML are written.

Agents without a certain difference share a range of ranks; the order within it is that of their figures.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from assay.model import DIMENSIONS, Doubt, Leaderboard, Rating, Standing
from assay.model.standing import Across, Contender, Duel, Matrix, MatrixRow, Overview, RankRange
from assay.report.console.board import legend_lines
from assay.report.figures import NOTHING
from assay.report.leads import board_sentence, leaders_text, names_text
from assay.report.pages.page import Cell, Page, PageSection, Table
from assay.report.side_by_side import rating_text
from assay.units import format_count

_NAMED = 5
_MARKED = 3
"""Agents that may be among the first three are marked."""
_SIMULATED = "simulated agents, ranked separately"


def leaderboard_page(boards: Sequence[Leaderboard], across: Across | None, limit: int) -> Page:
    """A section for each suite; the first, which was run last, gives the verdict."""
    first = boards[0]
    sections = [section for board in boards for section in board_sections(board, limit, len(boards) > 1)]
    if across is not None:
        sections += _across_sections(across, limit)
    rows = first.standings if len(first.standings) > 1 else first.simulated
    scores = [f"{row.contender.agent} {rating_text(row.score)}" for row in rows[:_NAMED]]
    verdict = board_sentence(first).rstrip(".")
    all_rows = (row for board in boards for row in (*board.standings, *board.simulated))
    latest = max((row.contender.latest for row in all_rows if row.contender.latest), default=None)
    dates = [f"latest result {latest:%Y-%m-%d %H:%M} UTC"] if latest else []
    return Page(
        title=f"Leaderboard of {first.suite}" if len(boards) == 1 else "Leaderboard",
        kind="leaderboard",
        facts=[f"by {first.metric}", *(f"suite {board.suite}" for board in boards), *dates],
        verdict=verdict if len(boards) == 1 or not verdict else f"{first.suite}: {verdict}",
        is_certain=sum(row.best_rank == 1 for row in rows) == 1,
        reasons=[f"{first.metric.capitalize()}: {', '.join(scores)}."] if len(rows) > 1 else [],
        sections=sections,
        warnings=_doubts(doubt for board in boards for doubt in board.doubts),
    )


def _doubts(texts: Iterable[str]) -> list[Doubt]:
    return [Doubt("ranking", text) for text in dict.fromkeys(texts)]


def board_sections(board: Leaderboard, limit: int, has_finding: bool) -> list[PageSection]:
    """A section for measured agents and one for simulated ones, which are never ranked together."""
    sections = []
    for rows, subtitle in ((board.standings, board.category), (board.simulated, _SIMULATED)):
        if not rows:
            continue
        is_real = rows is board.standings
        omitted = len(rows) - limit
        notes = [f"{format_count(omitted, 'more agent')} left out: --limit"] if omitted > 0 else []
        sections.append(
            PageSection(
                board.suite if is_real else f"{board.suite} · simulated",
                [_standings(rows[:limit], board.metric)],
                subtitle,
                board_sentence(board) if has_finding and is_real and len(rows) > 1 else "",
                notes + (list(legend_lines(board)) if is_real else []),
            )
        )
    return sections


def _standings(rows: Sequence[Standing], metric: str) -> Table:
    """The agents as rows; a row that begins a new tier is set apart from those above."""
    others = [name for name in DIMENSIONS if name != metric]
    return Table(
        ["Agent", "Rank", metric.capitalize(), *(name.capitalize() for name in others), "Benchmarks"],
        [
            [
                _agent(row.contender, "◆" if row.is_pareto and len(rows) > 1 else ""),
                Cell(
                    _place(RankRange(row.best_rank, row.worst_rank)),
                    tone="lead" if row.best_rank <= _MARKED else "",
                ),
                _rating(row.score),
                *(_rating(row.dimensions[name]) for name in others),
                Cell(row.coverage),
            ]
            for row in rows
        ],
        breaks=frozenset(n for n, row in enumerate(rows) if n and row.tier != rows[n - 1].tier),
    )


def _agent(contender: Contender, mark: str = "") -> Cell:
    marks = [
        contender.version[:24],
        *(["recorded"] if contender.is_recorded else []),
        *(["partial"] if contender.partial else []),
        *(["stale"] if contender.stale else []),
    ]
    ref = f"agents/{contender.agent}"
    return Cell(f"{contender.agent} {mark}".strip(), note=", ".join(filter(None, marks)), ref=ref)


def _rating(rating: Rating, note: str = "") -> Cell:
    return Cell(NOTHING, tone="quiet") if rating.value is None else Cell("", rating, note=note)


def _place(place: RankRange | None) -> str:
    if place is None:
        return NOTHING
    return str(place.best) if place.best == place.worst else f"{place.best}–{place.worst}"


def _across_sections(across: Across, limit: int) -> list[PageSection]:
    title = f"Across {len(across.suites)} suites" if len(across.suites) > 1 else "Across all benchmarks"
    return [
        PageSection(
            title if rows is across.rows else f"{title} · simulated",
            [_overview(rows[:limit])],
            f"by {across.metric}, {across.benchmarks} benchmarks",
            notes=[
                "The interquartile mean leaves out the best and the worst quarter of an agent's benchmarks."
            ],
        )
        for rows in (across.rows, across.simulated)
        if rows
    ]


def _overview(rows: Sequence[Overview]) -> Table:
    return Table(
        ["Agent", "Rank", "Interquartile mean", "Mean"],
        [
            [Cell(row.agent), Cell(_place(row.place)), _rating(row.score), Cell(f"{row.mean:.3f}")]
            for row in rows
        ],
    )


def matrix_page(matrices: Sequence[Matrix], kind: str = "matrix", facts: Sequence[str] = ()) -> Page:
    """Every agent × dimensions, and every two of them head to head."""
    first = matrices[0]
    ranked = [row for row in first.rows if "overall" in row.places]
    leaders = [row.contender.agent for row in ranked if row.places["overall"].best == 1]
    return Page(
        title=f"{'Comparison' if kind == 'compare' else 'Matrix'} of agents on {first.suite}",
        kind=kind,
        facts=[*facts, *(f"suite {matrix.suite}" for matrix in matrices)],
        verdict=leaders_text(leaders) if len(ranked) > 1 else "",
        is_certain=len(leaders) == 1,
        reasons=_best_in(first) if len(ranked) > 1 else [],
        sections=[section for matrix in matrices for section in _matrix_sections(matrix)],
        warnings=_doubts(doubt for matrix in matrices for doubt in matrix.doubts),
    )


def _best_in(matrix: Matrix) -> list[str]:
    """Return, for each agent, the dimensions in which no other agent may be as good."""
    alone: dict[str, list[str]] = {}
    for row in matrix.rows:
        for name, place in row.places.items():
            if name != "overall" and place.best == place.worst == 1:
                alone.setdefault(row.contender.agent, []).append(name)
    return [
        f"{agent} is significantly better than all others in {names_text(names)}."
        for agent, names in alone.items()
    ]


def _matrix_sections(matrix: Matrix) -> list[PageSection]:
    """Agents by dimensions and, where there are two of a kind, which agent is significantly better in what."""
    found = []
    for rows, name in ((matrix.rows, matrix.suite), (matrix.simulated, f"{matrix.suite} · simulated")):
        if not rows:
            continue
        agents = {row.contender.agent for row in rows}
        duels = [duel for duel in matrix.duels if duel.a in agents and duel.b in agents]
        subtitle = matrix.category if rows is matrix.rows else _SIMULATED
        note = "#: the rank on that dimension, a range where the order is uncertain"
        found.append(PageSection(name, [_matrix_table(rows)], subtitle, notes=[note]))
        if duels:
            found.append(
                PageSection(
                    f"{name} · head to head", [_duels(duels)], "significant wins and losses by dimension"
                )
            )
    return found


def _matrix_table(rows: Sequence[MatrixRow]) -> Table:
    names = ("overall", *DIMENSIONS)
    return Table(
        ["Agent", *(name.capitalize() for name in names), "Benchmarks"],
        [
            [
                _agent(row.contender),
                *(_rating(row.ratings[name], f"#{_place(row.places.get(name))}") for name in names),
                Cell(row.coverage),
            ]
            for row in rows
        ],
    )


def _duels(duels: Sequence[Duel]) -> Table:
    return Table(
        ["Agents", "First is better in", "Second is better in", "Undecided"],
        [
            [
                Cell(f"{duel.a} – {duel.b}"),
                *(
                    Cell(names_text(names), tone=tone) if names else Cell(NOTHING, tone="quiet")
                    for names, tone in ((duel.won, ""), (duel.lost, ""), (duel.undecided, "quiet"))
                ),
            ]
            for duel in duels
        ],
        words=(1, 2, 3),
    )

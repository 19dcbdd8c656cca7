"""Leaderboards and matrices as a `Page`, for the terminal, Markdown and HTML.

Agents without a certain difference share a range of ranks; the order within it is that of their figures.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from assay.model import DIMENSIONS, Doubt, Leaderboard, Rating, Standing
from assay.model.rating import QUANTITIES
from assay.model.standing import Across, Contender, Duel, Matrix, MatrixRow, Overview, RankRange
from assay.report.documents.references import used_references
from assay.report.figures import NOTHING
from assay.report.leads import board_sentence, leaders_text, names_text
from assay.report.pages.page import Cell, Page, PageSection, Table
from assay.report.side_by_side import ends_text, value_text
from assay.report.sides import side_lines
from assay.text import shell_command
from assay.units import and_list, format_count

if TYPE_CHECKING:
    from assay.model.comparison import ComparisonSides
    from assay.model.standing import Boards

_MARKED = 3
"""Agents that may be among the first three are marked."""
_SIMULATED = "Simulated agents, ranked separately"
_MOST_ACROSS, _FEW_ACROSS = 11, 5
"""Agents that a terminal can show as a square, row against column; those that a narrow one can."""
_SHORT = {"accuracy": "Acc", "efficiency": "Eff", "reliability": "Rel", "benchmarks": "Done"}
_QUALITY = {"accuracy": "quality", "cost": "cost", "speed": "latency"}


def leaderboard_page(found: Boards, limit: int, *, is_whole: bool = False) -> Page:
    """A section for each suite; the first, which was run last, gives the verdict.

    Agents are ranked across suites where there are several or, with `is_whole`, in any case.
    """
    boards = found.each
    first, across = boards[0], found.across if is_whole or len(boards) > 1 else None
    sections = [section for board in boards for section in board_sections(board, limit, len(boards) > 1)]
    if across is not None:
        sections += _across_sections(across, limit)
    rows = first.standings if len(first.standings) > 1 else first.simulated
    verdict = board_sentence(first).rstrip(".")
    all_rows = (row for board in boards for row in (*board.standings, *board.simulated))
    latest = max((row.contender.latest for row in all_rows if row.contender.latest), default=None)
    doubts = [doubt for board in boards for doubt in board.doubts] + list(across.doubts if across else ())
    dates = [f"latest result {latest:%Y-%m-%d %H:%M} UTC"] if latest else []
    return Page(
        title=f"Leaderboard of {first.suite}" if len(boards) == 1 else "Leaderboard",
        kind="leaderboard",
        facts=[
            f"by {first.metric}",
            *(f"suite {board.suite}" for board in boards if len(boards) > 1),
            *dates,
        ],
        verdict=verdict if len(boards) == 1 or not verdict else f"{first.suite}: {verdict}",
        is_certain=sum(row.best_rank == 1 for row in rows) == 1,
        sections=sections,
        warnings=_doubts(doubts),
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
        notes = [f"{format_count(omitted, 'more agent')}: --limit {len(rows)}"] if omitted > 0 else []
        sections.append(
            PageSection(
                board.suite if is_real else f"{board.suite} · simulated",
                [_standings(rows[:limit], board.metric)],
                subtitle,
                board_sentence(board) if has_finding and is_real and len(rows) > 1 else "",
                notes + (list(_legend(board)) if is_real or not board.standings else []),
            )
        )
    return sections


def _legend(board: Leaderboard) -> Iterator[str]:
    """What the marks mean, and where the references come from; another command shows their values."""
    rows = (*board.standings, *board.simulated)
    if any(row.is_pareto for row in rows) and len(rows) > 1:
        axes = [_QUALITY[name] for name in board.pareto]
        yield f"◆ on the Pareto front of {and_list(axes)}"
    for row in rows:
        if row.dominated_by:
            yield f"{row.contender.agent} is dominated by {', '.join(row.dominated_by)}"
    sources: dict[str, dict[str, None]] = {}
    for row in rows:
        for ratings in row.contender.ratings.values():
            for name, reference in used_references(ratings).items():
                sources.setdefault(str(reference), {})[QUANTITIES[name]] = None
    if sources:
        listed = "; ".join(f"{', '.join(names)}: {source}" for source, names in sources.items())
        yield f"References ({listed}): {shell_command('suite reference', board.suite)}"


def _standings(rows: Sequence[Standing], metric: str) -> Table:
    """The agents as rows; a row that begins a new tier is set apart from those above."""
    others = [name for name in DIMENSIONS if name != metric]
    names = ["agent", "rank", metric, *others, "benchmarks"]
    return Table(
        [name.capitalize() for name in names],
        [
            [
                _agent(row.contender, "◆" if row.is_pareto and len(rows) > 1 else ""),
                Cell(
                    _place(RankRange(row.best_rank, row.worst_rank)),
                    tone="lead" if row.best_rank <= _MARKED else "",
                ),
                _rating(row.score, _exact_text(row.score)),
                *(_rating(row.dimensions[name], value_text(row.dimensions[name])) for name in others),
                Cell(row.coverage),
            ]
            for row in rows
        ],
        breaks=frozenset(n for n, row in enumerate(rows) if n and row.tier != rows[n - 1].tier),
        brief_titles=_shorten(names),
    )


def _shorten(names: Sequence[str]) -> list[str]:
    return [_SHORT.get(name, name.capitalize()) for name in names]


def _agent(contender: Contender, mark: str = "") -> Cell:
    kinds = {"recorded": contender.is_recorded, "partial": contender.partial, "stale": contender.stale}
    marks = [name for name, holds in kinds.items() if holds]
    name = f"{contender.agent} {mark}".strip()
    return Cell(
        name,
        note=", ".join(filter(None, [contender.version[:24], *marks])),
        brief=f"{name} ({', '.join(marks)})" if marks else name,
        ref=f"agents/{contender.agent}",
    )


def _rating(rating: Rating, terminal: str = "", *, note: str = "", brief: str = "", tone: str = "") -> Cell:
    if rating.value is None:
        return Cell(NOTHING, tone="quiet")
    return Cell(terminal, rating, tone, note, brief)


def _exact_text(rating: Rating) -> str:
    """What the order rests on, with three digits."""
    ends = "" if rating.low is None else f" [{rating.low:.3f}, {rating.high:.3f}]"
    return NOTHING if rating.value is None else f"{rating.value:.3f}{ends}"


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
            [
                Cell(row.agent),
                Cell(_place(row.place)),
                _rating(row.score, _exact_text(row.score)),
                Cell(f"{row.mean:.3f}"),
            ]
            for row in rows
        ],
    )


def matrix_page(
    matrices: Sequence[Matrix], kind: str = "matrix", facts: Sequence[str] = (), *, has_duels: bool = True
) -> Page:
    """Every agent × dimensions and, with `has_duels`, every two of them head to head."""
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
        sections=[section for matrix in matrices for section in _matrix_sections(matrix, has_duels)],
        warnings=_doubts(doubt for matrix in matrices for doubt in matrix.doubts),
    )


def all_pairs_page(matrix: Matrix, refs: Sequence[str], sides: ComparisonSides) -> Page:
    """Several agents compared with each other, and the runs that their figures come from."""
    page = matrix_page([matrix], "compare", side_lines(refs, sides.reports))
    return replace(page, warnings=(*page.warnings, *sides.doubts))


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


def _matrix_sections(matrix: Matrix, has_duels: bool) -> list[PageSection]:
    """Agents by dimensions and, where there are two of a kind, which agent is significantly better in what."""
    found = []
    for rows, name in ((matrix.rows, matrix.suite), (matrix.simulated, f"{matrix.suite} · simulated")):
        if not rows:
            continue
        agents = [row.contender.agent for row in rows]
        duels = [duel for duel in matrix.duels if duel.a in agents and duel.b in agents]
        subtitle = matrix.category if rows is matrix.rows else _SIMULATED
        notes = ["#: the rank on that dimension, a range where the order is uncertain"]
        if has_duels and not matrix.duels:
            notes.append("Head to head: fewer than two agents to compare.")
        found.append(PageSection(name, [_matrix_table(rows)], subtitle, notes=notes))
        if has_duels and duels:
            pairs = PageSection("Every two agents", [_duels(duels)], is_detail=True)
            subtitle = "dimensions won – lost significantly, row against column"
            found.append(PageSection(f"{name} · head to head", [_sum_duels(agents, duels), pairs], subtitle))
    return found


def _matrix_table(rows: Sequence[MatrixRow]) -> Table:
    names = ("overall", *DIMENSIONS)
    titles = ["agent", *names, "benchmarks"]
    return Table(
        [title.capitalize() for title in titles],
        [
            [
                _agent(row.contender),
                *(_place_on(row.ratings[name], row.places.get(name)) for name in names),
                Cell(row.coverage),
            ]
            for row in rows
        ],
        brief_titles=_shorten(titles),
    )


def _place_on(rating: Rating, place: RankRange | None) -> Cell:
    """The rating on a dimension with its rank there."""
    value, rank = value_text(rating), f"#{_place(place)}"
    leads = place is not None and place.best == place.worst == 1
    return _rating(
        rating,
        f"{value} {rank}\n{ends_text(rating)}",
        note=rank,
        brief=f"{value}\n{rank}",
        tone="good" if leads else "",
    )


def _sum_duels(agents: Sequence[str], duels: Sequence[Duel]) -> Table:
    """What each agent has won and lost, over all opponents and, unless these are many, against each."""
    counts = {}
    for duel in duels:
        won, lost, undecided = len(duel.won), len(duel.lost), len(duel.undecided)
        counts[duel.a, duel.b], counts[duel.b, duel.a] = (won, lost, undecided), (lost, won, undecided)
    opponents = agents if len(agents) <= _MOST_ACROSS else ()
    rows = []
    for number, agent in enumerate(agents, 1):
        sums = [
            sum(column)
            for column in zip(*(found for (a, _), found in counts.items() if a == agent), strict=True)
        ]
        rows.append(
            [
                Cell(f"{number} {agent}"),
                *(_duel(counts.get((agent, opponent))) for opponent in opponents),
                *(Cell(str(total), tone=tone) for total, tone in zip(sums, ("", "", "quiet"), strict=True)),
            ]
        )
    columns = range(1, 1 + len(opponents))
    return Table(
        ["Agent", *(f"v{number}" for number in columns), "Won", "Lost", "Undecided"],
        rows,
        minor=columns if len(agents) > _FEW_ACROSS else (),
    )


def _duel(counts: tuple[int, int, int] | None) -> Cell:
    if counts is None:
        return Cell("")
    won, lost, _ = counts
    return Cell(f"{won}–{lost}", tone="good" if won > lost else "bad" if lost > won else "quiet")


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

"""The JSON documents of `assay leaderboard` and `assay matrix`.

Scripts rely on these keys: they may be added to, but not renamed or removed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from assay.model.codec import to_plain
from assay.model.rating import QUANTITIES
from assay.report.documents.references import reference_document

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from assay.model import Doubt, Leaderboard, Report, Standing
    from assay.model.standing import Across, Boards, Duel, Matrix, MatrixRow, Overview, RankRange, Unranked


def leaderboard_document(found: Boards, limit: int) -> list[dict[str, Any]]:
    """A document for each suite and, where there are enough benchmarks, one across all of them."""
    across = [build_across(found.across, limit)] if found.across else []
    return [*(build_board(board, limit) for board in found.each), *across]


def all_pairs_document(
    matrix: Matrix, sides: Mapping[str, Report] | None = None, doubts: Iterable[Doubt] = ()
) -> dict[str, Any]:
    """Several agents compared with each other, with the runs that their figures come from."""
    return {
        "comparison_type": "multi_agent",
        **matrix_document(matrix),
        "runs": {ref: [run.id for run in report.runs] for ref, report in (sides or {}).items()},
        "warnings": [to_plain(doubt) for doubt in doubts],
    }


def build_board(board: Leaderboard, limit: int) -> dict[str, Any]:
    return {
        "suite": board.suite,
        "category": board.category,
        "metric": board.metric,
        "benchmarks": list(board.benchmarks),
        "dimensions": list(board.dimensions),
        "pareto_dimensions": list(board.pareto),
        "references": _references(board),
        "standings": [_row(row) for row in board.standings[:limit]],
        "simulated": [_row(row) for row in board.simulated[:limit]],
        "unranked": [_build_unranked(entry) for entry in board.unranked],
        "warnings": list(board.doubts),
    }


def _build_unranked(unranked: Unranked) -> dict[str, Any]:
    return {
        "agent": unranked.agent,
        "version": unranked.version,
        "benchmark": unranked.benchmark,
        "run_id": unranked.run,
        "score": unranked.overall.value,
        "reason": unranked.reason,
    }


def _references(board: Leaderboard) -> list[dict[str, Any]]:
    """What the ratings of today's benchmarks are relative to, of measured agents and of simulated ones."""
    found: dict[tuple[str, bool, str], dict[str, Any]] = {}
    for row in (*board.standings, *board.simulated):
        contender = row.contender
        for benchmark, ratings in contender.ratings.items():
            for name, reference in ratings.references.items() if benchmark not in contender.outdated else ():
                found[benchmark, contender.is_simulated, name] = {
                    "benchmark": benchmark,
                    "simulated": contender.is_simulated,
                    "dimension": QUANTITIES[name],
                    "quantity": name,
                    **reference_document(reference),
                }
    return list(found.values())


def build_across(across: Across, limit: int) -> dict[str, Any]:
    """Comes after the boards, and has `across` where they have the name of a suite."""
    return {
        "suite": None,
        "across": list(across.suites),
        "metric": across.metric,
        "statistic": "interquartile mean over benchmarks",
        "benchmarks": across.benchmarks,
        "standings": [_overview(row) for row in across.rows[:limit]],
        "simulated": [_overview(row) for row in across.simulated[:limit]],
        "warnings": list(across.doubts),
    }


def _overview(row: Overview) -> dict[str, Any]:
    return {
        "agent": row.agent,
        "rank": [row.place.best, row.place.worst],
        "score": row.score.value,
        "interval": [row.score.low, row.score.high],
        "mean": row.mean,
    }


def _row(row: Standing) -> dict[str, Any]:
    return {
        "agent": row.contender.agent,
        "version": row.contender.version,
        "recorded": row.contender.is_recorded,
        "tier": row.tier,
        "rank": [row.best_rank, row.worst_rank],
        "score": row.score.value,
        "interval": [row.score.low, row.score.high],
        "dimensions": {name: rating.value for name, rating in row.dimensions.items()},
        "benchmarks_completed": row.coverage,
        "partial": dict(row.contender.partial),
        "stale": dict(row.contender.stale),
        "is_pareto": row.is_pareto,
        "dominated_by": list(row.dominated_by),
        "latest": row.contender.latest,
    }


def matrix_document(matrix: Matrix) -> dict[str, Any]:
    """Agents by dimensions, under the names of the columns of the SQL view of the same name."""
    rows = [(row, False) for row in matrix.rows] + [(row, True) for row in matrix.simulated]
    return {
        "suite_id": matrix.suite,
        "category": matrix.category,
        "dimensions": list(matrix.dimensions),
        "agent_comparison_matrix": [_matrix_row(row, simulated, matrix) for row, simulated in rows],
        "head_to_head": [_duel(duel) for duel in matrix.duels],
        "warnings": list(matrix.doubts),
    }


def _matrix_row(row: MatrixRow, simulated: bool, of: Matrix) -> dict[str, Any]:
    """By the names of the view's columns; a rank here is the best that the evidence leaves open."""
    dimensions = [name for name in row.ratings if name != "overall"]
    return {
        "agent_id": row.contender.agent,
        **{f"avg_{name}": _scale_to_percent(row.ratings[name].value) for name in dimensions},
        **{f"{name}_rank": _rank(row.places.get(name)) for name in dimensions},
        "overall_score": _scale_to_percent(row.ratings["overall"].value),
        "overall_rank": _rank(row.places.get("overall")),
        "suite_id": of.suite,
        "simulated": simulated,
        "recorded": row.contender.is_recorded,
        "benchmarks_completed": row.contender.completed,
        "benchmarks_total": len(of.benchmarks),
        "last_benchmark_date": row.contender.latest,
        "agent_version": row.contender.version,
        "rank_intervals": {name: [place.best, place.worst] for name, place in row.places.items()},
        "intervals": {
            name: [_scale_to_percent(rating.low), _scale_to_percent(rating.high)]
            for name, rating in row.ratings.items()
        },
    }


def _scale_to_percent(value: float | None) -> float | None:
    return None if value is None else value * 100


def _rank(place: RankRange | None) -> int | None:
    return None if place is None else place.best


def _duel(duel: Duel) -> dict[str, Any]:
    return {
        "a": duel.a,
        "b": duel.b,
        "wins": list(duel.won),
        "losses": list(duel.lost),
        "undecided": list(duel.undecided),
        "p_corrected": dict(duel.p_corrected),
    }

"""Documents under the names of the performance specification, which the REST API answers with.

Ids are names and scores go from 0 to 100. Every figure is taken from the document that the command prints, only renamed and
scaled here. A winner is named only where the data prove it; what is not known is null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from assay.report.documents.comparison import comparison_document, history_document
from assay.report.documents.leaderboard import (
    all_pairs_document,
    build_across,
    build_board,
    matrix_document,
)
from assay.report.documents.suite import suite_document

if TYPE_CHECKING:
    from assay.model import Doubt, Report, Suite
    from assay.model.comparison import Compared
    from assay.model.head_to_head import Course
    from assay.model.standing import Across, Matrix, RankedSuite


def suite_board_document(found: RankedSuite) -> dict[str, Any]:
    """The board of a suite, with every dimension's score and rank; the server shows the first of its rows."""
    board = found.board
    whole = build_board(board, len(board.standings) + len(board.simulated))
    return _board(whole, matrix_document(found.matrix))


def across_suites_document(found: Across | None) -> dict[str, Any] | None:
    """Agents over all benchmarks; None with too few of them."""
    if found is None:
        return None
    whole = build_across(found, len(found.rows) + len(found.simulated))
    return {**whole, **{key: _convert_scores_to_percent(whole[key]) for key in ("standings", "simulated")}}


def _convert_scores_to_percent(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            "agent_id": row["agent"],
            "rank": row["rank"],
            "score": _percent(row["score"]),
            "interval": [_percent(end) for end in row["interval"]],
        }
        for row in rows
    ]


def _board(board: Mapping[str, Any], matrix: Mapping[str, Any]) -> dict[str, Any]:
    """One suite; ranks of single dimensions come from the matrix, everything else from the board."""
    places = {(row["agent_id"], row["simulated"]): row for row in matrix["agent_comparison_matrix"]}

    def rows(key: str) -> list[dict[str, Any]]:
        return [_row(row, places[row["agent"], key == "simulated"]) for row in board[key]]

    return {
        "suite_id": board["suite"],
        "benchmark_category": board["category"],
        "benchmarks": board["benchmarks"],
        "standings": rows("standings"),
        "simulated": rows("simulated"),
        "unranked": [
            {
                "agent_id": row["agent"],
                "agent_version": row["version"],
                "benchmark_id": row["benchmark"],
                "run_id": row["run_id"],
                "score": _percent(row["score"]),
                "reason": row["reason"],
            }
            for row in board["unranked"]
        ],
        "warnings": board["warnings"],
    }


def _row(row: Mapping[str, Any], place: Mapping[str, Any]) -> dict[str, Any]:
    """`best_ranking` is the best of the ranks on single dimensions: what the agent is good at, not whether it leads."""
    ranks = {name: place[f"{name}_rank"] for name in row["dimensions"]}
    return {
        "agent_id": row["agent"],
        "agent_name": row["agent"],
        "agent_version": row["version"],
        "rank": row["rank"],
        "tier": row["tier"],
        "score": _percent(row["score"]),
        "interval": [_percent(end) for end in row["interval"]],
        "scores_and_ranks": {
            name: {"score": _percent(value), "rank": ranks[name]} for name, value in row["dimensions"].items()
        },
        "best_ranking": min((rank for rank in ranks.values() if rank is not None), default=None),
        "benchmarks_completed": place["benchmarks_completed"],
        "benchmarks_total": place["benchmarks_total"],
        "last_benchmark_date": row["latest"],
        "is_pareto": row["is_pareto"],
        "dominated_by": row["dominated_by"],
        "partial": row["partial"],
        "stale": row["stale"],
    }


def head_to_head_document(found: Compared, agents: Sequence[str]) -> dict[str, Any]:
    """Two agents; the specification's fields are of the first pair of agents, which is the only one if each side is an agent."""
    document = comparison_document(found)
    duel = document["agents"][0] if document["agents"] else {"winners": {}, "ratings": {}, "winner": None}
    named = dict(zip((duel.get("a"), duel.get("b")), agents, strict=True))
    ratings = {name: rating for name, rating in duel["ratings"].items() if name != "overall"}
    return {
        "comparison_type": "head_to_head",
        "agent_ids": list(agents),
        "overall_winner": named.get(duel["winner"]) if duel["winner"] else None,
        "category_winners": {name: named.get(who) for name, who in duel["winners"].items()},
        "detailed_metrics": [
            _metric(name, agents, (rating["a"], rating["b"]), named.get(duel["winners"].get(name)) or None)
            for name, rating in ratings.items()
        ],
        "statistical_significance": {name: rating["p_corrected"] for name, rating in ratings.items()},
        "recommendations": duel.get("recommendations", []),
        "warnings": document["warnings"],
        "comparisons": document["comparisons"],
        "runs": document["runs"],
    }


def multi_agent_document(
    matrix: Matrix, agents: Sequence[str], sides: Mapping[str, Report], doubts: Sequence[Doubt]
) -> dict[str, Any]:
    """Every two of several agents. Only an agent that is significantly better than all others wins."""
    document = all_pairs_document(matrix, sides, doubts)
    rows = {row["agent_id"]: row for row in document["agent_comparison_matrix"]}
    names = document["dimensions"]

    def winner(dimension: str) -> str | None:
        first = [agent for agent, row in rows.items() if row["rank_intervals"].get(dimension) == [1, 1]]
        return first[0] if len(first) == 1 and len(rows) > 1 else None

    details = [
        _metric(
            name,
            (duel["a"], duel["b"]),
            (_unit(rows[duel["a"]][f"avg_{name}"]), _unit(rows[duel["b"]][f"avg_{name}"])),
            duel["a"] if name in duel["wins"] else duel["b"] if name in duel["losses"] else None,
        )
        for duel in document["head_to_head"]
        for name in names
    ]
    return {
        "comparison_type": "multi_agent",
        "agent_ids": list(agents),
        "overall_winner": winner("overall"),
        "category_winners": {name: winner(name) for name in names},
        "detailed_metrics": details,
        "statistical_significance": {
            f"{duel['a']} · {duel['b']} · {name}": duel["p_corrected"].get(name)
            for duel in document["head_to_head"]
            for name in names
        },
        "recommendations": [],
        "warnings": document["warnings"],
        "agent_comparison_matrix": document["agent_comparison_matrix"],
        "runs": document["runs"],
    }


def time_series_document(found: Sequence[Course], sides: Sequence[str]) -> dict[str, Any]:
    """Several sides in the order of time: the course of each metric takes the place of winners."""
    return {
        "comparison_type": "time_series",
        "agent_ids": list(sides),
        "overall_winner": None,
        "category_winners": {},
        "detailed_metrics": [],
        "statistical_significance": {},
        "recommendations": [],
        "warnings": [],
        "courses": history_document(found, sides)["courses"],
    }


def _metric(
    name: str, agents: Sequence[str], ratings: tuple[float | None, float | None], winner: str | None
) -> dict[str, Any]:
    """One dimension of two agents; `percentage_difference` is null where the second score is 0."""
    a, b = (_percent(rating) for rating in ratings)
    difference = None if a is None or b is None else a - b
    return {
        "metric": name,
        "agent_a": agents[0],
        "agent_b": agents[1],
        "agent_a_score": a,
        "agent_b_score": b,
        "difference": difference,
        "percentage_difference": 100 * difference / b if b and difference is not None else None,
        "winner": winner,
    }


def _percent(rating: float | None) -> float | None:
    return None if rating is None else 100 * rating


def _unit(percent: float | None) -> float | None:
    return None if percent is None else percent / 100


def stress_specification_document(stress: Mapping[str, Any]) -> dict[str, Any]:
    """A stress test under the names of the specification; `stress` is the document of `assay stress --json`."""
    resilience = stress["resilience"]
    return {
        **{key: value for key, value in stress.items() if key not in ("target", "resilience", "scenarios")},
        "agent_id": stress["target"],
        "stress_test_results": stress["scenarios"],
        "resilience_score": _percent(resilience),
    }


def suite_answer_document(suite: Suite, now: datetime) -> dict[str, Any]:
    """A suite without its cases; `dataset.size` is their number."""
    document = suite_document(suite, now)
    return {
        "suite_id": document.pop("suite"),
        "suite_name": document.pop("title"),
        **document,
        "benchmarks": [_benchmark(benchmark) for benchmark in document["benchmarks"]],
    }


def _benchmark(benchmark: Mapping[str, Any]) -> dict[str, Any]:
    limits = benchmark["limits"]
    memory = limits["memory_bytes"]
    return {
        "benchmark_id": benchmark["id"],
        **{key: value for key, value in benchmark.items() if key not in ("id", "cases", "limits")},
        "dataset": {**benchmark["dataset"], "size": benchmark["cases"]},
        "constraints": {
            "time_limit_ms": None if limits["seconds"] is None else 1000 * limits["seconds"],
            "memory_limit_mb": None if memory is None else memory / 2**20,
            "token_limit": limits["tokens"],
            "cost_limit_usd": limits["usd"],
        },
    }

"""`assay matrix`: every agent on every dimension."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from assay.cli.session import Session, common

if TYPE_CHECKING:
    from assay.model.standing import Duel, Matrix, MatrixRow, Place


@click.command()
@click.option("--suite", metavar="S", help="Only of this suite.")
@click.option("--head-to-head", is_flag=True, help="Every two agents: dimensions won, lost and undecided.")
@common
def matrix(session: Session, suite: str | None, head_to_head: bool) -> None:
    """Every agent × five dimensions and overall; who shares a rank is not really apart."""
    from assay.cli.leaderboard import filter_of
    from assay.pipeline import standing

    with session.store() as store:
        made = standing.matrices(store, filter_of(suite))
    if session.is_json:
        session.emit([document(one) for one in made])
        return
    from assay.report.board import print_head_to_head, print_matrix

    console = session.console()
    for number, one in enumerate(made):
        if number:
            console.print()
        print_matrix(one, console)
        if head_to_head:
            console.print()
            print_head_to_head(one, console)
    more = [] if head_to_head else ["assay matrix --head-to-head"]
    session.next(*more, f"assay leaderboard --suite {made[0].suite} --metric accuracy")


def document(one: Matrix) -> dict[str, Any]:
    rows = [(row, False) for row in one.rows] + [(row, True) for row in one.simulated]
    return {
        "suite_id": one.suite,
        "category": one.category,
        "dimensions": list(one.dimensions),
        "agent_comparison_matrix": [_row(row, simulated, one) for row, simulated in rows],
        "head_to_head": [_duel(duel) for duel in one.duels],
        "warnings": list(one.doubts),
    }


def _row(row: MatrixRow, simulated: bool, of: Matrix) -> dict[str, Any]:
    """By the names of the view's columns; a rank here is the best that the evidence leaves open."""
    dimensions = [name for name in row.ratings if name != "overall"]
    return {
        "agent_id": row.contender.agent,
        **{f"avg_{name}": _scaled(row.ratings[name].value) for name in dimensions},
        **{f"{name}_rank": _rank(row.places.get(name)) for name in dimensions},
        "overall_score": _scaled(row.ratings["overall"].value),
        "overall_rank": _rank(row.places.get("overall")),
        "suite_id": of.suite,
        "simulated": simulated,
        "benchmarks_completed": row.contender.completed,
        "benchmarks_total": len(of.benchmarks),
        "last_benchmark_date": row.contender.latest,
        "agent_version": row.contender.version,
        "rank_intervals": {name: [place.best, place.worst] for name, place in row.places.items()},
        "intervals": {
            name: [_scaled(rating.low), _scaled(rating.high)] for name, rating in row.ratings.items()
        },
    }


def _scaled(value: float | None) -> float | None:
    return None if value is None else value * 100


def _rank(place: Place | None) -> int | None:
    return None if place is None else place.best


def _duel(duel: Duel) -> dict[str, Any]:
    return {
        "a": duel.a,
        "b": duel.b,
        "wins": list(duel.won),
        "losses": list(duel.lost),
        "undecided": list(duel.undecided),
    }

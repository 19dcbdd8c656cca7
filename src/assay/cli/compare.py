"""`assay compare`: is B better than A, or is it noise?"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from assay.cli.session import Session, common
from assay.cli.shares import share_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from assay.model import Report

TYPES = ("head_to_head", "multi_agent", "time_series")


@click.command()
@click.argument("sides", metavar="A B [C…]", nargs=-1)
@click.option(
    "--metric",
    "metrics",
    metavar="M",
    multiple=True,
    help="Judge only this metric; may be repeated. Default: verdicts on score, seconds and cost.",
)
@click.option("--suite", metavar="S", help="Of agents: their results on this suite.")
@click.option(
    "--type",
    "kind",
    type=click.Choice(TYPES),
    help="Two sides, all pairs of several agents, or several sides in the order of time. Default: by their number.",
)
@click.option("--tolerance", metavar="X%", help="Differences within it count as the same. Default: 3%.")
@click.option("--fail-on", type=click.Choice(["worse"]), help="Exit with 1 when a metric got worse.")
@click.option(
    "--lines",
    is_flag=True,
    help="Compare samples: a JSON document a line on standard input, an answer a line.",
)
@common
def compare(
    session: Session,
    sides: tuple[str, ...],
    metrics: tuple[str, ...],
    suite: str | None,
    kind: str | None,
    tolerance: str | None,
    fail_on: str | None,
    lines: bool,
) -> int:
    """Compare runs, agents, versions or result files. A is the reference: *better* means that B is better.

    A side is a run (its id, a prefix of it, `last`, @BASELINE), an agent, agent@version, or a result file. The unit of
    comparison is the case, or of code the process: run both sides with processes of ten or more.

    With --lines, A and B come on standard input, as in {"kind": "latency", "a": […], "b": […], "paired": false}; the
    kind "accuracy" takes a list of repetitions for each case.
    """
    width = None if tolerance is None else share_of(tolerance, "--tolerance")
    if lines:
        return _compare_lines(sides, width)
    if len(sides) < 2:
        raise click.UsageError("Name two sides, as in: assay compare A B. Or give samples with --lines.")
    kind = kind or ("head_to_head" if len(sides) == 2 else "multi_agent")
    if kind == "head_to_head" and len(sides) != 2:
        raise click.UsageError(
            f"Two sides stand head to head, not {len(sides)}. For more: --type multi_agent"
        )
    if kind == "multi_agent":
        return _compare_all(session, sides, suite)
    if kind == "time_series":
        return _compare_over_time(session, sides, metrics, suite, fail_on)
    return _compare_two(session, sides, metrics, suite, width, fail_on)


def _compare_two(
    session: Session,
    sides: tuple[str, ...],
    metrics: tuple[str, ...],
    suite: str | None,
    tolerance: float | None,
    fail_on: str | None,
) -> int:
    from assay.model import Verdict
    from assay.pipeline import comparing

    with session.store() as store:
        found = comparing.compared(
            store, *sides, metrics=list(metrics) or None, tolerance=tolerance, suite=suite
        )
    if session.is_json:
        from assay.report.comparison_document import comparison_document

        session.emit(comparison_document(found))
    else:
        from assay.report.console import print_comparisons
        from assay.report.console_showdown import print_showdown

        console = session.console()
        _print_sides(console, sides, (found.a, found.b))
        print_comparisons(found.comparisons, found.doubts, console)
        for one in found.showdowns:
            # Who asks for single metrics is not shown the ratings, which rest on all of them.
            print_showdown(one, console, has_ratings=not metrics)
        got_worse = any(one.verdict is Verdict.WORSE for one in found.comparisons)
        then = f"assay show {found.b.run.id}" if got_worse else f"assay baseline set main {found.b.run.id}"
        session.next(f"assay report {found.b.run.id} --format html", then)
    return 1 if fail_on and any(one.verdict is Verdict.WORSE for one in found.comparisons) else 0


def _print_sides(console: Console, refs: Sequence[str], reports: Sequence[Report]) -> None:
    from assay.report.sides import side_lines

    for line in side_lines(refs, reports):
        console.print(line, markup=False, highlight=False)
    console.print()


def _compare_all(session: Session, sides: tuple[str, ...], suite: str | None) -> int:
    from assay.pipeline import comparing

    with session.store() as store:
        chosen = comparing.find_sides(store, sides, suite)
        made = comparing.all_pairs(store, sides, sides=chosen)
    if session.is_json:
        from assay.report.leaderboard_document import all_pairs_document

        session.emit(all_pairs_document(made, dict(zip(sides, chosen.reports, strict=True)), chosen.doubts))
        return 0
    from assay.report.board import print_head_to_head, print_matrix
    from assay.report.screen import bullet

    console = session.console()
    _print_sides(console, sides, chosen.reports)
    print_matrix(made, console)
    console.print()
    print_head_to_head(made, console)
    for doubt in chosen.doubts:
        console.print(bullet("!", str(doubt), "yellow"))
    session.next(f"assay compare {sides[0]} {sides[1]}", "assay leaderboard")
    return 0


def _compare_over_time(
    session: Session, sides: tuple[str, ...], metrics: tuple[str, ...], suite: str | None, fail_on: str | None
) -> int:
    from assay.model import Verdict
    from assay.pipeline import comparing

    with session.store() as store:
        found = comparing.courses(store, sides, metrics, suite)
    if session.is_json:
        from assay.report.comparison_document import history_document

        session.emit(history_document(found, sides))
    else:
        from assay.report.console_showdown import print_courses

        print_courses(found, sides, session.console())
        session.next(f"assay compare {sides[0]} {sides[-1]}")
    return 1 if fail_on and any(one.verdict is Verdict.WORSE for one in found) else 0


def _compare_lines(sides: tuple[str, ...], tolerance: float | None) -> int:
    """Answers each line when it comes, so that another program can ask one question after the other."""
    from assay.analysis.lines import answered

    if sides:
        raise click.UsageError("--lines reads both sides from standard input; leave out A and B.")
    found_mistake = False
    for number, line in enumerate(sys.stdin.buffer, 1):
        if line.strip():
            answer = answered(line, number, tolerance)
            found_mistake |= "error" in answer
            sys.stdout.write(json.dumps(answer, allow_nan=False) + "\n")
            sys.stdout.flush()
    return 2 if found_mistake else 0

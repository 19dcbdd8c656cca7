"""`assay compare`: is B better than A, or is it noise?"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from assay.cli.pages import format_names, page_options, write
from assay.cli.session import Session, common
from assay.cli.shares import share_of

if TYPE_CHECKING:
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
@page_options
@common
def compare(session: Session, sides: tuple[str, ...], kind: str | None, lines: bool, **options: Any) -> int:
    """Compare runs, agents, versions or result files. A is the reference: *better* means that B is better.

    A side is a run (its id, a prefix of it, `last`, @BASELINE), an agent, agent@version, or a result file. The unit of
    comparison is the case, or of code the process: run both sides with processes of ten or more.

    With --lines, A and B come on standard input, as in {"kind": "latency", "a": […], "b": […], "paired": false}; the
    kind "accuracy" takes a list of repetitions for each case.
    """
    tolerance = options["tolerance"]
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
    asked = Asked(
        sides,
        options["metrics"],
        options["suite"],
        width,
        options["fail_on"] is not None,
        format_names(options["formats"], options["out"]),
        options["out"],
    )
    if kind == "multi_agent":
        return _compare_all(session, asked)
    if kind == "time_series":
        return _compare_over_time(session, asked)
    return _compare_two(session, asked)


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line asks to compare, and where to write it."""

    sides: tuple[str, ...]
    metrics: tuple[str, ...]
    suite: str | None
    tolerance: float | None
    fails_on_worse: bool
    formats: Sequence[str]
    out: Path | None


def _compare_two(session: Session, asked: Asked) -> int:
    from assay.model import Verdict
    from assay.pipeline import comparing

    first, second = asked.sides
    with session.store() as store:
        found = comparing.compared(
            store,
            first,
            second,
            metrics=list(asked.metrics) or None,
            tolerance=asked.tolerance,
            suite=asked.suite,
        )
    got_worse = any(one.verdict is Verdict.WORSE for one in found.comparisons)
    if asked.formats:
        from assay.report.comparison_page import comparison_page

        write(session, comparison_page(found, asked.sides), asked.formats, asked.out)
    elif session.is_json:
        from assay.report.comparison_document import comparison_document

        session.emit(comparison_document(found))
    else:
        from assay.report.console import print_comparisons
        from assay.report.console_showdown import print_showdown

        console = session.console()
        _print_sides(console, asked.sides, (found.a, found.b))
        print_comparisons(found.comparisons, found.doubts, console)
        for one in found.showdowns:
            # Who asks for single metrics is not shown the ratings, which rest on all of them.
            print_showdown(one, console, has_ratings=not asked.metrics)
        then = f"assay show {found.b.run.id}" if got_worse else f"assay baseline set main {found.b.run.id}"
        session.next(f"assay report {found.b.run.id} --format html", then)
    return 1 if asked.fails_on_worse and got_worse else 0


def _print_sides(console: Console, refs: Sequence[str], reports: Sequence[Report]) -> None:
    from assay.report.sides import side_lines

    for line in side_lines(refs, reports):
        console.print(line, markup=False, highlight=False)
    console.print()


def _compare_all(session: Session, asked: Asked) -> int:
    from assay.pipeline import comparing

    sides = asked.sides

    with session.store() as store:
        chosen = comparing.find_sides(store, sides, asked.suite)
        made = comparing.all_pairs(store, sides, sides=chosen)
    if asked.formats:
        from assay.report.board_page import matrix_page
        from assay.report.sides import side_lines

        page = matrix_page([made], "compare", side_lines(sides, chosen.reports))
        write(session, replace(page, warnings=(*page.warnings, *chosen.doubts)), asked.formats, asked.out)
        return 0
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


def _compare_over_time(session: Session, asked: Asked) -> int:
    from assay.model import Verdict
    from assay.pipeline import comparing

    sides = asked.sides
    with session.store() as store:
        found = comparing.courses(store, sides, asked.metrics, asked.suite)
    if asked.formats:
        from assay.report.comparison_page import history_page

        write(session, history_page(found, sides), asked.formats, asked.out)
    elif session.is_json:
        from assay.report.comparison_document import history_document

        session.emit(history_document(found, sides))
    else:
        from assay.report.console_showdown import print_courses

        print_courses(found, sides, session.console())
        session.next(f"assay compare {sides[0]} {sides[-1]}")
    return 1 if asked.fails_on_worse and any(one.verdict is Verdict.WORSE for one in found) else 0


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

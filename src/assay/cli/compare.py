"""`assay compare`: is B better than A, or is it noise?

The command has four forms, chosen by the number of sides, `--type` and `--lines`: two sides, all pairs of several agents,
several sides in chronological order, and samples on standard input. Each form calls `pipeline.compare` and shows the
answer as text, as JSON, or as a page.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from assay.cli.options import shared_option
from assay.cli.pages import format_names, page_options, show
from assay.cli.session import Session, common
from assay.cli.values import share_of
from assay.text import shell_command

if TYPE_CHECKING:
    from assay.model.comparison import Compared
    from assay.report.pages.page import Page

TYPES = ("head_to_head", "multi_agent", "time_series")


@click.command()
@click.argument("sides", metavar="A B [C…]", nargs=-1)
@shared_option(
    "--metric", "Judge only this metric; may be repeated. Default: verdicts on score, seconds and cost."
)
@click.option("--suite", metavar="S", help="For agents: use their results on this suite.")
@click.option(
    "--type",
    "kind",
    type=click.Choice(TYPES),
    help="Two sides, all pairs of several agents, or several sides in chronological order. Default: depends on how many there are.",
)
@click.option(
    "--tolerance", metavar="X%", help="Differences within this share count as the same. Default: 3%."
)
@click.option(
    "--fail-on", type=click.Choice(["worse"]), help="Exit with 1 if B is worse in a metric, or incomplete."
)
@click.option(
    "--lines",
    is_flag=True,
    help="Compare samples: one JSON document per line on standard input, one answer per line.",
)
@page_options
@common
def compare(session: Session, sides: tuple[str, ...], kind: str | None, lines: bool, **options: Any) -> int:
    """Compare runs, agents, versions or result files. A is the reference: *better* means that B is better.

    A side is a run (its id, a prefix of it, `last`, @BASELINE), an agent, agent@version, or a result file. Scores
    are compared case by case, times of a suite round by round (use 3 repetitions or more), and code process by process
    (use 10 processes or more).

    With --lines, A and B come on standard input, as in {"kind": "latency", "a": […], "b": […], "paired": false}; the
    kind "accuracy" takes a list of repetitions for each case.
    """
    tolerance = options["tolerance"]
    width = None if tolerance is None else share_of(tolerance, "--tolerance")
    if lines:
        return _compare_lines(sides, width)
    if len(sides) < 2:
        raise click.UsageError("Give two sides, as in: assay compare A B. Or pass samples with --lines.")
    kind = kind or ("head_to_head" if len(sides) == 2 else "multi_agent")
    if kind == "head_to_head" and len(sides) != 2:
        raise click.UsageError(
            f"head_to_head compares two sides, not {len(sides)}. For more: --type multi_agent"
        )
    request = CompareRequest(
        sides,
        options["metrics"],
        options["suite"],
        width,
        options["fail_on"] is not None,
        format_names(options["formats"], options["out"]),
        options["out"],
    )
    if kind == "multi_agent":
        return _compare_all(session, request)
    if kind == "time_series":
        return _compare_over_time(session, request)
    return _compare_two(session, request)


@dataclass(frozen=True, slots=True)
class CompareRequest:
    """What the command line asks to compare, and where to write it."""

    sides: tuple[str, ...]
    metrics: tuple[str, ...]
    suite: str | None
    tolerance: float | None
    fails_on_worse: bool
    formats: Sequence[str]
    out: Path | None

    def show(self, session: Session, page: Callable[[], Page], document: Callable[[], Any]) -> bool:
        return show(session, page, document, self.formats, self.out)


def _compare_two(session: Session, request: CompareRequest) -> int:
    """B against A. Trials that B did not complete count as worse for --fail-on, whatever their figures are."""
    from assay.model import Verdict
    from assay.pipeline import compare as comparing

    first, second = request.sides
    with session.store() as store:
        found = comparing.compare_refs(
            store,
            first,
            second,
            metrics=list(request.metrics) or None,
            tolerance=request.tolerance,
            suite=request.suite,
        )
    # Missing results may be the failures that a comparison should find, so they count as worse.
    got_worse = any(comparison.verdict is Verdict.WORSE for comparison in found.comparisons) or bool(
        found.incomplete
    )
    from assay.report.documents.comparison import comparison_document
    from assay.report.pages.comparison import comparison_page

    if request.show(
        session,
        lambda: comparison_page(found, request.sides, request.metrics),
        lambda: comparison_document(found),
    ):
        session.next(*_next_commands(found, request.sides, got_worse))
    return 1 if request.fails_on_worse and got_worse else 0


def _next_commands(found: Compared, sides: Sequence[str], got_worse: bool) -> list[str]:
    """What to do next. A result file is not in the store, so only the comparison itself can be written as a page."""
    if Path(sides[-1]).suffix == ".json":
        return [shell_command("compare", *sides, options=["--format", "html"])]
    show, keep = f"assay show {found.b.run.id}", f"assay baseline set main {found.b.run.id}"
    return [
        f"assay report {found.b.run.id} --format html",
        show if got_worse or _may_be_worse(found) else keep,
    ]


def _may_be_worse(found: Compared) -> bool:
    """Whether B lost cases or score, solved nothing, or lacks what A has."""
    from assay.analysis.comparison.coverage import find_missing
    from assay.model.estimate import have_scores_fallen

    return (
        any(flips.lost for showdown in found.showdowns for flips in showdown.flips)
        or have_scores_fallen(found.comparisons)
        or not any(trial.ok for trial in found.b.trials)
        or any(
            comparison.metric.name == "score" and not comparison.value_b for comparison in found.comparisons
        )
        or bool(find_missing(found.a, found.b))
    )


def _compare_all(session: Session, request: CompareRequest) -> int:
    """Every side against every other, dimension by dimension."""
    from assay.pipeline import compare as comparing

    # Sides are found once and used twice, for the comparison and to say which runs the figures come from.
    sides = request.sides
    with session.store() as store:
        chosen = comparing.find_sides(store, sides, request.suite)
        matrix = comparing.all_pairs(store, sides, sides=chosen)
    from assay.report.documents.leaderboard import all_pairs_document
    from assay.report.pages.board import all_pairs_page

    reports = dict(zip(sides, chosen.reports, strict=True))
    if request.show(
        session,
        lambda: all_pairs_page(matrix, sides, chosen),
        lambda: all_pairs_document(matrix, reports, chosen.doubts),
    ):
        session.next(shell_command("compare", *map(str, sides[:2])), "assay leaderboard")
    return 0


def _compare_over_time(session: Session, request: CompareRequest) -> int:
    """The course of each metric over the sides, oldest first."""
    from assay.model import Verdict
    from assay.pipeline import compare as comparing

    sides = request.sides
    with session.store() as store:
        found = comparing.courses(store, sides, request.metrics, request.suite)
    from assay.report.documents.comparison import history_document
    from assay.report.pages.comparison import history_page

    if request.show(session, lambda: history_page(found, sides), lambda: history_document(found, sides)):
        session.next(shell_command("compare", str(sides[0]), str(sides[-1])))
    return 1 if request.fails_on_worse and any(course.verdict is Verdict.WORSE for course in found) else 0


def _compare_lines(sides: tuple[str, ...], tolerance: float | None) -> int:
    """Answer each line when it comes, so that another program can ask one question after the other."""
    from assay.analysis.comparison.json_lines import answer_line

    if sides:
        raise click.UsageError("--lines reads both sides from standard input; leave out A and B.")
    found_mistake = False
    for number, line in enumerate(sys.stdin.buffer, 1):
        if line.strip():
            answer = answer_line(line, number, tolerance)
            found_mistake |= "error" in answer
            # Flushed line by line: the program on the other end waits for this answer before it asks the next question.
            sys.stdout.write(json.dumps(answer, allow_nan=False) + "\n")
            sys.stdout.flush()
    return 2 if found_mistake else 0

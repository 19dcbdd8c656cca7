"""`assay compare`: is B better than A, or is it noise?"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from assay.cli.session import Session, common
from assay.cli.shares import share_of

if TYPE_CHECKING:
    from assay.model import Report
    from assay.model.regression import Gate
    from assay.model.showdown import Course, Showdown
    from assay.pipeline.comparing import Compared

TYPES = ("head_to_head", "multi_agent", "time_series")


@click.command()
@click.argument("sides", metavar="A B [C…]", nargs=-1)
@click.option(
    "--metric", "metrics", metavar="M", multiple=True, help="Only this metric; may be given several times."
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
        session.emit(document(found))
    else:
        from assay.report.console import print_comparisons
        from assay.report.console_showdown import print_showdown

        console = session.console()
        for letter, ref, report in (("A", sides[0], found.a), ("B", sides[1], found.b)):
            console.print(f"{letter}  {_named(ref, report)}", markup=False, highlight=False)
        console.print()
        print_comparisons(found.comparisons, found.doubts, console)
        for one in found.showdowns:
            print_showdown(one, console)
        got_worse = any(one.verdict is Verdict.WORSE for one in found.comparisons)
        then = f"assay show {found.b.run.id}" if got_worse else f"assay baseline set main {found.b.run.id}"
        session.next(f"assay report {found.b.run.id} --format html", then)
    return 1 if fail_on and any(one.verdict is Verdict.WORSE for one in found.comparisons) else 0


def _named(ref: str, report: Report) -> str:
    """What was asked for, and which run that is."""
    run = report.run
    told = "" if run.id.startswith(ref) else f"{ref}, "
    simulated = ", simulated" if report.trials and all(one.is_simulated for one in report.trials) else ""
    return f"{told}run {run.id} of {run.name}, {run.started:%Y-%m-%d %H:%M}{simulated}"


def _compare_all(session: Session, sides: tuple[str, ...], suite: str | None) -> int:
    from assay.cli.matrix import document as matrix_document
    from assay.pipeline import comparing

    with session.store() as store:
        made = comparing.all_pairs(store, sides, suite)
    if session.is_json:
        session.emit({"comparison_type": "multi_agent", **matrix_document(made)})
        return 0
    from assay.report.board import print_head_to_head, print_matrix

    console = session.console()
    print_matrix(made, console)
    console.print()
    print_head_to_head(made, console)
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
        session.emit({"schema": "assay.comparison/1", "comparison_type": "time_series", "sides": list(sides),
                      "courses": [_course(one, sides) for one in found]})  # fmt: skip
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


def _course(one: Course, sides: tuple[str, ...]) -> dict[str, Any]:
    return {
        "trial": one.trial,
        "metric": one.metric.name,
        "unit": one.metric.unit,
        "values": dict(zip(sides, one.values, strict=False))
        if len(set(sides)) == len(sides)
        else list(one.values),
        "verdict": one.verdict,
        "changed_at": [sides[step] for step in one.steps],
    }


def document(found: Compared) -> dict[str, Any]:
    return {
        "comparison_type": "head_to_head",
        **metrics_document(found),
        "agents": [_showdown(one) for one in found.showdowns],
    }


def metrics_document(found: Compared | Gate) -> dict[str, Any]:
    """Two sides, metric by metric."""
    return {
        "schema": "assay.comparison/1",
        "a": found.a.run.id,
        "b": found.b.run.id,
        "comparisons": [
            {
                "metric": one.metric.name,
                "unit": one.metric.unit,
                "better": one.metric.better,
                "trial_a": one.trial_a,
                "trial_b": one.trial_b,
                "a": one.value_a,
                "b": one.value_b,
                "units_a": one.units_a,
                "units_b": one.units_b,
                "ratio": one.ratio,
                "interval": None if one.low is None else [one.low, one.high],
                "difference": one.difference,
                "difference_interval": None
                if one.difference_low is None
                else [one.difference_low, one.difference_high],
                "p": one.p,
                "p_corrected": one.p_corrected,
                "q": one.q,
                "effect_size": one.effect_size,
                "tolerance": one.tolerance,
                "verdict": one.verdict,
                "method": one.method,
                "reason": one.reason,
            }
            for one in found.comparisons
        ],
        "warnings": [
            {"code": d.code, "message": d.message, "hint": d.hint, "trial": d.trial} for d in found.doubts
        ],
    }


def _showdown(one: Showdown) -> dict[str, Any]:
    return {
        "a": one.a,
        "b": one.b,
        "winner": one.winner,
        "winners": {name: who for name, who in one.winners.items() if name != "overall"},
        "ratings": {name: {"a": a, "b": b} for name, (a, b) in one.ratings.items()},
        "overall_of": [name for name in one.ratings if name != "overall"],
        "left_out": list(one.left_out),
        "flips": [
            {
                "benchmark": flips.benchmark,
                "won": list(flips.won),
                "lost": list(flips.lost),
                "unchanged": flips.unchanged,
            }
            for flips in one.flips
        ],
        "recommendations": list(one.advice),
    }

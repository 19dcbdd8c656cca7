"""`assay regressions`: find what got worse in the history of an agent, and keep track of it.

`pipeline.regressions` finds regressions by a comparison with a baseline and by change points, and stores each under an id.
With `--mark` the user moves one through its states; resolved ones and false positives are no longer shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from assay.cli.options import shared_option
from assay.cli.session import Session, common
from assay.cli.values import share_of
from assay.text import shell_command

if TYPE_CHECKING:
    from assay.model.regression import RegressionReport

STATES = ("detected", "investigating", "confirmed", "resolved", "false_positive")


@click.command()
@click.argument("agent", metavar="AGENT")
@click.option("--baseline-version", metavar="V", help="Compare with this version; default: the previous one.")
@click.option("--baseline", metavar="NAME", help="Compare with this baseline.")
@click.option("--suite", metavar="S", help="Suite; default: the one the agent ran last.")
@click.option(
    "--threshold",
    metavar="X",
    help="Ignore losses up to this: 0.1 or 10%. Default: 3%, for scores 1 point.",
)
@shared_option(
    "--metric", "Check only this metric; may be repeated. Default: score, seconds, cost and completed."
)
@click.option(
    "--mark", nargs=2, metavar="ID STATE", help=f"Set the state of a regression: {', '.join(STATES)}."
)
@click.option("--note", metavar="TEXT", help="With --mark: why.")
@click.option(
    "--all", "with_closed", is_flag=True, help="Also show resolved regressions and false positives."
)
@common
def regressions(
    session: Session,
    agent: str,
    baseline_version: str | None,
    baseline: str | None,
    suite: str | None,
    threshold: str | None,
    metrics: tuple[str, ...],
    mark: tuple[str, str] | None,
    note: str | None,
    with_closed: bool,
) -> None:
    """Find what got worse in AGENT, by comparing it with a baseline and by change points in its history.

    Every regression has an id under which its state and your note are kept.
    """
    if mark is not None:
        _mark(session, agent, *mark, note)
        return
    # Options that would have no effect are refused, so that users do not believe a note was kept.
    if note is not None:
        raise click.UsageError("--note works only with --mark ID STATE.")
    if baseline is not None and baseline_version is not None:
        raise click.UsageError("Give either --baseline or --baseline-version, not both.")
    from assay.pipeline.regressions import Inquiry, regressions_of

    tolerance = None if threshold is None else share_of(threshold, "--threshold")
    with session.store() as store:
        found = regressions_of(store, Inquiry(agent, suite, baseline, baseline_version, tolerance, metrics))
    if session.is_json:
        from assay.report.documents.regressions import regressions_document

        session.emit(regressions_document(found))
    else:
        _print(session, found, with_closed)


def _mark(session: Session, agent: str, ref: str, state: str, note: str | None) -> None:
    """Give a regression a state and a note; what it was about is said, so that a wrong id is noticed."""
    from assay.errors import LookupFailed, format_unknown_name
    from assay.model.regression import RegressionState

    if state not in STATES:
        raise LookupFailed(format_unknown_name(state, "states", STATES))
    with session.store() as store:
        marked = store.mark_regression(agent, ref, RegressionState(state), note)
    if session.is_json:
        from assay.report.documents.regressions import regression_document

        session.emit(regression_document(marked))
        return
    change = f"{marked.benchmark} · {marked.metric.name} between {marked.before} and {marked.after}"
    session.say(f"{marked.id} ({change}) is now {state.replace('_', ' ')}.")
    session.next(shell_command("regressions", agent))


def _print(session: Session, found: RegressionReport, with_closed: bool) -> None:
    """The regressions for people. The first suggestion is to mark the gravest one as being looked into."""
    from assay.report.console.regressions import print_regressions

    print_regressions(found, session.console(), with_closed=with_closed)
    first = next((regression for regression in found.regressions if regression.counts), None)
    if first is None:
        session.next("assay runs list", shell_command("regressions", found.agent, options=["--all"]))
        return
    mark = shell_command("regressions", found.agent, options=["--mark", str(first.id), "investigating"])
    # Both ends of the regression can be compared if the history knows their runs; later runs of a version replace earlier ones.
    histories = (history for history in found.histories if history.benchmark == first.benchmark)
    runs = {point.version: point.run_id for history in histories for point in history.points}
    ends = [runs[version] for version in (first.before, first.after) if version in runs]
    session.next(mark, *([shell_command("compare", *map(str, ends))] if len(ends) == 2 else []))

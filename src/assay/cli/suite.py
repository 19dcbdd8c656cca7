"""`assay suite`: register, list and show suites, check their scorers, and set their reference values.

Speed, efficiency and cost are rated relative to a reference, so `assay suite reference --set` changes the ratings of all
runs of a suite; it prints which ones changed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

import click

from assay.cli.output import echo, style_text
from assay.cli.sandbox import sandbox_option
from assay.cli.session import Session, common
from assay.text import shell_command
from assay.units import format_count

if TYPE_CHECKING:
    from assay.model import Suite
    from assay.model.rating import ReferenceChange
    from assay.store.store import Store

_LISTED = 20
"""Changed ratings that are shown; --json has all."""
TELL_EVERY_SECONDS = 2.0


@click.group()
def suite() -> None:
    """Register, list, show or check suites, and see or set the reference values of their ratings."""


@suite.command()
@click.argument("target", metavar="FILE")
@common
def add(session: Session, target: str) -> None:
    """Register the suite in FILE."""
    from assay.plan.target import load_suite

    found = load_suite(target, session.settings)
    with session.store() as store:
        store.register_suite(found)
    session.answer(
        {"suite": found.name, "version": found.version, "hash": found.hash},
        f"Registered {found.name} {found.version} ({found.hash}).",
        shell_command("suite check", str(target)),
        shell_command("run", str(target), options=["--agent", "NAME"]),
    )


@suite.command()
@click.argument("target", metavar="SUITE")
@common
def show(session: Session, target: str) -> None:
    """Show the benchmarks, datasets, baseline scores and schedule of SUITE."""
    from assay.errors import SpecError
    from assay.pipeline.planning import registry_of
    from assay.plan.target import find_suite
    from assay.report.documents.suite import suite_document
    from assay.report.pages.suite import print_suite

    with session.store() as store:
        read = find_suite(target, session.settings, registry_of(store))
    if read.mistakes:
        raise SpecError(read.mistakes)
    now = datetime.now(session.settings.zone)
    if session.is_json:
        session.emit(suite_document(read.suite, now))
        return
    print_suite(read.suite, now, session.console())
    session.next(shell_command("suite check", str(target)), shell_command("run", str(target)))


@suite.command("list")
@click.option(
    "--due",
    "only_due",
    is_flag=True,
    help="Print only the names of suites that are due since their last run.",
)
@common
def list_suites(session: Session, only_due: bool) -> None:
    """List suites of the project, of Assay and of the database, and when scheduled ones run next."""
    if only_due:
        _print_due(session)
        return
    from assay.plan.target import suite_names, suite_schedules
    from assay.report.documents.suite import suites_document
    from assay.spec.cron import next_due

    with session.store() as store:
        stored = store.suites()
        schedules = suite_schedules(session.settings) | {
            suite.name: store.suite(suite.name).schedule for suite in stored
        }
    now = datetime.now(session.settings.zone)
    due = {name: next_due(schedule, now) for name, schedule in schedules.items() if schedule}
    names = suite_names(session.settings)
    if session.is_json:
        session.emit(suites_document(names, stored, schedules, due))
        return
    for name in names:
        echo(f"{name}{_due_text(due.get(name))}")
    for suite in stored:
        echo(f"{suite.name} {suite.version}  {suite.category}  {suite.hash}{_due_text(due.get(suite.name))}")
    session.next("assay suite show NAME", "assay suite check NAME", "assay run NAME")


def _print_due(session: Session) -> None:
    """The names of suites that are due, one a line and nothing else, for `xargs` and schedulers."""
    from assay.pipeline.schedules import find_due_suites

    with session.store() as store:
        names = find_due_suites(store, session.settings)
    if session.is_json:
        session.emit({"due": list(names)})
        return
    for name in names:
        echo(name)


def _due_text(moment: datetime | None) -> str:
    from assay.report.figures import format_scheduled_time

    return f"  next: {format_scheduled_time(moment)}" if moment else ""


@suite.command()
@click.argument("target", metavar="SUITE")
@sandbox_option
@common
def check(session: Session, target: str) -> int:
    """Check that the scorers of SUITE pass correct answers and fail empty ones, and find uninformative cases. Exits with 1 if a check fails.

    A correct answer is derived from the expected output. If that is impossible, as with a pattern or tests, the case's
    `solution` is used; a case without one is not checked.
    """
    from assay.pipeline import leaderboard as standing

    with session.store() as store:
        health = standing.check_suite(target, session.settings, store)
    if session.is_json:
        from assay.report.documents.suite import health_document

        session.emit(health_document(health))
        return 0 if health.is_sound else 1
    for fault in health.faults:
        sign = style_text("✗", fg="red") if fault.is_severe else style_text("!", fg="yellow")
        cases = ", ".join(fault.cases[:8]) + (
            f" and {len(fault.cases) - 8} more" if len(fault.cases) > 8 else ""
        )
        echo(sign, f" {fault.benchmark}: {fault.message}: {cases}")
    sound = "is sound: the correct answers get 1.0, empty ones 0.0" if health.is_sound else "is not sound"
    unchecked = f", {health.number_of_unchecked} not checked" if health.number_of_unchecked else ""
    echo(f"{health.suite} {sound} ({format_count(health.cases, 'case')}{unchecked}).")
    session.next(shell_command("run", str(target), options=["--agent", "NAME"]))
    return 0 if health.is_sound else 1


@suite.command()
@click.argument("target", metavar="SUITE")
@click.option("--set", "ref", metavar="RUN", help="Make RUN the reference, and rate all trials again.")
@common
def reference(session: Session, target: str, ref: str | None) -> None:
    """Show what the ratings of SUITE are relative to: speed, efficiency and cost are 0.5 at the reference.

    The reference comes from the rubric, or else from the first completed run of the current definition of the suite, or
    else it is half of the limit. --set RUN changes the reference run, and lists the ratings that change.
    """
    from assay.pipeline import references

    with session.store() as store:
        found = _definition(session, store, target)
        change = references.set_references(store, found, ref, tell_rated(session)) if ref else None
        listed = references.list_references(store, found)
    if session.is_json:
        from assay.report.documents.references import references_document

        session.emit(references_document(found, listed, change))
        return
    from assay.report.console.sections import print_table
    from assay.report.documents.references import reference_table

    if change:
        _print_change(session, change)
    print_table(reference_table(listed), session.console())
    session.next(
        shell_command("leaderboard", options=["--suite", found.name]),
        shell_command("suite reference", str(target), options=["--set", "RUN"]),
    )


def _definition(session: Session, store: Store, target: str) -> Suite:
    """The suite as its file or the registry defines it now, or if there is none, as its latest run had it."""
    from assay.errors import LookupFailed
    from assay.pipeline.planning import registry_of
    from assay.pipeline.references import find_definition
    from assay.plan.target import find_suite

    # A suite whose file is gone still has ratings, and their references can be seen and changed.
    try:
        return find_suite(target, session.settings, registry_of(store)).suite
    except LookupFailed:
        return find_definition(store, target)


def tell_rated(session: Session) -> Callable[[], None]:
    """A function to call for each trial that was rated again. It reports progress every two seconds."""
    last_message, rated = time.monotonic(), 0

    def tell() -> None:
        nonlocal last_message, rated
        rated += 1
        if time.monotonic() - last_message >= TELL_EVERY_SECONDS:
            last_message = time.monotonic()
            session.say(f"{format_count(rated, 'trial')} rated again so far")

    return tell


def _print_change(session: Session, change: ReferenceChange) -> None:
    """What a change of references did to ratings that people may have quoted already."""
    from assay.report.console.sections import print_table
    from assay.report.documents.references import change_table

    runs = len({rating.run_id for rating in change.ratings})
    echo(
        f"Run {change.run_id} is the reference now. {format_count(change.rated, 'trial')} rated again; the ratings of "
        f"{format_count(len(change.ratings), 'trial')} in {format_count(runs, 'run')} changed."
    )
    if change.left_out:
        echo(f"Not measured by this run, so unchanged: {', '.join(change.left_out)}.")
    if change.ratings:
        print_table(change_table(change.ratings[:_LISTED]), session.console())
        if len(change.ratings) > _LISTED:
            echo(f"({len(change.ratings) - _LISTED} more: --json)")
    echo()

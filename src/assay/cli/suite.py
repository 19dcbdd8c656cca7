"""`assay suite`: suites known by name, and whether they can tell agents apart."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from assay.cli.output import echo, styled
from assay.cli.sandbox import sandbox_option
from assay.cli.session import Session, common
from assay.text import shell_command
from assay.units import count, counted

if TYPE_CHECKING:
    from datetime import datetime

    from assay.model import Suite
    from assay.pipeline.references import ReferenceChange
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
    from assay.plan.target import checked_suite

    found = checked_suite(target, session.settings)
    with session.store() as store:
        store.register_suite(found)
    if session.is_json:
        session.emit({"suite": found.name, "version": found.version, "hash": found.hash})
    else:
        session.say(f"Registered {found.name} {found.version} ({found.hash}).")
        session.next(
            shell_command("suite check", str(target)),
            shell_command("run", str(target), options=["--agent", "NAME"]),
        )


@suite.command()
@click.argument("target", metavar="SUITE")
@common
def show(session: Session, target: str) -> None:
    """Show the benchmarks, datasets, baseline scores and schedule of SUITE."""
    from assay.errors import SpecError
    from assay.pipeline.running import registry_of
    from assay.plan.target import find_suite
    from assay.report.suite import print_suite, suite_document

    with session.store() as store:
        read = find_suite(target, session.settings, registry_of(store))
    if read.mistakes:
        raise SpecError(read.mistakes)
    if session.is_json:
        session.emit(suite_document(read.suite))
        return
    print_suite(read.suite, session.console())
    session.next(shell_command("suite check", str(target)), shell_command("run", str(target)))


@suite.command("list")
@common
def list_suites(session: Session) -> None:
    """Suites of the project, shipped ones, and those in the store; with the next time of those that have a schedule."""
    from assay.plan.target import suite_names, suite_schedules
    from assay.report.suite import next_due

    with session.store() as store:
        stored = store.suites()
        schedules = suite_schedules(session.settings) | {
            one.name: store.suite(one.name).schedule for one in stored
        }
    due = {name: next_due(schedule) for name, schedule in schedules.items() if schedule}
    names = suite_names(session.settings)
    if session.is_json:
        kept = [
            {"name": s.name, "version": s.version, "category": s.category, "hash": s.hash} for s in stored
        ]
        scheduled = {
            name: {"schedule": schedules[name], "next_due": moment.isoformat() if moment else None}
            for name, moment in due.items()
        }
        session.emit({"files": names, "stored": kept, "schedules": scheduled})
        return
    for name in names:
        echo(f"{name}{_due_text(due.get(name))}")
    for one in stored:
        echo(f"{one.name} {one.version}  {one.category}  {one.hash}{_due_text(due.get(one.name))}")
    session.next("assay suite show NAME", "assay suite check NAME", "assay run NAME")


def _due_text(moment: datetime | None) -> str:
    return f"  next: {moment:%Y-%m-%d %H:%M} UTC" if moment else ""


@suite.command()
@click.argument("target", metavar="SUITE")
@sandbox_option
@common
def check(session: Session, target: str) -> int:
    """Put right answers and empty ones to the scorers of SUITE, and find cases that tell nothing. Exit code 1: unsound.

    A right answer is constructed from what is expected; where that is not possible, as for a pattern or tests, the case's
    `solution` is taken, and without one the case is not checked.
    """
    from assay.pipeline import standing

    with session.store() as store:
        health = standing.check_suite(target, session.settings, store)
    if session.is_json:
        from assay.report.suite import health_document

        session.emit(health_document(health))
        return 0 if health.is_sound else 1
    for fault in health.faults:
        sign = styled("✗", fg="red") if fault.is_severe else styled("!", fg="yellow")
        shown = ", ".join(fault.cases[:8]) + (
            f" and {len(fault.cases) - 8} more" if len(fault.cases) > 8 else ""
        )
        echo(sign, f" {fault.benchmark}: {fault.message}: {shown}")
    sound = "is sound: the right answers get 1.0, empty ones 0.0" if health.is_sound else "is not sound"
    unchecked = f", {health.unchecked} not checked" if health.unchecked else ""
    echo(f"{health.suite} {sound} ({health.cases} cases{unchecked}).")
    session.next(shell_command("run", str(target), options=["--agent", "NAME"]))
    return 0 if health.is_sound else 1


@suite.command()
@click.argument("target", metavar="SUITE")
@click.option("--set", "ref", metavar="RUN", help="Make RUN the reference, and rate all trials again by it.")
@common
def reference(session: Session, target: str, ref: str | None) -> None:
    """Show what the ratings of SUITE are relative to: speed, efficiency and cost are 0.5 at the reference.

    It comes from the rubric, else from the first completed run of the suite as it is defined now, else it is half of
    the limit. With --set RUN the reference run changes, and with it the ratings of every run; it says which.
    """
    from assay.pipeline import references

    with session.store() as store:
        found = _definition(session, store, target)
        change = references.set_references(store, found, ref, tell_rated(session)) if ref else None
        shown = references.shown_references(store, found)
    if session.is_json:
        from assay.report.references import references_document

        session.emit(references_document(found, shown, change))
        return
    from assay.report.references import reference_table

    if change:
        _print_change(session, change)
    session.console().print(reference_table(shown))
    session.next(
        shell_command("leaderboard", options=["--suite", found.name]),
        shell_command("suite reference", str(target), options=["--set", "RUN"]),
    )


def _definition(session: Session, store: Store, target: str) -> Suite:
    """As its file or the registry has it now; of a suite that only has results, as its latest run was made."""
    from assay.errors import LookupFailed
    from assay.pipeline.references import find_definition
    from assay.pipeline.running import registry_of
    from assay.plan.target import find_suite

    try:
        return find_suite(target, session.settings, registry_of(store)).suite
    except LookupFailed:
        return find_definition(store, target)


def tell_rated(session: Session) -> Callable[[], None]:
    """Say now and then how many trials were rated again, and nothing where it is over in a moment."""
    said, rated = time.monotonic(), 0

    def tell() -> None:
        nonlocal said, rated
        rated += 1
        if time.monotonic() - said >= TELL_EVERY_SECONDS:
            said = time.monotonic()
            session.say(f"{count(rated)} trials rated again so far")

    return tell


def _print_change(session: Session, change: ReferenceChange) -> None:
    from assay.report.references import change_table

    runs = len({one.run_id for one in change.ratings})
    echo(
        f"Run {change.run_id} is the reference now. {counted(change.rated, 'trial')} rated again; the ratings of "
        f"{counted(len(change.ratings), 'trial')} in {counted(runs, 'run')} changed."
    )
    if change.left_out:
        echo(f"Not measured by this run, so unchanged: {', '.join(change.left_out)}.")
    if change.ratings:
        session.console().print(change_table(change.ratings[:_LISTED]))
        if len(change.ratings) > _LISTED:
            echo(f"({len(change.ratings) - _LISTED} more: --json)")
    echo()

"""`assay suite`: suites known by name, and whether they can tell agents apart."""

from __future__ import annotations

import click

from assay.cli.session import Session, common


@click.group()
def suite() -> None:
    """Register, list or check suites."""


@suite.command()
@click.argument("target", metavar="FILE")
@common
def add(session: Session, target: str) -> None:
    """Register the suite that FILE holds."""
    from assay.plan.target import checked_suite

    found = checked_suite(target, session.settings)
    with session.store() as store:
        store.register_suite(found)
    if session.is_json:
        session.emit({"suite": found.name, "version": found.version, "hash": found.hash})
    else:
        session.say(f"Registered {found.name} {found.version} ({found.hash}).")
        session.next(f"assay suite check {target}", f"assay run {target} --agent NAME")


@suite.command("list")
@common
def list_suites(session: Session) -> None:
    """Suites of the project, shipped ones, and those in the store."""
    from assay.plan.target import suite_names

    with session.store() as store:
        stored = store.suites()
    names = suite_names(session.settings)
    if session.is_json:
        kept = [
            {"name": s.name, "version": s.version, "category": s.category, "hash": s.hash} for s in stored
        ]
        session.emit({"files": names, "stored": kept})
        return
    for name in names:
        click.echo(name)
    for one in stored:
        click.echo(f"{one.name} {one.version}  {one.category}  {one.hash}")
    session.next("assay suite check NAME", "assay run NAME")


@suite.command()
@click.argument("target", metavar="SUITE")
@common
def check(session: Session, target: str) -> int:
    """Put the right answers and empty ones through SUITE, and look for cases that tell nothing. Exit code 1: unsound."""
    from assay.pipeline import standing

    with session.store() as store:
        health = standing.check_suite(target, session.settings, store)
    if session.is_json:
        session.emit(
            {
                "suite": health.suite,
                "cases": health.cases,
                "sound": health.is_sound,
                "faults": [
                    {"code": f.code, "benchmark": f.benchmark, "cases": list(f.cases), "message": f.message,
                     "severe": f.is_severe}
                    for f in health.faults
                ],
            }
        )  # fmt: skip
        return 0 if health.is_sound else 1
    for fault in health.faults:
        sign = click.style("✗", fg="red") if fault.is_severe else click.style("!", fg="yellow")
        shown = ", ".join(fault.cases[:8]) + (
            f" and {len(fault.cases) - 8} more" if len(fault.cases) > 8 else ""
        )
        click.echo(f"{sign} {fault.benchmark}: {fault.message}: {shown}")
    sound = "is sound: the right answers get 1.0, empty ones 0.0" if health.is_sound else "is not sound"
    click.echo(f"{health.suite} {sound} ({health.cases} cases).")
    session.next(f"assay run {target} --agent NAME")
    return 0 if health.is_sound else 1

"""`assay power`: before anything is spent, how much must be run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from assay.cli.session import Session, common
from assay.cli.shares import share_of

if TYPE_CHECKING:
    from assay.model.precision import Need
    from assay.store.store import Store


@click.command()
@click.argument("target")
@click.option(
    "--effect",
    default="5%",
    show_default=True,
    metavar="X%",
    help="The difference to be found: of scores, in points.",
)
@click.option(
    "--agent", "agents", metavar="A", multiple=True, help="Go by this agent's results only; several times."
)
@click.option("--metric", "metrics", metavar="M", multiple=True, help="Only this metric; several times.")
@common
def power(
    session: Session, target: str, effect: str, agents: tuple[str, ...], metrics: tuple[str, ...]
) -> int:
    """Estimate how many cases, repetitions or processes detect a difference of a given size with 80 % power.

    TARGET is a suite (name or file), a run or a spec. What it varies by is taken from its stored results, and so is what
    an execution costs and lasts.
    """
    from assay.pipeline.precision import needed

    size = share_of(effect, "--effect")
    if not size:
        raise click.UsageError("--effect must be above 0: no number of cases finds a difference of nothing.")
    with session.store() as store:
        found = needed(store, session.settings, target, size, agents=agents, metrics=metrics)
        runnable = _runnable(store, target)
    if session.is_json:
        session.emit(document(target, found))
        return 0
    from assay.report.precision import print_needs

    print_needs(found, session.console())
    session.next(*_next(runnable, found[0]))
    return 0


def _runnable(store: Store, target: str) -> str:
    """What `assay run` takes for the target: a run cannot be run, but its suite or its spec can."""
    from assay.errors import RunNotFound

    if Path(target).is_file():
        return target
    try:
        run = store.run(target)
    except RunNotFound:
        return target
    return run.suite.name if run.suite else "SPEC"


def _next(target: str, need: Need) -> tuple[str, ...]:
    if need.unit == "process":
        return (f"assay run {target} --processes {need.units}",)
    if need.more_repetitions is not None:
        return (f"assay run {target} --repetitions {need.more_repetitions}", f"assay noise {target}")
    return (f"assay suite check {target}", f"assay noise {target}")


def document(target: str, needs: list[Need]) -> dict[str, Any]:
    return {
        "schema": "assay.power/1",
        "target": target,
        "alpha": 0.05,
        "power": 0.8,
        "needs": [
            {
                "benchmark": need.benchmark,
                "metric": need.metric.name,
                "effect": need.effect,
                "unit": need.unit,
                "there": need.there,
                "units_needed": need.units,
                "repetitions": need.repetitions,
                "repetitions_needed": need.more_repetitions,
                "executions": need.executions,
                "minutes": need.minutes,
                "usd": need.usd,
                "basis": need.basis,
            }
            for need in needs
        ],
    }

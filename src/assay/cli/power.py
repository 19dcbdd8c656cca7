"""`assay power`: forecast how much to run until a difference of a given size is found.

`pipeline.precision.compute_needs` simulates comparisons with the noise of stored results, which takes seconds, so a status
line says what is being simulated.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from assay.cli.options import shared_option
from assay.cli.session import Session, common
from assay.cli.values import share_of
from assay.text import shell_command

if TYPE_CHECKING:
    from assay.analysis.comparison.sample_size import Progress
    from assay.model.precision import Need
    from assay.store.store import Store


@click.command()
@click.argument("target")
@click.option(
    "--effect",
    default="5%",
    show_default=True,
    metavar="X%",
    help="Difference to detect; for scores, in points.",
)
@click.option(
    "--agent", "agents", metavar="A", multiple=True, help="Use only this agent's results; may be repeated."
)
@shared_option(
    "--metric",
    "Forecast `assay compare --metric M`; may be repeated. Default: score, seconds and cost, judged together.",
)
@common
def power(
    session: Session, target: str, effect: str, agents: tuple[str, ...], metrics: tuple[str, ...]
) -> int:
    """Forecast how many cases, repetitions or processes `assay compare` needs to find a difference of a given size.

    TARGET is a suite (name or file), a run or a spec. Assay fits a model of two agents in one run (for code: of one
    version in each of two runs) to the stored results, adds the difference to one metric of one benchmark, and simulates
    the comparison, including its correction for all metrics and benchmarks. It reports the smallest size at which 80 % of
    the simulated comparisons find the difference.
    """
    from assay.pipeline.precision import compute_needs

    size = share_of(effect, "--effect")
    # Only 0 is refused: a tiny effect has an answer, however large.
    if not size:
        raise click.UsageError("--effect must be above 0: no number of cases finds a difference of zero.")
    with session.store() as store, _progress(session) as progress:
        found = compute_needs(
            store, session.settings, target, size, agents=agents, metrics=metrics, progress=progress
        )
        runnable = _runnable(store, target)
    if session.is_json:
        from assay.report.documents.precision import power_document

        session.emit(power_document(target, found))
        return 0
    from assay.report.console.precision import print_needs

    print_needs(found, session.console())
    session.next(*_next(runnable, found[0]))
    return 0


@contextlib.contextmanager
def _progress(session: Session) -> Iterator[Progress | None]:
    """Show what is being simulated, in one line, if standard error is a terminal."""
    if session.is_quiet or not sys.stderr.isatty():
        yield None
        return
    with session.error_console().status("Reading stored results …") as status:
        yield lambda done, total, name: status.update(f"Simulating {name} ({done + 1} of {total}) …")


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
    """The command that makes the run which the forecast asks for; if no size is enough, what could make the noise smaller."""
    if need.unit == "process":
        return (
            shell_command("noise", target)
            if need.units is None
            else shell_command("run", target, options=["--processes", str(need.units)]),
        )
    if need.more_repetitions is not None:
        return (
            shell_command("run", target, options=["--repetitions", str(need.more_repetitions)]),
            shell_command("noise", target),
        )
    return (shell_command("suite check", target), shell_command("noise", target))

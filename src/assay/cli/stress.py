"""`assay stress`: find out where an agent breaks under pressure, why, and how it recovers.

The scenarios are plug-ins, `pipeline.stress` runs them, and this module shows progress: on a terminal a line that is
overwritten several times a second, and a line for each finished scenario.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Any

import click

from assay.cli.load import options_of
from assay.cli.options import label_option
from assay.cli.session import Session, common
from assay.text import shell_command

if TYPE_CHECKING:
    from assay.load.tally import LoadProgress
    from assay.model.load import Load
    from assay.pipeline.stress import StressObserver, StressOutcome

_EVERY = 0.25
"""Seconds between two updates of the progress line."""


@click.command()
@click.argument("agent")
@click.option(
    "--scenario",
    "scenarios",
    metavar="S",
    multiple=True,
    help="Run only this scenario (see assay list scenarios); may be repeated. Default: all.",
)
@click.option("--quick", is_flag=True, help="Run everything in about 90 seconds instead of an hour.")
@click.option(
    "--base",
    metavar="RATE",
    help="Requests per second that the agent handles comfortably; default: found by a search.",
)
@label_option
@options_of("requests")
@common
def stress(
    session: Session,
    agent: str,
    scenarios: tuple[str, ...],
    quick: bool,
    base: str | None,
    label: tuple[str, ...],
    **given: Any,
) -> int:
    """Stress-test AGENT in eight scenarios. AGENT is an agent's name, or a URL as for assay load.

    Reports where each scenario broke the agent, why, and how long recovery took, and a resilience score from 0 to 1.
    With a suite as --dataset, only correct answers count. Exits with 1 if something broke.

    \b
    assay stress http://127.0.0.1:9000/v1 --quick
    assay stress my-agent --scenario spike_load --scenario rate_limiting --base 20
    assay stress my-agent --slo "latency_p95<2s,error_rate<1%" --dataset suite.yaml
    """
    from assay.load.build import LoadOptions
    from assay.pipeline.stress import StressOptions, run_stress
    from assay.spec.load_settings import rate_of

    options = StressOptions(
        LoadOptions(agent, **given),
        scenarios,
        quick,
        None if base is None else rate_of(base, "--base"),
        label,
    )
    with session.store() as store:
        outcome = run_stress(options, store, session.settings, _build_observer(session))
    return _finish(session, outcome)


def _build_observer(session: Session) -> StressObserver:
    """What shows the progress of a stress test: the live line while a load runs, and a line of text for each result.

    The live line is cleared before text is printed, which would otherwise stand in the middle of it.
    """
    from assay.analysis.load.stress import score_of
    from assay.pipeline.stress import StressObserver
    from assay.report.stress import line

    show, clear = _live_line(session)

    def say(text: str) -> None:
        clear()
        if not session.is_json:
            session.say(text)

    return StressObserver(
        say, lambda found: say(line(found, None if found.skipped else score_of(found))), show
    )


def _live_line(session: Session) -> tuple[Callable[[LoadProgress, Load], None], Callable[[], None]]:
    """Functions that overwrite and clear a progress line; they do nothing without a terminal, with --json and with --quiet."""
    if session.is_json or session.is_quiet or not sys.stderr.isatty():
        return lambda progress, load: None, lambda: None
    from assay.load.stress.breaking_point import load_at

    last_update = 0.0

    def show(progress: LoadProgress, load: Load) -> None:
        nonlocal last_update
        now = monotonic()
        if now - last_update < _EVERY:
            return
        last_update = now
        # The carriage return and the code for "erase line" (ECMA-48 EL) overwrite the line in place.
        target = "{:.4g} {}".format(*load_at(load, progress.seconds))
        whole = f" of {load.seconds:.0f}" if load.count is None else ""
        line = f"  {target}  {progress.seconds:.1f}{whole} s  {progress.completed} answered  {progress.failed} failed  {progress.in_flight} in flight"
        click.echo(f"\r\x1b[2K{line}", err=True, nl=False)

    def clear() -> None:
        click.echo("\r\x1b[2K", err=True, nl=False)

    return show, clear


def _finish(session: Session, outcome: StressOutcome) -> int:
    """Show the result and return the exit code: 0 if nothing broke, 1 if something did or nothing could be scored, and 128
    plus the number of the signal after an interruption."""
    from assay.execute.signals import interrupt_exit_code
    from assay.plugin import lookup
    from assay.report.console.sections import print_sections
    from assay.report.stress import stress_document

    finding = outcome.finding
    if session.is_json:
        session.emit(
            {"run": outcome.run_id, "interrupted": outcome.is_interrupted, **stress_document(finding)}
        )
    else:
        found = lookup.find("findings", "stress")(finding)
        print_sections(found.sections(with_charts=False), session.console())
    if outcome.is_interrupted:
        session.say("Interrupted. Scenarios that were finished are shown and kept.")
    session.next(
        *([f"assay run --resume {outcome.run_id}"] if outcome.is_interrupted else []),
        f"assay report {outcome.run_id} --format html",
        f"assay show {outcome.run_id}",
        shell_command("load", finding.target, options=["--find-capacity"]),
    )
    # An interruption comes first: a test that was cut short has not shown that nothing breaks.
    if outcome.is_interrupted:
        return interrupt_exit_code()
    return 1 if finding.is_broken or not finding.scores else 0

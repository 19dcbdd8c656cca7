"""`assay noise`: measure how much results vary when nothing changes.

The command runs one target repeatedly (an A/A run) and reports the noise floor of each metric: a smaller difference
between two runs means nothing.
"""

from __future__ import annotations

import click

from assay.cli.options import load_option, naming_flags, set_option, shared_option
from assay.cli.sandbox import sandbox_option
from assay.cli.session import Session, common
from assay.text import shell_command


@click.command()
@click.argument("target")
@click.option("--agent", metavar="A", help="With a suite: the agent to run repeatedly.")
@set_option
@load_option
@shared_option(
    "--repetitions",
    "Rounds of a suite, or fresh processes of an experiment.",
    type=click.IntRange(min=4),
    default=10,
    show_default=True,
)
@shared_option("--limit", "With a suite: only the first N cases of each benchmark.")
@sandbox_option
@common
def noise(
    session: Session,
    target: str,
    agent: str | None,
    settings: tuple[str, ...],
    load: tuple[str, ...],
    repetitions: int,
    limit: int | None,
) -> int:
    """Run TARGET against itself (an A/A run) and report how large a difference must be to mean anything.

    \b
    assay noise suite.yaml --agent fast
    assay noise bench.py::parse --repetitions 20
    """
    from assay.cli.progress import watching
    from assay.cli.values import setting
    from assay.pipeline import precision
    from assay.pipeline import run as running
    from assay.plan.suite import CaseFilter
    from assay.plan.target import RunRequest, build_changes

    # The number of rounds is not part of the request: whether it means rounds or processes depends on what the target is.
    changes = build_changes({"params": dict(setting(text) for text in settings), "load": load})
    request = RunRequest(target, changes, agents=(agent,) if agent else (), cases=CaseFilter(limit))
    with session.store() as store:
        with naming_flags(target):
            plan = precision.plan_repetitions(request, repetitions, session.settings, store)
        with watching(session, plan) as watch:
            run = running.run_plan(plan, store, watch)
        report, floors = precision.noise_of(store, run.id)
    if session.is_json:
        from assay.report.documents.precision import noise_document

        session.emit(noise_document(run.id, floors))
        return 0 if floors else 1
    from assay.report.console.precision import print_noise

    print_noise(report, floors, session.console())
    session.next(shell_command("power", target, options=["--effect", "5%"]), f"assay show {run.id}")
    return 0 if floors else 1

"""`assay noise`: measure how much results vary when nothing changes.

The command runs one target repeatedly (an A/A run) and reports the noise floor of each metric: a smaller difference
between two runs means nothing.
"""

from __future__ import annotations

import click

from assay.cli.sandbox import sandbox_option
from assay.cli.session import Session, common
from assay.text import shell_command


@click.command()
@click.argument("target")
@click.option("--agent", metavar="A", help="With a suite: the agent to run repeatedly.")
@click.option(
    "--set",
    "settings",
    metavar="KEY=VALUE",
    multiple=True,
    help="A param of the experiment, or an option of the agent; may be repeated.",
)
@click.option(
    "--load",
    metavar="FILE.py",
    multiple=True,
    help="Python file whose experiments, agents and scorers can be used by name.",
)
@click.option(
    "--repetitions",
    "rounds",
    type=click.IntRange(min=4),
    default=10,
    show_default=True,
    metavar="N",
    help="Rounds of a suite, or fresh processes of an experiment.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help="With a suite: only the first N cases of each benchmark.",
)
@sandbox_option
@common
def noise(
    session: Session,
    target: str,
    agent: str | None,
    settings: tuple[str, ...],
    load: tuple[str, ...],
    rounds: int,
    limit: int | None,
) -> int:
    """Run TARGET against itself (an A/A run) and report how large a difference must be to mean anything.

    \b
    assay noise suite.yaml --agent fast
    assay noise bench.py::parse --repetitions 20
    """
    from assay.cli.progress import watching
    from assay.cli.run import flags_named
    from assay.cli.values import setting
    from assay.pipeline import precision
    from assay.pipeline import run as running
    from assay.plan.suite import CaseFilter
    from assay.plan.target import RunRequest

    # The number of rounds is not part of the request: whether it means rounds or processes depends on what the target is.
    given = {"params": dict(setting(text) for text in settings), "load": list(load)}
    changes = {key: value for key, value in given.items() if value}
    request = RunRequest(target, changes, agents=(agent,) if agent else (), cases=CaseFilter(limit))
    with session.store() as store:
        with flags_named(target):
            plan = precision.plan_repetitions(request, rounds, session.settings, store)
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

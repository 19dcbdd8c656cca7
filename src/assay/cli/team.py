"""`assay team`: measure speedup and contention of agents that work at the same time.

A team is an experiment with two legs, sequential and concurrent, so planning, running and reporting are those of
`assay run`; this command only adds the options of teams.
"""

from __future__ import annotations

from typing import Any

import click

from assay.cli.options import (
    dry_run_option,
    label_option,
    naming_flags,
    read_changes,
    read_formats,
    shared_option,
)
from assay.cli.session import Session, common
from assay.text import shell_command


@click.command()
@click.argument("spec")
@shared_option("--set", "Set an option of all agents, or of one as NAME.KEY=VALUE; may be repeated.")
@shared_option("--sweep", "Run the team with each of these values of an option; may be repeated.")
@shared_option("--repetitions", "Sequential/concurrent pairs to measure.")
@shared_option("--warmup", "Cases that each agent answers before measuring begins.")
@click.option(
    "--permits",
    type=click.IntRange(min=1),
    metavar="N",
    help="Agents that may work at the same time; default: all.",
)
@shared_option("--seed", "Seed for the order of legs and agents.")
@shared_option("--load", "Python file whose agents can be used by name.")
@shared_option(
    "--report",
    "Write a report: html, md, json, csv, png, junit, or team (a folder of JSON and Markdown files).",
)
@shared_option("--out", "Folder for the reports.")
@label_option
@dry_run_option
@common
def team(session: Session, spec: str, dry_run: bool, permits: int | None, **options: Any) -> int:
    """Measure what agents gain and lose by working at the same time.

    SPEC is a team file, or the name of a built-in team: see assay list teams. Each pair of legs runs the same cases twice,
    one agent after the other and all at once, in random order. The run is stored like any other; if it is interrupted,
    resume it with assay run --resume RUN.

    \b
    assay team homo.yaml
    assay team runtimes --set num_ctx=2048 --repetitions 10 --report html,team
    assay team homo.yaml --permits 1
    """
    from assay.cli.progress import watching
    from assay.cli.run import finish, preview
    from assay.errors import PlanError
    from assay.pipeline import run as running
    from assay.pipeline.planning import prepare
    from assay.plan.target import RunRequest

    with session.store() as store:
        with naming_flags(spec):
            changes = {**read_changes(options), **({"permits": permits} if permits else {})}
            request = RunRequest(spec, changes, label=next(iter(options["label"]), ""))
            plan = prepare(request, session.settings, store)
        # Any spec can be planned here, and the options of this command would mean little for a different kind.
        if any(trial.experiment != "team" for trial in plan.trials):
            raise PlanError(f"'{spec}' is not a team. Run it: {shell_command('run', str(spec))}")
        formats = read_formats(options)
        if dry_run:
            return preview(session, plan, store)
        with watching(session, plan) as watch:
            run = running.run_plan(plan, store, watch)
        return finish(session, store, run.id, formats, options["out"])

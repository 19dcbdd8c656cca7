"""`assay team`: measure speedup and contention of agents that work at the same time.

A team is an experiment with two legs, sequential and concurrent, so planning, running and reporting are those of
`assay run`; this command only adds the options of teams.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from assay.cli.session import Session, common, label_option
from assay.text import shell_command


@click.command()
@click.argument("spec")
@click.option(
    "--set",
    "settings",
    metavar="KEY=VALUE",
    multiple=True,
    help="Set an option of all agents, or of one as NAME.KEY=VALUE; may be repeated.",
)
@click.option(
    "--sweep",
    "axes",
    metavar="KEY=V1,V2",
    multiple=True,
    help="Run the team with each of these values of an option; may be repeated.",
)
@click.option(
    "--repetitions", type=click.IntRange(min=1), metavar="N", help="Sequential/concurrent pairs to measure."
)
@click.option(
    "--warmup",
    type=click.IntRange(min=0),
    metavar="N",
    help="Cases that each agent answers before measuring begins.",
)
@click.option(
    "--permits",
    type=click.IntRange(min=1),
    metavar="N",
    help="Agents that may work at the same time; default: all.",
)
@click.option(
    "--seed", type=click.IntRange(0, 2**32 - 1), metavar="N", help="Seed for the order of legs and agents."
)
@click.option(
    "--load",
    metavar="FILE.py",
    multiple=True,
    help="Python file whose agents can be used by name.",
)
@click.option(
    "--report",
    "formats",
    metavar="FMT,…",
    multiple=True,
    help="Write a report: html, md, json, csv, png, junit, or team (a folder of JSON and Markdown files).",
)
@click.option("--out", metavar="DIR", type=click.Path(path_type=Path), help="Folder for the reports.")
@label_option
@click.option("--dry-run", is_flag=True, help="Print what would run, and exit.")
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
    from assay.cli.run import changes, chosen_formats, finish, flags_named, preview
    from assay.errors import PlanError
    from assay.pipeline import run as running
    from assay.pipeline.planning import prepare
    from assay.plan.target import RunRequest

    # `changes` reads the options of `assay run`; those that a team does not have are as if they were not given.
    whole = {**options, "processes": None, "isolation": None, "executor": None}
    with session.store() as store:
        with flags_named(spec):
            title = next(iter(options["labels"]), "")
            request = RunRequest(
                spec, {**changes(whole), **({"permits": permits} if permits else {})}, label=title
            )
            plan = prepare(request, session.settings, store)
        # Any spec can be planned here, and the options of this command would mean little for a different kind.
        if any(trial.experiment != "team" for trial in plan.trials):
            raise PlanError(f"'{spec}' is not a team. Run it: {shell_command('run', str(spec))}")
        formats = chosen_formats(options)
        if dry_run:
            return preview(session, plan, store)
        with watching(session, plan) as watch:
            run = running.run_plan(plan, store, watch)
        return finish(session, store, run.id, formats, options["out"])

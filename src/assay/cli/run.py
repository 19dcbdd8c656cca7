"""`assay run`: carry out a spec, a Python file or an experiment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from assay.cli.session import Session, common

FORMATS = ("html", "md", "json", "csv", "png", "junit")


@click.command()
@click.argument("target", required=False)
@click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, help="A param of the experiment.")
@click.option("--sweep", "axes", metavar="KEY=V1,V2", multiple=True, help="An axis of params.")
@click.option(
    "--repetitions", type=click.IntRange(min=1), metavar="N", help="Measured executions in each process."
)
@click.option("--warmup", type=click.IntRange(min=0), metavar="N", help="Warm-up executions in each process.")
@click.option(
    "--processes", type=click.IntRange(min=1), metavar="N", help="Fresh processes: the unit of comparison."
)
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), metavar="N", help="Seed of order and experiments.")
@click.option(
    "--isolation", type=click.Choice(["process", "cold", "inline"]), help="How far executions are kept apart."
)
@click.option("--executor", metavar="NAME", help="Where workers live.")
@click.option("--load", metavar="FILE.py", multiple=True, help="Make what this file defines known by name.")
@click.option(
    "--report", "formats", metavar="FMT", multiple=True, help=f"Write a report: {', '.join(FORMATS)}."
)
@click.option(
    "--out", metavar="DIR", type=click.Path(path_type=Path), help="Folder for the result and the reports."
)
@click.option("--tag", "tags", metavar="TAG", multiple=True, help="Tag the run.")
@click.option("--resume", "resumed", metavar="RUN", help="Do what is missing of a run that was cut short.")
@click.option("--dry-run", is_flag=True, help="Say what would be run, and stop.")
@common
def run(session: Session, target: str | None, resumed: str | None, dry_run: bool, **options: Any) -> int:
    """Carry out TARGET: a spec (.yaml, .json), a Python file (file.py or file.py::name), or an experiment's name.

    \b
    assay run spec.yaml
    assay run bench.py::parse --processes 10
    assay run pragma_profile --set num_records=2000 --sweep profile=balanced,performance --report html
    """
    if (target is None) == (resumed is None):
        raise click.UsageError("Give either a TARGET or --resume RUN.")
    if resumed is not None:
        return _resume(session, resumed, options)
    from assay import pipeline

    plan = pipeline.prepare(str(target), session.settings, changes(options))
    if dry_run:
        return _preview(session, plan)
    from assay.cli.progress import watching

    with session.store() as store, watching(session, plan) as watch:
        done = pipeline.run_plan(plan, store, watch)
    return _finish(session, done.id, options)


def _resume(session: Session, resumed: str, options: dict[str, Any]) -> int:
    from assay import pipeline
    from assay.cli.progress import watching

    with session.store() as store:
        found = store.run(resumed)
        done = sum(store.progress(found.id).values())
        with watching(session, pipeline.plan_of(found), done) as watch:
            pipeline.resume(found.id, store, watch)
    return _finish(session, found.id, options)


def changes(options: dict[str, Any]) -> dict[str, Any]:
    """The keys of a spec that the options stand for."""
    from assay.cli.values import axis, setting

    params = dict(setting(text) for text in options["settings"])
    sweep = dict(axis(text) for text in options["axes"])
    iterations = {key: options[name] for key, name in (("measured", "repetitions"), ("warmup", "warmup"))
                  if options[name] is not None}  # fmt: skip
    plain = {
        name: options[name]
        for name in ("processes", "seed", "isolation", "executor")
        if options[name] is not None
    }
    named = {"params": params, "sweep": sweep, "iterations": iterations, **plain}
    if options["load"]:
        named["load"] = [str(Path(file).resolve()) for file in options["load"]]
    if options["tags"]:
        named["tags"] = list(options["tags"])
    if options["out"] is not None:
        named["output_dir"] = str(options["out"].resolve())
    return {key: value for key, value in named.items() if value not in ({}, None)}


def _preview(session: Session, plan: Any) -> int:
    from assay.report.preview import preview_document, print_preview

    if session.is_json:
        session.emit(preview_document(plan))
    else:
        print_preview(plan, session.console())
        session.next("the same command without --dry-run")
    return 0


def _finish(session: Session, run_id: str, options: dict[str, Any]) -> int:
    """Show what came out; exit code 1 when a trial has no ok execution, 130 when it was interrupted."""
    from assay import pipeline
    from assay.model import RunState
    from assay.report.console import print_report
    from assay.report.document import run_document

    with session.store() as store:
        report = pipeline.report_of(store, run_id)
        files = (
            pipeline.write_reports(report, options["formats"], options["out"] or Path())
            if options["formats"]
            else []
        )
    if session.is_json:
        session.emit({**run_document(report, with_executions=False), "files": [str(file) for file in files]})
    else:
        print_report(report, session.console())
    for file in files:
        session.say(f"Wrote {file}")
    if report.run.state is RunState.INTERRUPTED:
        session.say("Interrupted. What was finished is kept.")
        session.next(f"assay run --resume {run_id}")
        return 130
    session.next(
        f"assay show {run_id}", f"assay report {run_id} --format html", f"assay compare {run_id} last"
    )
    return 1 if report.run.state is RunState.FAILED else 0

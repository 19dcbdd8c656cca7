"""`assay profile`: find out where an agent's time and tokens go, and what could be saved."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from assay.cli.options import load_option, naming_flags, read_formats, set_option, shared_option
from assay.cli.session import Session, common
from assay.text import shell_command

if TYPE_CHECKING:
    from assay.model import Report


@click.command()
@click.argument("target")
@click.option("--suite", metavar="S", help="Suite to run the agent on; default: the project's only suite.")
@click.option("--input", "text", metavar="TEXT", help="Ask the agent this instead of a case of a suite.")
@click.option("--case", metavar="ID", help="Case to profile; default: the first of each benchmark.")
@shared_option(
    "--repetitions", "Sampled executions, each next to an unsampled one.", default=5, show_default=True
)
@click.option(
    "--rate",
    type=click.IntRange(1, 1000),
    default=100,
    show_default=True,
    metavar="N",
    help="Samples per second.",
)
@click.option("--no-memory", is_flag=True, help="Leave out the execution that traces memory.")
@set_option
@load_option
@shared_option(
    "--report",
    "Write a report: html (with the flame graph), md, json, …; the samples are written next to it.",
)
@shared_option("--out", "Folder for the reports.")
@common
def profile(session: Session, target: str, out: Path | None, **given: Any) -> int:
    """Profile TARGET: the name of an agent, an experiment, or a file as for assay run.

    Sampled executions alternate with unsampled ones, so that the cost of sampling is known. Reports the phases of an execution,
    the lines where it spends its time and why, how it uses CPU, memory, I/O and tokens, and what could be saved.

    \b
    assay profile my-agent --suite suite.yaml
    assay profile my-agent --input "What is 2 + 2?" --report html
    assay profile bench.py::parse
    """
    from assay.cli.progress import watching
    from assay.cli.values import setting
    from assay.pipeline import run as running
    from assay.pipeline.profile import ProfileOptions, plan_profile
    from assay.pipeline.report import report_of, write_reports
    from assay.pipeline.success import keep_opportunities
    from assay.plan.target import build_changes

    if given["suite"] is not None and given["text"] is not None:
        raise click.UsageError("Give either --suite or --input.")
    options = ProfileOptions(
        given["suite"],
        given["text"],
        given["case"],
        given["repetitions"],
        given["rate"],
        has_memory=not given["no_memory"],
        changes=build_changes(
            {"params": dict(setting(item) for item in given["settings"]), "load": given["load"]}
        ),
    )
    names = read_formats(given)
    with session.store() as store:
        with naming_flags(target):
            plan = plan_profile(target, options, session.settings, store)
        with watching(session, plan) as watch:
            run = running.run_plan(plan, store, watch)
        report = report_of(store, run.id)
        keep_opportunities(store, report)
        folder = out or Path(f"report-{run.id}")
        is_sampled = any(file.type == "speedscope" for trial in report.trials for file in trial.artifacts)
        written = dict.fromkeys([*names, *(["speedscope"] if is_sampled else [])])
        files = write_reports(report, written, folder) if names else []
    return _finish(session, report, files)


def _finish(session: Session, report: Report, files: list[Path]) -> int:
    """Show what was found, and return 0 if every trial could be profiled, else 1."""
    from assay.execute.signals import interrupt_exit_code
    from assay.model import RunState
    from assay.report.documents.profile import profile_answer_document

    if session.is_json:
        session.emit(profile_answer_document(report, files))
    else:
        from assay.report.console.profile import print_profile

        print_profile(report, session.console())
    for file in files:
        session.say(f"Wrote {file}")
    run_id = report.run.id
    if report.run.state is RunState.INTERRUPTED:
        session.say("Interrupted. What was finished is kept.")
        session.next(f"assay run --resume {run_id}")
        return interrupt_exit_code()
    is_sampled = any(file.type == "speedscope" for trial in report.trials for file in trial.artifacts)
    formats = "html,speedscope" if is_sampled else "html"
    pages = [] if files else [f"assay report {run_id} --format {formats}"]
    cases = next((trial.stored.trial.cases for trial in report.trials), ())
    spans = shell_command("show", run_id, options=["--case", cases[0]] if cases else [])
    session.next(*pages, spans)
    return 0 if report.run.state is RunState.COMPLETED else 1

"""`assay run`: plan, run and show a suite, a spec, a Python file or an experiment.

The options become changes to the spec (`read_changes`), `pipeline.planning.prepare` makes the plan, `pipeline.run` carries
it out and stores each batch, and `finish` shows the report and decides the exit code. `assay team` shares these parts.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from assay.cli.options import (
    EXECUTOR,
    dry_run_option,
    label_option,
    load_option,
    naming_flags,
    read_changes,
    read_executor_settings,
    read_formats,
    shared_option,
)
from assay.cli.output import echo
from assay.cli.sandbox import sandbox_option
from assay.cli.session import Session, common
from assay.model.codec import to_plain
from assay.text import shell_command

if TYPE_CHECKING:
    from assay.model import Budget, Plan, Report
    from assay.plan.target import RunRequest
    from assay.store.store import Store

_MOST_NAMED = 12
"""Files that are named one by one when they are written."""
FORMATS = ("html", "md", "json", "csv", "png", "junit")


@click.command()
@click.argument("target", required=False)
@shared_option(
    "--set",
    "Set an experiment param or agent option; NAME.OPTION for one agent, executor.KEY for the executor. Typed as in YAML; may be repeated.",
)
@shared_option("--sweep", "Run with every value of a param; may be repeated.")
@shared_option(
    "--repetitions",
    "For a suite: how often each case runs (default: 3). For an experiment: measured executions in each process.",
)
@shared_option(
    "--warmup", "Warm-up executions: of each trial of a suite, or in each process of an experiment."
)
@click.option(
    "--processes",
    type=click.IntRange(min=1),
    metavar="N",
    help="For an experiment: number of fresh processes, the unit of comparison.",
)
@shared_option("--seed", "Seed for the order of executions and for experiments.")
@click.option(
    "--isolation",
    type=click.Choice(["process", "cold", "inline"]),
    help="How executions are isolated from each other.",
)
@click.option(
    "--executor", metavar="NAME", help="Executor that starts the workers; see assay list executors."
)
@load_option
@shared_option("--report", f"Write a report: {', '.join(FORMATS)}, or a plug-in's name.")
@shared_option("--out", "Folder for the result and the reports.")
@click.option(
    "--group",
    "groups",
    metavar="G",
    multiple=True,
    help="Run only this group of the spec's experiments; may be repeated. all: run them all.",
)
@label_option
@click.option(
    "--agent",
    "agents",
    metavar="A",
    multiple=True,
    help="Agent to run on a suite, or to test with an experiment that takes one; may be repeated.",
)
@click.option(
    "--concurrency",
    type=click.IntRange(min=1),
    metavar="N",
    help="For a suite: executions in flight per agent; sync Python functions run in threads.",
)
@shared_option("--limit", "For a suite: only the first N cases of each benchmark.")
@click.option(
    "--case", "cases", metavar="ID", multiple=True, help="For a suite: only this case; may be repeated."
)
@click.option(
    "--tag",
    "case_tags",
    metavar="T",
    multiple=True,
    help="For a suite: only cases with this tag; may be repeated.",
)
@click.option("--failed", metavar="RUN", help="For a suite: only cases that did not pass in that run.")
@click.option(
    "--budget-usd",
    type=click.FloatRange(min=0, min_open=True),
    metavar="X",
    help="Stop the run once it has cost this much.",
)
@click.option(
    "--budget-tokens",
    type=click.IntRange(min=1),
    metavar="N",
    help="Stop the run once it has used this many tokens.",
)
@click.option(
    "--until-decided",
    metavar="METRIC",
    help="With two agents or trials: stop as soon as METRIC decides which is better.",
)
@click.option(
    "--tolerance",
    metavar="SHARE",
    help="With --until-decided: differences within this share count as the same (default: 3%).",
)
@click.option(
    "--max-pairs",
    type=click.IntRange(10, 100_000),
    metavar="N",
    help="With --until-decided: maximum number of pairs (default: 60, or all cases of a suite).",
)
@click.option(
    "--resume", "resumed", metavar="RUN", help="Complete an interrupted run: run only what is missing."
)
@click.option(
    "--db-retry",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="How long to keep trying if the database cannot be reached; default: db_retry in assay.toml, or 60.",
)
@dry_run_option
@sandbox_option
@common
def run(session: Session, target: str | None, resumed: str | None, dry_run: bool, **options: Any) -> int:
    """Run TARGET: a spec or a suite (.yaml, .json, or its name), a Python file (file.py or file.py::name), or
    an experiment.

    \b
    assay run spec.yaml
    assay run suite.yaml --agent fast --agent careful --repetitions 3
    assay run suite.yaml --agent fast --agent careful --until-decided score
    assay run bench.py::parse --processes 10
    assay run pragma_profile --set num_records=2000 --sweep profile=balanced,performance --report html
    """
    session.db_retry = options.pop("db_retry")
    if (target is None) == (resumed is None):
        raise click.UsageError("Give either a TARGET or --resume RUN.")
    if resumed is not None:
        return _resume(session, resumed, options)
    from assay.cli.progress import watching
    from assay.execute.worker_process import start_ahead
    from assay.pipeline.planning import prepare

    # Everything that can be refused comes before the first execution: the plan, the formats of reports, and what a user would
    # want to know before paying. The store is opened after that, while the first worker starts: both take a while.
    with session.store_when_needed() as open_store:
        with naming_flags(str(target)):
            plan = prepare(_request(str(target), options, open_store), session.settings, open_store)
        formats = read_formats(options)
        _warn_of_blind_spots(session, plan)
        _warn_of_cases(session, plan)
        if dry_run:
            return preview(session, plan, open_store())
        with start_ahead(plan):
            from assay.pipeline import run as running

            store = open_store()
            _announce(session, plan, store)
            with watching(session, plan) as watch:
                run_id = running.run_plan(plan, store, watch).id
        # The report reads what is stored; a plan of many cases takes as much memory as it needs.
        del plan, watch
        return finish(session, store, run_id, formats, options["out"])


def _request(target: str, options: dict[str, Any], open_store: Callable[[], Store]) -> RunRequest:
    """The options as `pipeline.planning` takes them; --failed becomes the cases that failed in that run."""
    from assay.model import Budget
    from assay.plan.suite import CaseFilter
    from assay.plan.target import RunRequest

    failed = None
    if options["failed"]:
        from assay.pipeline.ratings import find_failed_cases

        failed = find_failed_cases(open_store(), options["failed"])
    return RunRequest(
        target,
        read_changes(options),
        options["agents"],
        CaseFilter(options["limit"], frozenset(options["cases"]), frozenset(options["case_tags"]), failed),
        options["concurrency"],
        Budget(options["budget_usd"], options["budget_tokens"]),
        label=next(iter(options["label"]), ""),
        groups=options["groups"],
        executor_options=read_executor_settings(options["settings"]),
    )


def _resume(session: Session, resumed: str, options: dict[str, Any]) -> int:
    """Run what is missing of a run, as it was planned then; its files may have changed since."""
    from assay.cli.progress import watching
    from assay.model import Budget
    from assay.pipeline import run as running

    # Anything else would make the second half of the run differ from the first. An option that is ignored would be worse
    # than one that is refused.
    taken = ("formats", "out", "budget_usd", "budget_tokens")
    settings = options.pop("settings")
    options["settings"] = tuple(text for text in settings if not text.startswith(EXECUTOR))
    if any(value not in ((), None) for name, value in options.items() if name not in taken):
        raise click.UsageError(
            "A run resumes as planned: --resume can be combined only with --report, --out, a larger budget and executor settings."
        )
    formats = read_formats(options)
    with session.store() as store:
        found = store.run(resumed)
        # The plan does not count profiled executions, which come on top.
        done = sum(number for (*_, phase), number in store.progress(found.id).items() if phase != "profiled")
        budget = Budget(options["budget_usd"], options["budget_tokens"])
        plan = running.plan_of(found, store)
        _warn_of_blind_spots(session, replace(plan, budget=plan.budget.override_with(budget)))
        with watching(session, plan, done) as watch:
            running.resume(found.id, store, watch, budget, read_executor_settings(settings))
        return finish(session, store, found.id, formats, options["out"])


def _warn_of_cases(session: Session, plan: Plan) -> None:
    """Warn before the first request is sent: a run whose cases cannot be scored costs as much as any other."""
    if plan.suite is None:
        return
    from assay.plan.case_warnings import case_doubts

    for warning in case_doubts(plan.suite):
        session.say(f"Warning: {warning}")


def _warn_of_blind_spots(session: Session, plan: Plan) -> None:
    """Warn of agents and judges whose cost the budget cannot see. Also with --quiet, since it is about money."""
    from assay.model import Budget

    if plan.budget == Budget():
        return
    from assay.pipeline.budget import budget_blind_spots

    for warning in budget_blind_spots(plan):
        session.warn(warning)


def _announce(session: Session, plan: Plan, store: Store) -> None:
    """Say what will run and what it may cost, while the user can still stop it."""
    # Code costs nothing but time on this machine, so only runs of agents are announced.
    if session.is_quiet or all(trial.agent_use is None for trial in plan.trials):
        return
    from assay.pipeline.forecast import forecast
    from assay.report.console.preview import start_text

    session.say(start_text(plan, forecast(plan, store)))


def preview(session: Session, plan: Plan, store: Store) -> int:
    """Print the plan with the expected time and cost, for --dry-run."""
    from assay.pipeline.forecast import forecast
    from assay.report.console.preview import print_preview
    from assay.report.documents.answers import preview_document

    if session.is_json:
        from assay.model import Doubt
        from assay.pipeline.budget import budget_blind_spots
        from assay.plan.case_warnings import case_doubts

        blind = (Doubt("budget", text) for text in budget_blind_spots(plan))
        warnings = [to_plain(doubt) for doubt in (*case_doubts(plan.suite), *blind)]
        session.emit(preview_document(plan, forecast(plan, store), warnings))
    else:
        print_preview(plan, forecast(plan, store), session.console())
        session.next("the same command without --dry-run")
    return 0


def _say_what_was_written(session: Session, files: Sequence[Path]) -> None:
    """Name each file, or of many only their number and folder."""
    if len(files) > _MOST_NAMED:
        session.say(f"Wrote {len(files)} files into {os.path.commonpath(files)}")
        return
    for file in files:
        session.say(f"Wrote {file}")


def finish(session: Session, store: Store, run_id: str, reporters: list[str], out: Path | None) -> int:
    """Show the report of a run, write it in the formats, and return the exit code.

    The code is 0 if every planned execution has a result and every trial has an ok execution, 128 plus the number of the
    signal if the run was interrupted, else 1. Whatever is missing can be run later, and the last line says how.
    """
    from assay.execute.signals import interrupt_exit_code
    from assay.model import RunState
    from assay.pipeline import report as reporting
    from assay.report.documents.result import run_document
    from assay.units import format_count

    # The database may have gone away just now; the run is stored, so it is worth waiting to show it.
    report = store.insist(lambda: reporting.report_of(store, run_id))
    folder = out or Path(report.run.output_dir or f"report-{run_id}")
    try:
        files = reporting.write_reports(report, reporters, folder) if reporters else []
    except OSError:
        again = shell_command("report", run_id, options=["--format", ",".join(reporters), "--out", "FOLDER"])
        session.say(f"The run is stored. Write its reports to another folder: {again}")
        raise
    if session.is_json:
        session.emit({**run_document(report, with_executions=False), "files": list(map(str, files))})
    elif session.is_quiet:
        _print_headline(session, report)
    else:
        from assay.report.console.summary import print_summary

        print_summary(report, session.console())
    _say_what_was_written(session, files)
    if report.run.output_dir:
        session.say(
            f"Wrote the results of {format_count(len(report.trials), 'trial')} into {report.run.output_dir}"
        )
    if report.run.state is RunState.INTERRUPTED:
        session.say("Interrupted. What was finished is kept.")
        session.next(f"assay run --resume {run_id}")
        return interrupt_exit_code()
    if report.run.state is RunState.OVER_BUDGET:
        session.say("The budget is used up. What was finished is kept.")
        session.next(
            f"assay run --resume {run_id} {_format_doubled_budget(report.run.budget)}", f"assay show {run_id}"
        )
        return 1
    if report.run.state is RunState.INCOMPLETE:
        session.say("The run is incomplete: planned executions have no result. What was finished is kept.")
        session.next(f"assay run --resume {run_id}", f"assay show {run_id}")
        return 1
    if unscored := [trial.name for trial in report.trials if trial.is_scoring_failed]:
        session.say(f"Scoring failed on most executions of {', '.join(unscored)}. The outputs are kept.")
        session.next(f"assay rescore {run_id}", f"assay show {run_id}")
        return 1
    session.next(f"assay show {run_id}", f"assay report {run_id} --format html")
    return 1 if report.run.state is RunState.FAILED else 0


def _print_headline(session: Session, report: Report) -> None:
    """One line that begins with the id of the run; warnings go to standard error."""
    from assay.report.console.summary import headline
    from assay.report.warnings import run_warnings, split_warnings

    echo(headline(report))
    for doubt in split_warnings(run_warnings(report))[0]:
        session.warn(str(doubt))


def _format_doubled_budget(budget: Budget) -> str:
    """The options with which a run that used up its budget can continue."""
    ceilings = {"--budget-usd": budget.usd, "--budget-tokens": budget.tokens}
    return " ".join(f"{option} {2 * most:g}" for option, most in ceilings.items() if most is not None)

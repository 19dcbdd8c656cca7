"""`assay show`: print a stored run, one of its trials, or one case with all its outputs.

The report is made anew from the stored executions each time, so a run that is still going on can be shown, too.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from assay.cli.session import Session, common
from assay.text import shell_command

if TYPE_CHECKING:
    from assay.model import Report


@click.command()
@click.argument("ref", metavar="[RUN]", default="last")
@click.option("--trial", metavar="T", help="Only the trial with this name or number.")
@click.option("--case", metavar="ID", help="For a suite: one case, with every output, score and span.")
@click.option("--executions", is_flag=True, help="With --json: include every execution.")
@common
def show(session: Session, ref: str, trial: str | None, case: str | None, executions: bool) -> None:
    """Show results with intervals, warnings and the environment of RUN: an id, a prefix of one, `last`, or @BASELINE."""
    if executions and not session.is_json:
        raise click.UsageError("--executions works only with --json.")
    from assay.pipeline import report as reporting
    from assay.report.console.run import print_report
    from assay.report.documents.result import run_document

    with session.store() as store:
        report = reporting.report_of(store, ref)
        if trial is not None:
            report = reporting.only_trial(report, trial)
        if case is not None:
            _show_case(session, report, case)
            return
        if session.is_json:
            session.emit(run_document(report, with_executions=executions))
            return
        print_report(report, session.console())
        # The latest run of the same name before this one, as what to compare it with. Capacity searches are left out: their
        # steps are different loads, which a comparison refuses.
        earlier = (
            run.id
            for run in store.runs()
            if run.name == report.run.name
            and run.started < report.run.started
            and not store.run(run.id).is_capacity_search
        )
        before = next(earlier, None)
    page = f"assay report {report.run.id} --format html"
    if report.run.is_capacity_search:
        session.next(page)
        return
    session.next(
        page,
        f"assay compare {before} {report.run.id}" if before else f"assay baseline set main {report.run.id}",
    )


def _show_case(session: Session, report: Report, case: str) -> None:
    """One case with everything that agents made of it."""
    from assay.report.console.case import print_case
    from assay.report.documents.result import case_document

    if session.is_json:
        session.emit(case_document(report, case))
    else:
        print_case(report, case, session.console())
        again = shell_command("run", _find_suite_word(session, report), options=["--case", case])
        session.next(f"assay show {report.run.id}", again)


def _find_suite_word(session: Session, report: Report) -> str:
    """What names the suite of a run on the command line; a file that the project does not list is only found if it is called like it."""
    from assay.plan.target import suite_names

    if report.run.suite is None:
        return "SUITE"
    name, file = report.run.suite.name, Path(f"{report.run.suite.name}.yaml")
    if name in suite_names(session.settings):
        return name
    return str(file) if file.is_file() else "SUITE.yaml"

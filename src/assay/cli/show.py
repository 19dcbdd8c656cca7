"""`assay show`: one run, from the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from assay.cli.session import Session, common

if TYPE_CHECKING:
    from assay.model import Report


@click.command()
@click.argument("ref", metavar="[RUN]", default="last")
@click.option("--trial", metavar="T", help="Only the trial of this name or number.")
@click.option("--case", metavar="ID", help="Of a suite: one case, with every output, score and span.")
@click.option("--executions", is_flag=True, help="With --json: every execution, too.")
@common
def show(session: Session, ref: str, trial: str | None, case: str | None, executions: bool) -> None:
    """Estimates with intervals, warnings and environment of RUN: an id, a prefix of one, `last`, or @BASELINE."""
    from assay.pipeline import reporting
    from assay.report.console import print_report
    from assay.report.document import run_document

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
    session.next(f"assay report {report.run.id} --format html", f"assay compare RUN {report.run.id}")


def _show_case(session: Session, report: Report, case: str) -> None:
    from assay.report.console_case import print_case
    from assay.report.document import case_document

    if session.is_json:
        session.emit(case_document(report, case))
    else:
        print_case(report, case, session.console())
        session.next(f"assay show {report.run.id}", f"assay run SUITE --case {case}")

"""`assay show`: one run, from the store."""

from __future__ import annotations

import click

from assay.cli.session import Session, common


@click.command()
@click.argument("ref", metavar="[RUN]", default="last")
@click.option("--trial", metavar="T", help="Only the trial of this name or number.")
@click.option("--executions", is_flag=True, help="With --json: every execution, too.")
@common
def show(session: Session, ref: str, trial: str | None, executions: bool) -> None:
    """Estimates with intervals, warnings and environment of RUN: an id, a prefix of one, `last`, or @BASELINE."""
    from assay import pipeline
    from assay.report.console import print_report
    from assay.report.document import run_document

    with session.store() as store:
        report = pipeline.report_of(store, ref)
        if trial is not None:
            report = pipeline.only_trial(report, trial)
        if session.is_json:
            session.emit(run_document(report, with_executions=executions))
            return
        print_report(report, session.console())
    session.next(f"assay report {report.run.id} --format html", f"assay compare RUN {report.run.id}")

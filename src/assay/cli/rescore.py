"""`assay rescore`: stored outputs, judged again."""

from __future__ import annotations

import click

from assay.cli.session import Session, common


@click.command()
@click.argument("ref", metavar="[RUN]", default="last")
@common
def rescore(session: Session, ref: str) -> None:
    """Judge the outputs of RUN again with the scorers of its suite, without running anything."""
    from assay.pipeline import rating, reporting
    from assay.report.document import run_document

    with session.store() as store:
        done = rating.rescore(store, ref)
        report = reporting.report_of(store, done.id)
    if session.is_json:
        session.emit(run_document(report, with_executions=False))
        return
    from assay.report.console import print_report

    print_report(report, session.console())
    session.next(f"assay show {done.id}", f"assay report {done.id} --format html")

"""`assay rescore`: stored outputs, judged again."""

from __future__ import annotations

from dataclasses import asdict

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
        report = reporting.report_of(store, done.run.id)
    if session.is_json:
        spent = {"spent": asdict(done.spent)} if done.spent else {}
        session.emit({**run_document(report, with_executions=False), **spent})
        return
    from assay.report.console import print_report
    from assay.report.contests import judging_text

    print_report(report, session.console())
    if done.spent:
        session.say(f"Judging again took {judging_text(done.spent)}.")
    session.next(f"assay show {done.run.id}", f"assay report {done.run.id} --format html")

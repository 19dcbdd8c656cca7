"""`assay rescore`: score stored outputs again, after a change of a scorer or a suite.

Scores are compared execution by execution with those before, to say how many changed. Exit code 1 means that a scorer
failed on most executions of a trial, as it does for `assay run`.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from assay.cli.sandbox import sandbox_option
from assay.cli.session import Session, common

if TYPE_CHECKING:
    from assay.store.store import Store


@click.command()
@click.argument("ref", metavar="[RUN]", default="last")
@sandbox_option
@common
def rescore(session: Session, ref: str) -> int:
    """Score the stored outputs of RUN again with the scorers of its suite; no agent is run.

    Exits with 1 if a scorer fails on most outputs.
    """
    from assay.pipeline import ratings as rating
    from assay.pipeline import report as reporting
    from assay.report.documents.result import run_document

    with session.store() as store:
        # Read before, because the old scores are replaced. Executions keep their order, so both lists match one by one.
        before = _scores(store, ref)
        rescoring = rating.rescore(store, ref)
        after = _scores(store, rescoring.run.id)
        changed = sum(old != new for old, new in zip(before, after, strict=True))
        report = reporting.report_of(store, rescoring.run.id)
    code = 1 if any(trial.is_scoring_failed for trial in report.trials) else 0
    if session.is_json:
        counts = {"scores": len(before), "scores_changed": changed, "scores_kept": rescoring.kept}
        spent = {"spent": asdict(rescoring.spent)} if rescoring.spent else {}
        session.emit({**run_document(report, with_executions=False), **spent, **counts})
        return code
    from assay.report.console.run import print_report
    from assay.report.side_by_side import judging_text
    from assay.units import count, format_count

    print_report(report, session.console())
    session.say(f"{count(changed)} of {format_count(len(before), 'score')} changed.")
    if rescoring.kept:
        session.warn(
            f"{format_count(rescoring.kept, 'answer')} had been shortened when stored, so they were not scored again "
            "and keep their scores."
        )
    if rescoring.spent:
        session.say(f"Judging again took {judging_text(rescoring.spent)}.")
    session.next(f"assay show {rescoring.run.id}", f"assay report {rescoring.run.id} --format html")
    return code


def _scores(store: Store, ref: str) -> list[float | None]:
    """The score of every execution of the run, in order; None for an execution without one."""
    tables = [store.case_table(stored.id) for stored in store.run(ref).trials]
    return [score for table in tables for score in table.metrics.get("score") or [None] * len(table.cases)]

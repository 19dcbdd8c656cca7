"""`assay rescore`: stored outputs, judged again."""

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

    Exits with 1 if a scorer fails on most of them.
    """
    from assay.pipeline import rating, reporting
    from assay.report.document import run_document

    with session.store() as store:
        before = _scores(store, ref)
        done = rating.rescore(store, ref)
        changed = _changed(before, _scores(store, done.run.id))
        report = reporting.report_of(store, done.run.id)
    code = 1 if any(trial.is_scoring_failed for trial in report.trials) else 0
    if session.is_json:
        spent = {"spent": asdict(done.spent)} if done.spent else {}
        told = {"scores": len(before), "scores_changed": changed, "scores_kept": done.kept}
        session.emit({**run_document(report, with_executions=False), **spent, **told})
        return code
    from assay.report.console import print_report
    from assay.report.contests import judging_text
    from assay.units import count, counted

    print_report(report, session.console())
    session.say(f"{count(changed)} of {counted(len(before), 'score')} changed.")
    if done.kept:
        session.warn(
            f"{counted(done.kept, 'answer')} had been shortened when stored, so they were not scored again "
            "and keep their scores."
        )
    if done.spent:
        session.say(f"Judging again took {judging_text(done.spent)}.")
    session.next(f"assay show {done.run.id}", f"assay report {done.run.id} --format html")
    return code


def _scores(store: Store, ref: str) -> list[float | None]:
    """Of every execution of the run, in order; None where there is none."""
    tables = [store.case_table(stored.id) for stored in store.run(ref).trials]
    return [score for table in tables for score in table.metrics.get("score") or [None] * len(table.cases)]


def _changed(before: list[float | None], after: list[float | None]) -> int:
    return sum(old != new for old, new in zip(before, after, strict=True))

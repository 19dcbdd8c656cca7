"""`assay label`: say what you think of an agent's answers to a case, and see how far its scorers agree with people."""

from __future__ import annotations

import getpass

import click

from assay.cli.output import echo
from assay.cli.session import Session, common


@click.command()
@click.argument("ref", metavar="RUN")
@click.argument("verdict", type=click.Choice(["pass", "fail"]))
@click.option("--case", metavar="ID", required=True, help="Case whose answers to label.")
@click.option("--agent", metavar="A", help="The agent, if the run has several.")
@click.option("--benchmark", metavar="B", help="The benchmark, if several have the case.")
@click.option("--note", metavar="TEXT", default="", help="Reason for the label.")
@common
def label(
    session: Session, ref: str, verdict: str, case: str, agent: str | None, benchmark: str | None, note: str
) -> None:
    """Label all answers of an agent to a case of RUN as pass or fail; a second label replaces your first.

    \b
    assay label last pass --case refund-late --agent careful
    """
    from assay.analysis.review.agreement import compute_agreements
    from assay.model.label import LabelVerdict
    from assay.pipeline.labels import label_case
    from assay.report.documents.operations import labels_document
    from assay.store.labels import LabelFilter
    from assay.units import percent

    with session.store() as store:
        given = label_case(store, ref, case, agent, benchmark, LabelVerdict(verdict), note, getpass.getuser())
        suite = store.run(ref).suite
        labelled = store.read_labelled_scores(LabelFilter(suite=suite.name if suite else ""))
    agreements = compute_agreements(labelled)
    if session.is_json:
        session.emit(labels_document(given, agreements))
        return
    session.say(f"Labelled {len(given)} answers to '{case}' as {verdict}.")
    for agreement in agreements:
        share = agreement.share
        if share.value is not None and share.low is not None and share.high is not None:
            kappa = "not defined" if agreement.kappa is None else f"{agreement.kappa:.2f}"
            echo(
                f"{agreement.benchmark} · {agreement.scorer or 'score'}: agrees with {percent(share.value)} of {agreement.labels} labels "
                f"[{percent(share.low)}, {percent(share.high)}], kappa {kappa}"
            )

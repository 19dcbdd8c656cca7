"""Labels: what people say of answers, and how far scorers agree with them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field

from assay.analysis.review.agreement import compute_agreements
from assay.model.label import LabelVerdict
from assay.report.documents.operations import agreement_document, label_document
from assay.server.access import READ, RUN
from assay.server.answers import describe_route, respond
from assay.server.context import Author, Context
from assay.server.parameters import Before, Name, PageSize, Text
from assay.store.labels import LabelFilter

router = APIRouter(prefix="/labels", tags=["labels"])

_Number = Annotated[int, Field(ge=0, le=2**31 - 1)]


class LabelRow(BaseModel):
    """A person's word on one execution."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "id": 3,
                "trial_id": 7,
                "seq": 12,
                "case": "refund-late",
                "label": "fail",
                "note": "promises a refund that is not due",
                "by": "ann",
                "at": "2026-11-17T22:01:40+00:00",
            }
        }
    )

    id: int
    trial_id: int
    seq: int = Field(description="The number of the execution in its trial.")
    case: str
    label: LabelVerdict
    note: str
    by: str = Field(description="The name of the key.")
    at: datetime


class LabelPage(BaseModel):
    """Labels, the newest first."""

    labels: list[LabelRow]
    next_cursor: int | None


class LabelList(BaseModel):
    """The labels that were given."""

    labels: list[LabelRow]


class LabelRequest(BaseModel):
    """What a person says of an answer."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"trial_id": 1, "case": "c1", "label": "pass"}}
    )

    trial_id: Annotated[int, Field(ge=1, le=2**31 - 1)]
    case: Name
    seq: _Number | None = Field(
        default=None,
        description="The number of one execution; left out, all answers of the trial to the case.",
    )
    label: LabelVerdict
    note: Text = ""


@router.post("", **describe_route(RUN, LabelList, "Label an answer", 404))
def label_answer(context: Context, caller: Author, body: LabelRequest) -> Response:
    """One label of a person for each answer: a second one replaces the first."""
    given = context.store.label(
        body.trial_id, body.case, body.seq, caller, body.label, body.note, datetime.now(UTC)
    )
    return respond({"labels": [label_document(label) for label in given]})


@router.get("", **describe_route(READ, LabelPage, "Labels"))
def list_labels(
    context: Context,
    trial_id: Annotated[int | None, Field(ge=1, le=2**31 - 1)] = None,
    run_id: Name | None = None,
    suite_id: Name | None = None,
    benchmark_id: Name | None = None,
    case: Name | None = None,
    by: Name | None = None,
    limit: PageSize = 100,
    cursor: Before = None,
) -> Response:
    """What people said of answers, the newest first."""
    chosen = LabelFilter(trial_id, run_id, suite_id, benchmark_id, case, by)
    found = context.store.labels(chosen, cursor, limit)
    return respond(
        {
            "labels": [label_document(label) for label in found],
            "next_cursor": found[-1].id if len(found) == limit else None,
        }
    )


class ShareFigure(BaseModel):
    """So many of so many, in percent with a 95 % interval (Wilson); null where there is nothing to count."""

    count: int
    of: int
    percent: float | None
    interval: list[float] | None


class AgreementRow(BaseModel):
    """How far a scorer agrees with people on a benchmark."""

    suite_id: str
    benchmark_id: str
    scorer: str | None = Field(description="Null for the score of all scorers together.")
    labels: int
    cases: int
    both_pass: int
    both_fail: int
    only_person_passes: int
    only_scorer_passes: int
    agreement: ShareFigure
    kappa: float | None = Field(
        description="Cohen's kappa: 1 is perfect agreement, 0 is chance. Null if undefined."
    )


class AgreementList(BaseModel):
    agreements: list[AgreementRow]


@router.get("/agreement", **describe_route(READ, AgreementList, "How well scorers agree with people"))
def read_agreement(
    context: Context, suite_id: Name | None = None, benchmark_id: Name | None = None
) -> Response:
    """Each scorer on each benchmark with labels. Its interval counts repetitions of a case for what they are worth."""
    labelled = context.store.read_labelled_scores(LabelFilter(suite=suite_id, benchmark=benchmark_id))
    return respond(
        {"agreements": [agreement_document(agreement) for agreement in compute_agreements(labelled)]}
    )

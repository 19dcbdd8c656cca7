"""The review queue: a person labels answers, first those of which the scorers leave doubt."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import Form, Query, Request, Response

from assay.analysis.review.agreement import compute_agreements
from assay.model.label import LabelVerdict
from assay.model.scored_answer import ReviewQueue, Uncertainty
from assay.pipeline.answers import find_review_queue
from assay.report.cases import describe_reasons
from assay.report.pages.page import Page
from assay.report.pages.review import agreement_section
from assay.server.access import READ_PAGE, RUN_PAGE
from assay.server.context import Author, Context
from assay.server.pages.controls import choose_one, write_address
from assay.server.pages.shell import go_to, page_router, show_page
from assay.server.parameters import Name
from assay.store.labels import LabelFilter
from assay.store.standings import Filter
from assay.units import format_count

router = page_router()
_PATH = "/ui/review"
_WHERE = {
    Uncertainty.DISAGREE: "scorers disagree",
    Uncertainty.FLIP: "repetitions differ",
    Uncertainty.BORDERLINE: "close to the pass mark",
    Uncertainty.SAMPLE: "others, in random order",
}


@router.get(_PATH, openapi_extra=READ_PAGE)
def show_queue(
    request: Request,
    context: Context,
    suite: Name | None = None,
    benchmark: Name | None = None,
    agent: Name | None = None,
    skip: Annotated[int, Query(ge=0, le=10**6)] = 0,
) -> Response:
    """The answer to label next, and how far scorers agree with the labels so far."""
    store = context.store
    suites = store.categories()
    chosen = suite or next(iter(suites), "")
    queue = find_review_queue(store, chosen, agent, benchmark, skip) if chosen else ReviewQueue("")
    labelled = store.read_labelled_scores(LabelFilter(suite=chosen, benchmark=benchmark)) if chosen else []
    agents = sorted({entry.agent for entry in store.entries(Filter(chosen))}) if chosen else []
    waiting = sum(queue.waiting.values())
    page = Page(
        "Review",
        "review",
        [
            f"{format_count(queue.labelled, 'answer')} labelled",
            f"{format_count(waiting, 'answer')} to label",
            *(
                f"{_WHERE[reason]}: {queue.waiting[reason]:,}"
                for reason in Uncertainty
                if queue.waiting.get(reason)
            ),
        ],
        [agreement_section(compute_agreements(labelled))],
    )

    def address(place: int) -> str:
        return write_address(_PATH, suite=suite, benchmark=benchmark, agent=agent, skip=place)

    return show_page(
        request,
        page,
        "Review",
        "review.html.j2",
        controls=[
            choose_one("suite", "Suite", chosen, suites),
            choose_one("benchmark", "Benchmark", benchmark, store.benchmarks(chosen) if chosen else (), none="all"),
            choose_one("agent", "Agent", agent, agents, none="all"),
        ],
        item=queue.current,
        reasons=describe_reasons(queue.current.answer.detail) if queue.current else "",
        has_suites=bool(suites),
        back=address(skip),
        following=address(skip + 1 if skip + 1 < waiting else 0),
    )  # fmt: skip


@router.post(f"{_PATH}/label", openapi_extra=RUN_PAGE)
def label_answer(
    context: Context,
    author: Author,
    trial: Annotated[int, Form(ge=1, le=2**31 - 1)],
    seq: Annotated[int, Form(ge=0, le=2**31 - 1)],
    case: Annotated[str, Form(min_length=1, max_length=1000)],
    verdict: Annotated[LabelVerdict, Form()],
    note: Annotated[str, Form(max_length=2000)] = "",
    back: Annotated[str, Form(max_length=2000)] = _PATH,
) -> Response:
    """Label one answer in the name of the key, and continue with the next."""
    context.store.label(trial, case, seq, author, verdict, note, datetime.now(UTC))
    return go_to(back)

"""Runs: the list with the queue above it, one run during and after its execution, and starting, cancelling and resuming one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

from anyio.to_thread import run_sync
from fastapi import Query, Request, Response
from fastapi.responses import RedirectResponse

from assay.errors import RunNotFound
from assay.model import Run, RunState, Status
from assay.model.page import Cell, PageSection, RunOutcome, Table, Tile
from assay.model.queue import QueueState
from assay.report.figures import NOTHING, budget_text, format_moment
from assay.report.findings import outcome
from assay.report.pages.page import Page
from assay.report.pages.run_lists import runs_table, trials_table
from assay.server.access import READ_PAGE, RUN_PAGE
from assay.server.analyses import Analysis
from assay.server.context import Context, ServerContext
from assay.server.html import find_url
from assay.server.pages.controls import choose_one, choose_word, write_address
from assay.server.pages.shell import page_router, show_page
from assay.server.parameters import Name
from assay.server.run_status import read_status
from assay.store.store import Store
from assay.units import count, format_count, seconds, significant

router = page_router()

_ROWS = 30
_TRIALS = 25
_AT_ONCE = 5000
"""Executions up to which a run is analysed without being asked for it."""
_OPEN_TONES = {"running": "lead", "queued": "", "cancelling": "warn"}
FORMATS = ("html", "md", "json", "csv")


@router.get("/ui/runs", openapi_extra=READ_PAGE)
def list_runs(
    request: Request,
    context: Context,
    name: Name | None = None,
    agent: Name | None = None,
    tag: Name | None = None,
    state: RunState | None = None,
    before: Annotated[Name | None, Query()] = None,
) -> Response:
    store = context.store
    chosen = {"name": name, "agent": agent, "tag": tag, "state": state.value if state else None}
    found = store.runs(limit=_ROWS + 1, before=before, **chosen)
    runs = found[:_ROWS]
    query = {key: value for key, value in chosen.items() if value}
    sections = [] if before else [section for section in [_queue(context)] if section]
    if runs:
        sections.append(PageSection("Stored runs", [runs_table(runs)], _describe(query), anchor="runs"))
    page = Page("Runs", "runs", [], sections)
    return show_page(
        request,
        page,
        "Runs",
        "runs.html.j2",
        controls=[
            choose_word(
                "name", "Suite or spec", name, [(suite, suite) for suite in store.categories()], "all"
            ),
            choose_word("agent", "Agent", agent, placeholder="all"),
            choose_word("tag", "Tag", tag, placeholder="any"),
            choose_one("state", "State", state, RunState, none="any"),
        ],
        following=write_address("/ui/runs", **query, before=runs[-1].id) if len(found) > _ROWS else "",
        first=write_address("/ui/runs", **query) if before else "",
        is_filtered=bool(query),
    )


def _describe(query: Mapping[str, str]) -> str:
    return ", ".join(f"{key} {value}" for key, value in query.items()) or "the newest first"


def _queue(context: ServerContext) -> PageSection | None:
    """Queued and running runs; None if there are none."""
    queue = context.store.queue()
    if not queue:
        return None
    rows = []
    for queued in queue:
        status = read_status(context.store, queued.id)
        progress = status["progress"]
        position = status["position"]
        rows.append(
            [
                Cell(queued.suite, ref=f"runs/{queued.id}", note=queued.id),
                Cell(queued.agent, ref=f"agents/{queued.agent}"),
                Cell(
                    f"{queued.state.value}, place {position}" if position else queued.state.value,
                    tone=_OPEN_TONES.get(queued.state.value, ""),
                ),
                Cell(f"{count(progress['done'])} of {count(progress['planned'])}"),
                Cell(f"{queued.created:%Y-%m-%d %H:%M}"),
            ]
        )
    table = Table(["Suite", "Agent", "State", "Executions", "Queued"], rows, words=(1, 2, 4))
    most = format_count(context.max_runs, "run")
    return PageSection("Queue", [table], f"{most} at a time", anchor="queue")


@router.get("/ui/runs/{run_id}", openapi_extra=READ_PAGE)
def show_run(request: Request, context: Context, run_id: Name) -> Response:
    store = context.store
    status = read_status(store, run_id)
    run = _find_run(store, status["run_id"])
    if not status["is_over"] or run is None:
        return _show_status(request, store, status, run)
    kept = context.analyses.find(store, run.id)
    return _show_result(request, store, status, run, kept)


@router.get("/ui/runs/{run_id}/analysis", openapi_extra=READ_PAGE)
async def show_analysis(request: Request, context: Context, run_id: Name) -> Response:
    """The run with all intervals, charts and findings; it may take a while."""
    store = context.store
    run = await run_sync(store.run, run_id)
    analysis = await context.analyses.wait_for(store, run.id)
    status = await run_sync(read_status, store, run.id)
    return await run_sync(_show_result, request, store, status, run, analysis)


def _find_run(store: Store, run_id: str) -> Run | None:
    """Find a run; None for a run that is queued and has not begun."""
    try:
        return store.run(run_id)
    except RunNotFound:
        return None


def _show_status(request: Request, store: Store, status: Mapping[str, Any], run: Run | None) -> Response:
    """A run that is queued, is running, or failed to start."""
    title = run.name if run else str(status["suite_id"])
    page = Page(title, "run", _facts(status, run))
    tone = _OPEN_TONES.get(status["status"], "bad" if status["is_over"] else "")
    chip = RunOutcome(str(status["status"]).replace("_", " "), tone)
    return show_page(
        request,
        page,
        "Runs",
        "run.html.j2",
        run_status=status,
        chip=chip,
        analysis=None,
        formats=(),
        is_queued=store.read_queued_run(status["run_id"]) is not None,
    )


def _show_result(
    request: Request, store: Store, status: Mapping[str, Any], run: Run, analysis: Analysis | None
) -> Response:
    made = status["progress"]["done"]
    if analysis is None:
        statuses = store.count_statuses(run.id)
        listed = replace(run, trials=run.trials[:_TRIALS])
        ratings = store.ratings([stored.id for stored in listed.trials])
        left_out = len(run.trials) - len(listed.trials)
        notes = [f"{format_count(left_out, 'more trial')} in the analysis"] if left_out else []
        sections = [
            PageSection("Trials", [trials_table(listed, statuses, ratings)], notes=notes, anchor="trials")
        ]
        tiles = _tiles(run, statuses)
    else:
        sections, tiles = [], []
    state = RunState.INTERRUPTED if status["status"] == RunState.INTERRUPTED else run.state
    page = Page(run.name, "run", _facts(status, run), sections)
    return show_page(
        request,
        page,
        "Runs",
        "run.html.j2",
        specs=analysis.specs if analysis else {},
        run_status=status,
        chip=_find_outcome(status, analysis, state),
        analysis=analysis,
        overview=tiles,
        run=run,
        is_large=made > _AT_ONCE,
        is_queued=store.read_queued_run(run.id) is not None,
        formats=FORMATS,
        links={
            "Compare with …": write_address("/ui/compare", a=run.id),
            **({f"Suite {run.suite.name}": find_url(f"suites/{run.suite.name}")} if run.suite else {}),
        },
    )


def _find_outcome(status: Mapping[str, Any], analysis: Analysis | None, state: RunState) -> RunOutcome:
    """What the queue knows goes before what is stored: a run whose worker died is stored as running."""
    if status["status"] in (QueueState.FAILED, QueueState.REFUSED, QueueState.CANCELLED):
        return RunOutcome(str(status["status"]), "bad" if status["status"] == QueueState.FAILED else "warn")
    return analysis.outcome if analysis else outcome(state)


def _facts(status: Mapping[str, Any], run: Run | None) -> list[str]:
    if run is None:
        return [f"run {status['run_id']}", f"agent {', '.join(status['agent_ids'])}"]
    duration = (run.ended - run.started).total_seconds() if run.ended else None
    return [
        f"run {run.id}",
        *([f"suite {run.suite.name} {run.suite.version}".strip()] if run.suite else []),
        *([run.label] if run.label else []),
        format_moment(run.started),
        *([f"took {seconds(duration)}"] if duration is not None and status["is_over"] else []),
        *([text] if (text := budget_text(run)) else []),
        f"seed {run.seed}",
        *([", ".join(run.tags)] if run.tags else []),
    ]


def _tiles(run: Run, statuses: Mapping[int, Mapping[str, int]]) -> list[Tile]:
    executed = sum(sum(found.values()) for found in statuses.values())
    ok = sum(found.get(Status.OK.value, 0) for found in statuses.values())
    agents = dict.fromkeys(stored.trial.agent.name for stored in run.trials)
    benchmarks = dict.fromkeys(stored.trial.benchmark for stored in run.trials if stored.trial.benchmark)
    named = ", ".join([*agents][:4]) + (" …" if len(agents) > 4 else "")
    share = f"{significant(100 * ok / executed)} % of {count(executed)} measured" if executed else NOTHING
    return [
        Tile("agents", count(len(agents)), named),
        Tile("trials", count(len(run.trials)), format_count(len(benchmarks), "benchmark")),
        Tile("executions ok", count(ok), share),
    ]


@router.post("/ui/runs/{run_id}/cancel", openapi_extra=RUN_PAGE)
def cancel_run(context: Context, run_id: Name) -> Response:
    context.store.cancel_queued(run_id)
    context.queue.wake()
    return RedirectResponse(find_url(f"runs/{run_id}"), 303)


@router.post("/ui/runs/{run_id}/resume", openapi_extra=RUN_PAGE)
def resume_run(context: Context, run_id: Name) -> Response:
    context.store.requeue(run_id)
    context.queue.wake()
    return RedirectResponse(find_url(f"runs/{run_id}"), 303)

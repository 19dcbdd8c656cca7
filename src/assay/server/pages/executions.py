"""The executions of a trial, a page at a time, and one execution with all that is stored of it."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query, Request, Response
from starlette.exceptions import HTTPException

from assay.model import Benchmark, Case, Execution, Phase, Run, Status, StoredTrial, metric_named
from assay.model.page import Cell, Charts, ListItem, PageSection, Table, Tile
from assay.report.cases import expectation_text, input_text
from assay.report.charts.spans import span_chart
from assay.report.execution_texts import describe_execution, read_scores, read_spans
from assay.report.figures import NOTHING, format_moment
from assay.report.pages.html import fact
from assay.report.pages.page import Page
from assay.report.pages.run_lists import executions_table, ok_cell, outcome_cell
from assay.server.access import READ_PAGE
from assay.server.context import Context
from assay.server.pages.controls import choose_one, choose_word, write_address
from assay.server.pages.shell import page_router, show_page
from assay.server.parameters import Name
from assay.server.results import TrialId
from assay.store.results import ExecutionFilter
from assay.store.store import Store
from assay.units import count, seconds, show, significant

router = page_router()

_ROWS = 50
_TEXT = 60_000
_LOG = 20_000
Seq = Annotated[int, Path(ge=0, le=2**31 - 1)]


def _find_trial(store: Store, trial_id: int, run_id: str | None = None) -> tuple[Run, StoredTrial]:
    found = store.run_of_trial(trial_id)
    if run_id is not None and not found.startswith(run_id):
        raise HTTPException(404, f"There is no trial {trial_id} here.")
    run = store.run(found)
    return run, next(stored for stored in run.trials if stored.id == trial_id)


def _find_benchmark(store: Store, run: Run, stored: StoredTrial) -> Benchmark | None:
    """The benchmark as the run was made with it; None for code experiments."""
    suite = store.suite_of(run.id) if stored.trial.suite else None
    benchmarks = suite.benchmarks if suite is not None else ()
    return next((known for known in benchmarks if known.id == stored.trial.benchmark), None)


def _pass_mark(benchmark: Benchmark | None) -> float | None:
    return benchmark.rubric.pass_mark if benchmark is not None and benchmark.expects_scores else None


@router.get("/ui/runs/{run_id}/trials/{trial_id}", openapi_extra=READ_PAGE)
def list_executions(
    request: Request,
    context: Context,
    run_id: Name,
    trial_id: TrialId,
    case: Name | None = None,
    status: Status | None = None,
    phase: Phase | None = None,
    after: Annotated[int | None, Query(ge=0, le=2**31 - 1)] = None,
) -> Response:
    store = context.store
    run, stored = _find_trial(store, trial_id, run_id)
    chosen = ExecutionFilter(trial_id, status, case, phase)
    found = store.execution_page(chosen, after, _ROWS + 1)
    query = {"case": case, "status": status, "phase": phase}
    statuses, cases = store.counts(trial_id), stored.trial.cases[:500]
    sections = []
    if found:
        table = executions_table(stored, found[:_ROWS], _pass_mark(_find_benchmark(store, run, stored)))
        sections.append(PageSection("Executions", [table], "in the order of storing", anchor="executions"))
    place = f"/ui/runs/{run.id}/trials/{trial_id}"
    following = write_address(place, **query, after=found[_ROWS - 1][0]) if len(found) > _ROWS else ""
    page = Page(stored.trial.name, "trial", _trial_facts(run, stored), sections)
    return show_page(
        request,
        page,
        "Runs",
        "trial.html.j2",
        tiles=_trial_tiles(stored, statuses),
        trial=stored,
        run=run,
        place=place,
        controls=[
            *(
                [choose_word("case", "Case", case, [(known, known) for known in cases], "all")]
                if cases
                else []
            ),
            choose_one("status", "Status", status, Status, none="any"),
            choose_one("phase", "Phase", phase, Phase, none="any"),
        ],
        following=following,
        first=write_address(place, **query) if after is not None else "",
        is_filtered=any(query.values()),
    )


def _trial_facts(run: Run, stored: StoredTrial) -> list[str]:
    trial = stored.trial
    return [
        f"agent {trial.agent.name} {trial.agent.version}".strip(),
        *([f"benchmark {trial.benchmark}"] if trial.benchmark else []),
        f"experiment {trial.experiment.rsplit('/', 1)[-1]}",
        f"run {run.id}",
        format_moment(run.started),
        *([f"stopped early: {stored.cut_short}"] if stored.cut_short else []),
    ]


def _trial_tiles(stored: StoredTrial, statuses: dict[str, int]) -> list[Tile]:
    trial = stored.trial
    others = [
        f"{count(number)} {name.replace('_', ' ')}" for name, number in statuses.items() if name != "ok"
    ]
    return [
        Tile("executions ok", ok_cell(statuses).text, ", ".join(others) or "measured"),
        *([Tile("cases", count(len(trial.cases)), "put to the agent")] if trial.cases else []),
        Tile(
            "repetitions",
            count(trial.iterations.measured),
            f"after {count(trial.iterations.warmup)} of warm-up",
        ),
        Tile("at a time", count(trial.concurrency), f"isolation {trial.isolation.value}"),
    ]


@router.get("/ui/trials/{trial_id}/executions/{seq}", openapi_extra=READ_PAGE)
def show_execution(request: Request, context: Context, trial_id: TrialId, seq: Seq) -> Response:
    store = context.store
    run, stored = _find_trial(store, trial_id)
    # The ones before and after are read with it, because numbers may leave gaps.
    found = dict(store.execution_page(ExecutionFilter(trial_id), seq - 2, 3))
    if seq not in found:
        raise HTTPException(404, f"There is no execution {seq} in trial {trial_id}.")
    execution = found[seq]
    benchmark = _find_benchmark(store, run, stored)
    case = (
        next((known for known in benchmark.cases if known.id == execution.case), None) if benchmark else None
    )
    page = Page(
        f"{execution.case or stored.trial.name} #{seq}",
        "execution",
        _facts(run, stored, execution),
        _sections(run, execution, case),
    )
    outcome = outcome_cell(execution, _pass_mark(benchmark))
    return show_page(
        request,
        page,
        "Runs",
        "execution.html.j2",
        chip=ListItem(outcome.text, outcome.tone),
        tiles=_tiles(execution),
        texts=_texts(execution, case),
        trial=stored,
        run=run,
        case=execution.case,
        previous=seq - 1 if seq - 1 in found else None,
        next=min((number for number in found if number > seq), default=None),
    )


def _facts(run: Run, stored: StoredTrial, execution: Execution) -> list[str]:
    from datetime import UTC, datetime

    started = datetime.fromtimestamp(execution.started, UTC)
    return [
        f"agent {stored.trial.agent.name} {stored.trial.agent.version}".strip(),
        *([f"benchmark {stored.trial.benchmark}"] if stored.trial.benchmark else []),
        f"{execution.phase.value}, repetition {execution.repetition}",
        f"process {execution.process}",
        format_moment(started),
    ]


def _tiles(execution: Execution) -> list[Tile]:
    measured = execution.measurements
    loops = f"one call of {count(execution.loops)}" if execution.loops > 1 else ""
    figures = [
        ("score", measured.get("score"), significant, "0 to 1"),
        ("time", measured.get("seconds"), seconds, loops),
        ("first token", measured.get("ttft"), seconds, ""),
        ("tokens", measured.get("tokens"), count, "input and output"),
        ("cost", measured.get("usd"), lambda value: show(value, "usd") if value else "free", ""),
    ]
    return [Tile(name, form(value), note) for name, value, form, note in figures if value is not None]


def _texts(execution: Execution, case: Case | None) -> list[tuple[str, str]]:
    """What was asked and answered, in full as far as it is stored; scores have a table of their own."""
    given = [("input", input_text(case, _TEXT)), ("expected", expectation_text(case, _TEXT))]
    described = [pair for pair in describe_execution(execution, _TEXT, _LOG) if pair[0] != "scores"]
    return [(name, text) for name, text in (*given, *described) if text]


def _sections(run: Run, execution: Execution, case: Case | None) -> list[PageSection]:
    sections = []
    if scores := read_scores(execution):
        rows = [
            [
                Cell(score.name),
                Cell("unscored", tone="warn") if score.value is None else Cell(significant(score.value)),
                Cell(score.reason or NOTHING, is_output=bool(score.reason)),
            ]
            for score in scores
        ]
        sections.append(
            PageSection("Scores", [Table(["Scorer", "Score", "Reason"], rows, words=(2,))], "from 0 to 1")
        )
    if spans := read_spans(execution):
        sections.append(PageSection("Spans", [Charts([span_chart(spans)])]))
    rows = []
    for name, value in sorted(execution.measurements.items()):
        unit = metric_named(name).unit
        rows.append([Cell(name), Cell(show(value, unit), sort=value), Cell(unit or NOTHING, tone="quiet")])
    if rows:
        sections.append(PageSection("Metrics", [Table(["Metric", "Value", "Unit"], rows, words=(2,))]))
    applied = [[Cell(name), Cell(fact(value, name))] for name, value in (execution.applied or {}).items()]
    if applied:
        sections.append(PageSection("Settings in effect", [Table(["Setting", "Value"], applied, words=(1,))]))
    facts = {**run.environment.vcs, **run.environment.facts}
    rows = [
        [Cell(name.replace("_", " ")), Cell(fact(value, name))]
        for name, value in facts.items()
        if value not in (None, []) and name not in ("packages", "nodes")
    ]
    sections.append(PageSection("Environment", [Table(["Fact", "Value"], rows, words=(1,))]))
    return sections

"""Suites: the list, one suite with its cases and how hard they are, and one case with what every agent answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated

from fastapi import Query, Request, Response
from starlette.exceptions import HTTPException

from assay.analysis.estimates.case_difficulty import case_difficulties
from assay.errors import LookupFailed, format_unknown_name
from assay.model import Benchmark, Case, Execution, Phase, Suite
from assay.model.page import Cell, PageSection, Table, Tile
from assay.model.rating import CaseDifficulty
from assay.pipeline.registry import RegisteredSuite, find_registered_agents, find_registered_suites
from assay.report.cases import case_title, expectation_text, explain_execution, input_text
from assay.report.figures import NOTHING
from assay.report.pages import suite as suite_texts
from assay.report.pages.catalog import date_cell, difficulty_table, number_cell
from assay.report.pages.page import Page
from assay.report.pages.run_lists import outcome_cell, runs_table
from assay.report.side_by_side import as_text
from assay.server.access import READ_PAGE
from assay.server.context import Context, ServerContext
from assay.server.html import find_url
from assay.server.pages.controls import page_links, write_address
from assay.server.pages.shell import page_router, show_page
from assay.server.parameters import Name
from assay.store.results import ExecutionFilter
from assay.store.run_lists import TrialSummary
from assay.units import count, format_count, percent, seconds, significant

router = page_router()

_RUNS = 8
_CASES = 60
_AGENTS = 20
_REPETITIONS = 5
_TEXT = 20_000
_ANSWER = 1_000


@router.get("/ui/suites", openapi_extra=READ_PAGE)
def list_suites(request: Request, context: Context) -> Response:
    store = context.store
    registered = find_registered_suites(context.settings, store)
    stored = {found.name: found for found in context.keep_overview("suites", store.suite_overviews)}
    categories = store.categories()
    rows = []
    for name in sorted({*registered, *stored}, key=str.casefold):
        known, found = registered.get(name), stored.get(name)
        category = categories.get(name) or (known.category if known else "")
        rows.append(
            [
                Cell(
                    name,
                    ref=f"suites/{name}",
                    note=f"version {known.version}" if known and known.version else "",
                ),
                Cell(category or NOTHING),
                Cell("registered", tone="good") if known else Cell("not registered", tone="quiet"),
                number_cell(found.agents if found else 0),
                number_cell(found.runs if found else 0),
                date_cell(found.latest if found else None),
            ]
        )
    titles = ["Suite", "Category", "Can be run", "Agents", "Runs", "Latest run"]
    sections = [PageSection("All suites", [Table(titles, rows, words=(1, 2, 5))])] if rows else []
    facts = [format_count(len(rows), "suite"), f"{count(len(registered))} registered"]
    page = Page("Suites", "suites", facts, sections)
    return show_page(request, page, "Suites", "suites.html.j2")


def _find_suite(context: ServerContext, name: str) -> tuple[Suite, RegisteredSuite | None]:
    """As it is registered, or else as its latest run was made with it."""
    store = context.store
    registered = find_registered_suites(context.settings, store)
    known = registered.get(name)
    suite: Suite | None
    if known is not None and known.file is not None:
        suite = context.suite_files.get(known.file, lambda: known.read(store))
    else:
        suite = known.read(store) if known else store.latest_suite(name)
    if suite is None:
        raise LookupFailed(format_unknown_name(name, "suites", {*registered, *store.categories()}))
    return suite, known


@router.get("/ui/suites/{name:path}", openapi_extra=READ_PAGE)
def show_suite(
    request: Request,
    context: Context,
    name: Name,
    benchmark: Annotated[Name | None, Query()] = None,
    page: Annotated[int, Query(ge=1, le=10_000)] = 1,
) -> Response:
    store = context.store
    suite, registered = _find_suite(context, name)
    chosen = _find_benchmark(suite, benchmark)
    results = _read_results(context, name, chosen.id) if chosen else BenchmarkResults()
    difficulties = results.difficulties
    runs = store.runs(limit=_RUNS, name=name)
    sections = [_benchmarks_section(suite)]
    if chosen is not None:
        sections.append(_cases_section(suite, chosen, difficulties, page))
    if runs:
        sections.append(PageSection("Latest runs", [runs_table(runs)], anchor="runs"))
    listed = max(len(difficulties), len(chosen.cases) if chosen else 0)
    agents = [*registered.agents, *find_registered_agents(context.settings, store)] if registered else []
    now = datetime.now(context.settings.zone)
    facts = [f"{title}: {value}" for title, value in suite_texts.facts(suite, now) if title != "Description"]
    return show_page(
        request,
        Page(suite.title or suite.name, "suite", facts, sections),
        "Suites",
        "suite_page.html.j2",
        suite=suite,
        tiles=_tiles(suite, chosen, results),
        chosen=chosen.id if chosen else "",
        agents=agents,
        **page_links(
            find_url(f"suites/{name}"),
            page,
            has_more=listed > page * _CASES,
            anchor="#cases",
            benchmark=chosen.id if chosen else None,
        ),
        links={
            "Leaderboard": write_address("/ui/leaderboard", suite=name),
            "Cost": write_address("/ui/cost", suite=name),
            "All runs": write_address("/ui/runs", name=name),
        },
    )


@dataclass(frozen=True, slots=True)
class BenchmarkResults:
    """How hard each case is, the hardest first, and how many agents have results."""

    agents: int = 0
    difficulties: Sequence[CaseDifficulty] = ()


def _read_results(context: ServerContext, suite: str, benchmark: str) -> BenchmarkResults:
    """Read the newest result of each agent; it is cached, because this takes the ratings of every agent."""
    store = context.store

    def read() -> BenchmarkResults:
        trials = store.newest_trials(suite=suite, benchmark=benchmark)
        rated = store.ratings([trial.trial_id for trial in trials if not trial.simulated])
        return BenchmarkResults(len(trials), case_difficulties(list(rated.values())))

    return context.keep(("difficulties", suite, benchmark), suite, read)


def _find_benchmark(suite: Suite, benchmark_id: str | None) -> Benchmark | None:
    """The one that was asked for, or else the first with cases; None if no benchmark has any."""
    found = next((benchmark for benchmark in suite.benchmarks if benchmark.id == benchmark_id), None)
    if benchmark_id is not None and found is None:
        known = [benchmark.id for benchmark in suite.benchmarks]
        raise LookupFailed(format_unknown_name(benchmark_id, f"benchmarks of '{suite.name}'", known))
    return found or next((benchmark for benchmark in suite.benchmarks if benchmark.cases), None)


def _tiles(
    suite: Suite,
    chosen: Benchmark | None,
    results: BenchmarkResults,
) -> list[Tile]:
    difficulties = results.difficulties
    cases = sum(len(benchmark.cases) for benchmark in suite.benchmarks)
    tiles = [
        Tile("cases", count(cases), f"in {format_count(len(suite.benchmarks), 'benchmark')}"),
        Tile("agents with results", count(results.agents), f"on {chosen.id}" if chosen else ""),
    ]
    if difficulties and chosen is not None:
        by_all = sum(difficulty.passed == difficulty.agents for difficulty in difficulties)
        by_none = sum((difficulty.solved.value or 0.0) == 0.0 for difficulty in difficulties)
        flaky = sum(difficulty.flaky > 0 for difficulty in difficulties)
        note = f"of {count(len(difficulties))} asked of {chosen.id}"
        tiles += [
            Tile("cases that all agents pass", count(by_all), note),
            Tile("cases that no agent passes", count(by_none), note),
            Tile("flaky cases", count(flaky), f"{percent(flaky / len(difficulties))} {note}"),
        ]
    return tiles


def _benchmarks_section(suite: Suite) -> PageSection:
    table = suite_texts.benchmarks_table(suite)
    rows = [
        [replace(name, note=benchmark.description), *cells]
        for benchmark, (name, *cells) in zip(suite.benchmarks, table.rows, strict=True)
    ]
    return PageSection("Benchmarks", [replace(table, rows=rows)], suite.description, anchor="benchmarks")


def _cases_section(
    suite: Suite, benchmark: Benchmark, difficulties: Sequence[CaseDifficulty], page: int
) -> PageSection:
    """A page of the cases with how many agents solve them; without results only what the suite says."""
    page_slice = slice((page - 1) * _CASES, page * _CASES)
    defined = {case.id: case for case in benchmark.cases}
    title, anchor = f"Cases of {benchmark.id}", "cases"
    if difficulties:
        return PageSection(
            title,
            [difficulty_table(suite.name, benchmark.id, defined, difficulties[page_slice])],
            "the hardest first; newest result of each measured agent",
            notes=[
                "Solved: the mean share of repetitions that passed, with its 95 % interval over agents.",
                "Flaky: an agent passes the case in some repetitions and fails it in others.",
            ],
            anchor=anchor,
        )
    if not defined:
        return PageSection(title, finding="This benchmark has no cases: it measures code.", anchor=anchor)
    rows = [
        [Cell(case.id, note=case_title(case)), Cell(", ".join(case.tags) or NOTHING, tone="quiet")]
        for case in list(defined.values())[page_slice]
    ]
    sentence = "No agent has results on these cases yet, so their difficulty is unknown."
    return PageSection(title, [Table(["Case", "Tags"], rows, words=(1,))], finding=sentence, anchor=anchor)


@router.get("/ui/cases", openapi_extra=READ_PAGE)
def show_case(
    request: Request,
    context: Context,
    suite: Name,
    benchmark: Name,
    case: Name,
    page: Annotated[int, Query(ge=1, le=1000)] = 1,
) -> Response:
    """What was asked, and the newest answers of every agent."""
    store = context.store
    found, _ = _find_suite(context, suite)
    defined = _find_benchmark(found, benchmark)
    assert defined is not None
    definition = next((candidate for candidate in defined.cases if candidate.id == case), None)
    trials = store.newest_trials(suite=suite, benchmark=benchmark)
    listed = trials[(page - 1) * _AGENTS : page * _AGENTS]
    answers = {
        trial.trial_id: store.execution_page(
            ExecutionFilter(trial.trial_id, case=case, phase=Phase.MEASURED), None, _REPETITIONS
        )
        for trial in listed
    }
    if definition is None and not any(answers.values()):
        raise HTTPException(404, f"There is no case '{case}' in benchmark '{benchmark}' of suite '{suite}'.")
    pass_mark = defined.rubric.pass_mark if defined.expects_scores else None
    table = _answers_table(listed, answers, pass_mark)
    sections = [PageSection("Answers", [table], "of the newest trial of each agent", anchor="answers")]
    return show_page(
        request,
        Page(case, "case", _case_facts(suite, benchmark, definition), sections if table.rows else []),
        "Suites",
        "case.html.j2",
        suite=suite,
        benchmark=benchmark,
        texts=[
            (name, text)
            for name, text in (
                ("input", input_text(definition, _TEXT)),
                ("expected", expectation_text(definition, _TEXT)),
            )
            if text
        ],
        **page_links(
            "/ui/cases",
            page,
            has_more=len(trials) > page * _AGENTS,
            suite=suite,
            benchmark=benchmark,
            case=case,
        ),
    )


def _case_facts(suite: str, benchmark: str, case: Case | None) -> list[str]:
    return [
        f"suite {suite}",
        f"benchmark {benchmark}",
        *([f"tags {', '.join(case.tags)}"] if case and case.tags else []),
        *(
            [f"tools {', '.join(str(tool.get('name', tool)) for tool in case.tools)}"]
            if case and case.tools
            else []
        ),
        *([f"files {', '.join(case.files)}"] if case and case.files else []),
    ]


def _answers_table(
    trials: Sequence[TrialSummary],
    answers: Mapping[int, Sequence[tuple[int, Execution]]],
    pass_mark: float | None,
) -> Table:
    rows = []
    for trial in trials:
        for seq, execution in answers[trial.trial_id]:
            measured = execution.measurements
            score, duration = measured.get("score"), measured.get("seconds")
            rows.append(
                [
                    Cell(trial.agent, ref=f"agents/{trial.agent}"),
                    Cell(f"#{seq}", ref=f"trials/{trial.trial_id}/executions/{seq}", sort=seq),
                    outcome_cell(execution, pass_mark),
                    Cell(
                        NOTHING if score is None else significant(score),
                        sort=-1.0 if score is None else score,
                    ),
                    Cell(
                        NOTHING if duration is None else seconds(duration),
                        sort=-1.0 if duration is None else duration,
                    ),
                    Cell(
                        as_text(execution.output, _ANSWER) or NOTHING, is_output=execution.output is not None
                    ),
                    Cell(explain_execution(execution) or NOTHING),
                ]
            )
    titles = ["Agent", "Execution", "Outcome", "Score", "Time", "Answer", "Why"]
    return Table(titles, rows, words=(1, 2, 5, 6))

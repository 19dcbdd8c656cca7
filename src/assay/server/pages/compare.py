"""Comparing agents, versions and runs, and their answers side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import Query, Request, Response

from assay.analysis.comparison.compare import matching_trials
from assay.errors import AssayError, LookupFailed, PlanError, RunNotFound, format_unknown_name
from assay.model import TrialReport
from assay.model.comparison import Compared
from assay.model.scored_answer import AnswerComparison, ScoreDifference
from assay.pipeline.agent_results import trials_of
from assay.pipeline.answers import compare_answers
from assay.pipeline.compare import all_pairs, compare_refs, courses
from assay.report.pages.board import matrix_page
from assay.report.pages.comparison import comparison_page, history_page
from assay.report.pages.page import Page
from assay.server.access import READ_PAGE
from assay.server.context import Context
from assay.server.pages.boards import explain
from assay.server.pages.controls import Control, Pager, choose_one, choose_word, keep, write_address
from assay.server.pages.shell import page_router, show_page
from assay.server.parameters import Name
from assay.store.standings import Filter
from assay.store.store import Store
from assay.units import format_count

router = page_router()

_LETTERS = "abcdefgh"
_VERSIONS, _RUNS, _CASES, _FIRST_CASES = 8, 20, 10, 3
Only = Literal["differ", "higher", "lower"]
_WANTED = {
    "differ": (ScoreDifference.HIGHER, ScoreDifference.LOWER),
    "higher": (ScoreDifference.HIGHER,),
    "lower": (ScoreDifference.LOWER,),
}
TrialNumber = Annotated[int, Query(ge=1, le=2**31 - 1)]
Skip = Annotated[int, Query(ge=0, le=10**7)]


@router.get("/ui/compare", openapi_extra=READ_PAGE)
def show_comparison(
    request: Request,
    context: Context,
    a: Name | None = None,
    b: Name | None = None,
    c: Name | None = None,
    d: Name | None = None,
    e: Name | None = None,
    f: Name | None = None,
    g: Name | None = None,
    h: Name | None = None,
    suite: Name | None = None,
    view: Literal["pairs", "time"] = "pairs",
) -> Response:
    """One agent: its versions over time. Two sides head to head, with their answers; several in all pairs, or over time."""
    store = context.store
    named = list(dict.fromkeys(ref for ref in (a, b, c, d, e, f, g, h) if ref))
    refs = named or _suggest(store, suite)
    compared = ComparedSides(Page("", ""))
    try:
        if not refs:
            raise PlanError(
                "There are no results to compare yet. Run a suite first: assay run SUITE --agent A --agent B"
            )
        found = context.keep(("sides", *refs, suite), suite, lambda: _find_sides(store, refs, suite))
        if len(refs) == 1:
            view = "time"
        # A run may be of a different suite than that whose changes are counted, and still be running.
        stamps = [store.fingerprint(side.run_id) for side in found if side.is_run or suite is None]
        sides = [side.ref for side in found]
        key = ("compare", view, *sides, suite, *stamps)
        compared = context.keep(
            key, suite, lambda: _compare(store, sides, suite, is_over_time=view == "time")
        )
        page = compared.page
    except AssayError as error:
        page = explain("Compare", error)
    return show_page(
        request, page, "Compare", "compare.html.j2", controls=_controls(store, refs, suite, view),
        answers=compared.answers, links=[(text, _write_answers_address(*pair)) for text, pair in compared.links],
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class ComparedSides:
    """The page of a comparison, the pairs of trials whose answers can be laid side by side, and some of those of the first pair."""

    page: Page
    links: Sequence[tuple[str, tuple[int, int]]] = ()
    answers: AnswerComparison | None = None


def _compare(store: Store, sides: Sequence[str], suite: str | None, *, is_over_time: bool) -> ComparedSides:
    if is_over_time:
        return ComparedSides(history_page(courses(store, sides, (), suite), sides))
    if len(sides) > 2:
        return ComparedSides(matrix_page([all_pairs(store, sides, suite)], "compare", sides))
    found = compare_refs(store, sides[0], sides[1], suite=suite)
    page, links = comparison_page(found, sides), _link_answers(found)
    if not links:
        return ComparedSides(page)
    answers = compare_answers(store, *links[0][1], _WANTED["differ"], limit=_FIRST_CASES)
    return ComparedSides(page, links, answers)


def _suggest(store: Store, suite: str | None) -> list[str]:
    """The two agents with the latest results on the suite, or on the one that ran last."""
    chosen = suite or next(iter(store.categories()), None)
    entries = store.entries(Filter(chosen)) if chosen else []
    newest = sorted(entries, key=lambda entry: entry.ended, reverse=True)
    return list(dict.fromkeys(entry.agent for entry in newest))[:2]


@dataclass(frozen=True, slots=True)
class ChosenSide:
    """What stands on a side, as `compare_refs` takes it."""

    ref: str
    run_id: str
    """The run itself, or the newest of the agent."""
    is_run: bool = False


def _find_sides(store: Store, refs: Sequence[str], suite: str | None) -> list[ChosenSide]:
    """The sides that were asked for, or the versions of the only one."""
    found = [_find_side(store, ref, suite) for ref in refs]
    return _find_versions(store, found[0], suite) if len(found) == 1 else found


def _find_side(store: Store, ref: str, suite: str | None) -> ChosenSide:
    """An agent, a version of one, or a run by its whole id. The command also takes files, which must not be read from afar."""
    if trials := trials_of(store, ref, suite):
        return ChosenSide(ref, trials[-1].run_id)
    try:
        run_id = store.run(ref).id
        return ChosenSide(run_id, run_id, is_run=True)
    except RunNotFound:
        where = f" on '{suite}'" if suite else ""
        raise LookupFailed(
            format_unknown_name(ref, f"runs and agents with results{where}", store.agents_with_trials())
        ) from None


def _find_versions(store: Store, side: ChosenSide, suite: str | None) -> list[ChosenSide]:
    """The latest versions of an agent, the oldest first."""
    newest = {trial.version: trial.run_id for trial in trials_of(store, side.ref, suite) if trial.version}
    if len(newest) < 2:
        raise LookupFailed(f"Choose a second side: '{side.ref}' has no two versions to compare over time.")
    name = side.ref.partition("@")[0]
    return [ChosenSide(f"{name}@{version}", run_id) for version, run_id in newest.items()][-_VERSIONS:]


def _controls(store: Store, refs: Sequence[str], suite: str | None, view: str) -> list[Control]:
    """A field for each side and one for a further side; agents, their versions and the latest runs are suggested."""
    agents = store.agents_with_trials()
    known = [(name, name) for name in agents]
    for name in dict.fromkeys(ref.partition("@")[0] for ref in refs):
        known += [(f"{name}@{version}", f"version {version}") for version in store.versions(name) if version]
    known += [(run.id, f"run of {run.name}, {run.started:%Y-%m-%d %H:%M}") for run in store.runs(limit=_RUNS)]
    fields = [*refs, ""] if len(refs) < len(_LETTERS) else refs
    return [
        *(
            choose_word(letter, letter.upper() if ref else "and", ref, known)
            for letter, ref in zip(_LETTERS, fields, strict=False)
        ),
        choose_one("suite", "Suite", suite, store.categories(), none="newest shared"),
        *([choose_one("view", "As", view, ("pairs", "time"))] if len(refs) > 1 else []),
    ]


def _link_answers(found: Compared) -> list[tuple[str, tuple[int, int]]]:
    """Pairs of trials whose answers can be laid side by side."""
    return [
        (_name_pair(a, b), (a.stored.id, b.stored.id))
        for a, b in matching_trials(found.a, found.b)
        if a.ratings is not None and b.ratings is not None and a.stored.id != b.stored.id
    ]


def _name_pair(a: TrialReport, b: TrialReport) -> str:
    first, second = a.stored.trial, b.stored.trial
    is_same = first.agent.name == second.agent.name
    agents = first.agent.name if is_same else f"{first.agent.name} and {second.agent.name}"
    return f"{second.benchmark}, {agents}"


def _write_answers_address(a: int, b: int, only: str | None = None, skip: int = 0) -> str:
    return write_address("/ui/compare/answers", a=a, b=b, only=only, skip=skip)


@router.get("/ui/compare/answers", openapi_extra=READ_PAGE)
def show_answers(
    request: Request,
    context: Context,
    a: TrialNumber,
    b: TrialNumber,
    only: Only | None = None,
    skip: Skip = 0,
) -> Response:
    """The cases of two trials side by side, a few at a time."""
    found = compare_answers(context.store, a, b, _WANTED.get(only or "", ()), skip, _CASES)
    page = Page(
        f"Answers to {found.sides[1].benchmark}",
        "answers",
        [f"suite {found.sides[1].suite}", format_count(sum(found.counts.values()), "case")],
    )
    texts = {
        "": "all cases",
        "differ": "scores differ",
        "higher": "B scores higher",
        "lower": "B scores lower",
    }
    controls = [
        keep("a", str(a)),
        keep("b", str(b)),
        Control("only", "Show", only or "", options=list(texts.items())),
    ]
    return show_page(
        request, page, "Compare", "answers.html.j2", controls=controls, answers=found,
        list_pager=_page_answers(found, a, b, only, skip),
    )  # fmt: skip


def _page_answers(found: AnswerComparison, a: int, b: int, only: str | None, skip: int) -> Pager:
    last = skip + len(found.pairs)
    return Pager(
        _write_answers_address(a, b, only, max(0, skip - _CASES)) if skip else "",
        _write_answers_address(a, b, only, last) if last < found.chosen else "",
        f"{skip + 1} to {last} of {format_count(found.chosen, 'case')}",
    )

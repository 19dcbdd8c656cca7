"""Load tests, stress tests, teams and profiles: the latest runs of each kind with their key figures, and the newest in full."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import Request, Response

from assay.model.page import Cell, PageSection, Table
from assay.report.figures import NOTHING
from assay.report.pages.catalog import date_cell
from assay.report.pages.page import Page
from assay.server.access import READ_PAGE
from assay.server.context import Context, ServerContext
from assay.server.findings import FINDERS, FindRuns
from assay.server.pages.controls import choose_word
from assay.server.pages.shell import page_router, show_page
from assay.server.parameters import Name

router = page_router()

_ROWS = 10
_FIGURES = 3
"""Key figures of each run in the table."""


@dataclass(frozen=True, slots=True)
class RunKind:
    """A kind of runs that has a page of its own."""

    title: str
    path: str
    find: FindRuns
    about: str
    command: str


KINDS = (
    RunKind(
        "Load",
        "load",
        FINDERS["load"],
        "How fast a server or an agent answers under traffic, and how much traffic it can take.",
        "assay load URL --rate 40 --duration 30 --slo 'ttft_p95<500ms,error_rate<1%'",
    ),
    RunKind(
        "Stress",
        "stress",
        FINDERS["stress"],
        "Where a server or an agent breaks under pressure of eight kinds, why, and how it recovers.",
        "assay stress AGENT --quick",
    ),
    RunKind(
        "Teams",
        "teams",
        FINDERS["team"],
        "Whether agents that work at the same time are faster than one after the other.",
        "assay team team.yaml",
    ),
    RunKind(
        "Profiles",
        "profiles",
        FINDERS["profile"],
        "Where the time, the memory and the tokens of an execution go, and what could be saved.",
        "assay profile AGENT --suite SUITE",
    ),
)


def _add_route(kind: RunKind) -> None:
    @router.get(f"/ui/{kind.path}", openapi_extra=READ_PAGE)
    def show_runs(request: Request, context: Context, agent: Name | None = None) -> Response:
        return _show(request, context, kind, agent)


for _kind in KINDS:
    _add_route(_kind)


def _show(request: Request, context: ServerContext, kind: RunKind, agent: str | None) -> Response:
    run_ids = kind.find(context.store, agent, _ROWS, None)
    sections = []
    if run_ids:
        rows = [_row(context, run_id) for run_id in run_ids]
        titles = ["Run", "Outcome", "Agent", "Key figures", "Started"]
        sections = [PageSection("Latest runs", [Table(titles, rows, words=(1, 2, 3, 4))], kind.about)]
    return show_page(
        request,
        Page(kind.title, kind.path, [], sections),
        kind.title,
        "kind.html.j2",
        kind=kind,
        agent=agent or "",
        controls=[choose_word("agent", "Agent or address", agent, placeholder="all")],
        newest=run_ids[0] if run_ids else "",
    )


def _row(context: ServerContext, run_id: str) -> list[Cell]:
    summary = context.analyses.summarise(context.store, run_id)
    figures = "\n".join(f"{tile.label}: {tile.value}" for tile in summary.tiles[:_FIGURES])
    run = summary.run
    agents = list(dict.fromkeys(stored.trial.agent.name for stored in run.trials))
    return [
        Cell(
            run.trials[0].trial.name if len(run.trials) == 1 else run.name, ref=f"runs/{run.id}", note=run.id
        ),
        Cell(summary.outcome.text, tone=summary.outcome.tone),
        Cell(agents[0], ref=f"agents/{agents[0]}") if len(agents) == 1 else Cell(", ".join(agents[:4])),
        Cell(figures or NOTHING, is_output=bool(figures)),
        date_cell(run.started),
    ]

"""`assay cost`: what agents cost, which of them are worth it, and where money can be saved."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from assay.cli.options import naming_flags, shared_option
from assay.cli.pages import format_names, page_options, show
from assay.cli.session import Session, common
from assay.text import shell_command

if TYPE_CHECKING:
    from assay.model.cost import CostAnalysis
    from assay.store.store import Store


@click.command()
@click.argument("agents", metavar="[AGENT]...", nargs=-1)
@click.option("--suite", metavar="S", help="Only results of this suite.")
@click.option(
    "--volume",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    metavar="N",
    help="Tasks per month, for savings and forecasts.",
)
@click.option(
    "--budget",
    type=click.FloatRange(min=0, min_open=True),
    metavar="USD",
    help="Monthly budget: tasks it covers, and when it runs out.",
)
@click.option(
    "--tolerance",
    metavar="X%",
    help="Mean scores that differ by no more than this count as equal quality.  [default: 1%]",
)
@shared_option(
    "--sweep", "First run the suite with each of these values of an agent option; may be repeated."
)
@page_options
@common
def cost(
    session: Session,
    agents: tuple[str, ...],
    suite: str | None,
    volume: int,
    budget: float | None,
    tolerance: str | None,
    axes: tuple[str, ...],
    formats: str | None,
    out: Path | None,
) -> None:
    """Show what agents cost per task and per solved task, and which configurations are worth it.

    \b
    assay cost
    assay cost fast careful --suite desk --volume 100000 --budget 500
    assay cost fast --suite desk.yaml --sweep agent.max_tokens=100,400
    """
    from assay.analysis.comparison.policy import Tolerances
    from assay.analysis.cost.analyse import Workload
    from assay.cli.values import share_of
    from assay.pipeline.cost import analyse_stored_costs

    names = format_names(formats, out)
    of_metric = {} if tolerance is None else {"score": share_of(tolerance, "--tolerance")}
    workload = Workload(volume, budget, Tolerances(of_metric=of_metric))
    with session.store() as store:
        if axes:
            suite = _run_sweep(session, store, agents, suite, axes)
        found = analyse_stored_costs(store, agents, suite, workload)
    from assay.report.documents.cost import cost_document
    from assay.report.pages.cost import cost_page

    if show(session, partial(cost_page, found), partial(cost_document, found), names, out):
        _name_next(session, found)


def _run_sweep(
    session: Session, store: Store, agents: tuple[str, ...], suite: str | None, axes: tuple[str, ...]
) -> str:
    """Run the suite with every value, as `assay run` does; returns the name of the suite."""
    from assay.cli.progress import watching
    from assay.cli.values import axis
    from assay.pipeline.planning import prepare
    from assay.pipeline.run import run_plan
    from assay.plan.target import RunRequest

    if suite is None or not agents:
        raise click.UsageError("--sweep runs a suite: name at least one AGENT and --suite S.")
    with naming_flags(suite):
        request = RunRequest(suite, {"sweep": dict(axis(text) for text in axes)}, agents)
        plan = prepare(request, session.settings, store)
    if plan.suite is None:
        raise click.UsageError(f"--suite '{suite}' is not a suite, which --sweep needs.")
    with watching(session, plan) as watch:
        run_plan(plan, store, watch)
    return plan.suite.name


def _name_next(session: Session, found: list[CostAnalysis]) -> None:
    """Compare the two agents that the first saving is about, else the first two; and the page with the chart."""
    first = found[0]
    agents = {
        configuration.name: configuration.agent
        for configuration in first.configurations
        if configuration.place is not None
    }
    saving = next((opportunity for opportunity in first.opportunities if opportunity.alternative), None)
    names = [saving.configuration, saving.alternative] if saving else list(agents)
    chosen = list(dict.fromkeys(agents[name] for name in names))[:2]
    page = shell_command("cost", options=["--suite", first.suite, "--format", "html"])
    if len(chosen) == 2:
        session.next(shell_command("compare", *chosen, options=["--suite", first.suite]), page)
    else:
        session.next(page)

"""Cost analyses as sections, which the terminal prints and the pages are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from assay.model import Doubt
from assay.model.cost import Amount, ConfigurationCost, CostAnalysis
from assay.model.page import Cell, Charts, ListItem, PageSection, Points, Table
from assay.report.charts.cost import front_chart
from assay.report.cost import (
    PLACES,
    amount_text,
    break_even_text,
    front_sentence,
    number_text,
    part_name,
    price_text,
    select_break_even,
    sensitivity_text,
)
from assay.report.figures import NOTHING
from assay.report.pages.page import Page
from assay.units import and_list, count, format_count, percent, significant, usd

_FEW = 3
_TONES = {"front": "good", "tied": "", "off": "quiet"}


def cost_page(found: Sequence[CostAnalysis]) -> Page:
    """All analyses; the first gives the verdict."""
    first = found[0]
    certain = [opportunity for opportunity in first.opportunities if opportunity.is_certain]
    suites = list(dict.fromkeys(analysis.suite for analysis in found))
    return Page(
        title=f"Cost of {and_list(suites)}" if len(suites) < _FEW else "Cost",
        kind="cost",
        facts=[
            f"{count(first.volume)} tasks a month",
            *(f"suite {name}" for name in suites),
            f"equal quality: within {significant(100 * first.tolerance)} {'point' if first.tolerance == 0.01 else 'points'}",
        ],
        verdict=front_sentence(first).rstrip("."),
        is_certain=bool(certain),
        reasons=[f"{opportunity.message}." for opportunity in certain[:_FEW]],
        sections=[section for analysis in found for section in cost_sections(analysis)],
        warnings=[Doubt("cost", text) for analysis in found for text in analysis.doubts],
    )


def cost_sections(analysis: CostAnalysis) -> list[PageSection]:
    """What an analysis shows, from the answer to the details."""
    chart = front_chart(analysis)
    name = f"{analysis.suite} · simulated" if analysis.is_simulated else analysis.suite
    return [
        PageSection(
            f"{name}: cost and quality",
            [_configurations(analysis), *([Charts([chart])] if chart else [])],
            analysis.category,
            front_sentence(analysis),
            list(_notes(analysis)),
            is_simulated=analysis.is_simulated,
        ),
        *_opportunities(analysis, name),
        *_months(analysis, name),
        *_prices(analysis, name),
        *_caches(analysis, name),
        *_by_benchmark(analysis, name),
    ]


def _configurations(analysis: CostAnalysis) -> Table:
    titles = [
        "Configuration",
        "Per task",
        "Per solved task",
        "Accuracy",
        "Performance/$",
        "Efficiency",
        "Front",
    ]
    rows = [_row(configuration) for configuration in analysis.configurations]
    return Table(titles, rows, words=(6,), minor=(4,))


def _row(configuration: ConfigurationCost) -> list[Cell]:
    whole = configuration.whole
    place = PLACES[configuration.place.status] if configuration.place else NOTHING
    return [
        Cell(configuration.name),
        _money(whole.cost_per_task, amount_text(whole.cost_per_task), "unknown"),
        _money(whole.cost_per_success, amount_text(whole.cost_per_success), "undefined"),
        _amount_cell(whole.accuracy, lambda amount: amount_text(amount, is_share=True)),
        Cell(number_text(Amount(whole.performance_per_dollar.value))),
        Cell(
            NOTHING if configuration.efficiency is None else f"{configuration.efficiency:.2f}",
            tone="good" if configuration.is_optimal and not configuration.undecided else "",
        ),
        Cell(place, tone=_TONES.get(place, "quiet")),
    ]


def _money(amount: Amount, text: str, missing: str) -> Cell:
    if amount.value is None:
        return Cell(missing, tone="quiet")
    return Cell("free") if amount.value == 0 else Cell(text, brief=amount_text(Amount(amount.value)))


def _amount_cell(amount: Amount, write: Callable[[Amount], str]) -> Cell:
    """Show an amount, with its interval if there is room for it."""
    return Cell(write(amount), brief=write(Amount(amount.value)))


def _notes(analysis: CostAnalysis) -> Iterator[str]:
    """What a reader needs to know of the table, from the data."""
    for configuration in analysis.configurations:
        if configuration.whole.cost_per_task.value is None:
            yield f"{configuration.name}: {configuration.whole.cost_per_task.reason}."
        elif configuration.whole.cost_per_success.value is None:
            yield f"{configuration.name}: cost per solved task is undefined, because {configuration.whole.cost_per_success.reason}."
    ties = {
        frozenset((configuration.name, other))
        for configuration in analysis.configurations
        if configuration.place
        for other in configuration.place.ties
    }
    if ties:
        pairs = [" and ".join(sorted(pair)) for pair in sorted(ties, key=sorted)]
        yield f"No significant difference in cost or quality: {'; '.join(pairs[:_FEW])}{' …' if len(pairs) > _FEW else ''}."
    open_ones = [configuration for configuration in analysis.configurations if configuration.undecided]
    for configuration in open_ones[:_FEW]:
        yield (
            f"{configuration.name}: {and_list([f'{name!r}' for name in configuration.undecided], _FEW)} may be as good for less; "
            "undecided, so not counted in the efficiency."
        )
    yield (
        "Efficiency: the lowest cost per solved task among the configurations that keep the quality, divided by this configuration's; above 0.8 is optimal."
    )


def _opportunities(analysis: CostAnalysis, name: str) -> Iterator[PageSection]:
    if not analysis.opportunities:
        return
    points = []
    for opportunity in analysis.opportunities:
        sentences = [opportunity.evidence, f"{opportunity.arithmetic}." if opportunity.arithmetic else ""]
        points.append(
            ListItem(
                " ".join(filter(None, sentences)),
                "good" if opportunity.is_certain else "unsure",
                opportunity.message,
            )
        )
    certain = sum(opportunity.is_certain for opportunity in analysis.opportunities)
    yield PageSection(
        f"{name}: ways to spend less",
        [Points(points)],
        f"{format_count(certain, 'certain saving')}, {format_count(len(points) - certain, 'idea')} to check",
    )


def _months(analysis: CostAnalysis, name: str) -> Iterator[PageSection]:
    """What the volume costs, what a configuration saves in place of another, and how far the budget goes."""
    priced = [
        configuration
        for configuration in analysis.configurations
        if configuration.per_month.value is not None
    ]
    if not any(configuration.per_month.value for configuration in priced):
        return
    titles = ["Configuration", "Per month", "Saves a month", "Instead of"]
    budget = next((configuration.budget for configuration in priced if configuration.budget), None)
    if budget is not None:
        titles += [f"Tasks for {usd(budget.usd)}", "Days it lasts", "Budget"]
    rows = []
    for configuration in priced:
        cells = [
            Cell(configuration.name),
            _money(configuration.per_month, amount_text(configuration.per_month), "unknown"),
        ]
        if configuration.saving is None:
            cells += [Cell(NOTHING, tone="quiet")] * 2
        else:
            cells += [
                _amount_cell(configuration.saving.per_month, amount_text),
                Cell(configuration.saving.instead_of),
            ]
        rows.append(cells + (_budget_cells(configuration) if budget is not None else []))
    yield PageSection(
        f"{name}: {count(analysis.volume)} tasks a month", [Table(titles, rows, words=(3, 6), minor=(3,))]
    )


def _budget_cells(configuration: ConfigurationCost) -> list[Cell]:
    if configuration.budget is None:
        return [Cell("no limit", tone="quiet"), Cell("no limit", tone="quiet"), Cell("lasts", tone="good")]
    return [
        _amount_cell(configuration.budget.tasks, number_text),
        _amount_cell(configuration.budget.days, number_text),
        Cell(
            {True: "lasts", False: "runs out", None: "undecided"}[configuration.budget.lasts],
            tone={True: "good", False: "bad", None: "warn"}[configuration.budget.lasts],
        ),
    ]


def _prices(analysis: CostAnalysis, name: str) -> Iterator[PageSection]:
    priced = [configuration for configuration in analysis.configurations if configuration.prices]
    if not priced:
        return
    rows = [
        [
            Cell(configuration.name),
            Cell(part_name(part)),
            Cell(price_text(part.name, part.price)),
            Cell(usd(part.per_task)),
            Cell(percent(part.share)),
            Cell(usd(part.at_half_less)),
            Cell(usd(part.at_half_more)),
        ]
        for configuration in priced
        for part in configuration.prices
    ]
    titles = ["Configuration", "Part", "Price", "Per task", "Share", "Task at −50 %", "Task at +50 %"]
    lines = [ListItem(sensitivity_text(configuration), title=configuration.name) for configuration in priced]
    blocks: list[Table | Points] = [Table(titles, rows, words=(1,), terminal=lines)]
    if turning := [ListItem(break_even_text(point)) for point in select_break_even(analysis, 5)]:
        blocks.append(Points(turning))
    yield PageSection(f"{name}: if prices change", blocks)


def _caches(analysis: CostAnalysis, name: str) -> Iterator[PageSection]:
    rows = [
        [
            Cell(configuration.name),
            Cell(percent(configuration.cache.cached_share)),
            Cell(usd(configuration.cache.saved * analysis.volume)),
            Cell(
                usd(configuration.cache.at_best_share * analysis.volume),
                note=f"at {percent(configuration.cache.best_share)}",
            ),
            Cell(usd(configuration.cache.at_most * analysis.volume)),
        ]
        for configuration in analysis.configurations
        if configuration.cache is not None
    ]
    if rows:
        titles = ["Configuration", "Cached input", "Saved a month", "More at the best share", "More at most"]
        yield PageSection(
            f"{name}: cached tokens",
            [Table(titles, rows)],
            notes=[
                "The best share is the highest among the configurations; at most: if all input were cached."
            ],
        )


def _by_benchmark(analysis: CostAnalysis, name: str) -> Iterator[PageSection]:
    """Show the costs by benchmark, if there are several; the terminal leaves this section out."""
    if (
        len(
            {benchmark for configuration in analysis.configurations for benchmark in configuration.benchmarks}
        )
        < 2
    ):
        return
    rows = [
        [
            Cell(configuration.name),
            Cell(benchmark),
            _money(cost.cost_per_task, amount_text(cost.cost_per_task), "unknown"),
            _money(cost.cost_per_success, amount_text(cost.cost_per_success), "undefined"),
            Cell(amount_text(cost.accuracy, is_share=True)),
            Cell(number_text(cost.performance_per_dollar)),
        ]
        for configuration in analysis.configurations
        for benchmark, cost in configuration.benchmarks.items()
    ]
    titles = [
        "Configuration",
        "Benchmark",
        "Cost per task",
        "Per solved task",
        "Accuracy",
        "Performance per $",
    ]
    yield PageSection(f"{name}: each benchmark", [Table(titles, rows, words=(1,))], is_detail=True)

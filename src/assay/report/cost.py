"""Figures and sentences of cost analyses, as the terminal, the pages and the charts show them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from assay.model.cost import Amount, BreakEven, ConfigurationCost, CostAnalysis, FrontStatus, PricePart
from assay.report.figures import NOTHING
from assay.units import and_list, format_signed, percent, significant, usd

_POINT = 1e-6
"""Costs are stored as 32-bit floats: an interval that is narrower, as a share of its end, is a point."""
_FAR = 5.0
"""Prices that would have to change sixfold are not worth a sentence."""
PLACES = {FrontStatus.FRONT: "front", FrontStatus.TIED: "tied", FrontStatus.DOMINATED: "off"}


def amount_text(amount: Amount, *, is_share: bool = False) -> str:
    """An amount of money or a share, with its interval where that is more than a point.

    >>> amount_text(Amount(0.00123, 0.001, 0.0015)), amount_text(Amount(0.9, 0.85, 0.94), is_share=True)
    ('$0.00123 [0.001, 0.0015]', '90 % [85, 94]')
    """
    if amount.value is None:
        return NOTHING
    show = percent if is_share else usd
    return f"{show(amount.value)}{_ends(amount, lambda end: show(end).strip('$ %'))}"


def number_text(amount: Amount) -> str:
    """A plain number with its interval."""
    return NOTHING if amount.value is None else f"{significant(amount.value)}{_ends(amount, significant)}"


def _ends(amount: Amount, show: Callable[[float], str]) -> str:
    """The interval in brackets; empty where there is none, or where it is a point."""
    if amount.low is None or amount.high is None or amount.high - amount.low <= _POINT * abs(amount.high):
        return ""
    return f" [{show(amount.low)}, {show(amount.high)}]"


def front_sentence(analysis: CostAnalysis) -> str:
    """Who is on the front, who ties, and who is dominated by whom."""
    placed = [configuration for configuration in analysis.configurations if configuration.place is not None]
    if len(placed) < 2:
        return ""
    by_status: dict[FrontStatus, list[ConfigurationCost]] = {status: [] for status in FrontStatus}
    for configuration in placed:
        assert configuration.place is not None
        by_status[configuration.place.status].append(configuration)
    front = [configuration.name for configuration in by_status[FrontStatus.FRONT]]
    parts = [
        f"{and_list(front, 6)} {'is' if len(front) == 1 else 'are'} on the Pareto front of cost and quality"
    ]
    if tied := [configuration.name for configuration in by_status[FrontStatus.TIED]]:
        parts.append(f"{and_list(tied, 6)} {'ties' if len(tied) == 1 else 'tie'} with the Pareto front")
    for configuration in by_status[FrontStatus.DOMINATED][:3]:
        assert configuration.place is not None
        parts.append(
            f"{configuration.name} is off it, dominated by {and_list(configuration.place.dominated_by, 3)}"
        )
    if (more := len(by_status[FrontStatus.DOMINATED]) - 3) > 0:
        parts.append(f"{more} more are off the front")
    return "; ".join(parts) + "."


def sensitivity_text(configuration: ConfigurationCost) -> str:
    """Which price matters most, and what half of it more or less makes of the cost of a task."""
    part = max(configuration.prices, key=lambda part: part.share)
    which = "its total cost" if part.name == "all" else f"the price of {part_name(part)}"
    share = "" if part.name == "all" else f" ({percent(part.share)} of the cost)"
    return f"if {which}{share} changes by ± 50 %, a task costs {usd(part.at_half_less)} to {usd(part.at_half_more)}"


def part_name(part: PricePart | BreakEven) -> str:
    name = part.name if isinstance(part, PricePart) else part.part
    return {
        "input": "input tokens",
        "cached": "cached tokens",
        "output": "output tokens",
        "request": "requests",
        "all": "whole answers",
    }[name]


def price_text(part: str, price: float | None) -> str:
    """
    >>> price_text("input", 2.5), price_text("request", 0.01), price_text("all", None)
    ('$2.50 per million', '$0.01 per request', '–')
    """
    if price is None:
        return NOTHING
    return f"{usd(price)} per {'request' if part == 'request' else 'million'}"


def break_even_text(point: BreakEven) -> str:
    """One sentence on where the cheaper one changes."""
    moved = f"{format_signed(100 * point.change)} %"
    at = (
        ""
        if point.break_even is None
        else f", from {price_text(point.part, point.price)} to {usd(point.break_even)}"
    )
    return f"'{point.configuration}' costs as much per solved task as '{point.other}' if {'its total cost' if point.part == 'all' else f'its price of {part_name(point)}'} changes by {moved}{at}."


def select_break_even(analysis: CostAnalysis, limit: int) -> Iterator[BreakEven]:
    """Select the break-even points that need the smallest change, for a short list; the JSON document has all."""
    near = [point for point in analysis.break_even if abs(point.change) <= _FAR]
    yield from sorted(near, key=lambda point: abs(point.change))[:limit]

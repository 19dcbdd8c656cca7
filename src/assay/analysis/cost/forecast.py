"""What a volume costs in a month, and how far a budget goes."""

from __future__ import annotations

import math

import numpy as np

from assay.analysis.cost.estimates import Floats
from assay.model.cost import Amount, BudgetForecast
from assay.stats.means import t_quantile

DAYS = 30
"""Of a month."""
_ROUNDING = 1e-9
"""A budget for exactly a month may miss it by the last digit."""


def forecast_month(usd: Floats, volume: int) -> Amount:
    """The cost of so many tasks. The interval is one of prediction: for the mean, and for which tasks will come.

    With n cases of standard deviation s it is volume × mean ± t · s · √(volume + volume² ÷ n).
    """
    known = usd[~np.isnan(usd)]
    if not known.size:
        return Amount(None, reason="the cost is unknown")
    value = volume * float(known.mean())
    if known.size < 2:
        return Amount(value, reason="one case has no interval")
    spread = math.sqrt(volume + volume**2 / known.size) * float(known.std(ddof=1))
    half = t_quantile(0.975, known.size - 1) * spread
    return Amount(value, max(0.0, value - half), value + half)


def forecast_budget(usd: Floats, budget: float, volume: int) -> BudgetForecast | None:
    """How many tasks a budget pays for, and for how many days; None where the cost is unknown or nothing.

    The ends are the numbers of tasks m at which the budget is an end of the prediction interval of m tasks:
    (budget − m·c)² = t²s²(m + m² ÷ n), a quadratic equation in m.
    """
    known = usd[~np.isnan(usd)]
    mean = float(known.mean()) if known.size else 0.0
    if not mean:
        return None
    tasks = Amount(budget / mean, reason="one case has no interval")
    if known.size > 1:
        reach = (t_quantile(0.975, known.size - 1) * float(known.std(ddof=1))) ** 2
        square, linear = mean**2 - reach / known.size, 2 * budget * mean + reach
        root = math.sqrt(max(0.0, linear**2 - 4 * square * budget**2))
        low = 2 * budget**2 / (linear + root)
        high = (linear + root) / (2 * square) if square > 0 else None
        tasks = Amount(budget / mean, low, high)
    days = tasks.scaled(DAYS / volume)
    lasts = None
    if days.low is not None and days.low >= DAYS * (1 - _ROUNDING):
        lasts = True
    elif days.high is not None and days.high < DAYS * (1 - _ROUNDING):
        lasts = False
    return BudgetForecast(budget, tasks, days, lasts)

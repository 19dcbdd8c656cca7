"""Configurations of known cost and skill, as the store would hand them to the analysis."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from itertools import starmap

import numpy as np
from tests.ratings.tables import Row, ok, rated

from assay.analysis.comparison.policy import Tolerances
from assay.analysis.cost.analyse import Workload, analyse_costs
from assay.analysis.cost.estimates import CostSubject, Floats
from assay.model import Rating, Ratings
from assay.model.cost import ConfigurationCost, CostAnalysis

REFERENCE = {"seconds": 1.0, "usd": 0.01}


def subject(
    name: str,
    rows: Sequence[Row],
    *,
    agent: str = "",
    prices: Mapping[str, float] | None = None,
    benchmark: str = "b",
) -> CostSubject:
    """One trial of a configuration."""
    return CostSubject(
        name, agent or name, "1", {(benchmark, "hash"): rated(rows, REFERENCE)}, prices or {}, "price"
    )


def planted(
    name: str,
    usd: float | Callable[[int], float],
    solved: Callable[[int], bool] = lambda case: True,
    *,
    cases: int = 40,
    repetitions: int = 3,
    agent: str = "",
) -> CostSubject:
    """Every case costs `usd` and is always solved or never; answers take a second, the reference."""
    rows = [
        ok(f"c{case}", float(solved(case)), seconds=1.0, usd=usd(case) if callable(usd) else usd)
        for _ in range(repetitions)
        for case in range(cases)
    ]
    return subject(name, rows, agent=agent)


def drawn(name: str, usd: Floats, score: Floats) -> CostSubject:
    """Figures of cases as they are stored, without the executions behind them: quick to make by the hundred."""
    kept = {
        figure: array("f", values.astype(np.float32).tobytes())
        for figure, values in (("usd", usd), ("score", score), ("solved", score))
    }
    names = tuple(f"c{case}" for case in range(len(usd)))
    made = Ratings({}, Rating("overall", None), {}, 0, len(usd), 0.0, names=names, case_figures=kept)
    return CostSubject(name, name, "1", {("b", "hash"): made})


def billed(name: str, tokens: Sequence[tuple[int, int, int]], prices: Mapping[str, float]) -> CostSubject:
    """A case for each triple of input, cached and output tokens, at these prices per million."""

    def row(given: int, cached: int, output: int) -> Mapping[str, float]:
        usd = (
            (given - cached) * prices["input"]
            + cached * prices.get("cached", prices["input"])
            + output * prices["output"]
        ) / 1e6
        return {"usd": usd, "input_tokens": given, "cached_tokens": cached, "output_tokens": output}

    measured = list(starmap(row, tokens))
    rows = [ok(f"c{n}", seconds=1.0, **one) for n, one in enumerate(measured)]
    return subject(name, rows, prices=prices)


def analysis(
    *subjects: CostSubject, volume: int = 1000, budget: float | None = None, tolerance: float | None = None
) -> CostAnalysis:
    tolerances = Tolerances(of_metric={} if tolerance is None else {"score": tolerance})
    return analyse_costs("s", "cost", False, subjects, Workload(volume, budget, tolerances))


def found(made: CostAnalysis, name: str) -> ConfigurationCost:
    return next(one for one in made.configurations if one.name == name)

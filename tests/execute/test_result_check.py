from __future__ import annotations

import math

import pytest

from assay.execute.runner import check_figures
from assay.model import Batch, Execution, Phase, Status


def execution(**measurements: float) -> Execution:
    return Execution(0, 0, Phase.MEASURED, 0, Status.OK, 1.0, measurements)


@pytest.mark.parametrize(
    "figure", [{"seconds": -2129.0}, {"own": math.nan}, {"usd": -1.0}, {"own": math.inf}]
)
def test_an_execution_with_a_figure_that_cannot_be_is_invalid_and_loses_it(figure: dict[str, float]) -> None:
    [checked] = check_figures(Batch((execution(**figure, tokens=3.0),))).executions
    assert checked.status is Status.INVALID_OUTPUT
    assert checked.measurements == {"tokens": 3.0}
    assert next(iter(figure)) in (checked.error or "")


def test_metrics_of_an_experiment_may_be_negative() -> None:
    batch = Batch((execution(seconds=0.0, drift=-3.0),))
    assert check_figures(batch) is batch

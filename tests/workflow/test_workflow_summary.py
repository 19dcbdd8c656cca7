"""What the runs of several models show together follows from their data."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.wording import Wording
from tests.workflow.plans import build_workflow_trials

from assay.builtin.findings.workflow import WorkflowResults
from assay.builtin.findings.workflow_charts import build_charts
from assay.builtin.findings.workflow_summary import ModelSummary, describe_lead, find_best, summarise_models
from assay.model import Status
from assay.model.codec import to_json


def summaries() -> tuple[ModelSummary, ...]:
    return summarise_models(build_workflow_trials())


def model(name: str, ok: int, runs: int, *, simulated: bool = False) -> ModelSummary:
    first = summaries()[0]
    execution = first.executions[0]
    made = [replace(execution, status=Status.OK if n < ok else Status.FAILED) for n in range(runs)]
    applied = {"simulated": True} if simulated else {}
    return ModelSummary(name, replace(first.trial, applied=applied), tuple(made))


@pytest.mark.parametrize(
    ("counts", "tone"),
    [
        ({"a": (10, 10), "b": (1, 10)}, "good"),
        ({"a": (10, 10), "b": (9, 10), "c": (0, 10)}, "good"),
        ({"a": (3, 3), "b": (1, 3)}, "warn"),
        ({"a": (3, 3), "b": (3, 3)}, "good"),
        ({"a": (0, 3), "b": (0, 3)}, "bad"),
        ({"a": (2, 3)}, "warn"),
    ],
)
def test_a_lead_is_claimed_only_where_the_runs_prove_it(
    counts: dict[str, tuple[int, int]], tone: str, wording: Wording
) -> None:
    sentence, found = describe_lead([model(name, ok, runs) for name, (ok, runs) in counts.items()])

    assert found == tone
    wording(sentence)


def test_simulated_models_are_not_ranked_with_measured_ones() -> None:
    measured, simulated = model("real", 2, 4), model("made_up", 4, 4, simulated=True)

    assert find_best([measured, simulated])["best_success_rate"]["model"] == "real"
    assert find_best([simulated])["best_success_rate"]["model"] == "made_up"


def test_simulated_models_are_not_drawn_against_measured_ones() -> None:
    real, made_up = model("real", 4, 4), model("made_up", 4, 4, simulated=True)
    quick = replace(
        made_up,
        executions=tuple(
            replace(one, measurements={**one.measurements, "seconds": 0.001, "run_seconds": 0.001})
            for one in made_up.executions
        ),
    )
    charts = {chart.name: to_json(chart.spec) for chart in build_charts([real, quick])}
    own, others = charts["model_comparison"], charts["model_comparison_simulated"]
    assert "made_up" not in own
    assert '"real"' not in others
    # Alone among its like, a model is the best of them: nothing pulls its corners to the centre.
    assert own == {chart.name: to_json(chart.spec) for chart in build_charts([real])}["model_comparison"]
    assert "model_comparison" in {chart.name for chart in build_charts([quick])}


def test_a_model_without_a_plan_has_no_duration_and_not_one_of_zero() -> None:
    steady, hasty = (summary.document() for summary in summaries())

    assert (steady["success_rate"], hasty["success_rate"]) == (1.0, pytest.approx(2 / 3))
    assert hasty["avg_duration"] == pytest.approx((1.5 + 2.5) / 2)
    assert hasty["failures"] == {"plan: not_json": 1}
    assert (hasty["plan_valid"], hasty["plan_f1"]) == (pytest.approx(2 / 3), pytest.approx(0.8))
    assert steady["memory_usage"] == 20.0


def test_a_model_that_does_not_tell_its_name_gets_a_warning() -> None:
    trials = [replace(trial, applied={}) for trial in build_workflow_trials()]
    finding = WorkflowResults.read(trials)

    assert finding is not None
    assert [doubt.code for doubt in finding.doubts()] == ["model_unknown"]

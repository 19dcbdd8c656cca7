"""The document of any results is valid JSON, and its figures agree with each other."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cost.subjects import analysis, subject
from tests.ratings.tables import Row

from assay.report.documents.cost import cost_document
from assay.report.pages.cost import cost_page
from assay.report.pages.page import page_markdown

AMOUNTS = st.none() | st.sampled_from([0.0, 1e-9, 0.002, 5.0, 1e9])


@st.composite
def executions(draw: st.DrawFn) -> list[Row]:
    rows: list[Row] = []
    for case in range(draw(st.integers(1, 8))):
        status = draw(st.sampled_from(["ok", "ok", "ok", "failed", "timeout", "harness_error"]))
        figures = {
            "usd": draw(AMOUNTS),
            "score": draw(st.none() | st.sampled_from([0.0, 0.4, 1.0])),
            "input_tokens": draw(st.none() | st.integers(0, 10**6)),
            "output_tokens": draw(st.none() | st.integers(0, 10**6)),
            "cached_tokens": draw(st.none() | st.integers(0, 10**6)),
        }
        known = {name: float(value) for name, value in figures.items() if value is not None}
        rows.append((f"c{case}", status, known | ({"seconds": 0.5} if status == "ok" else {})))
    return rows


@settings(max_examples=40)
@given(st.lists(executions(), min_size=1, max_size=3))
def test_any_results_give_a_document_and_a_page(trials: list[list[Row]]) -> None:
    prices = {"input": 2.0, "cached": 0.5, "output": 10.0}
    made = analysis(*(subject(f"a{n}", rows, prices=prices) for n, rows in enumerate(trials)), budget=3.0)
    document = json.loads(json.dumps(cost_document([made]), allow_nan=False))
    [suite] = document["suites"]
    for one in suite["configurations"]:
        for figure in (
            "cost_per_task",
            "cost_per_success",
            "accuracy",
            "performance_per_dollar",
            "per_month",
        ):
            amount = one[figure]
            if amount["value"] is None:
                assert amount["reason"]
            elif amount["low"] is not None and amount["high"] is not None:
                assert amount["low"] <= amount["value"] * (1 + 1e-9)
                assert amount["value"] <= amount["high"] * (1 + 1e-9)
        assert one["efficiency"] is None or 0 <= one["efficiency"] <= 1
    placed = {*suite["pareto_front"], *suite["dominated"]}
    assert placed.isdisjoint(suite["unknown_cost"])
    assert page_markdown(cost_page([made]))

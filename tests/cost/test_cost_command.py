"""`assay cost` from stored runs to the terminal, the JSON document and the page."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.command import AssayInline, Prepare
from tests.cost.subjects import analysis, planted
from tests.past import Past, suite_of
from tests.suites.project import numbers, suite
from tests.wording import Wording

from assay.analysis.cost.analyse import Workload
from assay.model import AgentUse, Plan, Suite, Usage
from assay.pipeline.cost import analyse_stored_costs
from assay.pipeline.ratings import rate_trials
from assay.plugin.prices import by_list
from assay.report.charts.cost import front_chart
from assay.store.standings import Filter
from assay.store.store import Store


@pytest.fixture
def store(assay_inline: AssayInline) -> Iterator[Store]:
    """The database that the command reads."""
    folder = assay_inline.folder / ".assay"
    folder.mkdir()
    with Store.open(f"sqlite:///{folder / 'assay.db'}") as opened:
        yield opened


def plant(store: Store, agent: str, number: int, **figures: Any) -> None:
    """A finished and rated run of an agent."""
    chosen = figures.pop("suite", suite_of("refunds"))
    past = Past(store, agent, suite=chosen, made=number * 10)
    rate_trials(store, past.run(**figures), chosen)


def test_the_document_has_the_keys_of_the_specification_and_exact_figures(
    store: Store, assay_inline: AssayInline
) -> None:
    plant(store, "cheap", 1, usd=0.001, wrong=6)
    plant(store, "dear", 2, usd=0.004, wrong=6)
    document = assay_inline("cost", "--json", "--volume", "20000").json
    assert document["cost_per_task"] == {"cheap": {"refunds": 0.001}, "dear": {"refunds": 0.004}}
    assert document["cost_per_success"]["dear"]["refunds"] == pytest.approx(0.004 / 0.8)
    optimal = document["optimal_configurations"]
    assert [(one["configuration"], one["efficiency_score"]) for one in optimal] == [("cheap", 1.0)]
    assert optimal[0]["estimated_savings"] == pytest.approx(60.0)
    [switch] = document["cost_optimization_opportunities"]
    assert (switch["code"], switch["configuration"]) == ("switch", "dear")
    [made] = document["suites"]
    assert (made["suite"], made["pareto_front"], made["dominated"]) == ("desk", ["cheap"], ["dear"])
    speed = made["configurations"][0]["speed"]["value"]
    assert document["performance_per_dollar"]["cheap"]["refunds"] == pytest.approx(0.8 * speed / 0.001)


def test_the_terminal_shows_figures_savings_and_the_next_command(
    store: Store, assay_inline: AssayInline, wording: Wording
) -> None:
    plant(store, "cheap", 1, usd=0.001)
    plant(store, "dear", 2, usd=0.004)
    plant(store, "secretive", 3)
    done = assay_inline("cost", "--budget", "2", COLUMNS="150")
    assert done.code == 0
    for text in ("secretive", "unknown", "$0.004", "500 "):
        assert text in done.out
    assert "assay compare dear cheap --suite desk" in done.err
    wording("\n".join(line.rstrip() for line in done.out.splitlines()))


def test_simulated_agents_are_analysed_apart(store: Store, assay_inline: AssayInline) -> None:
    plant(store, "real", 1, usd=0.004)
    plant(store, "dream", 2, usd=0.001, simulated=True)
    document = assay_inline("cost", "--json").json
    assert [
        (made["simulated"], [one["configuration"] for one in made["configurations"]])
        for made in document["suites"]
    ] == [(False, ["real"]), (True, ["dream"])]
    assert document["cost_optimization_opportunities"] == []
    assert {one["configuration"]: one["simulated"] for one in document["optimal_configurations"]} == {
        "real": False,
        "dream": True,
    }


def test_each_suite_has_its_own_analysis(store: Store, assay_inline: AssayInline) -> None:
    plant(store, "a", 1, usd=0.001)
    plant(store, "a", 2, usd=0.002, suite=suite_of("orders", name="shop", hash="s2"))
    document = assay_inline("cost", "--json").json
    assert document["cost_per_task"] == {"a": {"shop/orders": 0.002, "desk/refunds": 0.001}}
    assert [made["suite"] for made in document["suites"]] == ["shop", "desk"]
    one = assay_inline("cost", "--json", "--suite", "shop").json
    assert one["cost_per_task"] == {"a": {"orders": 0.002}}


def test_results_of_an_older_definition_are_left_out_and_said(
    store: Store, assay_inline: AssayInline
) -> None:
    plant(store, "old", 1, usd=0.001)
    plant(store, "new", 2, usd=0.002, suite=suite_of("refunds", hash="s2"))
    document = assay_inline("cost", "--json").json
    assert list(document["cost_per_task"]) == ["new"]
    assert len(document["suites"][0]["warnings"]) == 1
    assert "old" in document["suites"][0]["warnings"][0]


def test_no_execution_is_read(store: Store, assay_inline: AssayInline) -> None:
    plant(store, "a", 1, usd=0.001)
    with sqlite3.connect(assay_inline.folder / ".assay" / "assay.db") as database:
        database.execute("DELETE FROM measurements")
        database.execute("DELETE FROM executions")
    assert assay_inline("cost", "--json").json["cost_per_task"] == {"a": {"refunds": 0.001}}


class ListedPast(Past):
    """Runs of a model on the public price list."""

    def _plan(self, suite: Suite, version: str) -> Plan:
        plan = super()._plan(suite, version)
        use = AgentUse(self.agent, "openai", {"model": "gpt-4o-mini"}, version)
        return replace(plan, trials=tuple(replace(trial, agent_use=use) for trial in plan.trials))


def test_a_cost_by_the_public_list_is_split_by_its_prices(store: Store) -> None:
    usd = by_list("gpt-4o-mini", "openai", Usage(1000, 200, cached_tokens=600))
    assert usd is not None
    tokens = {"usd": usd, "input_tokens": 1000.0, "output_tokens": 200.0, "cached_tokens": 600.0}
    past = ListedPast(store, "mini")
    rate_trials(store, past.run(more=tokens), past.suite)
    [made] = analyse_stored_costs(store, [], None, Workload(1000))
    [mini] = made.configurations
    assert mini.price_source == "list"
    assert [part.name for part in mini.prices] == ["input", "cached", "output"]
    assert sum(part.per_task for part in mini.prices) == pytest.approx(usd)
    assert mini.cache is not None
    assert mini.cache.cached_share == 0.6


def test_ratings_of_an_older_version_are_completed_once(store: Store) -> None:
    plant(store, "a", 1, usd=0.001)
    [entry] = store.entries(Filter())
    kept = store.ratings([entry.trial_id])[entry.trial_id]
    store.rate(entry.trial_id, replace(kept, usage=None, case_figures={}))
    [made] = analyse_stored_costs(store, [], None, Workload(1000))
    assert made.configurations[0].whole.cost_per_task.value == 0.001
    assert store.ratings([entry.trial_id])[entry.trial_id].usage == kept.usage


@pytest.mark.parametrize(
    "arguments",
    [
        ["cheep"],
        ["--suite", "dask"],
        ["--volume", "0"],
        ["--volume", "-5"],
        ["--budget", "0"],
        ["--tolerance", "x"],
        ["--sweep", "agent.n=1,2"],
        ["cheap", "--sweep", "agent.n", "--suite", "desk"],
    ],
)
def test_what_cannot_be_asked_is_refused(
    store: Store, assay_inline: AssayInline, wording: Wording, arguments: list[str]
) -> None:
    plant(store, "cheap", 1, usd=0.001)
    wording(assay_inline("cost", *arguments).refusal)


def test_an_empty_store_says_how_to_fill_it(assay_inline: AssayInline, wording: Wording) -> None:
    wording(assay_inline("cost").refusal)


AGENTS = [
    {"name": "lean", "type": "simulated", "quality": 1.0, "seconds": 0.0, "usd": 0.002},
    {"name": "local", "type": "oracle"},
]


def sweep(assay: AssayInline) -> None:
    assay.write("desk.yaml", suite(numbers(8), AGENTS))


def test_a_sweep_is_run_first_and_its_points_are_compared(
    assay_inline: AssayInline, prepare: Prepare
) -> None:
    prepare(assay_inline, sweep)
    document = assay_inline(
        "cost", "lean", "--suite", "desk.yaml", "--sweep", "agent.usd=0.001,0.004", "--json"
    ).json
    [made] = document["suites"]
    costs = {one["configuration"]: one["cost_per_task"]["value"] for one in made["configurations"]}
    assert sorted(costs.values()) == [0.001, 0.004]
    cheap, dear = sorted(costs, key=costs.__getitem__)
    assert (made["pareto_front"], made["dominated"], made["simulated"]) == ([cheap], [dear], True)
    [best] = document["optimal_configurations"]
    assert (best["configuration"], best["instead_of"]) == (cheap, dear)
    assert best["estimated_savings"] == pytest.approx(3.0)


def test_the_page_has_the_chart_and_every_section(
    store: Store, assay_inline: AssayInline, tmp_path: Path
) -> None:
    plant(store, "cheap", 1, usd=0.001, wrong=10)
    plant(store, "<b>dear</b>", 2, usd=0.004)
    done = assay_inline("cost", "--format", "html,md", "--out", "pages", "--json")
    assert [Path(name).name for name in done.json["files"]] == ["cost.html", "cost.md"]
    html = (tmp_path / "pages" / "cost.html").read_text()
    assert 'data-chart="c0"' in html
    assert 'id="specs"' in html
    assert "<b>dear</b>" not in html
    markdown = (tmp_path / "pages" / "cost.md").read_text()
    assert markdown.count("\n## ") == 4
    assert "cheap" in markdown


def test_the_chart_holds_the_front_and_its_intervals() -> None:
    made = analysis(
        planted("bad", 0.001, lambda case: case < 10), planted("good", 0.004), planted("dear", 0.009)
    )
    chart = front_chart(made)
    assert chart is not None
    line, across, *_ = chart.spec["layer"]
    assert [row["trial"] for row in line["data"]["values"]] == ["bad", "good"]
    status = {row["trial"]: row["status"] for row in across["data"]["values"]}
    assert status == {"bad": "on the front", "good": "on the front", "dear": "off the front"}
    json.dumps(chart.spec, allow_nan=False)


def test_of_too_many_configurations_the_chart_draws_those_on_the_front(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("assay.report.charts.cost._DRAWN", 2)
    made = analysis(
        planted("dear", 0.009), planted("bad", 0.001, lambda case: case < 10), planted("good", 0.004)
    )
    chart = front_chart(made)
    assert chart is not None
    drawn = {row["trial"] for layer in chart.spec["layer"] for row in layer["data"]["values"]}
    assert drawn == {"bad", "good"}
    assert "2 of 3" in json.dumps(chart.spec["title"])

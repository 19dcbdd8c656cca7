"""Two loads beside each other: each repetition is a unit, and the address of a server is no setting."""

from __future__ import annotations

import contextlib
import io
import json
import random
import subprocess
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tests.command import COMMAND, AssayInline
from tests.load.results import result, times
from tests.wording import Wording

from assay.errors import PlanError, Unlike
from assay.load.build import LoadOptions
from assay.model import Artifact, Batch, Environment, RunState
from assay.model.figure import Figure
from assay.model.run import SEARCH_COMPLETE
from assay.pipeline.compare import compare_refs
from assay.pipeline.gate import gate_refs
from assay.pipeline.load_record import execution_of, plan_load
from assay.pipeline.report import report_of
from assay.pipeline.rerun import rerun_gate
from assay.report.console.run import print_unrated
from assay.report.stored_loads import read_stored_loads
from assay.spec.settings import find_settings
from assay.store.store import Store

METRICS = {
    "throughput_rps",
    "output_tokens_per_s",
    "error_rate",
    "ttft_p50_seconds",
    "ttft_p95_seconds",
    "latency_p50_seconds",
    "latency_p95_seconds",
}


@pytest.fixture
def store() -> Iterator[Store]:
    with Store.open("sqlite://") as opened:
        yield opened


def stored_load(
    store: Store, run: str, port: int, ttft: float, *, n: int = 6, seed: int, levels: Sequence[int] = ()
) -> str:
    """A run of `assay load` whose times vary by one percent from one repetition to the next."""
    draw = random.Random(seed)
    options = LoadOptions(f"http://127.0.0.1:{port}/v1", model="m", concurrency=4, duration="2")
    plan = plan_load(options, find_settings(Path.cwd()), n, (), levels)
    store.begin(plan, Environment({}), run, datetime.now(UTC), "a test")
    for repetition in range(n):
        for trial in range(len(plan.trials)):
            off = 1 + draw.gauss(0, 0.01)
            latency = (ttft + 0.1) * off
            found = result(
                throughput=Figure(4 / latency),
                times={"ttft": times(ttft * off), "latency": times(latency)},
                is_simulated=True,
            )
            store.add(run, Batch((execution_of(found, trial, repetition, 0.0),)))
    store.finish(run, RunState.COMPLETED, datetime.now(UTC))
    return run


def verdicts(comparisons: Sequence[Any]) -> dict[str, str]:
    return {one.metric.name: one.verdict.value for one in comparisons if one.verdict is not None}


def test_a_repetition_of_a_load_is_a_unit_of_comparison(store: Store) -> None:
    a = stored_load(store, "a", 9401, 0.100, seed=1)
    b = stored_load(store, "b", 9402, 0.150, seed=2)
    found = compare_refs(store, a, b)
    told = verdicts(found.comparisons)
    assert set(told) == METRICS
    assert told.pop("error_rate") == "same"
    assert told.pop("output_tokens_per_s") == "same"
    assert set(told.values()) == {"worse"}
    assert {one.units_a for one in found.comparisons} == {6}


def test_loads_of_equal_servers_are_never_told_apart(store: Store) -> None:
    a = stored_load(store, "a", 9401, 0.100, seed=3)
    for seed in range(10, 22):
        b = stored_load(store, f"b{seed}", 9402, 0.100, seed=seed)
        assert set(verdicts(compare_refs(store, a, b).comparisons).values()) <= {"same", "unsure"}


def test_an_address_is_no_setting_that_has_to_be_read_back(store: Store) -> None:
    found = compare_refs(
        store, stored_load(store, "a", 9401, 0.1, seed=1), stored_load(store, "b", 9402, 0.1, seed=2)
    )
    assert not any("identical" in one.reason for one in found.comparisons)
    assert not any(doubt.code in ("params", "unmatched") for doubt in found.doubts)


def test_one_load_a_side_is_unsure_and_says_what_to_do(store: Store) -> None:
    a = stored_load(store, "a", 9401, 0.1, n=1, seed=1)
    b = stored_load(store, "b", 9402, 0.2, n=1, seed=2)
    judged = [one for one in compare_refs(store, a, b).comparisons if one.verdict is not None]
    assert {one.verdict.value for one in judged if one.verdict and one.value_a != one.value_b} == {"unsure"}
    assert all("--repetitions 6" in one.reason for one in judged if one.verdict == "unsure")


def test_a_gate_matches_a_load_whatever_the_port(store: Store) -> None:
    stored_load(store, "a", 9401, 0.100, seed=1, levels=(1, 8))
    stored_load(store, "b", 9555, 0.150, seed=2, levels=(8, 1))
    store.set_baseline("main", "a")
    found = gate_refs(store, "b", "main")
    assert verdicts(found.comparisons)["ttft_p50_seconds"] == "worse"
    assert not found.missing.trials
    pairs = {(one.trial_a.rpartition(" ")[2], one.trial_b.rpartition(" ")[2]) for one in found.comparisons}
    assert pairs == {("concurrency=1", "concurrency=1"), ("concurrency=8", "concurrency=8")}


def test_loads_that_asked_something_else_are_not_held_against_each_other(store: Store) -> None:
    stored_load(store, "a", 9401, 0.1, seed=1, levels=(1, 8))
    stored_load(store, "b", 9401, 0.1, seed=1, levels=(2, 4))
    assert compare_refs(store, "a", "b").comparisons == ()


@contextlib.contextmanager
def simulated(ttft: str) -> Iterator[str]:
    command = [
        str(COMMAND),
        "sim-llm",
        "--port",
        "0",
        "--json",
        "--ttft",
        ttft,
        "--itl",
        "10ms",
        "--tokens",
        "6",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["url"] + "/v1"
        finally:
            process.kill()


@pytest.mark.slow
def test_two_servers_on_two_ports_are_told_apart_by_their_first_token(assay_inline: AssayInline) -> None:
    def measured(url: str) -> str:
        asked = ("--model", "m", "--concurrency", "2", "--duration", "1", "--repetitions", "6", "--json")
        run: str = assay_inline("load", url, *asked).json["run"]
        return run

    with simulated("100ms") as first, simulated("200ms") as second:
        a, again, b = measured(first), measured(first), measured(second)
    told = {
        one["metric"]: one["verdict"] for one in assay_inline("compare", a, b, "--json").json["comparisons"]
    }
    assert told["ttft_p50_seconds"] == told["latency_p50_seconds"] == "worse"
    assert told["throughput_rps"] == "worse"
    same = assay_inline("compare", a, again, "--json").json["comparisons"]
    assert {one["verdict"] for one in same} <= {"same", "unsure", None}
    assay_inline("baseline", "set", "main", a)
    assert assay_inline("gate", b, "--baseline", "main").code == 1
    assert assay_inline("gate", again, "--baseline", "main").code == 0


def begun_loads(store: Store, run: str, repetitions: int, tags: tuple[str, ...] = ()) -> str:
    """A run of `assay load` with loads of 1, 2 and 4 in flight."""
    options = LoadOptions("http://127.0.0.1:9401/v1", model="m")
    plan = plan_load(options, find_settings(Path.cwd()), repetitions, tags)
    store.begin(plan, Environment({}), run, datetime.now(UTC), "a test")
    for step, concurrency in enumerate((0.998, 1.99, 3.97)):
        found = result(concurrency=concurrency, offered_rate=None)
        store.add(run, Batch((execution_of(found, 0, step, 0.0),)))
    return run


def stored_search(store: Store, run: str, interval: Sequence[float | None]) -> str:
    """A run of `assay load --find-capacity` that found its answer."""
    begun_loads(store, run, 200, ("capacity",))
    answer = {
        "sustained_rate": 100.0,
        "sustained_interval": list(interval),
        "breaking_rate": 120.0,
        "cause": "saturation",
        "why": "work piled up",
        "confirmed": True,
        "knee_concurrency": 4,
        "highest_throughput_rps": 101.0,
        "simulated": False,
        "warnings": [],
        "steps": [{"concurrency": concurrency} for concurrency in (1, 2, 4)],
    }
    artifact = Artifact(0, "capacity.json", "application/json", json.dumps(answer).encode())
    store.add(run, Batch(artifacts=(artifact,), stopped={0: SEARCH_COMPLETE}))
    store.finish(run, RunState.COMPLETED, datetime.now(UTC))
    return run


@pytest.mark.parametrize(
    "interval", [(95, 105), (120, 130), (95, None)], ids=["overlapping", "higher", "without_an_end"]
)
def test_capacity_searches_are_compared_by_their_rates_and_not_by_their_steps(
    store: Store, interval: tuple[float | None, ...], wording: Wording
) -> None:
    a, b = stored_search(store, "a", (90, 110)), stored_search(store, "b", interval)
    with pytest.raises(Unlike, match="--rate 90 --repetitions 6") as refused:
        compare_refs(store, a, b)
    wording(refused.value)
    store.set_baseline("main", a)
    with pytest.raises(Unlike):
        gate_refs(store, b, "main")


def test_a_load_is_not_compared_with_a_capacity_search(store: Store, wording: Wording) -> None:
    a, b = stored_load(store, "a", 9401, 0.1, seed=1), stored_search(store, "b", (90, 110))
    with pytest.raises(Unlike, match="'b'") as refused:
        compare_refs(store, a, b)
    wording(refused.value)


def test_steps_of_a_search_are_named_by_the_concurrency_that_was_asked_for(
    store: Store, wording: Wording
) -> None:
    labels = [
        load.label
        for load in read_stored_loads(report_of(store, stored_search(store, "a", (90, 110))).trials)
    ]
    assert [label.split()[:2] for label in labels] == [["1:", "1"], ["2:", "2"], ["3:", "4"]]
    wording("\n".join(labels))


def test_a_search_is_shown_without_a_median_of_its_steps(store: Store) -> None:
    report = report_of(store, stored_search(store, "a", (90, 110)))
    console = Console(record=True, width=120, file=io.StringIO())
    print_unrated(report, console)
    shown = console.export_text()
    assert "3: 4 " in shown
    assert "throughput_rps" not in shown
    assert "Only " not in shown


def test_a_search_is_one_before_it_is_finished_and_a_load_with_its_tag_is_none(store: Store) -> None:
    unfinished = begun_loads(store, "unfinished", 200, ("capacity",))
    tagged, plain = begun_loads(store, "tagged", 3, ("capacity",)), begun_loads(store, "plain", 3)
    searched = stored_search(store, "searched", (90, 110))
    runs = [store.run(run) for run in (unfinished, searched, tagged, plain)]
    assert [run.is_capacity_search for run in runs] == [True, True, False, False]
    with pytest.raises(Unlike):
        compare_refs(store, plain, unfinished)
    assert compare_refs(store, plain, tagged).comparisons


def test_loads_are_not_run_again_by_a_gate(store: Store) -> None:
    run = begun_loads(store, "load", 3)
    store.set_baseline("main", run)
    with pytest.raises(PlanError, match="load"):
        rerun_gate(store, run, "main", lambda *_: pytest.fail("judged"), lambda _: pytest.fail("ran"))

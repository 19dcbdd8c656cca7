"""What the driver of a run costs for each case and each batch, and whether the simulator predicts runs from that.

Measured with the local executor and PostgreSQL: the rate of trivial cases gives the cost of a case, batches of different sizes
through the store that of a batch. The prediction is held against runs whose cases wait.
"""

from __future__ import annotations

import json
from pathlib import Path
from time import perf_counter

from arms import ASSAY, SUBJECTS, Ended, ended, fresh_folder, tell
from record import Bound, Promise, Result, figure

from assay.store.store import Store
from scale.rows import TIMINGS, begin_run, build_batches, make_database, postgres
from scale.simulator import Cluster, Costs, simulate

WAIT = 0.1
SLOTS = (8, 64, 512, 2_048)
PER_SLOT = 40
CASES = 12_000


def measure(quick: bool) -> list[Result]:
    rounds = 1 if quick else 3
    cases = 2_000 if quick else CASES
    with postgres() as server:
        url = make_database(server, "driver")
        batch = _measure_batch(url)
        # In turn: what else the machine does then disturbs all of them alike.
        costs: list[float] = []
        turns: list[float] = []
        points: dict[int, list[float]] = {slots: [] for slots in SLOTS}
        for _ in range(rounds):
            costs.append(_measure_case(url, cases))
            # What one slot takes beyond the wait.
            turns.append(max(0.0, 1 / _measure_waiting(url, 1) - WAIT))
            for slots, rates in points.items():
                rates.append(_measure_waiting(url, slots))
    measured = Costs(figure(costs).value, turn=figure(turns).value)
    return [_judge_cost(costs, batch, turns), _judge_prediction(measured, points)]


def _measure_batch(url: str) -> float:
    """Seconds that a batch takes beyond its executions: from one execution a batch to many, at the margin."""
    with Store.open(url) as store:
        begin_run(store, "batches", 1, 10_000)
        whole = build_batches(TIMINGS, 1, 10_000)
        executions = [made for batch in whole for made in batch.executions]
        few = _time_batches(store, executions[:300], 1)
        many = _time_batches(store, executions[300:9_300], 500)
    return (few / 300) - (many / 9_000)


def _time_batches(store: Store, executions: list[object], size: int) -> float:
    from assay.model import Batch, Execution

    made = [one for one in executions if isinstance(one, Execution)]
    began = perf_counter()
    for start in range(0, len(made), size):
        store.add("batches", Batch(tuple(made[start : start + size])))
    return perf_counter() - began


def _run_suite(folder: Path, url: str, cases: int, agent: str, *options: str) -> Ended:
    lines = (json.dumps({"id": str(n), "input": str(n), "expected": str(n)}) for n in range(cases))
    (folder / "cases.jsonl").write_text("\n".join(lines), encoding="utf-8")
    benchmark = {
        "id": "trivial",
        "cases": "cases.jsonl",
        "scorer": "exact",
        "iterations": {"warmup": 0, "measured": 1},
    }
    target = f"{SUBJECTS / 'trivial_agents.py'}:{agent}"
    suite = {
        "suite": f"{agent}-{cases}",
        "agents": [{"name": agent, "type": "python", "target": target}],
        "benchmarks": [benchmark],
    }
    (folder / "suite.json").write_text(json.dumps(suite), encoding="utf-8")
    return ended((ASSAY, "run", "suite.json", *options, "--db", url, "--json", "-q"), folder)


def _measure_case(url: str, cases: int) -> float:
    """Seconds from one trivial case to the next, stored in PostgreSQL, while a run goes on; its start and its end come on top."""
    with fresh_folder() as folder:
        done = _run_suite(folder, url, cases, "echo")
    began = _read_starts(url, done)
    tell(f"  a case costs {1e6 * (max(began) - min(began)) / (cases - 1):.0f} µs")
    return (max(began) - min(began)) / (cases - 1)


def _measure_waiting(url: str, slots: int) -> float:
    """Cases a second when each waits, from the first that began to the last that ended: the start of processes is no part of it."""
    with fresh_folder() as folder:
        done = _run_suite(folder, url, slots * PER_SLOT, "brief", "--concurrency", str(slots))
    began = _read_starts(url, done)
    rate = len(began) / (max(began) + WAIT - min(began))
    tell(f"  {slots} slots: {rate:.1f} cases a second")
    return rate


def _read_starts(url: str, done: Ended) -> list[float]:
    with Store.open(url) as store:
        (trial,) = store.run(json.loads(done.stdout)["run_id"]).trials
        return [execution.started for execution in store.executions(trial.id)]


def _judge_cost(costs: list[float], batch: float, turns: list[float]) -> Result:
    promise = Promise("driver-cost", "Cost of one more trivial case during a run, local executor, PostgreSQL", Bound.AT_MOST, 1e-3, "s")  # fmt: skip
    told = f"A batch costs {1e3 * batch:.2f} ms beyond its executions, most of it the commit."
    ours = figure(costs)
    return Result(
        promise,
        "s",
        ours,
        ours,
        detail=told,
        values={"seconds": costs, "seconds of a batch": [batch], "seconds of a turn": turns},
    )


def _judge_prediction(costs: Costs, points: dict[int, list[float]]) -> Result:
    """The runner stores what has arrived as one batch, so a case costs what it does at the margin, batches included."""
    errors = {}
    for slots, rates in points.items():
        predicted = simulate(Cluster(slots, WAIT), costs, slots * PER_SLOT).rate
        errors[slots] = predicted / figure(rates).value - 1
    told = ", ".join(f"{slots} slots {error:+.0%}" for slots, error in errors.items())
    promise = Promise("driver-prediction", "Largest error of the simulator's rate, cases that wait 0.1 s", Bound.AT_MOST, 0.25, "share")  # fmt: skip
    ours = figure([max(abs(error) for error in errors.values())])
    values = {f"{slots} {WAIT} {slots * PER_SLOT}": rates for slots, rates in points.items()}
    return Result(promise, "share", ours, ours, detail=f"Predicted against measured: {told}.", values=values)

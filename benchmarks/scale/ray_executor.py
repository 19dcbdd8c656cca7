"""What the executor `ray` costs beside the local one, and whether it keeps all slots of a cluster busy.

The clusters are simulated: real processes of Ray, all on this machine. The driver is connected before the clock starts; what the start of
a cluster takes is reported apart. Ray keeps idle Python processes on every node, by default one for each slot; here it keeps one on each
node, because 64 of them would be started on a machine of two cores while it is measured.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

from arms import SUBJECTS, fresh_folder, interleaved, tell
from record import Bound, Promise, Result, figure

NODES, SLOTS = 4, 64


def measure(quick: bool) -> list[Result]:
    rounds = 1 if quick else 3
    small, large = (500, 2_000) if quick else (2_000, 12_000)
    with cluster(1, 2) as start:
        arms = {name: lambda name=name: _measure_case(name, small, large) for name in ("local", "ray")}
        costs = interleaved(arms, rounds)
        busy = {
            name: lambda name=name: _measure_rate(name, 50 if quick else 150) for name in ("local", "ray")
        }
        rates = interleaved(busy, rounds)
    with cluster(NODES, SLOTS // NODES):
        cases = 256 if quick else 2_000
        # Stricter than any schedule can be: where the cases are no multiple of the slots, the last of them leave slots empty.
        ideal = cases / SLOTS * 1.0
        shares = [ideal / _run(_waiting(cases), "ray") for _ in range(1 if quick else 3)]
    return [_judge_cost(costs, start), _judge_rate(rates), _judge_efficiency(shares)]


@contextmanager
def cluster(nodes: int, cpus: int) -> Iterator[float]:
    """A cluster that this process is connected to; yields the seconds that its start and the connection took."""
    import logging
    import os

    folder = tempfile.mkdtemp(prefix="assay-ray-", dir="/tmp")
    os.environ.update({"RAY_USAGE_STATS_ENABLED": "0", "RAY_TMPDIR": folder})
    import ray
    from ray.cluster_utils import Cluster

    logging.getLogger("ray").setLevel(logging.ERROR)
    began = perf_counter()
    root = Path(folder, "ray")
    root.mkdir()
    options = {"num_cpus": cpus, "object_store_memory": 100 * 2**20, "temp_dir": str(root)}
    quiet = {"enable_worker_prestart": False, "prestart_worker_first_driver": False}
    head = {**options, "include_dashboard": False, "_system_config": quiet}
    made = Cluster(initialize_head=True, connect=False, head_node_args=head)
    for _ in range(nodes - 1):
        made.add_node(wait=False, **options)
    ray.init(address=made.address, log_to_driver=False, logging_level=logging.ERROR)
    _start_idle_processes()
    took = perf_counter() - began
    tell(f"  {nodes} nodes of {cpus} slots after {took:.1f} s")
    try:
        yield took
    finally:
        ray.shutdown()
        made.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


def _start_idle_processes() -> None:
    """One on each node, which Ray keeps after a task and uses for the next actor."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    # Ray takes no built-in function, and a named one of this file could not be imported on a node.
    do_nothing = ray.remote(num_cpus=0)(lambda: None)
    nodes = [NodeAffinitySchedulingStrategy(node["NodeID"], soft=False) for node in ray.nodes()]
    ray.get([do_nothing.options(scheduling_strategy=node).remote() for node in nodes])


def _run(suite: dict[str, object], executor: str, parallelism: int | None = None) -> float:
    """Seconds that a run of the suite takes, from the plan to the stored result."""
    import assay

    with fresh_folder() as folder:
        shutil.copy(SUBJECTS / "trivial_agents.py", folder)
        number = suite.pop("number_of_cases")
        lines = (json.dumps({"id": str(n), "input": str(n), "expected": str(n)}) for n in range(number))  # type: ignore[call-overload]
        (folder / "cases.jsonl").write_text("\n".join(lines), encoding="utf-8")
        (folder / "suite.json").write_text(json.dumps(suite), encoding="utf-8")
        spec: dict[str, object] = {"suite": "suite.json", "agents": suite["agents"]}
        if parallelism is not None:
            spec["parallelism"] = parallelism
        else:
            spec["concurrency"] = SLOTS // NODES
        (folder / "spec.json").write_text(json.dumps(spec), encoding="utf-8")
        began = perf_counter()
        assay.run(str(folder / "spec.json"), executor=executor, db=f"sqlite:///{folder}/assay.db")
        return perf_counter() - began


def _suite(agents: list[str], cases: int) -> dict[str, object]:
    benchmark = {"id": "cases", "cases": "cases.jsonl", "scorer": "exact"}
    return {
        "suite": f"{'-'.join(agents)}-{cases}",
        "agents": [
            {"name": f"{agent}{n}", "type": "python", "target": f"trivial_agents.py:{agent}"}
            for n, agent in enumerate(agents)
        ],
        "benchmarks": [{**benchmark, "iterations": {"warmup": 0, "measured": 1}}],
        "number_of_cases": cases,
    }


def _waiting(cases: int) -> dict[str, object]:
    return _suite(["slow"], cases)


def _measure_case(executor: str, small: int, large: int) -> float:
    """Seconds that one more trivial case takes."""
    few, many = (_run(_suite(["echo"], cases), executor, 1) for cases in (small, large))
    tell(f"  {executor}: a case costs {1e6 * (many - few) / (large - small):.0f} µs")
    return (many - few) / (large - small)


def _measure_rate(executor: str, cases: int) -> float:
    """Cases a second of two agents that compute for 50 ms, two at a time, at the margin."""
    few, many = (_run(_suite(["busy", "busy"], n), executor, 2) for n in (cases // 5, cases))
    rate = 2 * (cases - cases // 5) / (many - few)
    tell(f"  {executor}: {rate:.1f} cases a second")
    return rate


def _judge_cost(costs: dict[str, list[float]], start: float) -> Result:
    extra = figure([there - here for here, there in zip(costs["local"], costs["ray"], strict=True)])
    promise = Promise("ray-cost", "Cost of one more trivial case on Ray", Bound.AT_MOST, 1e-3, "s", "on top of the local executor")  # fmt: skip
    told = f"The start of a cluster and the connection to it took {start:.1f} s more."
    peers = {"local": figure(costs["local"])}
    return Result(promise, "s", figure(costs["ray"]), extra, peers, told, costs)


def _judge_rate(rates: dict[str, list[float]]) -> Result:
    share = figure([there / here for here, there in zip(rates["local"], rates["ray"], strict=True)])
    promise = Promise("ray-compute", "Rate of cases that compute for 50 ms on two cores", Bound.AT_LEAST, 0.9, "times", "the local executor's")  # fmt: skip
    return Result(promise, "1/s", figure(rates["ray"]), share, {"local": figure(rates["local"])}, "", rates)


def _judge_efficiency(shares: list[float]) -> Result:
    promise = Promise("ray-slots", f"2,000 cases that wait 1 s on {SLOTS} slots of {NODES} simulated nodes", Bound.AT_LEAST, 0.9, "times", "the ideal rate")  # fmt: skip
    return Result(promise, "times", figure(shares), figure(shares), {}, "", {"efficiency": shares})

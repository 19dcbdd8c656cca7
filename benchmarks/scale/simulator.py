"""A cluster as queues: slots that work, one driver that sends jobs and stores results, and the network between them.

A discrete-event simulation. Each slot carries out executions one after the other; when a batch of them is done, its results
cross the network and wait for the driver, which handles one batch at a time, at a cost for the batch and one for each execution in
it, what PostgreSQL takes to store them included. A slot has the next job already (executors send one ahead), so it goes on unless its
results before the last are still waiting: that is the back-pressure. The costs are measured (`scale.run --only postgres --only driver`); the rest is arithmetic.

    python -m scale.simulator                 from the folder benchmarks: measured points, then 100 and 1,000 nodes
"""

from __future__ import annotations

import argparse
import heapq
import json
import random
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from record import RESULTS, Figure

_PER_SLOT = 40
"""Executions of each slot in a simulated run: the last ones, when slots run out of work, are a small part of it."""
PAGE = Path(__file__).parents[2] / "docs" / "scaling.md"


@dataclass(frozen=True, slots=True)
class Costs:
    """Seconds of the driver, and bytes on the wire."""

    execution: float
    batch: float = 0.0
    turn: float = 0.0
    """Of a slot, between two executions: it wakes up late, judges the answer, and passes it on."""
    bytes_per_execution: float = 600.0
    bandwidth: float = 125e6
    """Bytes a second into the driver: 1 Gbit/s."""


@dataclass(frozen=True, slots=True)
class Cluster:
    slots: int
    seconds: float
    """What an execution takes."""
    batch: int = 1
    """Executions whose results are sent together."""
    variation: float = 0.0
    """The coefficient of variation of the time; gamma-distributed."""


@dataclass(frozen=True, slots=True)
class Outcome:
    rate: float
    """Executions a second."""
    efficiency: float
    """Of what the slots would do if nothing else took time."""
    driver: float
    """The share of the time for which the driver was busy."""
    network: float


def simulate(cluster: Cluster, costs: Costs, batches: int, seed: int = 1) -> Outcome:
    """Carry out so many batches."""
    chance = random.Random(seed)
    wire = cluster.batch * costs.bytes_per_execution / costs.bandwidth
    service = costs.batch + cluster.batch * costs.execution
    started = cluster.slots
    # When each slot ends its batch. All begin together, and the first batch takes as long as any other.
    ends = [(_draw(cluster, chance), slot) for slot in range(min(cluster.slots, batches))]
    heapq.heapify(ends)
    network_free = driver_free = 0.0
    stored: dict[int, float] = {}
    """When the results of a slot's batch before were stored: until then it may be one batch ahead, not two."""
    for _ in range(batches):
        now, slot = heapq.heappop(ends)
        network_free = max(now, network_free) + wire
        driver_free = max(network_free, driver_free) + service
        if started < batches:
            started += 1
            begin = max(now, stored.get(slot, 0.0)) + cluster.batch * costs.turn
            heapq.heappush(ends, (begin + _draw(cluster, chance), slot))
        stored[slot] = driver_free
    elapsed = driver_free
    done = batches * cluster.batch
    ideal = cluster.slots / cluster.seconds
    rate = done / elapsed
    return Outcome(
        rate,
        min(1.0, rate / ideal),
        min(1.0, batches * service / elapsed),
        min(1.0, batches * wire / elapsed),
    )


def _draw(cluster: Cluster, chance: random.Random) -> float:
    """How long a batch takes."""
    total = cluster.batch * cluster.seconds
    if not cluster.variation:
        return total
    shape = cluster.batch / cluster.variation**2
    return chance.gammavariate(shape, total / shape)


def find_limit(cluster: Cluster, costs: Costs) -> tuple[str, float]:
    """The bound that is reached first, and its rate in executions a second, without queueing."""
    driver = cluster.batch / (costs.batch + cluster.batch * costs.execution)
    bounds = {
        "slots": cluster.slots / (cluster.seconds + costs.turn),
        "driver and store": driver,
        "network": costs.bandwidth / costs.bytes_per_execution,
    }
    name = min(bounds, key=lambda bound: bounds[bound])
    return name, bounds[name]


def read_costs() -> tuple[Costs, Costs, Costs]:
    """The driver's costs as they were measured: the figure, and the lower and the upper end of its interval."""
    flat = json.loads((RESULTS / "scale" / "driver-cost.json").read_text(encoding="utf-8"))
    # At the margin a case has its share of the batch that it is stored with.
    turn = median(flat["values"]["seconds of a turn"])
    made = [Costs(max(1e-9, flat["ours"][end]), turn=turn) for end in ("value", "low", "high")]
    return made[0], made[1], made[2]


def extrapolate() -> list[str]:
    """A table of 100 and 1,000 nodes with 16 slots each."""
    middle, low, high = read_costs()
    lines = [
        "| nodes | slots | an execution takes | rate | efficiency | limit |",
        "|---|---|---|---|---|---|",
    ]
    for nodes in (1, 10, 100, 1000):
        for seconds in (0.05, 1.0, 30.0):
            cluster = Cluster(16 * nodes, seconds, variation=0.5)
            batches = max(20_000, _PER_SLOT * cluster.slots)
            found = [simulate(cluster, costs, batches) for costs in (middle, high, low)]
            rates = " to ".join(f"{one.rate:,.0f}" for one in found[1:])
            limit, _ = find_limit(cluster, middle)
            lines.append(
                f"| {nodes:,} | {cluster.slots:,} | {seconds:g} s | {found[0].rate:,.0f}/s ({rates}) | "
                f"{found[0].efficiency:.0%} | {limit} |"
            )
    return lines


def describe_costs() -> list[str]:
    def read(name: str, figure: str = "ours") -> str:
        flat = json.loads((RESULTS / "scale" / f"{name}.json").read_text(encoding="utf-8"))
        return Figure(**flat[figure]).shown(flat["unit"])

    flat = json.loads((RESULTS / "scale" / "driver-cost.json").read_text(encoding="utf-8"))
    return [
        "| cost | measured |",
        "|---|---|",
        f"| one more trivial case, stored | {read('driver-cost')} |",
        f"| on Ray, a trivial case beyond that, on a different machine | {read('ray-cost', 'judged')} |",
        f"| a batch, beyond its executions | {1e3 * flat['values']['seconds of a batch'][0]:.2f} ms |",
        f"| a slot, between two executions | {1e3 * median(flat['values']['seconds of a turn']):.2f} ms |",
        f"| executions that one writer stores | {read('writer')} |",
        f"| executions that four writers store | {read('writers')} |",
    ]


def write_page() -> None:
    """Put the tables into docs/scaling.md, each behind its mark."""
    text = PAGE.read_text(encoding="utf-8")
    made = {"costs": describe_costs(), "points": compare_with_measured(), "extrapolation": extrapolate()}
    for mark, lines in made.items():
        before, _, after = text.partition(f"<!-- {mark} -->\n")
        rest = after.lstrip("\n").splitlines()
        while rest and (rest[0].startswith("|") or not rest[0]):
            rest.pop(0)
        text = "\n".join([f"{before}<!-- {mark} -->\n", *lines, "", *rest]) + "\n"
    PAGE.write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the tables into docs/scaling.md")
    if parser.parse_args().write:
        write_page()
        return
    for table in (describe_costs(), compare_with_measured(), extrapolate()):
        print("\n".join(table), "\n")


def compare_with_measured() -> list[str]:
    """Predicted beside measured for the points that `scale.driver` measured; the costs come from other runs than these."""
    flat = json.loads((RESULTS / "scale" / "driver-prediction.json").read_text(encoding="utf-8"))
    middle, _, _ = read_costs()
    lines = ["| slots | an execution takes | measured | predicted | error |", "|---|---|---|---|---|"]
    for name, rates in flat["values"].items():
        slots, seconds, executions = name.split(" ")
        cluster = Cluster(int(slots), float(seconds))
        predicted = simulate(cluster, middle, int(executions)).rate
        measured = median(rates)
        lines.append(
            f"| {slots} | {seconds} s | {measured:,.0f}/s | {predicted:,.0f}/s | {predicted / measured - 1:+.0%} |"
        )
    return lines


if __name__ == "__main__":
    main()

"""Whether every node of a cluster can take part: versions, packages and clocks, for `assay doctor --executor ray`."""

from __future__ import annotations

from collections.abc import Mapping
from time import time
from typing import Any

from assay.builtin.executors.ray import software
from assay.builtin.executors.ray.cluster import Node, connect, place_on
from assay.builtin.executors.ray.failure import describe_failure
from assay.builtin.executors.ray.software import describe_software

MOST_OFFSET = 1.0
"""Seconds by which a clock may differ: starting times of executions are compared across nodes."""
ANSWER_SECONDS = 60.0
_READINGS = 5


def check_nodes(address: str | None, cpus: int | None = None) -> list[dict[str, Any]]:
    """A mapping for each node: name, slots, versions, offset of its clock, and under `problems` what is wrong."""
    cluster = connect(address, cpus=cpus)
    try:
        here = describe_software()
        return [_check_node(node, here) for node in cluster.nodes()]
    finally:
        cluster.close()


def _check_node(node: Node, here: Mapping[str, Any]) -> dict[str, Any]:
    import ray

    ask = ray.remote(software.describe_software).options(num_cpus=0, max_retries=0, **place_on(node))
    known = {"name": node.name, "slots": node.slots}
    readings: list[tuple[float, float, dict[str, Any]]] = []
    try:
        for _ in range(_READINGS):
            sent = time()
            found = ray.get(ask.remote(), timeout=ANSWER_SECONDS)
            round_trip = time() - sent
            readings.append((round_trip, found["time"] - (sent + round_trip / 2), found))
    except Exception as error:
        return {**known, "ok": False, "problems": [describe_failure(error)]}
    # The fastest of the answers bounds the error of the offset best: it is at most half of the time that the answer took (Cristian 1989).
    round_trip, offset, found = min(readings, key=lambda reading: reading[0])
    problems = [
        f"it has {name} {found[name]}, but this machine has {here[name]}"
        for name in ("assay", "python", "ray")
        if found[name] != here[name]
    ]
    missing = sorted(set(here["packages"]) - set(found["packages"]))
    if missing:
        problems.append(f"packages are missing there: {', '.join(missing)}")
    if abs(offset) > MOST_OFFSET + round_trip / 2:
        problems.append(f"its clock is {offset:+.2f} s off (± {round_trip / 2:.2f} s)")
    versions = {name: found[name] for name in ("assay", "python", "ray")}
    clock = {"clock_offset_s": offset, "clock_error_s": round_trip / 2}
    return {**known, "ok": not problems, **versions, **clock, "problems": problems}

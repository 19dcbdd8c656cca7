"""Finds other runs of Assay that use the same nodes at the same time.

Assay takes the slots of a node without reserving CPUs in Ray, which would keep nodes from growing and from being shared with what waits.
So two runs may both fill the same nodes, and each makes the times of the other longer. Actors have names that say on which node they are,
and by those runs find each other.
"""

from __future__ import annotations

from collections import Counter
from itertools import count
from typing import Any

from assay.builtin.executors.ray.cluster import Node

NAMESPACE = "assay"
_numbers = count(1)


def name_actor(mark: str, node: Node) -> dict[str, Any]:
    """Options for the actor of a run, which is known by its mark, on a node."""
    return {"name": f"{node.id}/{mark}/{next(_numbers)}", "namespace": NAMESPACE}


def count_other_runs(mark: str) -> Counter[str]:
    """How many other runs have an actor on each node, by the id of the node."""
    from ray.util import list_named_actors

    try:
        found = list_named_actors(all_namespaces=True)
    except Exception:
        # The head does not respond, which the next request for its nodes will report.
        return Counter()
    names = (actor["name"].split("/") for actor in found if actor["namespace"] == NAMESPACE)
    return Counter(
        node for node, other in {(parts[0], parts[1]) for parts in names if len(parts) == 3} if other != mark
    )


def describe_other_runs(others: int, node: Node) -> str:
    """A doubt with its numbers; empty where this run is alone on the node."""
    if not others:
        return ""
    runs = f"{others} other run{'s' * (others > 1)} of Assay"
    return (
        f"{runs} used this node at the same time: up to {(others + 1) * node.slots} workers on {node.slots} slots. "
        "Times are longer and vary more. Run one after the other, or on different clusters."
    )

"""Where the processes of two sides ran: figures that depend on the machine are compared within nodes.

Nodes of a cluster differ, by half their speed or more, and a scheduler need not give both sides the same share of each. So the node
is a block. Rounds in which both sides ran on one node stay pairs. If too many rounds were torn apart, all processes are
compared as two samples within each node. Sides that share no node of one run are not compared at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from assay.model import TrialReport
from assay.model.execution import BETWEEN_NODES

_NAMED = 3


@dataclass(frozen=True, slots=True)
class NodeBlocks:
    """The node of each process of either side; of a round that was spread over several nodes, all of them."""

    a: Mapping[int, str]
    b: Mapping[int, str]
    is_one_run: bool

    @property
    def shared(self) -> frozenset[str]:
        return frozenset(self.a.values()) & frozenset(self.b.values())

    @property
    def together(self) -> frozenset[int]:
        """Rounds in which both sides ran on the same node."""
        return frozenset(number for number, node in self.a.items() if self.b.get(number) == node)

    def has_pairs(self, rounds: Collection[int], fewest: int) -> bool:
        """Whether the rounds that stay whole are at least half of those that both sides have, and enough for a test of pairs."""
        whole = self.together.intersection(rounds)
        return len(whole) >= max(fewest, len(rounds) / 2)

    @property
    def separation(self) -> str:
        """A sentence saying that the sides have no node in common; empty if they have one."""
        if self.shared:
            return ""
        return f"A ran on {_list(self.a)}, B on {_list(self.b)}: they have no node in common"

    @property
    def refusal(self) -> str:
        """Why the sides of one run are not comparable in time; empty if they are."""
        if not self.is_one_run or not self.separation:
            return ""
        return f"{self.separation}, so the difference may come from the machines; run both on the same nodes."


def find_blocks(a: TrialReport, b: TrialReport, *, is_one_run: bool) -> NodeBlocks | None:
    """The blocks of two trials; None if all processes of both ran on one machine, and where nodes of two runs have nothing in common.

    Two runs on other nodes are compared as two runs on other machines are: by the kind of machine and by run-to-run noise. A process
    of code that moved belongs to no node and is left out. A round of cases that was spread over several nodes has all of them as its
    node: which case met which of them is chance, drawn anew in each round, so it is part of what rounds vary by.
    """
    first, second = (
        {number: node for number, node in side.nodes.items() if not (side.is_code and BETWEEN_NODES in node)}
        for side in (a, b)
    )
    if len({*a.nodes.values(), *b.nodes.values()}) < 2:
        return None
    blocks = NodeBlocks(first, second, is_one_run)
    return blocks if blocks.shared or is_one_run else None


MOST_OUT_OF_BALANCE = 2
"""Rounds that two agents of a ranking may have had on other nodes, all in one direction.

Ratings are over all rounds and cannot be compared within nodes. If k of n rounds ran on slower nodes, the rounds' own variance has
it: |t| is √(k·n ÷ (n − k)), which up to k = 2 stays below the critical value of Student's t whatever nodes differ by.
"""


def count_out_of_balance(a: Mapping[int, str], b: Mapping[int, str]) -> int:
    """Rounds that would have to change their node for both sides to have as many on every node, of rounds that both have.

    >>> count_out_of_balance({0: "n1", 1: "n2", 2: "n1", 3: "n1"}, {0: "n2", 1: "n1", 2: "n1", 3: "n2"})
    1
    """
    shared = a.keys() & b.keys()
    first, second = (Counter(side[number] for number in shared) for side in (a, b))
    return (first - second).total()


def _list(nodes: Mapping[int, str]) -> str:
    names = sorted(set(nodes.values()))
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    listed = ", ".join(f"'{name}'" for name in names[:_NAMED])
    return f"{listed}{more}" if names else "nodes that it moved between"

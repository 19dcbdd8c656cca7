"""The actors on the nodes of a cluster: started where nodes join, given up where they leave."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from secrets import token_hex
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from assay.builtin.executors.ray.cluster import Cluster, HeadUnreachable, Node, count_needs, place_on
from assay.builtin.executors.ray.failure import describe_failure, is_permanent
from assay.builtin.executors.ray.node import NodeOrder, NodeResults, NodeWorker
from assay.builtin.executors.ray.other_runs import count_other_runs, describe_other_runs, name_actor
from assay.builtin.executors.ray.package import Package
from assay.builtin.executors.ray.process_settings import choose_actor_settings
from assay.builtin.executors.ray.software import find_versions
from assay.errors import PlanError
from assay.execute.wire import encode_order
from assay.model import Batch, Job

if TYPE_CHECKING:
    from assay.builtin.executors.ray.shared_job import WorkShare

_log = logging.getLogger(__name__)
LOOK_SECONDS = 1.0
"""Between two looks at which nodes there are."""
OTHER_RUNS_SECONDS = 5.0
"""Between two looks at which other runs there are: each lists all actors of the cluster."""
START_SECONDS = 60.0
"""An actor that is not ready by then is given up."""
COLLECT_SECONDS = 1.0
"""How long a node waits for results before it answers that there are none."""
ANSWER_SECONDS = 30.0
"""A node that has not answered a call by then is lost. `collect` answers within a second or two, but what it answers may be large."""
STOP_SECONDS = 10.0
RETRY_SECONDS = 2.0
"""Before a new actor is started on a node where one has died while it started; twice as long each time."""
MOST_RETRY_SECONDS = 60.0
MOST_AT_ONCE = 16
"""Nodes whose results are taken in at one turn: each may have as much as it keeps."""
_MOST_WATCHED = 1.0
"""Maximum seconds between two turns that count as waiting: the driver itself may have been held up, by the database or a debugger."""


@dataclass(slots=True)
class RemoteNode:
    """A node with its actor, and the shares that it has now."""

    node: Node
    actor: Any
    environment: Mapping[str, Any] = field(default_factory=dict)
    """What is stored about the node."""
    in_flight: dict[int, WorkShare] = field(default_factory=dict)
    pending: Any = None
    """The call of `collect` that is under way."""
    asked_at: float = 0.0
    """When it was called."""
    waited: dict[Any, float] = field(default_factory=dict)
    """Each call under way, of `collect` or `start`, and how many seconds it has been waited for."""
    problem: str = ""
    """Why it was given up."""
    _at_work: list[WorkShare] | None = None
    _used: Counter[str] = field(default_factory=Counter)
    """What the shares at work take of the node. Both are counted again only after a change, since every job looks at every node."""

    @property
    def name(self) -> str:
        return self.node.name

    def add(self, share: WorkShare) -> None:
        self.in_flight[share.number] = share
        self._at_work = None

    def remove(self, number: int) -> WorkShare | None:
        self._at_work = None
        return self.in_flight.pop(number, None)

    @property
    def at_work(self) -> list[WorkShare]:
        """Its shares without those that are sent ahead, and wait for the slots of another."""
        if self._at_work is None:
            self._at_work = [share for share in self.in_flight.values() if share.after not in self.in_flight]
            self._used = Counter()
            for share in self._at_work:
                self._used.update(self._needs(share.job))
        return self._at_work

    @property
    def free_slots(self) -> float:
        return self.node.slots - self._used["CPU"] if self.at_work else self.node.slots

    def find_ending(self) -> list[WorkShare]:
        """The shares at work that are nearly done and have no other share behind them."""
        followed = {share.after for share in self.in_flight.values()}
        return [share for share in self.at_work if share.is_ending and share.number not in followed]

    def has_room(self, job: Job) -> bool:
        """Whether what it has beside its work in flight is enough for one more job."""
        used = self._used if self.at_work else {}
        return all(
            used.get(name, 0.0) + need <= self.node.resources.get(name, 0.0)
            for name, need in self._needs(job).items()
        )

    def _needs(self, job: Job) -> dict[str, float]:
        """As its agent asks; else a slot for each case that is asked at the same time, at most all slots of a node."""
        if job.resources is not None:
            return count_needs(job.resources)
        return {**count_needs(None), "CPU": min(job.concurrency, self.node.slots)}

    def start(self, attempt: str, shares: Sequence[WorkShare]) -> str:
        """Send the shares; returns why they cannot be sent, as where the object store of the driver's machine is full."""
        import ray

        orders = [
            NodeOrder(share.number, share.after, b"".join(encode_order(share.job, ""))) for share in shares
        ]
        try:
            # The answer says whether the orders got there: large ones travel apart from the call.
            self.waited[self.actor.start.remote(attempt, orders)] = 0.0
        except ray.exceptions.RayError as error:
            return describe_failure(error)
        self.listen()
        return ""

    def listen(self) -> None:
        if self.pending is None:
            self.pending, self.asked_at = self.actor.collect.remote(COLLECT_SECONDS), monotonic()
            self.waited[self.pending] = 0.0


@dataclass(slots=True)
class _StartingActor:
    node: Node
    actor: Any
    ready: Any
    since: float


class Fleet:
    """All actors of a run."""

    def __init__(
        self, cluster: Cluster, package: Package, variables: Mapping[str, str], first_seed: int | None = None
    ) -> None:
        self.nodes: dict[str, RemoteNode] = {}
        self.last_problem = ""
        self.is_hopeless = False
        """Whether no node can be used as it is, so that waiting does not help."""
        self.headless_since: float | None = None
        """Since when the head of the cluster has not responded; None while it does."""
        self._cluster = cluster
        self._package = package
        self._variables = variables
        self._first_seed = first_seed
        """Seed of the jobs that all nodes get first, if they share one."""
        self._content: Any = None
        self._mark = token_hex(4)
        """Part of the names of this run's actors."""
        self._starting: list[_StartingActor] = []
        self._refused: set[str] = set()
        """Nodes whose software is another one."""
        self._deaths: Counter[str] = Counter()
        """How often an actor of a node has died while it started."""
        self._retry_at: dict[str, float] = {}
        self._was_any_used = False
        self._next_look = 0.0
        self._next_look_for_runs = 0.0
        self._last_turn = monotonic()
        self._news: list[Batch] = []

    def count_at_work(self) -> int:
        return sum(len(node.at_work) for node in self.nodes.values())

    def count_slots(self) -> int:
        return sum(node.node.slots for node in self.nodes.values())

    def may_have(self, needs: Mapping[str, float]) -> bool:
        """Whether a node that is in use has so much, or one where an actor is being started for the first time."""
        starting = [actor.node for actor in self._starting if not self._deaths[actor.node.id]]
        return any(node.has(needs) for node in (*(used.node for used in self.nodes.values()), *starting))

    def look_for_nodes(self) -> Iterator[Batch]:
        """Start actors on nodes that have joined, and take in those that are ready; yields the facts about their nodes."""
        if monotonic() >= self._next_look:
            self.start_actors()
        while self._news:
            yield self._news.pop(0)
        for starting in list(self._starting):
            yield from self._admit(starting)

    def start_actors(self) -> None:
        """On nodes that have none; they get ready while the caller does something else."""
        self._next_look = monotonic() + LOOK_SECONDS
        try:
            alive = {node.id: node for node in self._cluster.nodes() if node.slots > 0}
        except HeadUnreachable as error:
            # Nodes and their actors do without it for a while.
            self.headless_since = self.headless_since or monotonic()
            self.last_problem = f"; {error}"
            return
        self.headless_since = None
        for idle in [
            node for node in self.nodes.values() if not node.in_flight and node.node.id not in alive
        ]:
            self.drop(idle, "the node left the cluster")
        known = {node.node.id for node in self.nodes.values()} | {s.node.id for s in self._starting}
        for node in alive.values():
            is_due = monotonic() >= self._retry_at.get(node.id, 0.0)
            if node.id not in known | self._refused and is_due:
                self._starting.append(self._start_actor(node))
        # A node that was in use may be starting again.
        self.is_hopeless = not self._was_any_used and bool(alive) and alive.keys() <= self._refused
        if self.nodes and monotonic() >= self._next_look_for_runs:
            self._next_look_for_runs = monotonic() + OTHER_RUNS_SECONDS
            self._look_for_other_runs()

    def _look_for_other_runs(self) -> None:
        """A doubt about each node that another run uses at the same time."""
        others = count_other_runs(self._mark)
        for node in self.nodes.values():
            known = node.environment.get("doubts") or []
            doubt = describe_other_runs(others[node.node.id], node.node)
            if doubt and doubt not in known:
                _log.warning("Node %s: %s", node.name, doubt)
                node.environment = {**node.environment, "doubts": [*known, doubt]}
                self._news.append(Batch(nodes={node.name: node.environment}))

    def _start_actor(self, node: Node) -> _StartingActor:
        import ray

        if self._content is None:
            try:
                self._content = ray.put(self._package.content)
            except ray.exceptions.RayError as error:
                raise PlanError(f"The files of the run cannot be sent: {describe_failure(error)}.") from None
        actor = (
            ray.remote(NodeWorker)
            .options(
                **choose_actor_settings(self._cluster),
                **name_actor(self._mark, node),
                max_concurrency=4,
                **place_on(node),
            )
            .remote(int(node.resources.get("GPU", 0)))
        )
        ready = actor.prepare.remote(
            find_versions(), self._content, self._package.layout, dict(self._variables), self._first_seed
        )
        return _StartingActor(node, actor, ready, monotonic())

    def _admit(self, starting: _StartingActor) -> Iterator[Batch]:
        import ray

        ready, _ = ray.wait([starting.ready], timeout=0)
        node = starting.node
        if not ready and monotonic() - starting.since < START_SECONDS:
            return
        self._starting.remove(starting)
        try:
            found = ray.get(starting.ready, timeout=0)
        except Exception as error:
            self._refuse(starting, error)
            return
        facts = {**found["facts"], "slots": node.slots}
        joined = RemoteNode(node, starting.actor, {**found, "facts": facts})
        self.nodes[node.name] = joined
        self._was_any_used = True
        yield Batch(nodes={node.name: joined.environment})

    def _refuse(self, starting: _StartingActor, error: Exception) -> None:
        """Other software stays another one, so the node is not tried again; an actor that died or was slow is replaced after a while."""
        import ray

        node, why = starting.node, describe_failure(error)
        self.last_problem = f"; node {node.name}: {why}"
        if is_permanent(error):
            self._refused.add(node.id)
            _log.warning("Node %s is not used: %s.", node.name, why)
        else:
            self._deaths[node.id] += 1
            wait = min(MOST_RETRY_SECONDS, RETRY_SECONDS * 2 ** (self._deaths[node.id] - 1))
            self._retry_at[node.id] = monotonic() + wait
            _log.warning(
                "Node %s could not be started and is tried again in %.0f s: %s.", node.name, wait, why
            )
        ray.kill(starting.actor)

    def collect(self, seconds: float) -> Iterator[tuple[RemoteNode, NodeResults | None]]:
        """Nodes that have answered with their results, and nodes that are lost, with None; waits so long for the first.

        The results of one node are fetched when those of the one before have been taken in, and of no more than a few nodes
        at one turn, those that were asked first before the others.
        """
        import ray

        self._wait_for_answers(seconds)
        nodes = sorted((node for node in self.nodes.values() if node.waited), key=lambda node: node.asked_at)
        calls = [call for node in nodes for call in node.waited]
        finished_calls = set(ray.wait(calls, num_returns=len(calls), timeout=0)[0]) if calls else set()
        now = monotonic()
        passed, self._last_turn = min(now - self._last_turn, _MOST_WATCHED), now
        for node in nodes:
            if why := _find_failure(node, finished_calls, passed):
                self.drop(node, why)
                yield node, None
        answered = [node for node in nodes if node.pending in finished_calls and not node.problem]
        for node in answered[:MOST_AT_ONCE]:
            yield node, self._read(node)

    def _wait_for_answers(self, seconds: float) -> None:
        import ray

        pending = [node.pending for node in self.nodes.values() if node.pending is not None]
        pending += [starting.ready for starting in self._starting]
        if pending:
            ray.wait(pending, num_returns=1, timeout=seconds)
        else:
            sleep(seconds)

    def _read(self, node: RemoteNode) -> NodeResults | None:
        import ray

        call, node.pending = node.pending, None
        node.waited.pop(call, None)
        try:
            results: NodeResults = ray.get(call, timeout=ANSWER_SECONDS)
        except Exception as error:
            self.drop(node, describe_failure(error))
            return None
        if len(node.in_flight) > len(results.done):
            node.listen()
        return results

    def drop(self, node: RemoteNode, why: str) -> None:
        """Give a node up; a new actor is started on it if it is still there."""
        import ray

        node.problem = why
        self.last_problem = f"; node {node.name}: {why}"
        self.nodes.pop(node.name, None)
        self._news.append(Batch(lost_nodes=(node.name,)))
        ray.kill(node.actor)

    def stop(self, is_graceful: bool) -> Iterator[tuple[RemoteNode, NodeResults]]:
        """End all workers and actors; yields what nodes had not handed over yet.

        That comes as the answer to `stop`, and to the call of `collect` that is usually under way: it takes what arrives while
        the workers end, or has been answered already.
        """
        import ray

        nodes = list(self.nodes.values())
        calls = {node.pending: node for node in nodes if node.pending is not None}
        calls |= {node.actor.stop.remote(is_graceful): node for node in nodes}
        finished_calls = (
            set(ray.wait(list(calls), num_returns=len(calls), timeout=STOP_SECONDS)[0]) if calls else set()
        )
        silent = {node.name for call, node in calls.items() if call not in finished_calls}
        for call in [call for call in calls if call in finished_calls]:
            try:
                yield calls[call], ray.get(call, timeout=STOP_SECONDS)
            except Exception as error:
                self.last_problem = describe_failure(error)
                silent.add(calls[call].name)
        if silent:
            _log.warning("The last results of these nodes did not arrive: %s.", ", ".join(sorted(silent)))
        for actor in [node.actor for node in nodes] + [s.actor for s in self._starting]:
            ray.kill(actor)
        self.nodes.clear()
        self._starting.clear()

    def disconnect(self) -> None:
        """Leave a cluster whose head is gone before Ray ends this process for it; only after `stop`."""
        if self.headless_since is not None:
            self._cluster.disconnect()


def _find_failure(node: RemoteNode, finished_calls: set[Any], passed: float) -> str:
    """Why a node is lost: a call has been waited for too long, or orders did not reach it; else empty."""
    import ray

    for call in list(node.waited):
        if call not in finished_calls:
            node.waited[call] += passed
            if node.waited[call] > ANSWER_SECONDS:
                return f"it has not answered for {ANSWER_SECONDS:.0f} s"
        elif call != node.pending:
            del node.waited[call]
            try:
                ray.get(call, timeout=0)
            except Exception as error:
                return f"its orders did not arrive: {describe_failure(error)}"
    return ""

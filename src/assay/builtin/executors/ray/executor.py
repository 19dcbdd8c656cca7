"""The executor `ray`: workers on all nodes of a Ray cluster.

Each node has one actor (`node.py`) with a pool of supervised workers. `Ray.map` is the loop of the driver: it looks which nodes there are,
draws a job when a slot is free and sends it there, collects results, and yields them as they arrive. It holds no more jobs than there
are slots, and each node no more than a bounded number of bytes of results. Where jobs are cut, a share is sent a little before it has a slot.

When a node is lost, its executions in flight run again elsewhere: an account of each job knows what had arrived, the rest is
sent to another node, and a remark keeps the reason. Results of a lost node are not awaited, so none is stored twice.

The driver is the only process that stores anything. Nodes get plain data, run it under the same supervisor as the local executor, and
return batches; they need neither the database nor its password. So whatever is true of a run on one machine (limits, statuses,
seeds, resuming) holds on a cluster without code of its own here.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from time import monotonic
from typing import Any, Self

from assay.builtin.executors.local import run_inline
from assay.builtin.executors.ray.cluster import Cluster, Node, connect, count_needs
from assay.builtin.executors.ray.fleet import Fleet, RemoteNode
from assay.builtin.executors.ray.load_sites import open_sites
from assay.builtin.executors.ray.node import NodeResults
from assay.builtin.executors.ray.package import Layout, Package, pack_plan
from assay.builtin.executors.ray.round_nodes import RoundNodes
from assay.builtin.executors.ray.shared_job import SharedJob, WorkShare
from assay.builtin.executors.ray.variables import select_variables
from assay.errors import PlanError, known_names
from assay.execute.jobs import count_processes
from assay.model import Batch, Isolation, Job, Placement, Plan, ResourceRequest
from assay.plugin.executor import Attempt, GeneratorSite
from assay.plugin.node_queues import NodeQueues

OPTIONS = {"address": str, "cpus": int, "node_timeout": float}
"""Settings of this executor and their types."""
NODE_SECONDS = 60.0
"""How long a run waits for a node where there is none left."""
HEAD_SECONDS = 20.0
"""How long a run continues while the head of its cluster does not respond. After 60 s, Ray would end the process of the driver."""
MOST_HELD = 64
"""Shares that wait for a node where other arms of their round have been, at the most."""
POLL_SECONDS = 0.05
"""The longest wait for results, after which the runner can store, show progress and see Ctrl-C."""


class Ray:
    """Up to `workers` processes at a time on the nodes of a cluster; 0 is as many as it has slots, which changes as nodes join and leave."""

    def __init__(
        self, workers: int, cluster: Cluster | None = None, package: Package | None = None, cut: int = 1
    ) -> None:
        self._workers = workers
        self._slots_at_start = 1
        self._cluster = cluster
        self._package = package or Package(Layout(), b"")
        self._variables: Mapping[str, str] = {}
        self._node_seconds = NODE_SECONDS
        self._fleet: Fleet | None = None
        self._cut = cut
        """How many workers share a job of a suite."""

    @classmethod
    def configured(cls, plan: Plan, options: Mapping[str, object]) -> Self:
        """Connected and with the files of the plan packed; PlanError where that cannot be."""
        known = check_options(options)
        package = pack_plan(plan)
        cluster = _connect(known)
        try:
            _refuse_impossible(plan, cluster.nodes())
            executor = cls(plan.parallelism, cluster, package)
            executor._slots_at_start = max(1, sum(node.slots for node in cluster.nodes()))
            executor._cut = count_sharers(plan, executor.workers, cluster.nodes())
            executor._variables = select_variables(plan, os.environ)
            executor._node_seconds = known.get("node_timeout", NODE_SECONDS)
            # Actors take a second or two to start: they do so while the run is opened.
            first_seed = plan.seed if executor._cut > 1 else None
            executor._fleet = Fleet(cluster, package, executor._variables, first_seed)
            executor._fleet.start_actors()
        except BaseException:
            cluster.close()
            raise
        return executor

    @classmethod
    def check_nodes(cls, options: Mapping[str, object]) -> list[dict[str, Any]]:
        from assay.builtin.executors.ray.node_check import check_nodes

        known = check_options(options)
        return check_nodes(find_address(known), known.get("cpus"))

    @classmethod
    def spread_generators(
        cls, generators: int | None, factory: Callable[[], object], options: Mapping[str, object]
    ) -> AbstractContextManager[Sequence[GeneratorSite]]:
        return open_sites(_connect(check_options(options)), generators, factory)

    @property
    def workers(self) -> int:
        return self._workers or self._slots_at_start

    def describe(self) -> str:
        """For the user, before the run begins."""
        assert self._cluster is not None
        nodes = [node for node in self._cluster.nodes() if node.slots]
        slots = sum(node.slots for node in nodes)
        where = (
            "a Ray cluster started on this machine" if self._cluster.is_started_here else "the Ray cluster"
        )
        at = "" if self._cluster.is_started_here else f" at {self._cluster.address}"
        return f"Workers run on {where}{at}: {len(nodes)} node{'s' * (len(nodes) != 1)}, {slots} slots."

    def close(self) -> None:
        if self._fleet is not None:
            list(self._fleet.stop(is_graceful=False))
        if self._cluster is not None:
            self._cluster.close()

    def map(self, attempt: Attempt, jobs: Iterable[Job], stop: Callable[[], bool]) -> Iterator[Batch]:
        cluster = self._cluster or connect(None)
        name = f"{attempt.__module__}:{attempt.__qualname__}"
        fleet = self._fleet or Fleet(cluster, self._package, self._variables)
        dispatch = Dispatch(fleet, name, iter(jobs), self._workers, self._cut)
        try:
            yield from self._run_jobs(attempt, dispatch, stop)
            yield from dispatch.stop(is_graceful=True)
        except KeyboardInterrupt:
            yield from dispatch.stop(is_graceful=False)
            raise
        finally:
            # Nothing is left to stop, unless this was cut short in a different way.
            list(dispatch.stop(is_graceful=False))
            if self._cluster is None:
                cluster.close()

    def _run_jobs(self, attempt: Attempt, dispatch: Dispatch, stop: Callable[[], bool]) -> Iterator[Batch]:
        seen = monotonic()
        while not stop():
            yield from dispatch.fleet.look_for_nodes()
            inline = yield from dispatch.hand_out()
            if inline is not None:
                # In the runner itself, as on one machine: nothing else runs meanwhile.
                yield from run_inline(attempt, inline, stop)
                continue
            if dispatch.is_over:
                return
            yield from dispatch.collect(POLL_SECONDS)
            yield Batch()
            yield from dispatch.fail_unplaceable(self._node_seconds)
            seen = monotonic() if dispatch.fleet.may_have({}) else seen
            if why := self._find_reason_to_end(dispatch.fleet, seen):
                yield from dispatch.give_up(f"{why}{dispatch.fleet.last_problem}")
                return

    def _find_reason_to_end(self, fleet: Fleet, seen: float) -> str:
        """Why waiting has no point any more; empty while it has. A node was last there when it was `seen`."""
        waited = monotonic() - seen
        if waited > self._node_seconds or fleet.is_hopeless:
            return f"no node of the Ray cluster could be used for {waited:.0f} s"
        if fleet.headless_since is not None:
            waited = monotonic() - fleet.headless_since
            if waited > min(HEAD_SECONDS, self._node_seconds):
                return f"the head of the Ray cluster did not respond for {waited:.0f} s"
        return ""


class Dispatch:
    """Which job is where: draws jobs, sends shares of them to nodes, and takes in what comes back."""

    def __init__(self, fleet: Fleet, attempt: str, jobs: Iterator[Job], workers: int, cut: int) -> None:
        """With 0 workers, as many at a time as the nodes have slots."""
        self.fleet = fleet
        self._attempt = attempt
        self._queues = NodeQueues(jobs)
        self._round_nodes = RoundNodes()
        self._workers = workers
        self._has_limit = workers > 0
        self._cut = cut
        self._numbers = 0
        self._shared_job: SharedJob | None = None
        """The job whose shares are being handed out."""
        self._waiting: list[WorkShare] = []
        """Shares that were lost with their node, and those that need a node that has no room now."""
        self._inline: Job | None = None
        self._has_more = True
        self._missing: dict[tuple[tuple[str, float], ...], float] = {}
        """Resources that waiting shares need and no node has, and since when."""

    @property
    def is_over(self) -> bool:
        return not (self._has_more or self._waiting or self._shared_job or self.fleet.count_at_work())

    def hand_out(self) -> Generator[Batch, None, Job | None]:
        """Send work to every free slot; returns a job that must run inline once nothing else does, else None."""
        for share in [share for share in self._waiting if share.is_over]:
            self._waiting.remove(share)
            yield from share.finish()
        if not self._has_limit:
            self._workers = self.fleet.count_slots()
        orders: dict[str, list[WorkShare]] = {}
        while self.fleet.count_at_work() < self._workers and (found := self._match()) is not None:
            share, node = found
            self._round_nodes.note(share, node.name)
            node.add(share)
            orders.setdefault(node.name, []).append(share)
        for share, node in self._send_ahead():
            self._round_nodes.note(share, node.name)
            node.add(share)
            orders.setdefault(node.name, []).append(share)
        placements: list[Placement] = []
        for name, shares in orders.items():
            if why := self.fleet.nodes[name].start(self._attempt, shares):
                yield from self._fail(self.fleet.nodes[name], shares, why)
                continue
            placements += [Placement(share.job.trial, share.job.process, name) for share in shares]
        if placements:
            yield Batch(placements=tuple(placements))
        if self._inline is not None and not self.fleet.count_at_work():
            inline, self._inline = self._inline, None
            return inline
        return None

    def _match(self) -> tuple[WorkShare, RemoteNode] | None:
        """A piece of work and a node that has room for it; what was lost with a node, or found no room before, comes first."""
        free = (node for node in self.fleet.nodes.values() if node.free_slots > 0)
        nodes = sorted(free, key=lambda node: -node.free_slots)
        if (found := self._match_waiting(nodes, self._may_tear)) is not None:
            return found
        for node in nodes:
            while (
                node.free_slots >= 1 and self._inline is None and len(self._waiting) < max(1, self._workers)
            ):
                share = self._next_share(node.name)
                if share is None:
                    return self._match_waiting(nodes)
                if (taker := self._round_nodes.choose(share, [node, *nodes], self._may_tear)) is not None:
                    return share, taker
                self._waiting.append(share)
        return self._match_waiting(nodes) if self._cut > 1 and self._may_tear else None

    @property
    def _may_tear(self) -> bool:
        """Whether so much waits that a round is torn apart; jobs that are not cut have waited in the queues of their nodes."""
        return self._cut == 1 or len(self._waiting) >= min(MOST_HELD, self._workers)

    def _match_waiting(
        self, nodes: Sequence[RemoteNode], may_tear: bool = True
    ) -> tuple[WorkShare, RemoteNode] | None:
        for share in self._waiting:
            if (node := self._round_nodes.choose(share, nodes, may_tear)) is not None:
                self._waiting.remove(share)
                return share, node
        return None

    def _send_ahead(self) -> Iterator[tuple[WorkShare, RemoteNode]]:
        """The next share for each that is nearly done, where jobs are cut: its worker starts meanwhile, and takes over slot by slot.

        Jobs that are not cut wait for a free slot: they are whole rounds, and the start of one would disturb the other.
        """
        for node in self.fleet.nodes.values() if self._cut > 1 else ():
            for ending in node.find_ending():
                if (following := self._find_following(ending, node.name)) is not None:
                    yield replace(following, after=ending.number), node

    def _find_following(self, ending: WorkShare, node: str) -> WorkShare | None:
        """The share that takes over the slots of another: one that its round needs on this node, else the next one."""
        for share in self._waiting:
            if share.is_like(ending) and self._round_nodes.is_wanted(share, node):
                self._waiting.remove(share)
                return share
        while len(self._waiting) < MOST_HELD and all(share.is_like(ending) for share in self._waiting):
            if (following := self._next_share(node)) is None:
                return None
            if following.is_like(ending) and self._round_nodes.is_wanted(following, node):
                return following
            self._waiting.append(following)
        return None

    def _next_share(self, node: str) -> WorkShare | None:
        """The next piece of work for a node: of the job at hand, or of another one."""
        while self._inline is None:
            if self._shared_job is not None and (job := self._shared_job.next_share()) is not None:
                self._numbers += 1
                return WorkShare(self._numbers, job, self._shared_job)
            self._shared_job = None
            next_job = self._queues.draw(node)
            self._has_more = next_job is not None
            if next_job is None:
                return None
            if next_job.isolation is Isolation.INLINE:
                self._inline = next_job
            else:
                self._shared_job = SharedJob(next_job, self._cut)
        return None

    def collect(self, seconds: float) -> Iterator[Batch]:
        """Results that arrive within this time; shares of nodes that turn out to be lost go back to the waiting ones."""
        for node, results in self.fleet.collect(seconds):
            if results is None:
                yield from self._lose(node)
                continue
            yield from _take_results(node, results)
            if results.problem:
                self.fleet.drop(node, results.problem)
                yield from self._lose(node)

    def _lose(self, node: RemoteNode) -> Iterator[Batch]:
        """A node is gone: the rest of each of its shares is sent elsewhere, at most a few times."""
        self._queues.drop(node.name)
        self._round_nodes.drop(node.name)
        for share in list(node.in_flight.values()):
            node.remove(share.number)
            if share.is_over:
                yield from share.finish()
                continue
            yield from share.note_loss(node.name, node.problem)
            if (rest := share.rest()) is not None:
                self._numbers += 1
                self._waiting.append(WorkShare(self._numbers, rest, share.whole, losses=share.losses))
            else:
                yield from share.finish()

    def _fail(self, node: RemoteNode, shares: Sequence[WorkShare], why: str) -> Iterator[Batch]:
        """What cannot be sent from here cannot be sent to another node either."""
        for share in shares:
            node.remove(share.number)
            yield from share.fail(f"it could not be sent to node {node.name}: {why}")

    def fail_unplaceable(self, seconds: float) -> Iterator[Batch]:
        """Record shares as errors of the harness if no node that can be used has had for so long what they need.

        Nodes that do not count have left, have other software, or die again and again. Once the time is up, later shares with the
        same needs fail at once.
        """
        for share in [share for share in self._waiting if share.job.resources is not None]:
            assert share.job.resources is not None
            needs = count_needs(share.job.resources)
            key = tuple(sorted(needs.items()))
            if self.fleet.may_have(needs):
                self._missing.pop(key, None)
                continue
            waited = monotonic() - self._missing.setdefault(key, monotonic())
            if waited > seconds:
                self._waiting.remove(share)
                text = f"no usable node has had {format_needs(share.job.resources)} for {waited:.0f} s"
                yield from share.fail(f"{text}{self.fleet.last_problem}")

    def give_up(self, why: str) -> Iterator[Batch]:
        """Record every execution of the work at hand as an error of the harness; resumption does it again."""
        nodes = list(self.fleet.nodes.values())
        yield from self.stop(is_graceful=True)
        self.fleet.disconnect()
        for share in [*(share for node in nodes for share in node.in_flight.values()), *self._waiting]:
            yield from share.fail(why)
        self._waiting.clear()
        while (left := self._next_share("") or self._take_inline()) is not None:
            yield from left.fail(why)

    def _take_inline(self) -> WorkShare | None:
        """The job that waits to run inline, as a share like others."""
        if self._inline is None:
            return None
        job, self._inline = self._inline, None
        whole = SharedJob(job, 1)
        whole.next_share()
        return WorkShare(0, job, whole)

    def stop(self, is_graceful: bool) -> Iterator[Batch]:
        """End the workers of all nodes; yields what had arrived there."""
        for node, results in self.fleet.stop(is_graceful):
            yield from _take_results(node, results)


def _take_results(node: RemoteNode, results: NodeResults) -> Iterator[Batch]:
    for number, lines in results.lines:
        if (share := node.in_flight.get(number)) is not None:
            yield from share.take_lines(lines)
    for number in results.done:
        if (ended_share := node.remove(number)) is not None:
            yield from ended_share.finish()


def find_address(options: Mapping[str, Any]) -> str | None:
    """Find the address of the cluster to join: as the settings say, or the variable RAY_ADDRESS; None to start one here."""
    return options.get("address") or os.environ.get("RAY_ADDRESS") or None


def _connect(known: Mapping[str, Any]) -> Cluster:
    return connect(find_address(known), cpus=known.get("cpus"))


def check_options(options: Mapping[str, object]) -> dict[str, Any]:
    """PlanError for a setting that there is not, or of a different type."""
    for key, value in options.items():
        if key not in OPTIONS:
            raise PlanError(
                f"'{key}' is not a setting of the executor 'ray'. {known_names(key, sorted(OPTIONS))}"
            )
        wanted = OPTIONS[key]
        is_right = isinstance(value, (int, float) if wanted is float else wanted) and not isinstance(
            value, bool
        )
        if not is_right or (wanted is not str and value <= 0):  # type: ignore[operator]
            raise PlanError(f"The setting '{key}' of the executor 'ray' cannot be {value!r}.")
    return dict(options)


def _refuse_impossible(plan: Plan, nodes: Sequence[Node]) -> None:
    """PlanError for trials that ask for more than any node has."""
    lacking = [
        f"'{trial.name}' asks for {format_needs(trial.resources)}, which no node of the cluster has."
        for trial in plan.trials
        if trial.resources and not any(node.has(count_needs(trial.resources)) for node in nodes)
    ]
    if lacking:
        raise PlanError("\n".join(lacking))


def format_needs(resources: ResourceRequest) -> str:
    return ", ".join(f"{amount:g} {name}" for name, amount in count_needs(resources).items() if amount)


def count_sharers(plan: Plan, workers: int, nodes: Sequence[Node]) -> int:
    """How many workers share a job: one, unless the plan has fewer jobs than workers find room at the same time.

    A job that is not cut draws the same random numbers as on one machine, so jobs are cut only where slots would be idle. They would be
    if the arms of a round, which run on the same nodes, had to take turns there while other nodes have no round: then jobs
    are cut further, so that a round has the nodes that its arms would have had without turns.
    """
    if plan.question is not None:
        return 1
    counts = [count_processes(trial, plan.order) for trial in plan.trials]
    concurrency = max(trial.concurrency for trial in plan.trials)
    useful = [node.slots for node in nodes if node.slots]
    at_once = max(1, workers // concurrency)
    if max(counts) < len(useful):
        arms = max(Counter(trial.benchmark for trial in plan.trials).values())
        room = max(1, sum(useful) // len(useful) // concurrency)
        at_once *= -(-arms // room)
    jobs = sum(counts)
    return 1 if jobs >= at_once else -(-at_once // max(1, jobs))

"""Load generators on the nodes of a Ray cluster: an actor on each chosen node, which starts the workers there.

Orders for workers hold the headers of requests, and so secrets. They come as arguments in small parts, which Ray sends from process
to process: only arguments of more than 100 kB would be put into the object store, which may write to disk. Actors belong to the
driver: when that is gone, Ray ends them, and workers end when their actor does.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from assay.builtin.executors.ray.cluster import Cluster, Node, place_on
from assay.builtin.executors.ray.failure import describe_failure
from assay.builtin.executors.ray.process_settings import choose_actor_settings, undo_changes
from assay.builtin.executors.ray.software import find_versions, list_differences
from assay.errors import PlanError
from assay.plugin.executor import GeneratorSite, SiteLost

_log = logging.getLogger(__name__)
START_SECONDS = 60.0
"""An actor that is not ready by then is given up."""


class SiteHost:
    """The actor: it has the object whose methods are called from afar."""

    def __init__(self, factory: Callable[[], object]) -> None:
        # Before any process is started: all inherit what is set here.
        undo_changes()
        self._target = factory()

    def find_versions(self) -> dict[str, str]:
        return find_versions()

    def call(self, method: str, *arguments: object) -> Any:
        return getattr(self._target, method)(*arguments)


class RaySite:
    """A generator on a node, and what results call that node."""

    def __init__(self, cluster: Cluster, node: Node, name: str, factory: Callable[[], object]) -> None:
        import ray

        self.node = name
        settings = {**choose_actor_settings(cluster), **place_on(node)}
        self._actor = ray.remote(SiteHost).options(**settings).remote(factory)
        self._versions = self._actor.find_versions.remote()

    def check_versions(self) -> None:
        """PlanError where the node has a different version of Assay, Python or Ray, or does not answer."""
        import ray

        try:
            installed = ray.get(self._versions, timeout=START_SECONDS)
        except Exception as error:
            raise PlanError(
                f"The load generator on '{self.node}' could not start: {describe_failure(error)}."
            ) from None
        if differences := list_differences(find_versions(), installed):
            ours, theirs = differences
            raise PlanError(
                f"The node '{self.node}' has {theirs}, but this machine has {ours}. Install the same versions on every node, "
                "or choose fewer generators."
            )

    def request(self, method: str, *arguments: object) -> Future[Any]:
        answer: Future[Any] = Future()

        def pass_on(future: Future[Any]) -> None:
            error = future.exception()
            if error is None:
                answer.set_result(future.result())
            else:
                answer.set_exception(SiteLost(describe_failure(error)))  # type: ignore[arg-type]

        self._actor.call.remote(method, *arguments).future().add_done_callback(pass_on)
        return answer

    def close(self) -> None:
        import ray

        ray.kill(self._actor)


@contextmanager
def open_sites(
    cluster: Cluster, generators: int | None, factory: Callable[[], object]
) -> Iterator[Sequence[GeneratorSite]]:
    """A site on each of so many nodes of the cluster, or on all that have a CPU; the connection is given up at the end.

    A cluster that was started here is one machine, whose cores all generators share, as they do without Ray.
    """
    sites: list[RaySite] = []
    try:
        nodes = sorted((node for node in cluster.nodes() if node.slots > 0), key=lambda node: node.name)
        wanted = len(nodes) if generators is None else generators
        if nodes and cluster.is_started_here and wanted > len(nodes):
            chosen = {f"{nodes[0].name} #{number}": nodes[0] for number in range(1, wanted + 1)}
        elif 0 < wanted <= len(nodes):
            chosen = {node.name: node for node in nodes[:wanted]}
        else:
            raise PlanError(
                f"{wanted} load generators need {wanted} nodes, one each, but the Ray cluster at {cluster.address} has "
                f"{len(nodes)}. Use --workers to send from several processes of each node."
            )
        _log.warning("Load generators run on Ray: %s.", ", ".join(chosen))
        for name, node in chosen.items():
            sites.append(RaySite(cluster, node, name, factory))
        for site in sites:
            site.check_versions()
        yield sites
    finally:
        for site in sites:
            site.close()
        cluster.close()

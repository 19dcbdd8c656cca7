"""The contract of executors, which decide where workers run: on this machine or on the nodes of a cluster.

The runner (`execute/runner.py`) knows only `Executor`. The other protocols of this module are optional: Assay checks with
`isinstance` whether an executor offers them, so a simple executor needs nothing but `__init__` and `map`. An executor decides
where and when a job runs, and never what it means: limits, seeds, statuses and retries belong to the supervisor that it starts
for each job, so that results do not depend on the executor. `assay.testing.ExecutorContract` tests that for any executor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from assay.model import Batch, Job, Plan, ResourceRequest

if TYPE_CHECKING:
    from concurrent.futures import Future

Attempt = Callable[[Job], Iterator[Batch]]
"""Executes one job and yields what it made, batch by batch."""


@runtime_checkable
class Executor(Protocol):
    """Executes jobs with up to `workers` workers at a time.

    `map` draws a job only when a worker is free. It must not draw ahead, because the runner decides as late as possible whether a
    job is still wanted: a trial that failed too often, a budget that is used up or a question that is decided ends the supply.
    It yields batches in the order in which they arrive, whatever job they belong to, and should yield an empty batch now and
    then while workers are busy: between two batches the runner stores results, shows progress and notices Ctrl-C.

    `attempt` is a module-level function and a job is plain data, so both can be sent to another process. Once `stop()` is true,
    `map` ends its workers, yields what they still report, and returns. On KeyboardInterrupt it ends them at once, yields what has
    arrived, and raises it again.
    """

    def __init__(self, workers: int) -> None: ...

    def map(self, attempt: Attempt, jobs: Iterable[Job], stop: Callable[[], bool]) -> Iterator[Batch]: ...


@runtime_checkable
class BoundedExecutor(Protocol):
    """An executor that knows before a run which resources it can never provide, so that Assay can refuse the plan.

    `find_shortage` is a class method, because planning asks before an executor exists. It returns what the executor lacks of the
    requested resources in a few words, such as "1 GPU, but this machine has none", or empty text if it has everything. Resources
    that are only busy at the moment are not a shortage: the executor waits for them.
    """

    @classmethod
    def find_shortage(cls, resources: ResourceRequest) -> str: ...


@runtime_checkable
class ConfiguredExecutor(Protocol):
    """An executor with settings, or one that has to prepare for a plan before its run begins.

    `configured` is a class method that takes the place of the constructor. Its `options` are the settings under the executor's
    name in assay.toml, overridden by `--set executor.KEY=VALUE`; the plan's `parallelism` is 0 if the user did not choose a number
    of workers. It connects, checks and packs whatever it needs, and raises PlanError for a mistake of the user, which ends the
    command before a run is stored.

    `workers` is the number of concurrent workers, which becomes the run's parallelism. `describe` is one line for the user. `close`
    is called once after the run, however it ended, and must not leave processes behind.
    """

    @property
    def workers(self) -> int: ...

    @classmethod
    def configured(cls, plan: Plan, options: Mapping[str, object]) -> ConfiguredExecutor: ...

    def map(self, attempt: Attempt, jobs: Iterable[Job], stop: Callable[[], bool]) -> Iterator[Batch]: ...

    def describe(self) -> str: ...

    def close(self) -> None: ...


@runtime_checkable
class CheckedExecutor(Protocol):
    """An executor of several machines that `assay doctor --executor NAME` can check.

    `check_nodes` is a class method. It returns one mapping per node with `name`, `ok` and `problems`, a list of texts, and any
    other facts about the node. A node with problems is reported, never raised as an error: the others are worth knowing.
    """

    @classmethod
    def check_nodes(cls, options: Mapping[str, object]) -> list[dict[str, Any]]: ...


class SiteLost(Exception):
    """A site is gone, because its process or its node ended; the text says what is known about why."""


class GeneratorSite(Protocol):
    """A place where a load generator runs, such as a node of a cluster.

    `request` calls a method of the generator there and returns at once. Calls of one site are executed one after the other,
    in their order. Arguments and results are plain data: numbers, text, bytes, and lists and mappings of them. The arguments
    may hold secrets, such as headers of requests: they are passed on in memory and are neither written to a file nor logged.
    The future raises `SiteLost` when the site is gone, else what the method raised.
    """

    @property
    def node(self) -> str:
        """Stable, short, and different for each site."""
        ...

    def request(self, method: str, *arguments: object) -> Future[Any]: ...


@runtime_checkable
class SpreadsGenerators(Protocol):
    """An executor that can run the generators of a load test at several places (`assay load --generators N`).

    `spread_generators` is a class method. It makes an object of a module-level class, without arguments, at each of
    `generators` sites, or of all sites if that is None; `options` are the settings under the executor's name in
    assay.toml. It raises an `AssayError` if it has fewer sites. On leaving, the sites are given up with all processes that
    run there.
    """

    @classmethod
    def spread_generators(
        cls, generators: int | None, factory: Callable[[], object], options: Mapping[str, object]
    ) -> AbstractContextManager[Sequence[GeneratorSite]]: ...

"""What runs on each node: an actor that hosts a pool of supervised workers, the same as on one machine.

The driver sends orders and collects results, both as bytes in the form of `execute.wire`; one thread of the actor sees to the workers, so
that neither waits for the other. Results wait here until they are collected. When `MOST_WAITING` bytes wait, the thread stops to read,
the pipes of the workers fill, and the workers wait too.

The actor belongs to the driver: when that is gone, Ray ends the actor, and the pool's guardian ends the workers.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Condition, Thread
from typing import Any, NamedTuple

from assay.builtin.executors.local import JobResult, WorkerPool
from assay.builtin.executors.ray.gpu_devices import GpuDevices
from assay.builtin.executors.ray.package import FolderMap, Layout, unpack
from assay.builtin.executors.ray.process_settings import GPU_VARIABLE, undo_changes
from assay.builtin.executors.ray.software import find_versions, list_differences
from assay.execute.environment import environment
from assay.execute.guardian import Guardian, remove_folder
from assay.execute.wire import decode_order, encode_batch
from assay.execute.worker_process import dismiss_first_worker, start_first_worker
from assay.model import Batch, Execution, Job
from assay.model.codec import to_plain
from assay.model.redaction import Redaction, known_secrets

MOST_WAITING = 16 * 2**20
GATHER_SECONDS = 0.025
"""How long results wait for others."""
_PREFIX = "assay-node-"
_TOLD_BY_AGENTS = ("measurements", "output", "applied", "error", "log", "detail")
"""Fields of executions that an agent or an experiment can influence."""


class NodeOrder(NamedTuple):
    """A job for a node, in the form of `execute.wire`."""

    number: int
    after: int
    """The number of the job whose slots it takes over as they become free; 0 where it has slots of its own."""
    content: bytes


class NodeResults(NamedTuple):
    """What a node made since it was asked last: lines of each job by its number, and the jobs that are done."""

    lines: list[tuple[int, bytes]]
    done: list[int]
    problem: str = ""
    """Why the node cannot continue, in its own words."""


class NodeWorker:
    """The actor. `prepare` comes first; then `start` and `collect` in any order; `stop` ends all workers."""

    def __init__(self, gpus: int = 0) -> None:
        """With as many GPUs as Ray gives the node."""
        # Before any process is started: all inherit what is set here.
        undo_changes()
        named = os.environ.get(GPU_VARIABLE, "")
        self._devices = GpuDevices((named.split(",") if named else [str(n) for n in range(gpus)])[:gpus])
        self._attempt = ""
        self._folder = tempfile.mkdtemp(prefix=_PREFIX)
        # Ray kills the children of an actor that it ends; the guardian has to outlive it.
        self._guardian = Guardian(self._folder)
        self._folders = FolderMap({})
        self._changed = Condition()
        self._orders: list[NodeOrder] = []
        self._lines: list[tuple[int, bytes]] = []
        self._done: list[int] = []
        self._waiting = 0
        self._ending = ""
        self._problem = ""
        self._thread = Thread(target=self._run, daemon=True)

    def prepare(
        self,
        versions: Mapping[str, str],
        package: bytes,
        layout: Layout,
        variables: Mapping[str, str],
        seed: int | None = None,
    ) -> dict[str, Any]:
        """Unpack the files and take over the variables that agents name; returns the environment of this node.

        With a seed, which all first jobs have, a worker for the first one starts while the driver opens the run.
        RuntimeError where this node has a different version of Assay, Python or Ray than the driver.
        """
        if differences := list_differences(find_versions(), versions):
            raise RuntimeError("it has {}, but the run uses {}".format(*differences))
        os.environ.update(variables)
        known_secrets().learn_environment(os.environ)
        files, trials = Path(self._folder, "files"), Path(self._folder, "trials")
        self._folders = unpack(package, layout, files)
        trials.mkdir()
        here = self._folders.translate(layout.working)
        os.chdir(here if here != layout.working else trials)
        plain: dict[str, Any] = to_plain(environment(Path.cwd(), packages=False))
        if seed is not None:
            # After the environment, whose noise probe it would disturb.
            start_first_worker(self._guardian, seed)
        self._thread.start()
        redacted: dict[str, Any] = known_secrets().redact(plain)
        return redacted

    def start(self, attempt: str, orders: Sequence[NodeOrder]) -> None:
        with self._changed:
            self._attempt = attempt
            self._orders += orders
            self._changed.notify_all()

    def collect(self, seconds: float) -> NodeResults:
        """What has come, after so many seconds at most if nothing has."""
        with self._changed:
            self._changed.wait_for(lambda: self._lines or self._done or self._problem, seconds)
            # More results share the message, unless a slot has become free meanwhile.
            self._changed.wait_for(lambda: self._done or self._problem or self._ending, GATHER_SECONDS)
            results = NodeResults(self._lines, self._done, self._problem)
            self._lines, self._done, self._waiting = [], [], 0
            self._changed.notify_all()
        return results

    def stop(self, is_graceful: bool) -> NodeResults:
        """End the workers, with a moment for teardown or without; returns what had not been collected."""
        with self._changed:
            self._ending = "shut down" if is_graceful else "cut off"
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join()
        self._remove_files()
        return self.collect(0)

    def _remove_files(self) -> None:
        os.chdir("/")
        remove_folder(self._folder)

    def _run(self) -> None:
        """The thread that sees to the workers, from the first order until `stop`."""
        try:
            with self._changed:
                self._changed.wait_for(lambda: self._orders or self._ending)
            with WorkerPool(self._attempt, self._guardian) as pool:
                while not self._ending:
                    for number, after, order in self._take_orders(may_wait=not len(pool)):
                        job = self._move_job(decode_order(order)[0], number, after)
                        self._keep(pool, pool.start_job(job, number, after), [number])
                    if len(pool):
                        self._keep(pool, pool.collect(), pool.numbers)
                dismiss_first_worker()
                self._keep(pool, pool.shut_down() if self._ending == "shut down" else pool.cut_off(), [])
        except Exception as error:
            # First the files: the driver ends this process as soon as it knows, and the guardian has left with the pool.
            self._remove_files()
            with self._changed:
                self._problem = known_secrets().redact_text(f"{type(error).__name__}: {error}")
                self._changed.notify_all()

    def _move_job(self, job: Job, number: int, after: int) -> Job:
        """The job with its paths as they are here, and with a folder of its own: two shares of a job may be here."""
        run_dir = Path(self._folder, "trials", str(number), Path(job.run_dir).name)
        gpus = self._devices.take(number, job.resources.gpu if job.resources else 0.0, after)
        return replace(self._folders.move_job(job), run_dir=str(run_dir), temporary=self._folder, gpus=gpus)

    def _take_orders(self, may_wait: bool) -> list[NodeOrder]:
        with self._changed:
            if may_wait:
                self._changed.wait_for(lambda: self._orders or self._ending)
            orders, self._orders = self._orders, []
        return orders

    def _keep(self, pool: WorkerPool, results: Iterable[JobResult], before: Sequence[int]) -> None:
        """Keep results until they are collected, and note which of the jobs that were active before are done."""
        lines = list(_encode(results))
        with self._changed:
            self._lines += lines
            self._waiting += sum(len(line) for _, line in lines)
            ended_workers = [number for number in before if number not in pool.numbers]
            for number in ended_workers:
                self._devices.release(number)
            self._done += ended_workers
            if lines or self._done:
                self._changed.notify_all()
            self._changed.wait_for(lambda: self._waiting < MOST_WAITING or self._ending)


def _encode(results: Iterable[JobResult]) -> Iterator[tuple[int, bytes]]:
    """Lines of consecutive batches of a job are joined: one message for each job and look."""
    number: int | None = None
    joined: list[bytes] = []
    for result in results:
        if result.number != number and joined and number is not None:
            yield number, b"".join(joined)
            joined = []
        number = result.number
        if (line := encode_batch(_redact_batch(result.batch))) and number is not None:
            joined.append(line)
    if joined and number is not None:
        yield number, b"".join(joined)


def _redact_batch(batch: Batch) -> Batch:
    """Without the secrets of this node: the driver, which stores the batch, knows only its own."""
    secrets = known_secrets()
    return replace(
        batch,
        executions=tuple(_redact_execution(execution, secrets) for execution in batch.executions),
        artifacts=tuple(
            replace(artifact, content=secrets.redact_bytes(artifact.content)) for artifact in batch.artifacts
        ),
        stopped=secrets.redact(batch.stopped),
        unmeasured=secrets.redact(batch.unmeasured),
        versions=secrets.redact(batch.versions),
        notes=secrets.redact(batch.notes),
    )


def _redact_execution(execution: Execution, secrets: Redaction) -> Execution:
    before = {name: getattr(execution, name) for name in _TOLD_BY_AGENTS}
    # Nearly always the same object, and executions are many.
    after = secrets.redact(before)
    return execution if after is before else replace(execution, **after)

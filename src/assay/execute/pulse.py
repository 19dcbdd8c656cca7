"""What passes between a worker and its supervisor beside results.

The pulse: a few numbers in shared memory that tell what the worker is doing, and since when.
"""

from __future__ import annotations

import mmap
import os
import signal
from dataclasses import dataclass
from enum import IntEnum
from math import inf
from time import monotonic_ns

from assay.model import Phase

CANCEL: int = getattr(signal, "SIGRTMAX", signal.SIGUSR2)
"""Asks a worker to end. Not SIGTERM, because an experiment may need that one for children of its own."""

_SIZE = 64
MANY = -1
"""Stands for the number of an execution where several are under way."""
_PHASES = tuple(Phase)
_CODES = {phase: code for code, phase in enumerate(_PHASES)}


class WorkerStage(IntEnum):
    STARTING = 0
    SETUP = 1
    EXECUTING = 2
    BETWEEN = 3
    TEARDOWN = 4
    SEVERED = 5
    """The pipe for results is gone, so there is no other way to say anything."""
    BROKEN = 6
    """The harness itself failed; its traceback is in the log."""
    JUDGING = 7
    """An answer has come and scorers are at work: what goes wrong now is not the agent's fault."""
    PREPARING = 8
    """What an execution needs is being made ready, untimed."""
    RENEWING = 9
    """The worker ends for the sake of the rest of its job: a thread of an execution that took too long goes on in it."""


_STAGES = frozenset(map(int, WorkerStage))


@dataclass(frozen=True, slots=True)
class Beat:
    """What the pulse said at one moment."""

    stage: WorkerStage
    phase: Phase
    repetition: int
    since_ns: int

    def seconds(self) -> float:
        """Endless where the pulse makes no sense, so that whoever spoiled it does not live forever."""
        if not self.since_ns:
            return 0.0
        seconds = (monotonic_ns() - self.since_ns) * 1e-9
        return seconds if seconds > -1 else inf


@dataclass(frozen=True, slots=True)
class Leftovers:
    """What the reaper reported of a worker."""

    has_worker_exited: bool
    processes: int
    survivors: int


class Pulse:
    """Written by the worker in well under a microsecond, read by the supervisor whenever it likes."""

    def __init__(self, fd: int = -1) -> None:
        self._memory = mmap.mmap(fd, _SIZE)
        self._numbers = memoryview(self._memory).cast("q")

    def enter(self, stage: WorkerStage) -> None:
        self._numbers[2] = 0
        self._numbers[3] = stage
        self._numbers[2] = monotonic_ns()

    def begin(self, phase: Phase, repetition: int) -> None:
        numbers = self._numbers
        numbers[2] = 0
        numbers[0] = _CODES[phase]
        numbers[1] = repetition
        numbers[3] = 2  # Stage.EXECUTING: reading it from the class would take as long as all the rest
        numbers[2] = monotonic_ns()

    def again(self) -> None:
        """What is under way goes on, and its time begins anew: a loop that turns is held up by nobody."""
        self._numbers[2] = monotonic_ns()

    def end(self) -> None:
        self._numbers[2] = 0
        self._numbers[3] = 3  # Stage.BETWEEN

    def count_judge_retry(self) -> None:
        self._numbers[4] += 1

    def judge_retries(self) -> int:
        """Requests of judges that the worker has sent again so far."""
        return self._numbers[4]

    def has_exited(self) -> None:
        """Reported by the reaper: the worker has exited, and what it left is being ended."""
        self._numbers[5] = 1

    def has_left(self, processes: int, survivors: int) -> None:
        """Reported by the reaper: how many processes outlived the worker, and how many of them could not be ended."""
        self._numbers[6], self._numbers[7] = processes, survivors

    def leftovers(self) -> Leftovers:
        return Leftovers(bool(self._numbers[5]), max(0, self._numbers[6]), max(0, self._numbers[7]))

    def read(self) -> Beat:
        """What an experiment may have written over is not trusted to be a phase and a stage."""
        code, repetition, since_ns, stage = self._numbers[:4].tolist()
        phase = _PHASES[code] if code in range(len(_PHASES)) else Phase.MEASURED
        return Beat(
            WorkerStage(stage) if stage in _STAGES else WorkerStage.EXECUTING, phase, repetition, since_ns
        )

    def detach(self) -> None:
        """Beat for nobody from now on: a fork of the worker must not speak for it."""
        self._numbers = memoryview(bytearray(_SIZE)).cast("q")

    def close(self) -> None:
        self._numbers.release()
        self._memory.close()


def shared_memory() -> int:
    """A file descriptor of memory that a child can map too."""
    fd = memory_file(b"")
    os.ftruncate(fd, _SIZE)
    return fd


def memory_file(content: bytes) -> int:
    """A file descriptor from which the content can be read; the file has no name, so that nothing is left of it."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("assay")
    else:
        import tempfile

        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    os.write(fd, content)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd

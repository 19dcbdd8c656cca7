"""What passes between a worker and its supervisor beside results: the signal CANCEL, and the status block.

The status block is nine 64-bit numbers in shared memory that say what the worker is doing, and since when, and a short text in which an
experiment says how far it has come. A pipe would not do:
the supervisor needs to know even when the worker is stuck, and an execution of a microsecond must not wait for a system
call. The numbers, by index:

0 the phase, 1 the repetition, 2 the start of the stage in nanoseconds of the monotonic clock (0 while it changes), 3 the
stage, 4 how often judges were asked again, and from the reaper: 5 whether the worker has exited, 6 how many processes it
left, 7 how many of them could not be ended. From the supervisor: 8 how many executions at a time the worker must do without, because
the worker before it still has them under way.
"""

from __future__ import annotations

import mmap
import os
import signal
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from math import inf
from time import monotonic_ns

from assay.model import Phase

CANCEL: int = getattr(signal, "SIGRTMAX", signal.SIGUSR2)
"""Asks a worker to end. Not SIGTERM, because an experiment may need that one for children of its own."""
AHEAD = "ahead"
"""The last argument of a worker that is started before its job is known: it imports what it will need, then waits."""

_SIZE = 72
_NOTE_SIZE = 128
MANY = -1
"""Stands for the number of an execution where several are under way."""
_PHASES = tuple(Phase)
_CODES = {phase: code for code, phase in enumerate(_PHASES)}


class WorkerStage(IntEnum):
    """What a worker is doing. The order is STARTING, SETUP, then EXECUTING and BETWEEN in turn, TEARDOWN; an execution may have
    PREPARING before it and JUDGING after it. A worker that dies leaves the stage in which it died, and `supervise.py` decides by
    it who is to blame."""

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
    """The worker ends for the sake of the rest of its job: a thread of an execution that took too long still runs in it."""


_STAGES = frozenset(map(int, WorkerStage))


@dataclass(frozen=True, slots=True)
class StatusReading:
    """What the status block said at one moment."""

    stage: WorkerStage
    phase: Phase
    repetition: int
    since_ns: int

    def seconds(self) -> float:
        """How long the stage has lasted. Infinite if its start is in the future: an experiment that overwrote the status block must
        not escape its time limit."""
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


class StatusBlock:
    """The numbers in shared memory, written by the worker in well under a microsecond and read by the supervisor at any time.

    Without a descriptor it is private memory, for jobs without a supervisor. There is no lock: the start (number 2) is 0
    while the others change, and a reader takes 0 for "not under way".
    """

    def __init__(self, fd: int = -1) -> None:
        self._memory = mmap.mmap(fd, _SIZE + _NOTE_SIZE)
        self._view = memoryview(self._memory)
        self._numbers = self._view[:_SIZE].cast("q")
        self._note = self._view[_SIZE:]

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
        """Restart the time of what is under way: an event loop that still runs is not held up by any execution."""
        self._numbers[2] = monotonic_ns()

    def end(self) -> None:
        self._numbers[2] = 0
        self._numbers[3] = 3  # Stage.BETWEEN

    def wait(self) -> None:
        """Note that no execution is in progress until the order arrives."""
        self._numbers[2] = 0

    def count_judge_retry(self) -> None:
        self._numbers[4] += 1

    def judge_retries(self) -> int:
        """Requests of judges that the worker has sent again so far."""
        return self._numbers[4]

    def write_note(self, text: str) -> None:
        """How far the execution has come, for the progress line. A torn read is possible; the next read corrects it."""
        self._note[:] = text.encode("utf-8", "replace")[:_NOTE_SIZE].ljust(_NOTE_SIZE, b"\0")

    def read_note(self) -> str:
        return bytes(self._note).rstrip(b"\0").decode("utf-8", "ignore")

    def has_exited(self) -> None:
        """Reported by the reaper: the worker has exited, and what it left is being ended."""
        self._numbers[5] = 1

    def has_left(self, processes: int, survivors: int) -> None:
        """Reported by the reaper: how many processes outlived the worker, and how many of them could not be ended."""
        self._numbers[6], self._numbers[7] = processes, survivors

    def withhold(self, slots: int) -> None:
        """Said by the supervisor: so many of the job's executions at a time may not begin yet."""
        self._numbers[8] = slots

    def count_slots(self, concurrency: int) -> int:
        """How many executions may be under way now, of as many as the job allows."""
        return min(concurrency, max(0, concurrency - self._numbers[8]))

    def leftovers(self) -> Leftovers:
        return Leftovers(bool(self._numbers[5]), max(0, self._numbers[6]), max(0, self._numbers[7]))

    def read(self) -> StatusReading:
        """The state at this moment. An experiment may have overwritten it: values that make no sense are replaced."""
        code, repetition, since_ns, stage = self._numbers[:4].tolist()
        phase = _PHASES[code] if code in range(len(_PHASES)) else Phase.MEASURED
        return StatusReading(
            WorkerStage(stage) if stage in _STAGES else WorkerStage.EXECUTING, phase, repetition, since_ns
        )

    def detach(self) -> None:
        """Write to private memory from now on: a fork of the worker must not speak for it."""
        self._numbers = memoryview(bytearray(_SIZE)).cast("q")
        self._note = memoryview(bytearray(_NOTE_SIZE))

    def close(self) -> None:
        for view in (self._numbers, self._note, self._view):
            view.release()
        self._memory.close()


def create_shared_memory() -> int:
    """A file descriptor of memory that a child can map too."""
    fd = memory_file(())
    os.ftruncate(fd, _SIZE + _NOTE_SIZE)
    return fd


def memory_file(pieces: Iterable[bytes]) -> int:
    """A file descriptor from which the pieces can be read; the file has no name, so that nothing is left of it."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("assay")
    else:
        import tempfile

        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    with open(fd, "wb", closefd=False) as file:
        file.writelines(pieces)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd

"""Supervises one worker from outside: starts it, listens to it, keeps it within its limits, ends it.

The local executor has one `SupervisedWorker` for each job under way and calls `listen` whenever its pipe has something to read,
and `keep_within_limits` all the time. The code under test runs in the worker and may do anything to what connects the two
(`worker_process.py`), so nothing that arrives is trusted: a line without the worker's secret, an execution that was
not asked for, or results of another trial end the worker.

When a worker is gone, `close` works out from the status block and from the account of its job what that means: which execution it
stands for, which job a new worker continues with, and whether a teardown has to be made up for. That is `Handoff`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from time import monotonic

from assay.execute import reaper
from assay.execute.attempt import build_skipped_teardown, build_teardown_failure, remark
from assay.execute.early_stop import DEFAULT_SECONDS
from assay.execute.guardian import Guardian
from assay.execute.job_progress import account_of
from assay.execute.process_tree import descendants_rss, kill_all, kill_descendants, kill_tree, tree_rss
from assay.execute.subject import INTERRUPTED
from assay.execute.teardown import can_run_alone, cleanup_job, has_teardown, teardown_job
from assay.execute.wire import MalformedLine, decode_batches, encode_order
from assay.execute.worker_channel import CANCEL, MANY, StatusReading, WorkerStage
from assay.execute.worker_process import take_process
from assay.model import Batch, Job, Status
from assay.units import signal_name, size

_log = logging.getLogger(__name__)
_READ_BYTES = 1 << 18
"""Bytes of results that are read at a time. As objects, on their way to the database, they take ten times as much."""
START_SECONDS = 60.0
SETUP_SECONDS = 60.0
"""Setup and teardown may always take this long, and ten times the limit of an execution if that is longer."""
EXIT_SECONDS = 1.0
"""How long a worker that has closed its pipe may take to exit."""
LOOK_SECONDS = 0.02
"""Between two looks at the time and the memory that a worker takes."""


@dataclass(frozen=True, slots=True)
class Ending:
    """Why a worker was ended, what it was doing, and for how many seconds it had been doing that."""

    status: Status
    text: str
    reading: StatusReading
    seconds: float


@dataclass(frozen=True, slots=True)
class Handoff:
    """What is left of a worker: its last batches, and the job that a new process should continue."""

    batches: list[Batch]
    job: Job | None = None
    teardown: Job | None = None
    """The teardown or cleanup that a new process does for the worker, before the rest of its job."""
    failed_start: str = ""
    """Why the worker died before it began with its job; then nothing of the job is lost, and it can be started again."""


class SupervisedWorker:
    """One job in one process of its own, below a reaper that ends what the worker leaves behind (see reaper.py).

    The caller polls `fd`, calls `listen` until `is_done`, and then `close` exactly once. `may_restart` says whether a worker that
    dies before it begins is reported as `failed_start`, to be started again, or as a failure of its job. Of the executions that
    its job may have under way, `withheld` do not begin before `withhold` says so.
    """

    def __init__(
        self, job: Job, attempt: str, guardian: Guardian, may_restart: bool = False, withheld: int = 0
    ) -> None:
        self.job = job
        self._may_restart = may_restart
        self.is_done = False
        """Whether nothing more will come from it."""
        self._guardian = guardian
        self._ending: Ending | None = None
        self._account = account_of(job)
        self._is_settled = False
        self._is_malformed = False
        self._was_reaper_killed = False
        self._unread: list[bytes] = []
        self._secret = secrets.token_hex(8)
        """Begins every line of the worker: what the code under test writes into the pipe is no result."""
        self._next_look = 0.0
        self._retries_seen = 0
        self._note_seen = ""
        self._memory_limit = job.limits.memory_bytes or most_of_the_memory()
        guardian.remove_at_end(job.temporary)
        self._worker = take_process(attempt, guardian, job.seed)
        self._process, self.fd = self._worker.process, self._worker.fd
        self._status_block, self._log = self._worker.status_block, self._worker.log
        self.withhold(withheld)
        try:
            self._worker.give_order(encode_order(job, self._secret))
        except BaseException:
            self._worker.dismiss()
            raise
        _log.info("worker %d started: %s, process %d", self._process.pid, job.name, job.process)

    def withhold(self, slots: int) -> None:
        self._status_block.withhold(slots)

    def count_busy_slots(self) -> int:
        """How many executions it has under way, or may begin at any moment."""
        return min(self.job.concurrency, self._account.count_due())

    def listen(self) -> list[Batch]:
        """All batches that have arrived, without waiting; after a line that the worker cannot have written, none."""
        lines = self._lines()
        batches: list[Batch] = []
        if not self._is_malformed:
            decoded, is_intact = self._decode(lines)
            batches = [batch for reported in decoded for batch in self._accept_batch(reported)]
            if not is_intact:
                self._refuse("the experiment wrote into the pipe for results")
        retries = self._status_block.judge_retries()
        if retries > self._retries_seen:
            # In front, since what was retried may be among the executions.
            batches.insert(0, Batch(judge_retries={self.job.trial: retries - self._retries_seen}))
            self._retries_seen = retries
        if (note := self._status_block.read_note()) != self._note_seen:
            batches.append(Batch(notes={self.job.trial: note}))
            self._note_seen = note
        return batches

    def _accept_batch(self, batch: Batch) -> Iterator[Batch]:
        """The batch, as far as it is about this job. An execution that was not asked for, or comes a second time, ends the
        worker."""
        if self._is_malformed:
            return
        for number, execution in enumerate(batch.executions):
            if not self._account.is_asked(execution):
                self._refuse("the worker reported an execution that was not assigned to it")
                yield Batch(batch.executions[:number])
                return
            self._account.take(execution)
        trials = {*batch.stopped, *batch.versions, *batch.usage, *(trial for trial, _ in batch.settled)}
        if trials - {self.job.trial}:
            self._refuse("the worker reported results of a different trial")
            return
        self._is_settled = self._is_settled or bool(batch.settled)
        yield batch

    def _refuse(self, why: str) -> None:
        self._is_malformed = True
        self._end(Status.CRASHED, why)

    def _lines(self) -> list[bytes]:
        """The complete lines that have arrived; the rest of the last one is kept for the next call."""
        # Whether it has exited is asked before reading: what it wrote until then is in the pipe by now. The end of
        # the pipe alone is no sure sign, because a process that outlives the worker may hold it open.
        has_exited = self._process.poll() is not None
        for _ in range(4):
            try:
                data = os.read(self.fd, _READ_BYTES)
            except BlockingIOError:
                self.is_done = has_exited
                break
            if not data:
                self.is_done = True
                break
            self._unread.append(data)
            if b"\n" in data:
                *lines, rest = b"".join(self._unread).split(b"\n")
                self._unread = [rest]
                return lines
        return []

    def _decode(self, lines: list[bytes]) -> tuple[list[Batch], bool]:
        """The batches up to the first line that the worker cannot have written, and whether there is no such line."""
        try:
            return decode_batches(lines, self._secret), True
        except MalformedLine:
            batches: list[Batch] = []
        for line in lines:
            try:
                batches += decode_batches([line], self._secret)
            except MalformedLine:
                break
        return batches, False

    def keep_within_limits(self) -> None:
        """Kill the execution under way if it takes too long or too much memory; keep a flood of output small."""
        now = monotonic()
        if now < self._next_look or self._ending:
            return
        self._next_look = now + LOOK_SECONDS
        self._log.drain_flood()
        # Time first: it is read from shared memory, while memory means a look at every process of the tree.
        reading = self._status_block.read()
        if reading.since_ns and reading.seconds() > (allowed := self._seconds_allowed(reading.stage)):
            self._end(Status.TIMEOUT, f"took longer than {allowed:g} s", reading)
            return
        measure = descendants_rss if reaper.IS_SUPPORTED else tree_rss
        if (held := measure(self._process.pid)) > self._memory_limit:
            text = f"exceeded its memory limit ({size(held)} used, {size(self._memory_limit)} allowed)"
            self._end(Status.OVER_LIMIT, text, reading)

    def _seconds_allowed(self, stage: WorkerStage) -> float:
        if stage is WorkerStage.STARTING:
            return START_SECONDS
        limit = self.job.limits.seconds or DEFAULT_SECONDS
        return limit if stage is WorkerStage.EXECUTING else max(SETUP_SECONDS, 10 * limit)

    def _end(self, status: Status, text: str, reading: StatusReading | None = None) -> None:
        """Kill the worker and note why; the first reason stays. The reaper above it lives on, to end and count the rest."""
        reading = reading or self._status_block.read()
        self._ending = self._ending or Ending(status, text, reading, reading.seconds())
        kill_descendants(self._process.pid) if reaper.IS_SUPPORTED else self._process.kill()

    def ask_to_end(self) -> None:
        """Ask the worker to interrupt the current execution and run its teardown."""
        reading = self._status_block.read()
        self._ending = Ending(Status.CANCELLED, INTERRUPTED, reading, reading.seconds())
        self._process.send_signal(CANCEL)

    def close(self) -> Handoff:
        """End the worker and all that it started; returns what is left of it and of its job."""
        # The order matters: first the worker, by itself or by force, then what is left of its tree, then the guardian is told,
        # which until then would end the same processes if we were killed. What the worker wrote last is still in the pipe.
        if self.is_done:
            self._let_exit()
        outlived = self._kill_all()
        code = self._process.wait()
        seconds = monotonic() - self._worker.started
        _log.info("worker %d ended with code %d after %.2f s", self._process.pid, code, seconds)
        self._guardian.release(self._process.pid)
        batches: list[Batch] = []
        while not self.is_done:
            batches += self.listen()
        if self._is_settled:
            handoff = Handoff([], teardown=self._cleanup_after_teardown())
        else:
            handoff = self._hand_off(code)
        batches += self._about_leftovers(outlived)
        self._worker.close()
        return replace(handoff, batches=batches + handoff.batches)

    def _kill_all(self) -> int:
        """End all that is left of the worker; returns how many processes outlived one that had exited."""
        if self._process.poll() is None:
            kill_tree(self._process.pid)
            self._process.wait()
        elif reaper.IS_SUPPORTED:
            self._was_reaper_killed = not self._status_block.leftovers().has_worker_exited
        return kill_all(self._process.pid, self._worker.mark)

    def _about_leftovers(self, outlived: int) -> Iterator[Batch]:
        """Notes about processes that the worker left behind; `outlived` were found beside those that the reaper ended."""
        left = self._status_block.leftovers()
        number = self.job.process
        if self._is_settled and (total := outlived + left.processes):
            they, them = ("1 process", "it") if total == 1 else (f"{total} processes", "them")
            text = f"Process {number} left {they} running; Assay killed {them}."
            yield Batch(artifacts=(remark(self.job, "outlived", text),))
        if left.survivors:
            text = f"Processes started by process {number} could not be killed: {left.survivors}."
            yield Batch(artifacts=(remark(self.job, "survivors", text),))
        if self._was_reaper_killed and self._status_block.read().stage is not WorkerStage.STARTING:
            text = (
                f"The supervisor of process {number} was killed, so programs that detached themselves from that process "
                "may still run."
            )
            yield Batch(artifacts=(remark(self.job, "unsupervised", text),))

    def _let_exit(self) -> None:
        """Wait for the worker to exit by itself, and for the reaper to end what it left; end one that takes too long."""
        try:
            self._process.wait(EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            if self._status_block.leftovers().has_worker_exited:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(2 * reaper.KILL_SECONDS)
                return
            self._end(Status.CRASHED, describe_exit(0, WorkerStage.SEVERED))

    def _hand_off(self, code: int) -> Handoff:
        """What is left of a worker that died before its job was settled.  The status block shows where it
        died, and every execution that it finished has been read by now.

        The order of the questions matters: whether the worker may be started again, whether it only did a
        teardown, then who is to blame for its death (`_after_death`), and last whether a teardown is
        still due. A cancelled run gets no teardown in a new process.
        """
        reading = self._status_block.read()
        if reading.stage is WorkerStage.STARTING and self._ending is None and self._may_restart:
            return Handoff([], failed_start=describe_exit(code))
        ending = self._ending or Ending(Status.CRASHED, describe_exit(code, reading.stage), reading, 0.0)
        if self.job.is_after_death:
            failed = Batch(artifacts=(build_teardown_failure(self.job, ending.text),))
            return Handoff([failed], teardown=self._cleanup_after_teardown())
        is_due = self._is_teardown_due(reading.stage)
        following = self._following(reading.stage, is_due) if ending.status is not Status.CANCELLED else None
        handoff = self._after_death(reading, ending)
        if following is not None or not is_due:
            return replace(handoff, teardown=following)
        skipped = Batch(artifacts=(build_skipped_teardown(self.job, ending.text),))
        return replace(handoff, batches=[*handoff.batches, skipped])

    def _is_teardown_due(self, stage: WorkerStage) -> bool:
        """Whether the worker died after it had begun with the experiment and before it came to the teardown."""
        begun = (
            WorkerStage.SETUP,
            WorkerStage.PREPARING,
            WorkerStage.EXECUTING,
            WorkerStage.JUDGING,
            WorkerStage.SEVERED,
        )
        is_begun = stage in begun or (stage is WorkerStage.BETWEEN and not self._account.is_closed())
        return self.job.agent is None and is_begun and has_teardown(self.job)

    def _following(self, stage: WorkerStage, is_teardown_due: bool) -> Job | None:
        """What a new process does for this one: a static teardown, or else the cleanup command, which also follows it."""
        if is_teardown_due and can_run_alone(self.job):
            return teardown_job(self.job)
        # A worker that died in its teardown has not tidied up either.
        return cleanup_job(self.job) if stage not in (WorkerStage.STARTING, WorkerStage.BROKEN) else None

    def _cleanup_after_teardown(self) -> Job | None:
        return cleanup_job(self.job) if self.job.is_teardown else None

    def _after_death(self, reading: StatusReading, ending: Ending) -> Handoff:
        """The record in place of the execution that was due, and the job that a new process continues.

        The stage in which the worker died decides. In EXECUTING the execution under way is to blame, and the rest continues;
        in SETUP a new process would fail as well, so there is no rest; in STARTING all executions of the job count as
        errors of the harness. While several executions are under way it is unknown which one it was: nothing is recorded,
        and the rest begins with them, one at a time.
        """
        if ending.status is Status.CANCELLED:
            # With many at a time, all may have ended without a chance to say so.
            is_cut = reading.stage is WorkerStage.EXECUTING and not self._account.is_closed()
            return Handoff([self._instead(ending)] if is_cut else [])
        settled = ((self.job.trial, self.job.process),)
        if reading.stage is WorkerStage.RENEWING:
            rest = self._account.rest(warm_up=False)
            return Handoff([], replace(rest, cautious=0)) if rest else Handoff([Batch(settled=settled)])
        if reading.stage is WorkerStage.TEARDOWN or self._account.is_closed():
            return Handoff(
                [Batch(artifacts=(build_teardown_failure(self.job, ending.text),), settled=settled)]
            )
        # The worker continues until the signal reaches it, so the execution under way may be another than the one that was judged.
        killed_in = (ending.reading.since_ns, ending.reading.phase, ending.reading.repetition)
        if ending.status is Status.TIMEOUT and killed_in != (
            reading.since_ns,
            reading.phase,
            reading.repetition,
        ):
            # The execution that took too long ended at the very moment it was to be killed; the next one is not to blame.
            return Handoff([], self._account.rest())
        if reading.stage is WorkerStage.STARTING:
            text = f"{ending.text} while starting"
            failed = self._account.stand_in_for_all(Status.HARNESS_ERROR, text, self._log.take())
            return Handoff([Batch(failed, settled=settled)])
        if reading.stage is WorkerStage.BROKEN:
            broken = self._instead(replace(ending, status=Status.HARNESS_ERROR))
            return Handoff([broken], self._account.rest())
        if reading.repetition == MANY:
            # Any of those under way may have ended the process: asked one by one, it shows which.
            return Handoff([], self._account.rest())
        # Forged lines are the subject's, though the worker may have come to the scorers before it was ended for them.
        if reading.stage is WorkerStage.JUDGING and not self._is_malformed:
            return Handoff(
                [self._instead(replace(ending, status=Status.HARNESS_ERROR))], self._account.rest()
            )
        # A warm-up is not a result; the new process does without, or it would die there again and again.
        if self._account.is_discarded_phase(reading.phase):
            return Handoff([], self._account.rest(warm_up=False))
        after = [self._instead(ending)]
        return Handoff(after, self._account.rest() if reading.stage is not WorkerStage.SETUP else None)

    def _instead(self, ending: Ending) -> Batch:
        """What is recorded in place of the execution that was due when the worker ended."""
        where = (
            ""
            if ending.reading.stage is WorkerStage.EXECUTING
            else f", during {ending.reading.stage.name.lower()}"
        )
        measurements = {"seconds": ending.seconds} if ending.status is Status.TIMEOUT else {}
        text = f"{ending.text}{where}"
        return Batch((self._account.stand_in(ending.status, text, measurements, self._log.take()),))


def describe_exit(code: int, stage: WorkerStage = WorkerStage.EXECUTING) -> str:
    """
    >>> describe_exit(3), describe_exit(-11)
    ('the process exited with code 3', 'the process was killed by SIGSEGV')
    """
    if stage is WorkerStage.SEVERED:
        return "the experiment closed the pipe for results"
    if code < 0:
        return f"the process was killed by {signal_name(-code)}"
    return f"the process exited with code {code}"


def most_of_the_memory() -> int:
    """The memory limit where a spec sets none, in bytes: 80 % of the machine's, so that a worker is ended before it takes
    the machine down."""
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return 2**62
    return int(total * 0.8)

"""Batches of a run on their way to the database: while it is unreachable they wait, and the run continues.

A batch goes straight to the database as long as that works. Once a write fails because the database is away, batches wait in
memory, beyond `MEMORY_CHARACTERS` in a file (`spill.py`), and are tried again with growing pauses. After `RETRY_SECONDS` the run
gives up; what waits is then in the file, and `assay run --resume` stores it.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep
from typing import NoReturn, TypeVar

from assay.errors import StoreAway, StoreError, StoreFull
from assay.model import Batch
from assay.store import spill
from assay.store.leases import Lease
from assay.units import format_count

RETRY_SECONDS = 60.0
"""How long a database may be away before a run gives up."""
MEMORY_CHARACTERS = 16_000_000
"""What waits in memory; anything beyond it waits in a file."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
_log = logging.getLogger(__name__)
Result = TypeVar("Result")


def retry(operation: Callable[[], Result], seconds: float) -> Result:
    """Call an operation that may be done twice, again and again while the database is away, for at most so long."""
    end, pause = monotonic() + seconds, _FIRST_PAUSE
    while True:
        try:
            return operation()
        except StoreAway:
            if monotonic() + pause > end:
                raise
        sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


class Outbox:
    """The batches of one run, in order.

    Each batch has a number, which the lease counts in the transaction that stores it. A batch whose transaction was cut
    off is written again under the same number, and the count says whether it was stored before.

    Order is kept at all times: nothing goes to the database while something older waits, because the numbers of batches in
    the file are compared with the count of the lease. That is why `put` writes directly only if the outbox is empty, and why
    `_try` stores the file before the memory: what is in the file is older.
    """

    def __init__(
        self, lease: Lease, write: Callable[[Batch], int], folder: str, seconds: float = RETRY_SECONDS
    ) -> None:
        self._lease, self._write, self._seconds = lease, write, seconds
        self._files = spill.spill_files(folder, lease.run_id)
        self._file: Path | None = None
        self._waiting: deque[tuple[int, Batch]] = deque()
        self._last = 0
        self._has_spilled = False
        self._characters = 0
        self._since = self._next_try = self._pause = 0.0

    def stop_retrying(self) -> None:
        self._seconds = 0.0

    @property
    def is_empty(self) -> bool:
        return not self._waiting and not self._has_spilled

    def put(self, batch: Batch) -> int:
        """Store a batch, now or later; returns how many of its executions are new in the database."""
        if self.is_empty:
            try:
                return self._write(batch)
            except StoreAway as away:
                self._since = monotonic()
                self._pause = _FIRST_PAUSE
                self._next_try = self._since + self._pause
                _log.warning("%s Results are kept until it is back.", away)
            except StoreFull as full:
                # A full disk does not empty itself within a minute: the run ends now, with its results in the file.
                self._keep(batch)
                self._give_up(full)
        self._keep(batch)
        # Retries happen when later batches arrive, not in a thread of their own, and between them the run does not wait.
        if monotonic() >= self._next_try:
            self._try()
        return 0

    def drain(self) -> None:
        """Wait until everything is stored; raises what made it give up."""
        while not self.is_empty and not self._try():
            sleep(max(0.0, self._next_try - monotonic()))

    def _try(self) -> bool:
        """Store what waits, the file before the memory; returns whether nothing waits any more."""
        try:
            self._write_spilled()
            while self._waiting:
                # A batch leaves the queue only once it is stored: a write that fails halfway is tried again.
                self._write(self._waiting[0][1])
                self._waiting.popleft()
        except StoreAway as away:
            self._pause = min(2 * self._pause, _LONGEST_PAUSE)
            self._next_try = monotonic() + self._pause
            if monotonic() - self._since >= self._seconds:
                self._give_up(away)
            return False
        except StoreFull as full:
            self._give_up(full)
        self._characters = 0
        _log.warning("The database is back after %.1f s; nothing was lost.", monotonic() - self._since)
        return True

    def _write_spilled(self) -> None:
        """Store what is in the file. If the database goes away again halfway, the lease has counted what was stored, and the
        next try leaves that out."""
        if not self._has_spilled or self._file is None:
            return
        spilled = spill.read(self._file, self._lease.run_id)
        for number, batch in spilled.batches if spilled else ():
            if number > self._lease.batches:
                self._write(batch)
        self._file.unlink(missing_ok=True)
        self._has_spilled, self._file = False, None

    def _keep(self, batch: Batch) -> None:
        """Let a batch wait, in memory or, once there is too much of it, in the file."""
        # The number that the lease will have counted to once this batch is stored, even if others wait before it.
        self._last = max(self._last, self._lease.batches) + 1
        self._waiting.append((self._last, batch))
        self._characters += sum(map(_estimate_size, batch.executions)) + sum(
            len(artifact.content) for artifact in batch.artifacts
        )
        if self._characters > MEMORY_CHARACTERS:
            self._spill()

    def _spill(self) -> None:
        """Moves what waits in memory to the file; it stays in memory where no file can be written."""
        lines = [spill.encode(number, batch) for number, batch in self._waiting]
        first = [] if self._file else [spill.header(self._lease.run_id, self._lease.token)]
        for file in [self._file] if self._file else self._files:
            try:
                spill.append(file, [*first, *lines])
            except OSError as error:
                _log.warning("%s cannot be written: %s", file, error.strerror)
                continue
            self._has_spilled, self._file = True, file
            self._waiting.clear()
            self._characters = 0
            return

    def _give_up(self, error: StoreError) -> NoReturn:
        """The run ends; what could not be stored is in the file, for the process that resumes the run."""
        executions = sum(len(batch.executions) for _, batch in self._waiting)
        if self._waiting:
            self._spill()
        if self._waiting:
            raise type(error)(
                f"{error} {format_count(executions, 'result')} could not be stored or written to a file and will be "
                f"run again: assay run --resume {self._lease.run_id}"
            )
        self._has_spilled = False  # this process writes nothing more
        raise type(error)(
            f"{error} Results that could not be stored are kept in '{self._file}'. "
            f"To store them and continue: assay run --resume {self._lease.run_id}"
        )


def _estimate_size(execution: object) -> int:
    """About how many characters an execution takes in memory; most of them are in its output, log and detail."""
    output, log, detail = (getattr(execution, name) for name in ("output", "log", "detail"))
    text = len(output) if isinstance(output, str) else 1000 if output is None else len(repr(output))
    return 500 + text + len(log or "") + (0 if detail is None else len(repr(detail)))

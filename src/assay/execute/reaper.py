"""Runs a worker and ends everything that it leaves behind.

`python -m assay.execute.reaper REPORT_FD MODULE ARGUMENT…` forks. The child runs `main` of the module. The parent asks the
kernel to hand it every orphan below it (PR_SET_CHILD_SUBREAPER), so that a process cannot leave the worker's tree, whatever
it does to its session, its parents and its environment. When the worker has ended, the parent ends the rest of the tree
and exits as the worker did.

Only Linux has this. Elsewhere the module runs in this very process, and what it leaves is found by its process group.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from importlib import import_module
from types import FrameType

from assay.execute.process_tree import find_descendants, kill, receive_orphans

# Imported before the fork, so that the worker need not import it again.
from assay.execute.worker_channel import CANCEL, StatusBlock

IS_SUPPORTED = sys.platform == "linux"
MODULE = "assay.execute.reaper"
_GRACE_SECONDS = 0.05
"""How long helpers such as the resource tracker of `multiprocessing` have to leave by themselves."""
KILL_SECONDS = 2.0
"""How long the reaper tries to end what the worker left; what still runs then is reported as a survivor."""
_POLL_SECONDS = 0.002


def main() -> None:
    report_fd, module = int(sys.argv[1]), sys.argv[2]
    sys.argv = [module, *sys.argv[3:]]
    if not IS_SUPPORTED:
        import_module(module).main()
        return
    ready, is_ready = os.pipe()
    worker = os.fork()
    if worker:
        os.close(ready)
        _reap(worker, report_fd, is_ready)
    os.close(is_ready)
    # In a session of its own: a worker that signals its process group does not hit the reaper.
    os.setsid()
    run = import_module(module).main
    os.read(ready, 1)  # returns once the parent receives orphans
    os.close(ready)
    run()


def _reap(worker: int, report_fd: int, is_ready: int) -> None:
    """Wait for the worker, end what it leaves, and exit as it did."""
    receive_orphans(True)
    os.close(is_ready)

    def forward(signum: int, frame: FrameType | None) -> None:
        kill(worker, signum)

    for number in (CANCEL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGUSR1):
        signal.signal(number, forward)
    report = _open_report(report_fd)
    # Orphans that were handed to us are reaped on the way; without that they would stay as zombies until the end.
    while (ended := os.waitpid(-1, 0))[0] != worker:
        continue
    if report is not None:
        report.has_exited()
    left, survivors = _end_children()
    if report is not None:
        report.has_left(left, survivors)
    elif survivors:
        processes = "1 process" if survivors == 1 else f"{survivors} processes"
        sys.stderr.write(f"Warning: {processes} that an agent started could not be ended.\n")
    _exit_as(os.waitstatus_to_exitcode(ended[1]))


def _open_report(report_fd: int) -> StatusBlock | None:
    """The status block to report to, if there is one.

    All other files but standard error are closed: a pipe that the reaper held open would not end with the worker.
    """
    report = StatusBlock(report_fd) if report_fd >= 0 else None
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    return report


def _end_children() -> tuple[int, int]:
    """Returns how many processes were left, and how many of them could not be ended."""
    deadline = time.monotonic() + _GRACE_SECONDS
    while _has_children() and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
    left: set[int] = set()
    deadline = time.monotonic() + KILL_SECONDS
    while _has_children():
        # Looked for anew in each round: a process that is being killed may have forked meanwhile.
        pids = find_descendants(os.getpid())
        left |= pids
        if time.monotonic() > deadline:
            return len(left), len(pids)
        # Stopped first: a shell would continue with its next command when the one that it waits for is killed before it.
        for signum in (signal.SIGSTOP, signal.SIGKILL):
            for pid in pids:
                kill(pid, signum)
        time.sleep(_POLL_SECONDS)
    return len(left), 0


def _has_children() -> bool:
    """Whether a child is left, after those that have ended are reaped."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            continue
    except ChildProcessError:
        return False
    return True


def _exit_as(code: int) -> None:
    """Exit with the worker's code, or die of the signal that it died of; without a core dump of its own."""
    if code < 0:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main()

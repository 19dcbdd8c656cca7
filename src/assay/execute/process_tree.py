"""A worker and everything it started: how much memory it holds, and how to end all of it.

Linux tells everything through /proc. Elsewhere psutil is asked, which is slower, and processes that detached themselves
cannot be found by their mark. A process may end between any two looks: that is never an error here.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from threading import Lock
from time import sleep
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import psutil

MARK = "ASSAY_WORKER"
"""Environment variable that all descendants of a worker inherit, also those that detach themselves."""

_PAGE = os.sysconf("SC_PAGE_SIZE")
_PR_SET_CHILD_SUBREAPER = 36
_PF_KTHREAD = 0x00200000
_TICKS = os.sysconf("SC_CLK_TCK")
_MOST_LOOKS = 20
_LOOKS_AT_EXEC = 2000
_LOOKS_AT_EMPTY = 10
_EXEC_SECONDS = 0.001
_MOST_ROUNDS = 1000
_HAS_PROC = os.path.exists("/proc/self/statm")  # noqa: PTH110 (see _read)
_LISTS_CHILDREN = os.path.exists("/proc/thread-self/children")  # noqa: PTH110


def descendants_rss(pid: int) -> int:
    """Resident bytes of all descendants of a process."""
    return sum(_rss(member) for child in find_children(pid) for member in find_family(child))


def tree_rss(pid: int) -> int:
    """Resident bytes of a process and its descendants."""
    return sum(_rss(member) for member in find_family(pid))


class TreeUsage(NamedTuple):
    """What a process and its descendants hold at one moment."""

    processes: int
    rss: int
    cpu_seconds: float
    """CPU time of the running processes, and of their children that have ended and were waited for; in steps of 10 ms."""


def tree_usage(pid: int, most: int | None = None) -> TreeUsage:
    """Processes and resident bytes of a tree; counting stops soon after `most` processes, as there may be no end of them."""
    members, pages, ticks, waiting = 0, 0, 0, [pid]
    while waiting and (most is None or members <= most):
        member = waiting.pop()
        members += 1
        waiting += find_children(member)
        with contextlib.suppress(OSError, IndexError, ValueError):
            # proc(5): utime, stime, cutime and cstime are fields 14 to 17, rss is 24.
            fields = _read_stat(member)
            ticks += sum(map(int, fields[11:15]))
            pages += int(fields[21])
    return TreeUsage(members, pages * _PAGE, ticks / _TICKS)


def find_family(pid: int) -> Iterator[int]:
    """A process and its descendants, without a look at all others: quick on a busy machine, too."""
    yield pid
    for child in find_children(pid):
        yield from find_family(child)


def open_descendants(pid: int) -> Iterator[psutil.Process]:
    """The descendants of a process for those who want to know more of each; found without psutil, which looks at all processes."""
    import psutil

    for member in islice(find_family(pid), 1, None):
        with contextlib.suppress(psutil.Error):
            yield psutil.Process(member)


def find_listener(port: int) -> int:
    """The id of the process that listens on a port of this machine; LookupError says why it is unknown."""
    import psutil

    listening = [
        socket
        for socket in psutil.net_connections("tcp")
        if socket.status == psutil.CONN_LISTEN and socket.laddr and socket.laddr.port == port
    ]
    if not listening:
        raise LookupError(f"nothing on this machine listens on port {port}")
    pids = [socket.pid for socket in listening if socket.pid]
    if not pids:
        raise LookupError(f"the process that listens on port {port} belongs to another user")
    return pids[0]


def find_children(pid: int) -> list[int]:
    pids: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            pids += map(int, _read(f"/proc/{pid}/task/{task}/children").split())
    except OSError:
        return pids or _children_elsewhere(pid)
    return pids


def _children_elsewhere(pid: int) -> list[int]:
    if _LISTS_CHILDREN:
        return []
    import psutil

    with contextlib.suppress(psutil.Error):
        return [child.pid for child in psutil.Process(pid).children()]
    return []


def _rss(pid: int) -> int:
    try:
        return int(_read(f"/proc/{pid}/statm").split()[1]) * _PAGE
    except (OSError, IndexError, ValueError):
        return _rss_elsewhere(pid)


def _rss_elsewhere(pid: int) -> int:
    if _HAS_PROC:
        return 0
    import psutil

    with contextlib.suppress(psutil.Error):
        return int(psutil.Process(pid).memory_info().rss)
    return 0


def find_namespace_inits(pid: int) -> list[int]:
    """Children of a process that are the first process of a PID namespace, also those that have ended and were not waited for."""
    return [child for child in find_children(pid) if _is_namespace_init(child)]


def _is_namespace_init(pid: int) -> bool:
    with contextlib.suppress(OSError):
        for line in _read(f"/proc/{pid}/status").splitlines():
            # proc(5): the PID in each namespace, from ours to its own.
            if line.startswith(b"NSpid:"):
                return len(numbers := line.split()) > 2 and numbers[-1] == b"1"
    return False


def receive_orphans(is_on: bool) -> None:
    """Whether the kernel makes this process the parent of every orphan below it; Linux only."""
    import ctypes

    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, int(is_on), 0, 0, 0)


_receiving = 0
_receiving_lock = Lock()


@contextlib.contextmanager
def adopt_orphans() -> Iterator[None]:
    """Receive orphans as long as any thread is within this block."""
    _count_receivers(1)
    try:
        yield
    finally:
        _count_receivers(-1)


def _count_receivers(change: int) -> None:
    global _receiving
    with _receiving_lock:
        _receiving += change
        receive_orphans(_receiving > 0)


def kill_received(mark: str, session: int, killed: set[int]) -> None:
    """End every process with this mark or session that is a child of this process, or below one, and wait for it.

    `killed` are processes of the program that were killed before; those that are our children by now are waited for too.

    Called when the program that has the mark has ended, in the process that started it and receives orphans. Each process that
    the program left is then a child of ours, or below one that the program left, so that nothing is missed.
    """
    for _ in range(_MOST_ROUNDS):
        children = find_children(os.getpid())
        left = [
            pid
            for pid in children
            if pid in killed or _is_of_session(pid, session) or _find_marked_processes(mark, [pid])
        ]
        for pid in left:
            killed = killed | kill_tree(pid)
            # Another thread that ran a program meanwhile may have waited for it.
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
        # A child that ended during the look, or by our hand, has left its own children to us.
        if not left and set(children).issuperset(find_children(os.getpid())):
            return


def _is_of_session(pid: int, session: int) -> bool:
    with contextlib.suppress(OSError, IndexError):
        return int(_read_stat(pid)[3]) == session
    return False


def kill_all(pid: int, mark: str) -> int:
    """End the process group of a worker that has exited and every process that carries its mark.

    Returns how many processes had outlived the worker.
    """
    outlived = _find_marked_processes(mark, _all_processes()) - {pid}
    kill_group(pid)
    return len((outlived | kill_marked(mark)) - {pid})


def kill_tree(pid: int) -> set[int]:
    """End a process and all its descendants, and return these.

    They are stopped first, from the top down, until a look finds no new one: what is stopped starts nothing more, and
    no parent ends before its children are known. A shell that was not stopped would continue with its next command as
    soon as the one that it waits for is killed. A reaper at the top is ended last, as it receives the orphans.
    """
    kill(pid, signal.SIGSTOP)
    stopped: set[int] = set()
    while fresh := find_descendants(pid) - stopped:
        for descendant in fresh:
            kill(descendant, signal.SIGSTOP)
        stopped |= fresh
    for descendant in stopped:
        kill(descendant)
    kill(pid)
    return stopped


def kill_descendants(pid: int) -> None:
    """End the worker below a reaper, which then ends what the worker started and reports how many processes that were.

    A reaper that has not forked yet is ended itself.
    """
    for member in find_children(pid) or [pid]:
        kill(member)


def find_descendants(pid: int) -> set[int]:
    """All descendants that run now, from one look at the parents of all processes."""
    children: dict[int, list[int]] = {}
    for process in _all_processes():
        parent = _running_parent(process)
        if parent is not None:
            children.setdefault(parent, []).append(process)
    pids: set[int] = set()
    waiting = [pid]
    while waiting:
        fresh = children.get(waiting.pop(), [])
        pids.update(fresh)
        waiting += fresh
    return pids


def _running_parent(pid: int) -> int | None:
    """Return the parent of a process; None for a process that has ended.

    A zombie counts as ended, although its exit code was not read yet.
    """
    try:
        state, parent = _read_stat(pid)[:2]
    except (OSError, ValueError):
        return None
    return None if state in b"ZX" else int(parent)


def is_at_work(pid: int) -> bool:
    """Whether the process computes, or waits for a processor or a disk; False where the system does not say."""
    try:
        return _read_stat(pid)[0] in b"RD"
    except (OSError, IndexError):
        return False


def kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def kill_marked(prefix: str) -> set[int]:
    """End every process whose mark has this prefix, until a look finds no new one.

    A process that forks and exits during a look leaves a child that the look has missed, so it counts only if no process began
    meanwhile; on a machine where programs start all the time, it counts after a few tries all the same.
    """
    killed: set[int] = set()
    for _ in range(_MOST_LOOKS):
        before = set(_all_processes())
        fresh = _find_marked_processes(prefix, before) - killed
        for pid in fresh:
            kill_tree(pid)
        killed |= fresh
        if not fresh and before.issuperset(_all_processes()):
            break
    return killed


def kill(pid: int, signum: int = signal.SIGKILL) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signum)


def _find_marked_processes(prefix: str, among: Iterable[int]) -> set[int]:
    mark = f"{MARK}={prefix}".encode()
    marked: set[int] = set()
    for pid in among:
        with contextlib.suppress(OSError):
            if mark in _read_environment(pid):
                marked.add(pid)
    return marked


def _read_environment(pid: int) -> bytes:
    """The environment that a process was started with; OSError if it has gone or is another user's.

    It is empty for the moment in which the process becomes another program, and while it exits, until its children have
    another parent. On a busy machine such a moment lasts, so an empty one is read again.
    """
    empty = 0
    for _ in range(_LOOKS_AT_EXEC):
        if content := _read(f"/proc/{pid}/environ"):
            return content
        # proc(5): state, flags, and the addresses where the environment begins and ends. These are both 0 until the new program
        # has one, the same for a moment, and stay the same only if it is really empty.
        fields = _read_stat(pid)
        begin, end = map(int, fields[47:49])
        empty += 0 < begin == end
        if fields[0] in b"ZX" or int(fields[6]) & _PF_KTHREAD or empty > _LOOKS_AT_EMPTY:
            break
        sleep(_EXEC_SECONDS)
    return b""


def _read_stat(pid: int) -> list[bytes]:
    """The fields of proc(5) from the third on, the state; the second may have blanks."""
    return _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()


def _read(path: str) -> bytes:
    # Without pathlib: this is done many times a second beside executions, and the guardian starts faster without loading it.
    with open(path, "rb") as file:  # noqa: PTH123
        return file.read()


def _all_processes() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []

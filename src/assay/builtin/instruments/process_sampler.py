"""Watches a process from outside: runs as a program of its own, next to the worker that the instrument `profile` is in.

    python process_sampler.py PID INTERVAL TRACE PY_SPY

It starts py-spy on the process, says `ready` (or why py-spy cannot sample) on standard output, and then looks at the process every
INTERVAL seconds until its standard input has something to read. What it saw is then written to standard output as one JSON document.

py-spy knows which line each thread is in, but not why the thread waits. The kernel does: a blocked thread's system call is in /proc. A
thread in `clock_nanosleep` sleeps, one in `futex` waits for a lock, one in `recvfrom` for data. `profile_merge` joins both by time.

The program imports nothing of Assay, so that it starts quickly.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CPU, SLEEP, LOCK, TIMED_LOCK, IO, CHILD, OTHER = "CSLGIPW"
"""What a thread is doing: runs (or is ready to), sleeps, waits for a lock, for a lock at most so long, for input or output, for another
process, or for something else. Python's interpreter lock is always waited for at most so long."""

MOST_ROWS = 6000
"""Each time this many rows were taken, rows are taken half as often: a minute at 100 Hz is kept in full."""
START_SECONDS = 20.0
NICENESS = 5
_PAGE = os.sysconf("SC_PAGE_SIZE")
_NO_TIMEOUT = 0xFFFFFFFF

_X86 = {
    SLEEP: (35, 230),
    LOCK: (202, 449, 455),
    IO: (0, 1, 7, 17, 18, 19, 20, 23, 42, 43, 44, 45, 46, 47, 74, 75, 232, 257, 270, 271, 281, 288, 441),
    CHILD: (61, 247),
}
_ARM = {
    SLEEP: (101, 115),
    LOCK: (98, 449, 455),
    IO: (22, 56, 63, 64, 65, 66, 67, 68, 72, 73, 82, 83, 202, 203, 206, 207, 211, 212, 242, 441),
    CHILD: (95, 260),
}
_TABLES = {"x86_64": _X86, "aarch64": _ARM}
_STATES = {
    number: state for state, numbers in _TABLES.get(platform.machine(), {}).items() for number in numbers
}
_EPOLL = {"x86_64": (232, 281, 441), "aarch64": (22, 441)}.get(platform.machine(), ())
_SELECT = {"x86_64": (23, 270), "aarch64": (72,)}.get(platform.machine(), ())
_POLL = {"x86_64": (7, 271), "aarch64": (73,)}.get(platform.machine(), ())


_OWN: set[int] = set()
"""This program and py-spy: descendants of the process that they watch, but none of its work."""


def read_state(pid: int, tid: str) -> str:
    """What a thread is doing; of a lock also its address, by which threads that wait for the same one are found."""
    folder = f"/proc/{pid}/task/{tid}"
    with open(f"{folder}/stat", "rb") as file:  # noqa: PTH123 (many times a second)
        if file.read().rpartition(b") ")[2][:1] == b"R":
            return CPU
    try:
        with open(f"{folder}/syscall", "rb") as file:  # noqa: PTH123
            words = file.read().split()
    except OSError:
        return OTHER
    if len(words) < 6 or words[0] in (b"running", b"-1"):
        return CPU if words[:1] == [b"running"] else OTHER
    return _read_call(pid, int(words[0]), [int(word, 16) for word in words[1:6]])


def _read_call(pid: int, number: int, arguments: list[int]) -> str:
    state = _STATES.get(number, OTHER)
    if state == LOCK:
        address, _, _, timeout, _ = arguments
        return TIMED_LOCK if timeout else f"{LOCK}{address:x}"
    watches_nothing = (number in _SELECT and arguments[0] == 0) or (number in _POLL and arguments[1] == 0)
    if watches_nothing:
        return SLEEP
    if number in _EPOLL and not _watches_others(pid, arguments[0]):
        # An event loop that watches nothing but its own wake-up pipes waits for a timer, or for another thread.
        return OTHER if arguments[3] & _NO_TIMEOUT == _NO_TIMEOUT else SLEEP
    return state


def _watches_others(pid: int, descriptor: int) -> bool:
    """Whether an epoll descriptor watches anything that comes from outside of the process."""
    try:
        with open(f"/proc/{pid}/fdinfo/{descriptor}", "rb") as file:  # noqa: PTH123
            watched = tuple(
                int(line.split()[1]) for line in file.read().splitlines() if line.startswith(b"tfd:")
            )
        links = {fd: os.readlink(f"/proc/{pid}/fd/{fd}") for fd in watched}  # noqa: PTH115
    except OSError:
        return True
    key = (pid, *sorted(links.items()))
    if key not in _WATCHED:
        _WATCHED[key] = not all(_is_internal(pid, link) for link in links.values())
    return _WATCHED[key]


_WATCHED: dict[tuple[object, ...], bool] = {}


def _is_internal(pid: int, link: str) -> bool:
    """Whether both ends of a descriptor are in the process, as those by which an event loop wakes itself.

    The two ends of a pair of sockets have successive numbers; so may two connections, but these are listed as such.
    """
    if link.startswith("anon_inode:"):
        return True
    with contextlib.suppress(OSError):
        links = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]  # noqa: PTH115
        if link.startswith("pipe:"):
            return links.count(link) > 1
        if link.startswith("socket:["):
            number = int(link[8:-1])
            tables = (Path(f"/proc/{pid}/net/{name}").read_text() for name in ("tcp", "tcp6", "udp", "udp6"))
            is_connection = any(f" {number} " in table for table in tables)
            return not is_connection and any(f"socket:[{number + step}]" in links for step in (-1, 1))
    return False


def read_cpu_seconds(pid: int) -> float:
    """CPU time of another process to the nanosecond: the clock id is the one of clock_getcpuclockid(3)."""
    return time.clock_gettime((~pid << 3) | 2)


def list_children(pid: int) -> Iterator[int]:
    """The direct children of a process, and theirs."""
    with contextlib.suppress(OSError):
        for tid in os.listdir(f"/proc/{pid}/task"):
            for child in Path(f"/proc/{pid}/task/{tid}/children").read_text().split():
                yield int(child)
                yield from list_children(int(child))


def read_row(pid: int) -> dict[str, Any]:
    """One look at the process: the state of each thread, and what it and its children have used up to now."""
    at = time.monotonic()
    threads: dict[str, str] = {}
    for tid in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError):
            threads[tid] = read_state(pid, tid)
    cpu, rss, operations, moved = 0.0, 0, 0, 0
    for process_id in (pid, *(child for child in list_children(pid) if child not in _OWN)):
        with contextlib.suppress(OSError):
            cpu += read_cpu_seconds(process_id)
            rss += int(Path(f"/proc/{process_id}/statm").read_bytes().split()[1]) * _PAGE
            counters = dict(
                line.split(b": ") for line in Path(f"/proc/{process_id}/io").read_bytes().splitlines()
            )
            operations += int(counters[b"syscr"]) + int(counters[b"syscw"])
            moved += int(counters[b"rchar"]) + int(counters[b"wchar"])
    return {"at": at, "threads": threads, "cpu": cpu, "rss": rss, "io": operations, "io_bytes": moved}


def start_py_spy(
    program: str, pid: int, interval: float, trace: str
) -> tuple[subprocess.Popen[str] | None, str]:
    """py-spy once it samples, or why it does not."""
    if not program:
        return None, "py-spy is not installed"
    options = [
        "--format",
        "chrometrace",
        "--rate",
        str(round(1 / interval)),
        "--idle",
        "--threads",
        "--nonblocking",
    ]
    command = [program, "record", "--pid", str(pid), *options, "--duration", "unlimited", "--output", trace]
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    except OSError as error:
        return None, f"py-spy cannot be started: {error.strerror}"
    _OWN.add(process.pid)
    assert process.stdout is not None
    output: list[str] = []
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if not select.select([process.stdout], [], [], 0.1)[0]:
            continue
        line = process.stdout.readline()
        if "Sampling process" in line:
            return process, ""
        if not line:
            break
        output.append(line.strip())
    process.kill()
    process.wait()
    return None, " ".join(filter(None, output)) or "py-spy said nothing"


def main(pid: int, interval: float, trace: str, program: str) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is for the run, which then ends this program
    # Where CPUs are scarce, the subject goes first, so that watching slows it less.
    os.nice(NICENESS)
    _OWN.add(os.getpid())
    py_spy, problem = start_py_spy(program, pid, interval, trace)
    began = time.monotonic()
    print(json.dumps({"problem": problem}), flush=True)  # noqa: T201
    rows: list[dict[str, Any]] = []
    due = began
    while True:
        with contextlib.suppress(OSError):
            rows.append(read_row(pid))
        if len(rows) % MOST_ROWS == 0:
            interval *= 2
        due = max(due + interval, time.monotonic())
        if select.select([sys.stdin], [], [], max(0.0, due - time.monotonic()))[0]:
            break
    with contextlib.suppress(OSError):
        rows.append(read_row(pid))
    if py_spy is not None:
        py_spy.send_signal(signal.SIGINT)
        try:
            py_spy.wait(10)
        except subprocess.TimeoutExpired:
            py_spy.kill()
            py_spy.wait()
    json.dump({"began": began, "rows": rows}, sys.stdout)


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), sys.argv[3], sys.argv[4])

"""Runs within the limited process: executes what an output holds, then the tests, and reports each as a line.

A fence against mistakes, not against attackers: code that wants out of its own interpreter will find a way.
A bare interpreter runs it as a file, so it imports nothing of ours.
"""

from __future__ import annotations

import json
import math
import os
import resource
import signal
import sys
import types
from typing import Any

_FORBIDDEN = frozenset({
    "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty", "os.kill", "os.killpg",
    "subprocess.Popen", "pty.spawn", "signal.pthread_kill", "ctypes.dlopen", "ctypes.dlsym",
    "socket.connect", "socket.bind", "socket.sendto", "socket.getaddrinfo", "socket.gethostbyname",
})  # fmt: skip
_OF_ONE_PATH = frozenset({
    "os.remove", "os.rmdir", "os.mkdir", "os.chmod", "os.chown", "os.truncate", "os.chdir", "shutil.rmtree",
})  # fmt: skip
_OF_TWO_PATHS = frozenset({"os.rename", "os.link", "os.symlink", "shutil.move"})
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def main() -> None:
    order = json.loads(sys.stdin.buffer.read())
    report = _private_copy_of_stdout()
    _limit(order)
    module = types.ModuleType("answer")
    sys.modules["answer"] = module
    sys.addaudithook(_Fence(os.path.realpath(".")))
    for source in order["sources"]:
        _tell(report, order["token"], "code", _attempted(source, module.__dict__))
    for test in order["tests"]:
        error = _tested(test, module.__dict__)
        _tell(report, order["token"], "setup" if test.get("is_setup") else "test", error)
    os._exit(0)


def _private_copy_of_stdout() -> int:
    """What the code prints goes nowhere; what we report goes where it does not look."""
    report = os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nothing, fd)
    return report


def _limit(order: dict[str, Any]) -> None:
    seconds = math.ceil(order["seconds"])
    # Ends this process also when nobody is left to end it.
    signal.alarm(seconds + 2)
    _lower(resource.RLIMIT_CPU, seconds + 1)
    _lower(resource.RLIMIT_AS, order["memory_bytes"])
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_FSIZE, 64 * 2**20)
    _lower(resource.RLIMIT_NOFILE, 64)
    # Counts every thread of this user, so it cannot be tight.
    _lower(resource.RLIMIT_NPROC, 4096)


def _lower(kind: int, value: int) -> None:
    hard = resource.getrlimit(kind)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    try:
        resource.setrlimit(kind, (value, value))
    except (OSError, ValueError):
        # Not every system has every limit; the parent's clock holds everywhere.
        return


class _Fence:
    """An audit hook: no new processes, no signals, no sockets, no writing outside the working folder."""

    def __init__(self, home: str) -> None:
        self._home = home + os.sep

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in _FORBIDDEN:
            raise PermissionError(f"{event} is not allowed here")
        for path in self._touched(event, arguments):
            if isinstance(path, str | bytes | os.PathLike) and not self._is_inside(os.fsdecode(path)):
                raise PermissionError(f"{event} is not allowed outside the working folder")

    def _touched(self, event: str, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        if event in _OF_TWO_PATHS:
            return arguments[:2]
        if event in _OF_ONE_PATH or (event == "open" and (arguments[2] or 0) & _WRITING):
            return arguments[:1]
        return ()

    def _is_inside(self, path: str) -> bool:
        return path == os.devnull or (os.path.realpath(path) + os.sep).startswith(self._home)


def _attempted(source: str, namespace: dict[str, Any]) -> str:
    """The error as text, or nothing; whatever the code raises is its own business."""
    try:
        exec(compile(source, "<answer>", "exec", dont_inherit=True), namespace)  # noqa: S102 - what this process is for
    except BaseException as error:
        return _described(error)
    return ""


def _tested(test: dict[str, Any], namespace: dict[str, Any]) -> str:
    if "call" not in test:
        return _attempted(test["source"], namespace)
    try:
        called = compile(test["call"], "<test>", "eval", dont_inherit=True)
        given = eval(called, namespace)  # noqa: S307 - what this process is for
        return "" if _same(given, test["expected"]) else f"{test['call'][:60]} gave {repr(given)[:100]}"
    except BaseException as error:
        return _described(error)


def _same(given: Any, expected: Any) -> bool:
    if isinstance(given, float) or isinstance(expected, float):
        are_numbers = isinstance(given, int | float) and isinstance(expected, int | float)
        return are_numbers and math.isclose(given, expected, rel_tol=1e-9, abs_tol=1e-12)
    if isinstance(given, list | tuple) and isinstance(expected, list):
        return len(given) == len(expected) and all(map(_same, given, expected))
    if isinstance(given, dict) and isinstance(expected, dict):
        return given.keys() == expected.keys() and all(_same(given[key], expected[key]) for key in expected)
    return bool(given == expected)


def _described(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"[:200].removesuffix(": ")
    except BaseException:
        return "an error that cannot be shown"


def _tell(report: int, token: str, kind: str, error: str) -> None:
    line = json.dumps([token, kind, error]).encode() + b"\n"
    while line:
        line = line[os.write(report, line) :]


if __name__ == "__main__":
    main()

"""Runs within the limited process: executes what an output holds, then the tests, and reports each as a line.

A fence against mistakes, not against attackers: code that wants out of its own interpreter will find a way.
It is run as a file by a bare interpreter, so it imports nothing of ours.
"""

import json
import math
import os
import resource
import signal
import sys

_FORBIDDEN = (
    "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty", "os.kill", "os.killpg", "os.putenv",
    "subprocess.Popen", "pty.spawn", "signal.pthread_kill", "ctypes.dlopen", "ctypes.dlsym",
    "socket.connect", "socket.bind", "socket.sendto", "socket.getaddrinfo", "socket.gethostbyname",
)  # fmt: skip
_OF_PATHS = (
    "os.remove", "os.rmdir", "os.rename", "os.mkdir", "os.chmod", "os.chown", "os.link", "os.symlink",
    "os.truncate", "os.chdir", "shutil.rmtree", "shutil.move",
)  # fmt: skip
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def main():
    order = json.loads(sys.stdin.buffer.read())
    report = _private_copy_of_stdout()
    _limit(order)
    _fence(os.path.realpath(os.getcwd()))
    namespace = {"__name__": "__answer__"}
    for source in order["sources"]:
        error = _attempted(source, namespace)
        if error:
            _tell(report, order["token"], "code", error)
    for test in order["tests"]:
        error = _tested(test, namespace)
        _tell(report, order["token"], "setup" if test.get("is_setup") else "test", error)
    os._exit(0)


def _private_copy_of_stdout():
    """What the code prints goes nowhere; what we report goes where it does not look."""
    report = os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nothing, fd)
    return report


def _limit(order):
    seconds = math.ceil(order["seconds"])
    # Ends this process also when nobody is left to end it.
    signal.alarm(seconds + 2)
    _lower(resource.RLIMIT_CPU, seconds + 1)
    _lower(resource.RLIMIT_AS, order["memory_bytes"])
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_FSIZE, 64 * 2**20)
    _lower(resource.RLIMIT_NOFILE, 64)
    _lower(resource.RLIMIT_NPROC, 64 if os.getuid() == 0 else 0)


def _lower(kind, value):
    hard = resource.getrlimit(kind)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    try:
        resource.setrlimit(kind, (value, value))
    except (OSError, ValueError):
        # Not every system has every limit; the parent's clock holds everywhere.
        pass


def _fence(home):
    def inside(path):
        return os.path.realpath(os.fspath(path)).startswith(home + os.sep) if not isinstance(path, int) else True

    def watch(event, arguments):
        if event in _FORBIDDEN:
            raise PermissionError(f"{event} is not allowed here")
        writes = event == "open" and arguments[2] & _WRITING and isinstance(arguments[0], (str, bytes))
        if (writes or event in _OF_PATHS) and not all(inside(os.fsdecode(path)) for path in _paths(event, arguments)):
            raise PermissionError(f"{event} is not allowed outside the working folder")

    sys.addaudithook(watch)


def _paths(event, arguments):
    two = event in ("os.rename", "os.link", "os.symlink", "shutil.move")
    return [path for path in arguments[: 2 if two else 1] if isinstance(path, (str, bytes))]


def _attempted(source, namespace):
    """Runs it; the error as text, or nothing. Whatever the code raises is its own business."""
    try:
        exec(compile(source, "<answer>", "exec"), namespace)
    except BaseException as error:
        return _described(error)
    return ""


def _tested(test, namespace):
    if "call" not in test:
        return _attempted(test["source"], namespace)
    try:
        given = eval(compile(test["call"], "<test>", "eval"), namespace)
        return "" if _same(given, test["expected"]) else f"gave {_shown(given)}"
    except BaseException as error:
        return _described(error)


def _same(given, expected):
    if isinstance(given, float) or isinstance(expected, float):
        numbers = isinstance(given, (int, float)) and isinstance(expected, (int, float))
        return numbers and math.isclose(given, expected, rel_tol=1e-9, abs_tol=1e-12)
    if isinstance(given, (list, tuple)) and isinstance(expected, list):
        return len(given) == len(expected) and all(map(_same, given, expected))
    if isinstance(given, dict) and isinstance(expected, dict):
        return given.keys() == expected.keys() and all(_same(given[key], expected[key]) for key in expected)
    return bool(given == expected)


def _described(error):
    try:
        return f"{type(error).__name__}: {error}"[:200] if str(error) else type(error).__name__
    except BaseException:
        return "an error that cannot be shown"


def _shown(value):
    try:
        return repr(value)[:100]
    except BaseException:
        return "something that cannot be shown"


def _tell(report, token, kind, error):
    line = json.dumps([token, kind, error]).encode() + b"\n"
    while line:
        line = line[os.write(report, line) :]


main()

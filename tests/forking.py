"""Starts Assay's own processes quickly: as forks of a process that has already imported what they need.

A new Python that imports the command takes most of a second, a worker a quarter of one, and the tests start thousands. With
`subprocess.Popen` replaced by the one below, `assay …` and `python -m assay.…` become forks. Each is still a process of its own,
with its own id, pipes, signals, session, folder, environment and exit code. Three things differ: it is no child of the process
that started it; `/proc` shows the environment and the command line of the server; and what Python reads when it starts (hash seed,
locale, `PYTHON…`) is the server's. A start that changes such a setting is a real one, and so is every start within a test that is
marked `real_starts`: tests about starting, about leftover processes and about what `/proc` shows.

Only Linux has what this needs; elsewhere all starts are real.
"""

from __future__ import annotations

import asyncio
import atexit
import fcntl
import gc
import json
import os
import pkgutil
import runpy
import secrets
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import is_dataclass
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from shlex import quote
from typing import Any, NoReturn

from tests.command import COMMAND, heeding_signals

_COMMANDS = ("assay", "assay.server.worker", "assay.server.board_worker")
_WORKERS = ("assay.execute.reaper", "assay.execute.guardian", "assay.load.worker")
_MODULES_OF_WORKERS = (
    "assay.execute.reaper",
    "assay.execute.guardian",
    "assay.execute.worker",
    "assay.execute.attempt",
    "assay.execute.case_runner",
    "assay.execute.scoring",
    "assay.execute.suite_job",
    "assay.builtin.agents.python",
    "assay.builtin.instruments.timing",
    "assay.builtin.scorers.exact",
)
"""What every worker imports, with its reaper. It must not be more, as the memory of workers is measured."""
_SETTINGS = ("PYTHON", "LC_", "LANG", "COVERAGE_", "LD_", "MALLOC_")
"""How variables begin that are read when a program starts."""
_SIGNALS: dict[signal.Signals, Any] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGHUP: signal.SIG_DFL,
}
"""Those that whoever starts a process may have told it to ignore, and what Python does with them otherwise."""
_INHERITED = dict(os.environ)
_PROGRAM = """
import os, sys
if os.fork():  # no child of the tests, which look for their children and kill them
    os._exit(0)
sys.path.insert(0, sys.argv[1])
from tests import forking
del sys.path[0]
forking.serve(*sys.argv[2:])
"""

_WARMING_COMMANDS = ("run noop --isolation inline", "runs list", "report last", "compare last last", "list")
_COLLECTION = gc.get_threshold()

is_on = hasattr(os, "pidfd_open")
cpu_seconds = 0.0
"""What the forks have used that this process waited for; `RUSAGE_CHILDREN` does not know of them."""
_servers: list[subprocess.Popen[Any]] = []
_addresses: dict[str, str] = {}
"""Of the servers that run, by kind: `worker` and `command`."""


class Popen(subprocess.Popen[Any]):
    """Asks a server for a fork where that will do. The server then reports the end of the process by the same socket."""

    _fork: socket.socket | None = None

    def _execute_child(
        self, args: Any, executable: Any, preexec_fn: Any, close_fds: bool, pass_fds: Sequence[int],
        cwd: Any, env: Mapping[str, str] | None, startupinfo: Any, creationflags: int, shell: bool, *others: Any,
    ) -> None:  # fmt: skip
        variables = os.environ if env is None else env
        kind = None if shell else _kind_of(args)
        if (
            not is_on
            or kind is None
            or preexec_fn not in (None, heeding_signals)
            or asyncio._get_running_loop() is not None  # which waits for its children itself
            or _changes_settings(variables)
        ):
            super()._execute_child(  # type: ignore[misc]
                args, executable, preexec_fn, close_fds, pass_fds, cwd, env, startupinfo, creationflags, shell, *others
            )  # fmt: skip
            return
        ignored = [number for number in _SIGNALS if signal.getsignal(number) is signal.SIG_IGN]
        order = {
            "words": [os.fsdecode(word) for word in args],
            "folder": str(Path(cwd or ".").absolute()),
            "variables": dict(variables),
            "files": [0, 1, 2, *pass_fds],
            "is_session": others[-2],
            "ignored": [] if preexec_fn else ignored,
        }
        ends = others[:6]
        standard = [number if end == -1 else end for number, end in enumerate((ends[0], ends[3], ends[5]))]
        try:
            self._fork = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self._fork.connect(_address(kind))
            socket.send_fds(self._fork, [json.dumps(order).encode()], [*standard, *pass_fds])
            self.pid = int(self._fork.recv(100))
            self._child_created = True
        finally:
            self._close_pipe_fds(*ends)  # type: ignore[attr-defined]

    def _internal_poll(self, _deadstate: int | None = None) -> int | None:
        wait = (lambda pid, flags: self._try_wait(flags)) if self._fork else os.waitpid
        return super()._internal_poll(_deadstate, wait)  # type: ignore[misc, no-any-return]

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        global cpu_seconds
        if self._fork is None:
            return super()._try_wait(wait_flags)  # type: ignore[misc, no-any-return]
        try:
            status, used = self._fork.recv(100, socket.MSG_DONTWAIT if wait_flags else 0).split()
        except BlockingIOError:
            return 0, 0
        self._fork.close()
        cpu_seconds += float(used)
        return self.pid, int(status)


def _kind_of(command: Any) -> str | None:
    """Of the server that can run the command."""
    words = [] if isinstance(command, str | bytes | os.PathLike) else [os.fsdecode(word) for word in command]
    if words[:1] == [str(COMMAND)] or (words[:2] == [sys.executable, "-m"] and words[2] in _COMMANDS):
        return "command"
    of_worker = ([sys.executable, *option, "-m", module] for option in ([], ["-P"]) for module in _WORKERS)
    return "worker" if any(words[: len(start)] == start for start in of_worker) else None


def _changes_settings(variables: Mapping[str, str]) -> bool:
    """The hash seed is left out: every worker has its own, and a test that depends on it is marked."""
    return any(
        name.startswith(_SETTINGS) and name != "PYTHONHASHSEED" and value != _INHERITED.get(name)
        for name, value in variables.items()
    )


def start_servers() -> None:
    """For the process that forks the test processes: they share the servers it has started."""
    if is_on:
        _address("command")


def _address(kind: str) -> str:
    """Where the server listens. The first call starts it; it ends with this process. A fork uses the servers of its server."""
    if kind not in _addresses:
        address = f"\0assay-{kind}-{secrets.token_hex(8)}"
        workers = [] if kind == "worker" else [_address("worker")[1:]]
        variables = {name: value for name, value in _INHERITED.items() if not name.startswith("PYTHON")}
        variables["OPENBLAS_NUM_THREADS"] = "1"  # a process with threads cannot be forked safely
        # Whoever asks while the server imports its modules waits in the queue of the socket.
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(address)
            listener.listen(100)
            server = subprocess.Popen(
                [sys.executable, "-P", "-c", _PROGRAM, Path(__file__).parent.parent, kind, str(listener.fileno()), *workers],
                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=variables, pass_fds=[listener.fileno()],
            )  # fmt: skip
        assert server.stdin is not None
        server.wait()
        atexit.register(server.stdin.close)  # upon which the server ends
        _servers.append(server)
        _addresses[kind] = address
    return _addresses[kind]


_CLIENT = f"""
import json, os, signal, socket, sys
order = {{
    "words": [{str(COMMAND)!r}, *sys.argv[1:]], "folder": os.getcwd(), "variables": dict(os.environ), "files": [0, 1, 2],
    "is_session": False, "ignored": [],
}}
server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
server.connect("\\0" + order["variables"].pop("ASSAY_FORKS"))
socket.send_fds(server, [json.dumps(order).encode()], [0, 1, 2])
pid = int(server.recv(100))
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, lambda number, frame: os.kill(pid, number))
code = os.waitstatus_to_exitcode(int(server.recv(100).split()[0]))
sys.exit(code if code >= 0 else 128 - code)
"""
"""The `assay` of a shell: asks for a fork and passes signals on to it."""


def for_shells(folder: Path) -> dict[str, str]:
    """Variables with which the `assay` of a shell becomes a fork. Their file is made in the folder."""
    variables = {"PATH": f"{COMMAND.parent}{os.pathsep}{os.environ['PATH']}"}
    if is_on:
        client = folder / "assay"
        client.write_text(f'#!/bin/sh\nexec {quote(sys.executable)} -IS -c {quote(_CLIENT)} "$@"\n')
        client.chmod(0o755)
        variables["PATH"] = f"{folder}{os.pathsep}{variables['PATH']}"
        variables["ASSAY_FORKS"] = _address("command")[1:]
    return variables


def serve(kind: str, listening: str, workers: str = "") -> None:
    """Fork whenever a command is sent, until the process that started the server has ended."""
    listener = socket.socket(fileno=int(listening))
    if kind == "command":
        # What a command starts is forked as well.
        _addresses.update(worker=f"\0{workers}", command=os.fsdecode(listener.getsockname()))
        subprocess.Popen = Popen  # type: ignore[misc]
    _import_modules(kind)
    if kind == "command":
        _warm_up_commands()
    else:
        _warm_up_workers()
    gc.collect()
    gc.freeze()
    with selectors.DefaultSelector() as selector, suppress(KeyboardInterrupt):
        selector.register(0, selectors.EVENT_READ)
        selector.register(listener, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fd == 0:
                    return
                if key.fileobj is listener:
                    client, _ = listener.accept()
                    pid = _fork(client)
                    selector.register(os.pidfd_open(pid), selectors.EVENT_READ, (client, pid))
                else:
                    selector.unregister(key.fd)
                    os.close(key.fd)
                    _report_end(*key.data)


def _import_modules(kind: str) -> None:
    packages = pkgutil.walk_packages(import_module("assay").__path__, "assay.")
    names = (
        _MODULES_OF_WORKERS
        if kind == "worker"
        else [module.name for module in packages if module.name != "assay.__main__"]
    )
    for name in names:
        # The scripts of the migrations, for one, can only be imported by their own program.
        with suppress(Exception):
            import_module(name)


def _warm_up_workers() -> None:
    """Do once what every worker would do first: find the entry points, and see how nouns become JSON and back."""
    from assay.model import codec
    from assay.plugin.entry_points import entry_points

    entry_points()
    modules = [module for name, module in sys.modules.items() if name.startswith("assay.")]
    kinds = {kind for module in modules for kind in vars(module).values() if isinstance(kind, type)}
    for kind in filter(is_dataclass, kinds):
        codec._dataclass_encoder(kind)
        codec._dataclass_decoder(kind)


def _warm_up_commands() -> None:
    """Do once what every command would do first, such as compiling SQL statements; forget all that a process of its own would not know."""
    from tests.command import AssayInline
    from tests.shortcuts import take_shortcuts

    from assay.model.redaction import known_secrets
    from assay.plugin import import_check

    take_shortcuts()
    with tempfile.TemporaryDirectory() as folder:
        assay = AssayInline(Path(folder))
        for words in _WARMING_COMMANDS:
            done = assay(*words.split())
            assert done.code == 0, done.err
    known_secrets.cache_clear()
    import_check._is_on = False
    gc.set_threshold(*_COLLECTION)


def _fork(client: socket.socket) -> int:
    request, files, _, _ = socket.recv_fds(client, 1 << 20, 100)
    pid = os.fork()
    if pid == 0:
        _become(json.loads(request), files)
    for fd in files:
        os.close(fd)
    with suppress(OSError):  # the client may have been killed meanwhile
        client.send(str(pid).encode())
    return pid


def _report_end(client: socket.socket, pid: int) -> None:
    _, status, usage = os.wait4(pid, 0)
    with client, suppress(OSError):
        client.send(f"{status} {usage.ru_utime + usage.ru_stime}".encode())


def _become(order: dict[str, Any], files: Sequence[int]) -> NoReturn:
    """In the fork: take over all that the process was to be given, run it, and exit as Python does."""
    _take_files(files, order["files"])
    if order["is_session"]:
        os.setsid()
    for number, default in _SIGNALS.items():
        signal.signal(number, signal.SIG_IGN if number in order["ignored"] else default)
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["variables"])
    time.tzset()
    tempfile.tempdir = None
    code: Any = 0
    try:
        _run(order["words"])
    except SystemExit as end:
        code = end.code or 0
        if not isinstance(code, int):
            print(code, file=sys.stderr)
            code = 1
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code & 255)


def _take_files(files: Sequence[int], numbers: Sequence[int]) -> None:
    """Give the files these numbers, and close all others."""
    moved = [fcntl.fcntl(fd, fcntl.F_DUPFD, max(numbers) + 1) for fd in files]
    for fd, number in zip(moved, numbers, strict=True):
        os.dup2(fd, number)
    for number, following in pairwise([*sorted(numbers), os.sysconf("SC_OPEN_MAX")]):
        os.closerange(number + 1, following)
    # The streams of the server know what its own files were, such as terminals.
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        before: Any = getattr(sys, f"__{name}__")
        stream = os.fdopen(
            number,
            mode,
            1 if number == 2 else -1,
            encoding=before.encoding,
            errors=before.errors,
            closefd=False,
        )
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _run(words: list[str]) -> None:
    if words[0] == str(COMMAND):
        sys.argv = words
        sys.path.insert(0, str(COMMAND.parent))
        runpy.run_path(words[0], run_name="__main__")
        return
    at = words.index("-m") + 1
    if words[1] != "-P":
        sys.path.insert(0, str(Path.cwd()))
    sys.argv = words[at:]
    sys.modules.pop(words[at], None)
    runpy.run_module(words[at], run_name="__main__", alter_sys=True)

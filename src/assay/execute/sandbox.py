"""Confine a program with bubblewrap.

The program gets its own user, process, network, IPC and mount namespaces: it has no network and no capabilities, sees the
system read-only, has a private /tmp as its home, sees no file of this machine that is not bound for it, no other process
and no /proc, and everything that it started dies with it. A seccomp filter refuses system calls that programs under
judgement do not need. Resource limits are set by the programs themselves before they load foreign code.
"""

from __future__ import annotations

import os
import platform
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from assay.errors import PlanError
from assay.execute.process_tree import MARK

CHOICES = ("auto", "bubblewrap", "none")
VARIABLE = "ASSAY_SANDBOX"
"""Environment variable with the operator's choice. Workers inherit it; a suite cannot change it."""
_PROBED = "ASSAY_SANDBOX_PROBED"
"""Tells workers which bwrap is known to work, so that only the first process tries it."""

_SYSTEM = (
    "/bin", "/lib", "/lib32", "/lib64", "/sbin", "/nix/store",
    "/usr/bin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/sbin", "/usr/share/zoneinfo",
    "/usr/local/bin", "/usr/local/lib", "/etc/alternatives", "/etc/ld.so.cache", "/etc/localtime",
)  # fmt: skip
_NETWORK = (
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/etc/ssl",
    "/etc/pki",
    "/usr/share/ca-certificates",
)
_TMP_BYTES = 256 * 2**20
_WITH_SIZE = (0, 8)
"""Version of bubblewrap since which the size of a tmpfs can be limited."""


@dataclass(frozen=True, slots=True)
class Program:
    """What to run in a sandbox, and what of this machine it may see and do."""

    argv: Sequence[str]
    files: Mapping[str, str] = field(default_factory=dict)
    """Read-only: the path in the sandbox, and the path on this machine."""
    folder: str = "/tmp"  # noqa: S108 - private to the sandbox
    environment: Mapping[str, str] = field(default_factory=dict)
    hidden: Sequence[str] = ()
    """Folders within `files` in place of which the program sees empty ones."""
    has_network: bool = False
    may_start_processes: bool = False

    def whole_environment(self) -> dict[str, str]:
        """Nothing of this process but its mark, by which its descendants are found when they have to be ended."""
        marks = {MARK: os.environ[MARK]} if MARK in os.environ else {}
        private = {"PATH": os.defpath, "HOME": "/tmp", "TMPDIR": "/tmp", "LANG": "C.UTF-8"}  # noqa: S108
        return {**private, **marks, **self.environment}


@dataclass(frozen=True, slots=True)
class Sandbox:
    """A way to confine programs: `bubblewrap`, or `none`, which only gives them an empty folder and environment."""

    kind: str
    path: str = ""
    version: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.version}".strip()

    @property
    def is_confining(self) -> bool:
        return self.kind != "none"

    def start(
        self, program: Program, pass_fds: Sequence[int] = (), **streams: Any
    ) -> subprocess.Popen[bytes]:
        """Start a program in a session of its own. It dies with the thread that started it."""
        environment = program.whole_environment()
        if not self.is_confining:
            return subprocess.Popen(
                list(program.argv), env=environment, pass_fds=pass_fds, start_new_session=True, **streams
            )
        seccomp = _open_filter(program)
        try:
            return subprocess.Popen(
                self.command(program, seccomp),
                env=environment,
                pass_fds=(*pass_fds, *(() if seccomp is None else (seccomp,))),
                start_new_session=True,
                **streams,
            )
        finally:
            if seccomp is not None:
                os.close(seccomp)

    def command(self, program: Program, seccomp: int | None = None) -> list[str]:
        """The command line that runs a program confined; `seccomp` is a descriptor to read the filter from."""
        shared = ["--share-net"] if program.has_network else []
        visible = [*_SYSTEM, *_python_paths(), *(_NETWORK if program.has_network else ())]
        binds = [argument for path in dict.fromkeys(visible) for argument in _bind_system(path)]
        files = [
            argument for inside, path in program.files.items() for argument in ("--ro-bind", path, inside)
        ]
        numbers = tuple(int(part) for part in self.version.split(".") if part.isdigit())
        limit = ("--size", str(_TMP_BYTES)) if numbers >= _WITH_SIZE else ()
        return [
            self.path, "--unshare-all", *shared, "--unshare-user", "--uid", "65534", "--gid", "65534",
            "--cap-drop", "ALL", "--die-with-parent", "--new-session", *binds, "--dev", "/dev",
            *limit, "--tmpfs", "/tmp", *files, *(part for path in program.hidden for part in ("--tmpfs", path)), "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", program.folder,  # noqa: S108
            *(() if seccomp is None else ("--seccomp", str(seccomp))), "--", *program.argv,
        ]  # fmt: skip


NONE = Sandbox("none")
_noted: ContextVar[set[str] | None] = ContextVar("noted", default=None)


@contextmanager
def noting_sandboxes() -> Iterator[set[str]]:
    """Collects the names of the sandboxes that `find_sandbox` returns meanwhile, to store with a run which were used."""
    found: set[str] = set()
    token = _noted.set(found)
    try:
        yield found
    finally:
        _noted.reset(token)


@contextmanager
def chosen_sandbox(choice: str | None) -> Iterator[None]:
    """Make this the choice of this process and its workers meanwhile; None leaves the choice as it is."""
    before = os.environ.get(VARIABLE)
    if choice is not None:
        os.environ[VARIABLE] = choice
    try:
        yield
    finally:
        if choice is not None:
            os.environ.pop(VARIABLE) if before is None else os.environ.update({VARIABLE: before})


def find_sandbox() -> Sandbox:
    """The sandbox to run code under judgement in.

    Raises PlanError where bubblewrap does not work here and the user has not chosen to do without.
    """
    choice = os.environ.get(VARIABLE) or "auto"
    if choice not in CHOICES:
        raise PlanError(f"{VARIABLE} is '{choice}'; it can be {', '.join(CHOICES)}.")
    found = NONE if choice == "none" else probe_bubblewrap()
    if isinstance(found, Sandbox):
        if (noted := _noted.get()) is not None:
            noted.add(str(found))
        return found
    advice = (
        "Install it (apt-get install bubblewrap, dnf install bubblewrap) or allow user namespaces; check: assay doctor."
        if sys.platform == "linux"
        else "Bubblewrap needs Linux: use a virtual machine or a container that allows it."
    )
    raise PlanError(
        f"The scorer code runs code in a sandbox, but {found}. {advice} "
        "To run code that you trust without a sandbox: --sandbox none."
    )


def probe_bubblewrap() -> Sandbox | str:
    """Bubblewrap, if it is here and works, or else what is wrong with it."""
    path = shutil.which("bwrap")
    return "bubblewrap (bwrap) is not installed" if path is None else _probe(path)


@cache
def _probe(path: str) -> Sandbox | str:
    known, _, version = os.environ.get(_PROBED, "").partition("=")
    if known == path and version:
        return Sandbox("bubblewrap", path, version)
    try:
        named = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10).stdout
        sandbox = Sandbox("bubblewrap", path, named.split()[-1] if named.split() else "")
        trial = sandbox.start(
            Program([python_path(), "-I", "-S", "-c", ""]), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        _, errors = trial.communicate(timeout=20)
    except (OSError, subprocess.SubprocessError) as error:
        return f"bubblewrap cannot be run here ({error})"
    if trial.returncode != 0:
        # Containers often forbid user namespaces.
        reason = errors.decode(errors="replace").strip().splitlines()
        return f"bubblewrap does not work here ({reason[-1] if reason else f'exit code {trial.returncode}'})"
    os.environ[_PROBED] = f"{path}={sandbox.version}"
    return sandbox


def python_path() -> str:
    """The interpreter itself, not the link of a virtual environment, which would need that folder."""
    return os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable)


def _python_paths() -> list[str]:
    prefixes = dict.fromkeys((sys.base_prefix, sys.base_exec_prefix))
    libraries = [str(Path(prefix, name)) for prefix in prefixes for name in ("lib", "lib64")]
    is_bound = tuple(f"{path}/" for path in _SYSTEM)
    return [path for path in (python_path(), *libraries) if not f"{path}/".startswith(is_bound)]


def visible_files(paths: Iterable[str]) -> dict[str, str]:
    """For `Program.files`: these paths, each where it is on this machine; what is visible anyway is left out."""
    files: dict[str, str] = {}
    for path in paths:
        if not any(f"{path}/".startswith(f"{known}/") for known in (*_SYSTEM, *_python_paths(), *files)):
            files[path] = os.path.realpath(path)
    return files


@cache
def _bind_system(path: str) -> tuple[str, ...]:
    if Path(path).is_symlink() and path.count("/") == 1:
        return ("--symlink", str(Path(path).readlink()), path)
    return ("--ro-bind", os.path.realpath(path), path) if Path(path).exists() else ()


_KERNEL_CALLS = (
    "ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "mount", "umount2", "pivot_root", "chroot", "unshare",
    "setns", "fsopen", "fsmount", "open_tree", "move_mount", "mount_setattr", "add_key", "request_key", "keyctl", "bpf",
    "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter", "io_uring_register", "open_by_handle_at",
    "kexec_load", "init_module", "finit_module", "delete_module", "reboot", "swapon",
)  # fmt: skip
_COMMON = {
    "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsmount": 432, "mount_setattr": 442, "pidfd_getfd": 438,
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "clone3": 435,
}  # fmt: skip
_NUMBERS: Mapping[str, tuple[int, Mapping[str, int]]] = {
    "x86_64": (0xC000003E, {
        **_COMMON, "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "mount": 165, "umount2": 166,
        "pivot_root": 155, "chroot": 161, "unshare": 272, "setns": 308, "add_key": 248, "request_key": 249, "keyctl": 250,
        "bpf": 321, "perf_event_open": 298, "userfaultfd": 323, "open_by_handle_at": 304, "kexec_load": 246,
        "init_module": 175, "finit_module": 313, "delete_module": 176, "reboot": 169, "swapon": 167,
        "fork": 57, "vfork": 58, "clone": 56, "socket": 41,
    }),
    "aarch64": (0xC00000B7, {
        **_COMMON, "ptrace": 117, "process_vm_readv": 270, "process_vm_writev": 271, "mount": 40, "umount2": 39,
        "pivot_root": 41, "chroot": 51, "unshare": 97, "setns": 268, "add_key": 217, "request_key": 218, "keyctl": 219,
        "bpf": 280, "perf_event_open": 241, "userfaultfd": 282, "open_by_handle_at": 265, "kexec_load": 104,
        "init_module": 105, "finit_module": 273, "delete_module": 106, "reboot": 142, "swapon": 224,
        "clone": 220, "socket": 198,
    }),
}  # fmt: skip
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _EPERM, _ENOSYS = 0x7FFF0000, 0x00050001, 0x00050026
_CLONE_THREAD = 0x00010000
_X32 = 0x40000000


def seccomp_filter(machine: str, has_network: bool, may_start_processes: bool) -> bytes:
    """A BPF program that answers EPERM to system calls a program does not need; empty for machines it is not written for.

    Each step is a classic BPF instruction: code, jump if true, jump if false, operand. The data it loads from is
    `struct seccomp_data`: the call's number at offset 0, the architecture at 4, its first argument at 16. See seccomp(2).
    A jump skips so many of the following steps. On x86_64, numbers from `_X32` on are a second way to make all calls,
    and are refused.
    """
    if machine not in _NUMBERS:
        return b""
    architecture, numbers = _NUMBERS[machine]
    denied = [*_KERNEL_CALLS, *(() if has_network else ("socket",))]
    denied += [] if may_start_processes else ["fork", "vfork"]
    steps = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, architecture), (_RETURN, 0, 0, _EPERM), (_LOAD, 0, 0, 0)]
    steps += [(_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _EPERM)] if machine == "x86_64" else []
    for name in denied:
        if name in numbers:
            steps += [(_EQUAL, 0, 1, numbers[name]), (_RETURN, 0, 0, _EPERM)]
    if not may_start_processes:
        # Threads are allowed. The flags of clone3 cannot be seen, and without it the C library uses clone.
        steps += [
            (_EQUAL, 0, 1, numbers["clone3"]),
            (_RETURN, 0, 0, _ENOSYS),
            (_EQUAL, 0, 3, numbers["clone"]),
        ]
        steps += [(_LOAD, 0, 0, 16), (_ANY_BIT, 1, 0, _CLONE_THREAD), (_RETURN, 0, 0, _EPERM)]
    steps += [(_RETURN, 0, 0, _ALLOW)]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def _open_filter(program: Program) -> int | None:
    rules = seccomp_filter(platform.machine(), program.has_network, program.may_start_processes)
    if not rules or sys.platform != "linux":
        return None
    descriptor = os.memfd_create("seccomp")
    os.write(descriptor, rules)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor

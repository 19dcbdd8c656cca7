"""Confine a program with bubblewrap.

The program gets its own user, process, network, IPC and mount namespaces: it has no network and no capabilities, sees the
system read-only, has a private /tmp as its home, sees no file of this machine that is not bound for it, no other process
and no /proc, and everything that it started dies with it. A seccomp filter refuses system calls that programs under
judgement do not need.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from assay.builtin.sandboxes.ceilings import with_ceilings
from assay.builtin.sandboxes.seccomp import seccomp_filter
from assay.plugin import Program, python_path

_PROBED = "ASSAY_SANDBOX_PROBED"
"""Tells workers which bwrap is known to work, so that only the first process tries it."""

_SYSTEM = (
    "/bin", "/lib", "/lib32", "/lib64", "/sbin", "/nix/store",
    "/usr/bin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/sbin", "/usr/share",
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
class _Probe:
    """What is known about the bwrap of this machine."""

    path: str = ""
    version: str = ""
    problem: str = ""


class Bubblewrap:
    """Namespaces of its own, the system read-only, a private /tmp and home, no network; Linux with bubblewrap."""

    is_confining: ClassVar[bool] = True

    def __init__(self, path: str | None = None) -> None:
        self._path = path or shutil.which("bwrap")

    def problem(self) -> str:
        return "bubblewrap (bwrap) is not installed" if self._path is None else _probe(self._path).problem

    def version(self) -> str:
        return "" if self._path is None else _probe(self._path).version

    def start(
        self, program: Program, pass_fds: Sequence[int] = (), **streams: Any
    ) -> subprocess.Popen[bytes]:
        return _start(_Probe(self._path or "bwrap", self.version()), program, pass_fds, **streams)

    def program_pid(self, pid: int) -> int:
        """Bubblewrap starts the program as the child of a child of its own."""
        for _ in range(2):
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            pid = int(children[0]) if children else pid
        return pid


def _start(
    probe: _Probe, program: Program, pass_fds: Sequence[int] = (), **streams: Any
) -> subprocess.Popen[bytes]:
    seccomp = _open_filter(program)
    try:
        return subprocess.Popen(
            _command(probe, program, seccomp),
            env=program.whole_environment(),
            pass_fds=(*pass_fds, *(() if seccomp is None else (seccomp,))),
            start_new_session=True,
            **streams,
        )
    finally:
        if seccomp is not None:
            os.close(seccomp)


def _command(probe: _Probe, program: Program, seccomp: int | None) -> list[str]:
    """The command line that runs a program confined; `seccomp` is a descriptor to read the filter from."""
    shared = ["--share-net"] if program.has_network else []
    visible = [*_SYSTEM, *_python_paths(), *(_NETWORK if program.has_network else ())]
    binds = [argument for path in dict.fromkeys(visible) for argument in _bind_system(path)]
    known = tuple(f"{path}/" for path in (*_SYSTEM, *_python_paths()))
    unseen = {inside: path for inside, path in program.files.items() if not f"{inside}/".startswith(known)}
    files = [argument for inside, path in unseen.items() for argument in ("--ro-bind", path, inside)]
    writable = ["--bind", os.path.realpath(program.folder), program.folder] if program.is_writable else []
    numbers = tuple(int(part) for part in probe.version.split(".") if part.isdigit())
    limit = ("--size", str(_TMP_BYTES)) if numbers >= _WITH_SIZE else ()
    hidden = [part for path in program.hidden for part in ("--tmpfs", path)]
    return [
        probe.path, "--unshare-all", *shared, "--unshare-user", "--uid", "65534", "--gid", "65534",
        "--cap-drop", "ALL", "--die-with-parent", "--new-session", *binds, "--dev", "/dev",
        *limit, "--tmpfs", "/tmp", *files, *writable, *hidden, "--remount-ro", "/dev", "--remount-ro", "/",  # noqa: S108
        "--chdir", program.folder, *(() if seccomp is None else ("--seccomp", str(seccomp))),
        "--", *with_ceilings(program.argv, program.ceilings),
    ]  # fmt: skip


@cache
def _probe(path: str) -> _Probe:
    known, _, version = os.environ.get(_PROBED, "").partition("=")
    if known == path and version:
        return _Probe(path, version)
    try:
        named = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10).stdout
        probe = _Probe(path, named.split()[-1] if named.split() else "")
        trial = _start(
            probe,
            Program([python_path(), "-I", "-S", "-c", ""]),
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        _, errors = trial.communicate(timeout=20)
    except (OSError, subprocess.SubprocessError) as error:
        return _Probe(path, problem=f"bubblewrap cannot be run here ({error})")
    if trial.returncode != 0:
        # Containers often forbid user namespaces.
        reason = errors.decode(errors="replace").strip().splitlines()
        last = reason[-1] if reason else f"exit code {trial.returncode}"
        return _Probe(path, problem=f"bubblewrap does not work here ({last})")
    os.environ[_PROBED] = f"{path}={probe.version}"
    return probe


def _python_paths() -> list[str]:
    prefixes = dict.fromkeys((sys.base_prefix, sys.base_exec_prefix))
    libraries = [str(Path(prefix, name)) for prefix in prefixes for name in ("lib", "lib64")]
    is_bound = tuple(f"{path}/" for path in _SYSTEM)
    return [path for path in (python_path(), *libraries) if not f"{path}/".startswith(is_bound)]


@cache
def _bind_system(path: str) -> tuple[str, ...]:
    if Path(path).is_symlink() and path.count("/") == 1:
        return ("--symlink", str(Path(path).readlink()), path)
    return ("--ro-bind", os.path.realpath(path), path) if Path(path).exists() else ()


def _open_filter(program: Program) -> int | None:
    rules = seccomp_filter(
        platform.machine(), program.has_network or program.may_open_sockets, program.may_start_processes
    )
    if not rules or sys.platform != "linux":
        return None
    descriptor = os.memfd_create("seccomp")
    os.write(descriptor, rules)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor

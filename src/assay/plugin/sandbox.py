"""A sandbox confines an untrusted program: code in an answer, a command that a model wrote, an agent of a stranger.

The operator chooses the sandbox of a run, by `--sandbox NAME` or the variable `ASSAY_SANDBOX`; no file of a suite or a spec
can change it. `auto`, the default, means bubblewrap. Where the chosen sandbox does not work, whatever needs one refuses:
a sandbox that is silently missing is worse than none (docs/decisions/0010).
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, runtime_checkable

from assay.errors import LookupFailed, PlanError
from assay.plugin import lookup

SANDBOX_VARIABLE = "ASSAY_SANDBOX"
"""Environment variable with the operator's choice. Workers inherit it; a suite cannot change it."""
AUTO = "auto"
UNCONFINED = "none"
_DEFAULT = "bubblewrap"
_MARK = "ASSAY_WORKER"
"""`MARK` of `execute.process_tree`, which cannot be imported from here."""


@dataclass(frozen=True, slots=True)
class Ceilings:
    """What a confined program may use; None sets no ceiling.

    The sandbox sets them for each process; `assay.execute.confined_run` also watches all processes together.
    """

    memory_bytes: int | None = None
    processes: int | None = None
    file_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Program:
    """What to run in a sandbox, and what of this machine it may see and do."""

    argv: Sequence[str]
    files: Mapping[str, str] = field(default_factory=dict)
    """Read-only: the path in the sandbox, and the path on this machine."""
    folder: str = "/tmp"  # noqa: S108 - private to the sandbox
    """Where it starts; without `is_writable`, it may write only to its private /tmp."""
    is_writable: bool = False
    """Whether `folder` is one of this machine, at the same path in the sandbox, that the program may change."""
    environment: Mapping[str, str] = field(default_factory=dict)
    hidden: Sequence[str] = ()
    """Folders within `files` in place of which the program sees empty ones."""
    has_network: bool = False
    may_open_sockets: bool = False
    """Also without a network: programs talk to themselves by sockets. With a network they may anyway."""
    may_start_processes: bool = False
    ceilings: Ceilings = Ceilings()

    def whole_environment(self) -> dict[str, str]:
        """Nothing of this process but its mark, by which its descendants are found when they have to be ended."""
        marks = {_MARK: os.environ[_MARK]} if _MARK in os.environ else {}
        private = {"PATH": os.defpath, "HOME": "/tmp", "TMPDIR": "/tmp", "LANG": "C.UTF-8"}  # noqa: S108
        return {**private, **marks, **self.environment}


@runtime_checkable
class Sandbox(Protocol):
    """A way to confine programs. It is made without arguments.

    A confined program sees the system read-only and nothing else of this machine but the files bound for it, has a private
    /tmp and home, no network unless its `Program` asks for it, sees no process of others, and whatever it starts ends with
    it. `assay.testing.SandboxContract` has tests for that.
    """

    is_confining: ClassVar[bool]
    """False only for `none`."""

    def problem(self) -> str:
        """Why it does not work on this machine; empty where it does."""
        ...

    def version(self) -> str:
        """Return the version of the program behind the sandbox, or "" if there is none. It is stored with each run that used the sandbox."""
        ...

    def start(
        self, program: Program, pass_fds: Sequence[int] = (), **streams: Any
    ) -> subprocess.Popen[bytes]:
        """Start a program in a session of its own; `streams` are keywords of Popen. It ends with the thread that started it."""
        ...

    def program_pid(self, pid: int) -> int:
        """The process of the program itself, below the one that `start` gave."""
        ...


_noted: ContextVar[set[str] | None] = ContextVar("noted", default=None)


@contextmanager
def record_used_sandboxes() -> Iterator[set[str]]:
    """Collects the names of the sandboxes that are found meanwhile, to store with a run which were used."""
    found: set[str] = set()
    token = _noted.set(found)
    try:
        yield found
    finally:
        _noted.reset(token)


@contextmanager
def chosen_sandbox(choice: str | None) -> Iterator[None]:
    """Make this the choice of this process and its workers meanwhile; None leaves the choice as it is."""
    before = os.environ.get(SANDBOX_VARIABLE)
    if choice is not None:
        os.environ[SANDBOX_VARIABLE] = choice
    try:
        yield
    finally:
        if choice is not None:
            os.environ.pop(SANDBOX_VARIABLE) if before is None else os.environ.update(
                {SANDBOX_VARIABLE: before}
            )


def find_sandbox(user: str, wanted: str | None = None) -> Sandbox:
    """The sandbox that the operator chose or, where a definition names one, that one.

    `user` says in a message who needs it. Raises PlanError where it does not work here, unless the operator has chosen to
    do without a sandbox.
    """
    choice = os.environ.get(SANDBOX_VARIABLE) or AUTO
    name = wanted or (_DEFAULT if choice == AUTO else choice)
    try:
        sandbox: Sandbox = lookup.find("sandboxes", name)()
    except LookupFailed as error:
        raise PlanError(str(error) if wanted else f"{SANDBOX_VARIABLE} or --sandbox: {error}") from None
    problem = sandbox.problem()
    if problem and choice == UNCONFINED:
        name, sandbox, problem = UNCONFINED, lookup.find("sandboxes", UNCONFINED)(), ""
    if problem:
        raise PlanError(
            f"{user} needs a sandbox, but {problem}. {_advice(name)} "
            "To run code that you trust without a sandbox: --sandbox none."
        )
    if (noted := _noted.get()) is not None:
        noted.add(f"{name} {sandbox.version()}".strip())
    return sandbox


def _advice(name: str) -> str:
    if name != _DEFAULT:
        return "Check it: assay doctor."
    if sys.platform != "linux":
        return "Bubblewrap needs Linux: use a virtual machine or a container that allows it."
    return "Install it (apt-get install bubblewrap, dnf install bubblewrap) or allow user namespaces; check: assay doctor."


def python_path() -> str:
    """The interpreter itself, not the link of a virtual environment, which would need that folder."""
    return os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable)

"""Sandboxes are plug-ins, and what is in one does not get out."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep

import pytest
from tests.command import AssayInline

from assay.builtin.sandboxes.bubblewrap import Bubblewrap
from assay.errors import PlanError
from assay.execute import confined_run
from assay.execute.confined_run import ConfinedRun, run_confined
from assay.plugin import lookup
from assay.plugin.sandbox import Ceilings, Program, chosen_sandbox, find_sandbox
from assay.testing import SandboxContract

CEILINGS = Ceilings(memory_bytes=96 << 20, processes=40, file_bytes=8 << 20)


@pytest.mark.usefixtures("bubblewrap")
class TestBubblewrap(SandboxContract):
    sandbox = "bubblewrap"


def run_in(folder: Path, argv: list[str], seconds: float = 5.0, name: str = "bubblewrap") -> ConfinedRun:
    program = Program(argv, folder=str(folder), is_writable=True, may_start_processes=True, ceilings=CEILINGS)
    return run_confined(lookup.find("sandboxes", name)(), program, seconds)


ATTEMPTS = {
    "read a file by its absolute path": 'cat "$SECRET"',
    "write by an absolute path": 'echo no > "$SECRET"',
    "leave by ..": "cat ../outside/secret",
    "leave by many ..": 'cat "../../../../../../../../$SECRET"',
    "leave by a symlink": 'ln -s "$SECRET" link && cat link',
    "write through a symlink": 'ln -s "$OUTSIDE" dir && echo no > dir/new',
    "link a file hard": 'ln "$SECRET" hard && cat hard',
    "read another process's root": 'cat /proc/1/root"$SECRET"',
    "read another process's environment": "cat /proc/$PPID/environ",
    "read the memory of the kernel": "dd if=/dev/mem of=/dev/null bs=1 count=1",
    "read a disk": "head -c 1 /dev/vda",
    "write to the system": "echo no > /usr/bin/new",
    "write to /etc": "echo no > /etc/new",
    "write to /dev": "echo no > /dev/new",
    "read the source of a test": f"cat {__file__}",
    "read password hashes": "cat /etc/shadow",
    "mount something": "mount -t tmpfs none /mnt",
    "make namespaces of its own": "unshare -U true",
    "change the root": "chroot / true",
    "load a kernel module": "insmod x.ko || modprobe loop",
    "trace a process": "strace true || gdb -p 1 -batch || exit 1",
    "connect to a server of this machine": "exec 3<>/dev/tcp/127.0.0.1/$PORT",
    "send a datagram": "exec 3>/dev/udp/127.0.0.1/$PORT && echo no >&3",
    "send a signal to its parent on the machine": "kill -9 $OUR_PID",
    "write to a descriptor of ours": "echo no >&$OUR_FD",
    "write a huge file": "head -c 64000000 /dev/zero > big",
    "fill /tmp": "head -c 400000000 /dev/zero > /tmp/big",
    "become root": "su -c true || setpriv --reuid 0 true",
    "set the clock": "date -s 2001-01-01",
}


@pytest.mark.usefixtures("bubblewrap")
@pytest.mark.parametrize("attempt", ATTEMPTS.values(), ids=ATTEMPTS.keys())
def test_an_attempt_to_leave_the_sandbox_fails(tmp_path: Path, attempt: str) -> None:
    outside, own = tmp_path / "outside", tmp_path / "own"
    outside.mkdir()
    own.mkdir()
    (outside / "secret").write_text("the secret")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        given = {
            "SECRET": outside / "secret", "OUTSIDE": outside, "PORT": server.getsockname()[1],
            "OUR_PID": os.getpid(), "OUR_FD": server.fileno(),
        }  # fmt: skip
        words = " ".join(f"{name}='{value}'" for name, value in given.items())
        done = run_in(own, ["/bin/bash", "-c", f"{words}; {attempt}"])
        with pytest.raises(BlockingIOError):
            server.accept()

    assert done.code != 0
    assert "the secret" not in done.output + done.errors
    assert [path.name for path in outside.iterdir()] == ["secret"]
    assert (outside / "secret").read_text() == "the secret"
    assert sum(path.lstat().st_size for path in own.iterdir()) <= 8 << 20


@pytest.mark.usefixtures("bubblewrap")
@pytest.mark.parametrize(
    ("attempt", "ended_for"),
    [
        (":(){ :|:& };:; sleep 9", "processes"),
        ("while true; do sleep 9 & done", "processes"),
        (f"exec {sys.executable} -c 'import time; x = bytearray(200 << 20); time.sleep(9)'", "memory"),
        ("setsid nohup sleep 9 & disown; sleep 9", "seconds"),
    ],
)
def test_a_program_that_takes_too_much_is_ended_with_all_its_processes(
    tmp_path: Path, attempt: str, ended_for: str
) -> None:
    program = attempt.replace(sys.executable, "/usr/bin/env python3")

    done = run_in(tmp_path, ["/bin/bash", "-c", program], seconds=1.0)

    # Processes that grow in number faster than they are ended would take every process number of the machine.
    assert done.seconds < 10
    # On a busy machine so few processes may get to run that their time is up before there are too many.
    allowed = {"processes", "seconds"} if ended_for == "processes" else {ended_for}
    assert done.ended_for in allowed or (ended_for == "processes" and "fork" in done.errors)


@pytest.mark.usefixtures("bubblewrap")
@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no policies")
def test_whoever_watches_a_program_is_an_ordinary_thread_again(tmp_path: Path) -> None:
    def priority() -> tuple[int, int]:
        return os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0)

    before = priority()
    seen: list[tuple[int, int]] = []
    look = confined_run._Watch._look

    def look_and_tell(watch: confined_run._Watch) -> str:
        seen.append(priority())
        return look(watch)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(confined_run._Watch, "_look", look_and_tell)
        assert run_in(tmp_path, ["/bin/sh", "-c", "sleep 0.1"]).is_ok

    assert seen
    assert all(policy == os.SCHED_FIFO | os.SCHED_RESET_ON_FORK for policy, _ in seen) == (
        os.geteuid() == 0 and can_be_first()
    )
    assert priority() == before


def can_be_first() -> bool:
    """Whether the system lets this user have a real-time policy at all; containers may take that from root."""
    code = "import os; os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))"
    return subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


@pytest.mark.usefixtures("bubblewrap")
@pytest.mark.parametrize("sandbox", ["bubblewrap", "none"])
def test_a_daemon_ends_with_the_program_that_started_it(tmp_path: Path, sandbox: str) -> None:
    daemon = (
        "(setsid sh -c 'until [ -e over ]; do sleep 0.02; done; echo no > late' > /dev/null 2>&1 &) ; exit 0"
    )
    done = run_in(tmp_path, ["/bin/sh", "-c", daemon], name=sandbox)

    assert done.is_ok
    (tmp_path / "over").touch()
    sleep(0.2)
    assert not (tmp_path / "late").exists()


@pytest.mark.usefixtures("bubblewrap")
def test_what_a_program_used_is_measured_for_all_its_processes(tmp_path: Path) -> None:
    work = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"

    done = run_in(tmp_path, ["/bin/bash", "-c", f"({work}) & ({work}) & wait"])

    assert done.is_ok
    assert done.peak_processes >= 3
    assert 0.02 < done.cpu_seconds < 20
    assert done.peak_bytes > 2 << 20


@pytest.mark.usefixtures("bubblewrap")
def test_a_program_ends_when_the_process_that_started_it_is_killed(tmp_path: Path) -> None:
    program = Program(
        ["/bin/sh", "-c", "echo $$ > pid; sleep 9; true"],
        folder=str(tmp_path),
        is_writable=True,
        may_start_processes=True,
    )
    sandbox = Bubblewrap()
    process = sandbox.start(program)
    while not (tmp_path / "pid").exists():
        assert process.poll() is None
    own = sandbox.program_pid(process.pid)
    process.kill()
    process.wait()
    until = monotonic() + 5
    while Path(f"/proc/{own}").exists() and monotonic() < until:
        sleep(0.01)
    assert not Path(f"/proc/{own}").exists()


def test_without_a_sandbox_programs_are_watched_all_the_same(tmp_path: Path) -> None:
    done = run_in(tmp_path, ["/bin/sh", "-c", "sleep 9 & sleep 9"], 0.2, "none")

    assert done.ended_for == "seconds"
    assert (run_in(tmp_path, ["/bin/sh", "-c", "pwd"], name="none").output).strip() == str(tmp_path)


def test_an_unknown_sandbox_is_refused(assay_inline: AssayInline) -> None:
    assert assay_inline("run", "noop", "--sandbox", "chroot").code == 2
    with chosen_sandbox("chroot"), pytest.raises(PlanError, match="chroot"):
        find_sandbox("A test")


def test_a_sandbox_that_does_not_work_is_refused_unless_the_operator_does_without(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(PlanError, match="bubblewrap"):
        find_sandbox("A test")
    with chosen_sandbox("none"):
        assert not find_sandbox("A test", wanted="bubblewrap").is_confining
    assert Bubblewrap().problem()


def test_sandboxes_are_listed(assay_inline: AssayInline) -> None:
    listed = assay_inline("list", "sandboxes", "--json").json
    assert [entry["name"] for entry in listed] == ["bubblewrap", "none"]

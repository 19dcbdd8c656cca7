"""Nothing that an agent or an experiment starts outlives the command, however it hides."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.command import COMMAND, AssayInline, heeding_signals
from tests.execute.carrying import eventually, is_running, trial
from tests.execute.conftest import Carry
from tests.wording import Wording

from assay.execute.process_tree import find_descendants, kill_tree

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux hands orphans to a subreaper")

HIDING = '''
import json, os, sys

def start_daemon(folder):
    """Forks twice, in a session of its own, without an environment or an open file."""
    if (child := os.fork()) == 0:
        os.setsid()
        if os.fork() == 0:
            with open(os.path.join(folder, "pids"), "a") as file:
                file.write(f"{os.getpid()} ")
            os.closerange(0, 1000)
            os.execve("/bin/sleep", ["sleep", "600"], {})
        os._exit(0)
    os.waitpid(child, 0)

FOLDER = os.path.dirname(os.path.abspath(__file__))

def answer(text):
    start_daemon(FOLDER)
    return text

if __name__ == "__main__":
    for line in sys.stdin:
        start_daemon(FOLDER)
        print(json.dumps({"id": json.loads(line)["id"], "output": "x"}), flush=True)
'''
SUITE = """
suite: hiding
agents:
  - {name: python, type: python, target: "hiding.py:answer"}
  - {name: command, type: command, command: [PYTHON, hiding.py]}
benchmarks:
  - {id: one, cases: [{id: a, input: x, expected: x}], scorer: exact, iterations: {warmup: 0, measured: 1}}
"""


@pytest.fixture
def hiding(assay_inline: AssayInline) -> AssayInline:
    """A folder with two agents that leave a daemon at each request."""
    assay_inline.write("hiding.py", HIDING)
    suite = SUITE.replace("PYTHON", sys.executable)
    assay_inline.write("suite.yaml", suite)
    assay_inline.write("agents.yaml", suite[suite.index("agents:") : suite.index("benchmarks:")])
    assay_inline.write("assay.toml", '[assay]\nagents = ["agents.yaml"]\n')
    return assay_inline


def started(folder: Path) -> list[int]:
    file = folder / "pids"
    return [int(word) for word in file.read_text().split()] if file.exists() else []


def test_a_run_ends_daemons_without_an_environment_and_says_so(hiding: AssayInline, wording: Wording) -> None:
    done = hiding("run", "suite.yaml", "--json")

    assert done.code == 0, done.err
    assert len(started(hiding.folder)) == 2
    assert not any(map(is_running, started(hiding.folder)))
    remarks = [one["message"] for one in done.json["warnings"] if one["code"] == "remark"]
    ended = [text for text in remarks if "1 process " in text]
    assert ended
    wording(ended[0])


@pytest.mark.parametrize("agent", ["python", "command"])
def test_a_load_ends_the_daemons_of_its_agent(hiding: AssayInline, agent: str) -> None:
    done = hiding("load", agent, "--concurrency", "2", "--requests", "4", "--prompt", "x")

    assert done.code in (0, 1), done.err
    assert len(started(hiding.folder)) == 4
    assert not any(map(is_running, started(hiding.folder)))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("agent", ["python", "command"])
def test_daemons_end_with_a_load_that_is_killed(
    hiding: AssayInline, agent: str, number: signal.Signals
) -> None:
    words = f"load {agent} --concurrency 1 --duration 60 --think 0.2 --prompt x".split()
    process = subprocess.Popen(
        [COMMAND, *words],
        cwd=hiding.folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=heeding_signals,
    )
    assert eventually(lambda: bool(started(hiding.folder)))
    process.send_signal(number)
    process.wait(60)

    assert eventually(lambda: not any(map(is_running, started(hiding.folder))))


def test_a_worker_whose_supervisor_is_killed_is_ended_with_a_remark(carry: Carry) -> None:
    carried = carry(trial(deed="kill the parent", measured=1))

    assert [str(status) for status in carried.statuses] == ["crashed"]
    assert any("may still run" in text for text in carried.remarks)


def test_the_tree_of_a_process_that_forks_all_the_time_can_be_ended() -> None:
    code = "import os, time\nwhile True:\n    if os.fork() == 0: time.sleep(0.05); os._exit(0)\n    time.sleep(0.002)"
    process = subprocess.Popen([sys.executable, "-c", code])
    assert eventually(lambda: len(find_descendants(process.pid)) > 3)
    below = find_descendants(process.pid)
    kill_tree(process.pid)
    process.wait(10)

    assert process.returncode == -signal.SIGKILL
    assert eventually(lambda: not any(is_running(pid) for pid in below))
    assert os.getpid() not in below

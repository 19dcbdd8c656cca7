from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import threading
import time
from pathlib import Path

import pytest
from tests.execute.carrying import eventually
from tests.scorers.asking import judgement, made, shown, value

ADD = "def add(a, b):\n    return a + b\n"
TESTS = "assert add(1, 2) == 3\nassert add(-1, 1) == 0\n"


@pytest.mark.parametrize(
    "output",
    [
        ADD,
        f"Sure!\n```python\n{ADD}```\nThis adds.",
        f"```\n{ADD}",
        f"```python\n{ADD}```\nTry it:\n```python\nprint(add(input(), 2))\n```",
        f"```bash\nrm -rf x\n```\n```py\n{ADD}```",
    ],
)
def test_code_in_an_output_is_found_and_passes_its_tests(output: str) -> None:
    assert value("code", output, TESTS) == 1.0


@pytest.mark.parametrize(
    ("tests", "share"),
    [
        (TESTS + "assert add(2, 2) == 5\nassert add(1, 1) == 3\n", 0.5),
        ([{"call": "add(1, 2)", "expected": 3}, {"call": "add([1], [2])", "expected": [1]}], 0.5),
        ([{"call": "(add(0.1, 0.2), 1)", "expected": [0.3, 1]}], 1.0),
        (["assert add(1, 1) == 2", "assert add('a', 'b') == 'ba'"], 0.5),
        ("def test_one():\n    assert add(1, 1) == 2\ndef test_two():\n    assert add(1, 1) == 3\n", 0.5),
        ("for n in range(3):\n    assert add(n, n) == 2 * n\n", 1.0),
    ],
)
def test_partial_gives_the_share_of_tests_that_pass(tests: object, share: float) -> None:
    assert value("code", ADD, tests, partial=True) == share


def test_all_or_nothing_says_what_failed() -> None:
    found = judgement("code", "def add(a, b):\n    raise ValueError('no idea')", TESTS)
    assert found.value == 0.0
    assert found.reason == "0 of 2 tests passed; ValueError: no idea"


def test_tests_of_the_case_go_before_its_expected_output() -> None:
    check = {"tests": "def check(candidate):\n    assert candidate(2, 2) == 4\n", "entry_point": "add"}
    assert value("code", ADD, "nothing", check) == 1.0
    assert value("code", "def add(a, b):\n    return 5", "nothing", check) == 0.0


@pytest.mark.parametrize("tests", [None, "def broken(:", "x = 1", [], [{"call": "add(1, 2)"}], 5])
def test_a_case_without_tests_that_can_be_run_is_unscored(tests: object) -> None:
    assert value("code", ADD, tests) is None


@pytest.mark.parametrize(
    "output",
    [
        None,
        "",
        "I cannot do that.",
        "import os\nos._exit(0)",
        "raise SystemExit",
        "import sys\nsys.exit(0)",
        "def add(a, b):\n    import os\n    os._exit(0)",
        "\ud800",
        "x" * 300_000,
        'print(\'["token", "test", ""]\' * 2)',
        "import ctypes\nctypes.string_at(0)",
    ],
)
def test_junk_and_cheats_pass_nothing(output: object) -> None:
    assert value("code", output, TESTS, partial=True) == 0.0


def test_what_passed_before_the_time_was_up_counts() -> None:
    slow = "def add(a, b):\n    while a < 0: pass\n    return a + b"
    start = time.monotonic()
    found = judgement("code", slow, TESTS, partial=True, seconds=3)
    assert (found.value, found.reason) == (0.5, "1 of 2 tests passed; it took too long")
    assert time.monotonic() - start < 100


def test_memory_is_limited() -> None:
    greedy = "def add(a, b):\n    return len(bytearray(400 * 2**20)) * 0 + a + b"
    assert "MemoryError" in judgement("code", greedy, TESTS, memory_mb=128).reason
    assert value("code", greedy, TESTS, memory_mb=1024) == 1.0


def test_secrets_of_the_environment_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    assert value("code", "import os\nfound = list(os.environ)", "assert 'SOME_API_KEY' not in found") == 1.0


@pytest.mark.parametrize(
    "action",
    [
        "os.kill(os.getppid(), 9)",
        "os.fork()",
        "os.system('true')",
        "subprocess.run(['true'])",
        "socket.create_connection(('127.0.0.1', 9))",
    ],
)
def test_signals_processes_and_sockets_are_refused(action: str) -> None:
    code = f"import os, subprocess, socket\ntry:\n    {action}\n    done = True\nexcept PermissionError:\n    done = False\n"
    assert value("code", code, "assert done is False") == 1.0


def test_files_outside_the_working_folder_are_safe_and_inside_it_work(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("kept")
    code = f"import os\nwith open('note', 'w') as note: note.write('x')\nos.remove('note')\nos.remove({str(precious)!r})"
    assert "not allowed" in judgement("code", code, "assert add").reason
    assert precious.read_text() == "kept"


def test_nothing_is_left_running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    code = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)"
    judging = threading.Thread(target=lambda: found.append(value("code", code, "assert True", seconds=3)))
    found: list[float | None] = []
    judging.start()
    assert eventually(lambda: _working_in(tmp_path) != [])
    judging.join()
    assert found == [0.0]
    assert eventually(lambda: _working_in(tmp_path) == [])


def _working_in(folder: Path) -> list[str]:
    """Processes whose working folder is below this one, even if that is removed already."""
    places = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            places[pid] = str(Path(f"/proc/{pid}/cwd").readlink())
    return [pid for pid, place in places.items() if place.startswith(str(folder))]


def test_on_an_event_loop_the_code_runs_beside_it() -> None:
    async def both() -> tuple[float | None, int]:
        result = made("code").score(shown("import time\ntime.sleep(1.5)\n" + ADD, TESTS))
        assert inspect.isawaitable(result)
        judging = asyncio.ensure_future(result)
        turns = 0
        while not judging.done():
            await asyncio.sleep(0.01)
            turns += 1
        return judging.result().value, turns

    score, turns = asyncio.run(both())
    assert score == 1.0
    assert turns > 5

"""What a server uses while it answers, seen from outside."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from tests.load.faulty import until

from assay.builtin.experiments.server_process import ServerProcess

MB = 2**20
SERVER = """
import socket, subprocess, sys, time
if sys.argv[1:] == ["child"]:
    held = None
    for line in sys.stdin:
        if line == "grow\\n":
            held = bytearray(96 * 2**20)
            until = time.process_time() + 0.2
            while time.process_time() < until:
                pass
        else:
            held = None
        print("done", flush=True)
    sys.exit()
listening = socket.create_server(("127.0.0.1", 0))
child = subprocess.Popen([sys.executable, __file__, "child"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
print(listening.getsockname()[1], child.pid, flush=True)
for line in sys.stdin:
    child.stdin.write(line)
    child.stdin.flush()
    print(child.stdout.readline(), end="", flush=True)
child.stdin.close()
child.wait()
"""


class Server:
    """Holds much memory in a child, and works there, for as long as it is told to."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdout is not None
        port, child = process.stdout.readline().split()
        self.url = f"http://127.0.0.1:{port}"
        self.child = psutil.Process(int(child))

    def tell(self, word: str) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"


@contextmanager
def server(folder: Path) -> Iterator[Server]:
    file = folder / "server.py"
    file.write_text(SERVER)
    with subprocess.Popen(
        [sys.executable, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield Server(process)
        finally:
            process.kill()


def test_a_peak_in_the_middle_of_a_request_is_seen(tmp_path: Path) -> None:
    with server(tmp_path) as there:
        there.tell("shrink")
        with ServerProcess(there.url).watch() as used:
            before = used.measurements()["server_memory_bytes"]
            there.tell("grow")
            until(lambda: used.measurements()["server_memory_bytes"] > before + 80 * MB)
            there.tell("shrink")
        found = used.measurements()

        assert there.child.memory_info().rss < found["server_memory_bytes"] - 60 * MB
        assert found["server_memory_bytes"] < before + 200 * MB
        assert 0.15 < found["server_cpu_seconds"] < 20
        assert 0 < found["server_cpu_percent"] < 100 * (psutil.cpu_count() or 1)


def test_a_server_that_dies_meanwhile_used_what_was_seen_of_it(tmp_path: Path) -> None:
    with server(tmp_path) as there:
        process = ServerProcess(there.url)
        with process.watch() as used:
            there.process.kill()
            there.process.wait()
        assert used.measurements()["server_memory_bytes"] > 0
        with process.watch() as later:
            pass
        assert later.measurements() == {}


def test_nothing_is_reported_of_a_server_elsewhere() -> None:
    process = ServerProcess("http://192.0.2.1:9000/v1")
    with process.watch() as used:
        pass
    assert used.measurements() == {}
    assert "another machine" in process.problem

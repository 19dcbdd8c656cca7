from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest
from tests.command import COMMAND, AssayInline, heeding_signals

from assay.errors import AssayError
from assay.simulator import SimOptions, SimServer


def started(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [COMMAND, "sim-llm", "--port", "0", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heeding_signals,
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_says_where_it_listens_and_ends_cleanly(number: signal.Signals) -> None:
    process = started("--ttft", "1ms")
    assert process.stdout is not None
    line = process.stdout.readline()
    url = next(word for word in line.split() if "://" in word)
    with urllib.request.urlopen(f"{url}/v1/models", timeout=60) as answer:
        assert answer.headers["x-assay-simulated"] == "1"
    process.send_signal(number)
    out, err = process.communicate(timeout=60)

    assert line.startswith("sim-llm ")
    assert url.startswith("http://127.0.0.1:")
    assert (process.returncode, out) == (0, "")
    assert "Traceback" not in err


def test_json_tells_the_address_and_every_option() -> None:
    process = started(
        "--json", "--ttft", "20ms", "--rate-limit", "300/min", "--slots", "3", "--load-time", "2s"
    )
    assert process.stdout is not None
    document = json.loads(process.stdout.readline())
    process.terminate()
    process.communicate(timeout=60)

    assert document["url"].startswith("http://127.0.0.1:")
    assert document["pid"] == process.pid
    options = document["options"]
    assert (options["ttft"], options["rate_limit"], options["slots"], options["load_time"]) == (
        0.02,
        5.0,
        3,
        2.0,
    )


def test_it_ends_while_streams_are_under_way() -> None:
    process = started("--itl", "10s")
    assert process.stdout is not None
    url = process.stdout.readline().split()[3]
    body = b'{"stream": true, "messages": [{"role": "user", "content": "hello"}]}'
    with urllib.request.urlopen(f"{url}/v1/chat/completions", body, timeout=60) as answer:
        answer.readline()
        process.terminate()
        _, err = process.communicate(timeout=60)

    assert process.returncode == 0
    assert "Traceback" not in err


def test_a_port_that_is_taken_is_reported(assay_inline: AssayInline) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(AssayError, match=f"port {port}: .*in use.*--port"),
            SimServer(SimOptions(port=port)),
        ):
            pass


@pytest.mark.parametrize(
    "arguments",
    [
        ("--ttft", "50"),
        ("--ttft", "-1ms"),
        ("--itl", "soon"),
        ("--rate-limit", "0"),
        ("--rate-limit", "fast"),
        ("--error-rate", "2"),
        ("--slots", "0"),
        ("--tokens", "0"),
        ("--port", "70000"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(
    assay_inline: AssayInline, arguments: tuple[str, str]
) -> None:
    assert arguments[0] in assay_inline("sim-llm", *arguments).refusal


def test_the_command_loads_nothing_heavy() -> None:
    heavy = ("numpy", "pydantic", "sqlalchemy", "rich", "yaml", "jinja2", "psutil")
    code = f"import sys, assay.cli.sim_llm, assay.simulator; print([n for n in {heavy} if n in sys.modules])"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"


@pytest.mark.parametrize("in_thread", [False, True], ids=["process", "thread"])
def test_a_server_for_tests_lasts_as_long_as_its_block(in_thread: bool) -> None:
    with SimServer(SimOptions(ttft=0), in_thread=in_thread) as server:
        with urllib.request.urlopen(f"{server.url}/stats", timeout=60) as answer:
            assert json.load(answer)["requests"] == 0
        port = int(server.url.rsplit(":", 1)[1])
    with socket.socket() as other:
        assert other.connect_ex(("127.0.0.1", port)) != 0

"""Any program's LLM traffic, recorded from a simulated server and answered from the cassette without it."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.command import COMMAND, Assay, AssayInline, Done, environment, heeding_signals
from tests.wording import Wording

from assay.cassette.program import Signals
from assay.simulator import SimOptions, SimServer

PROGRAM = Path(__file__).with_name("program.py")
KEY = "sk-a-very-secret-key"


@pytest.fixture(scope="module")
def server() -> Iterator[SimServer]:
    with SimServer(SimOptions(port=0, ttft=0.0, itl=0.0, tokens=5)) as running:
        yield running


@pytest.fixture(scope="module")
def slow_server() -> Iterator[SimServer]:
    with SimServer(SimOptions(port=0, ttft=0.2, itl=0.05, tokens=5)) as running:
        yield running


def program(*words: str) -> list[str]:
    return ["--", sys.executable, str(PROGRAM), *words]


def addresses(server: SimServer) -> dict[str, str]:
    return {
        "OPENAI_BASE_URL": f"{server.url}/v1",
        "ANTHROPIC_BASE_URL": server.url,
        "OLLAMA_HOST": server.url.removeprefix("http://"),
        "OPENAI_API_KEY": KEY,
    }


def record(assay: Assay, server: SimServer, *words: str) -> Done:
    done = assay("record", *program(*words), cwd=assay.folder, **addresses(server))
    assert done.code == 0, done.err
    return done


def tape(assay: Assay) -> list[dict]:  # type: ignore[type-arg]
    return [json.loads(line) for line in (assay.folder / "cassette.jsonl").read_text().splitlines()]


def test_a_replay_says_what_the_server_said_without_it(
    assay: Assay, server: SimServer, wording: Wording
) -> None:
    words = ["openai:hello", "stream:again", "anthropic:hello", "ollama:hello"]
    recorded = record(assay, server, *words)
    assert "4 calls " in recorded.err
    wording(recorded.err, near="4 calls")
    replayed = assay("replay", *program(*words))
    assert replayed.code == 0, replayed.err
    assert replayed.out == recorded.out
    assert len(recorded.out.splitlines()) == 4
    assert [one["request"]["path"] for one in tape(assay)] == [
        "/v1/chat/completions",
        "/v1/chat/completions",
        "/v1/messages",
        "/api/generate",
    ]


def test_nothing_secret_is_in_a_cassette(assay: Assay, server: SimServer) -> None:
    record(assay, server, "secret:hello", "anthropic:my key is a-key-of-the-program")
    text = (assay.folder / "cassette.jsonl").read_text()
    for secret in (KEY, "in the body", "a-key-of-the-program", "Bearer"):
        assert secret not in text
    assert tape(assay)[0]["request"]["body"]["user"] == "[redacted]"
    # Another key, or none, is no other request.
    replayed = assay("replay", *program("secret:hello"), OPENAI_API_KEY="sk-another-secret-key")
    assert replayed.code == 0, replayed.err


def test_a_request_that_was_not_recorded_is_reported_with_the_nearest(
    assay: Assay, server: SimServer, wording: Wording
) -> None:
    record(assay, server, "openai:what is two and two", "openai:name a colour")
    replayed = assay("replay", *program("openai:what is two and three"))
    assert replayed.code == 3
    assert "404" in replayed.out
    asked, nearest = "'what is two and three'", "'what is two and two'"
    assert asked in replayed.err
    assert f"POST /v1/chat/completions: {nearest}" in replayed.err
    assert ": messages." in replayed.err
    wording(replayed.err, near=nearest)


def test_a_miss_is_found_even_if_the_program_does_not_mind(assay: Assay, server: SimServer) -> None:
    record(assay, server, "openai:hello")
    shell = f"{shlex.join([sys.executable, str(PROGRAM), 'openai:other'])}; exit 0"
    replayed = assay("replay", "--", "sh", "-c", shell)
    assert replayed.code == 1


def test_strict_matching_compares_all_and_lenient_the_words(assay: Assay, server: SimServer) -> None:
    recorded = record(assay, server, "openai:Hello  there")
    assert assay("replay", *program("warm:hello there")).code == 3
    lenient = assay("replay", "--match", "lenient", *program("warm:hello there", "openai:hello there"))
    assert lenient.code == 0, lenient.err
    assert lenient.out.splitlines() == recorded.out.splitlines() * 2


def test_strictly_the_second_time_needs_a_second_recording(
    assay: Assay, server: SimServer, wording: Wording
) -> None:
    record(assay, server, "openai:hello")
    replayed = assay("replay", *program("openai:hello", "openai:hello"))
    assert replayed.code == 3
    assert "'hello'" in replayed.err
    wording(replayed.err, near="'hello'")


def test_recordings_can_be_added(assay: Assay, server: SimServer) -> None:
    record(assay, server, "openai:one")
    done = assay("record", "--append", *program("openai:two"), cwd=assay.folder, **addresses(server))
    assert done.code == 0
    assert assay("replay", *program("openai:two", "openai:one")).code == 0


def seconds_to_replay(assay: Assay, *options: str) -> float:
    """As the program sees it: its start, and ours, are no part of it."""
    done = assay("replay", *options, *program("timed:hello"))
    assert done.code == 0
    return float(done.out)


def test_delays_are_kept_scaled_or_left_out(assay: Assay, slow_server: SimServer) -> None:
    record(assay, slow_server, "stream:hello")
    # The first piece only names the role, and comes at once.
    [_, (first, _), *_, (last, _)] = tape(assay)[0]["response"]["pieces"]
    assert first >= 0.19
    assert 0.39 <= last < 10
    # The quickest of some: a pause of the machine makes one late, a delay that should not be there all of them.
    without = min(seconds_to_replay(assay) for _ in range(3))
    original = seconds_to_replay(assay, "--delays", "original")
    slower = seconds_to_replay(assay, "--delays", "8")
    assert without < last <= original
    assert slower >= 8 * last


def test_a_program_that_does_not_read_to_the_end_is_recorded_too(
    assay: Assay, slow_server: SimServer
) -> None:
    impatient = assay.write(
        "impatient.py",
        "import json, os, urllib.request\n"
        "body = {'model': 'm', 'stream': True, 'messages': [{'role': 'user', 'content': 'hi'}]}\n"
        "url = os.environ['OPENAI_BASE_URL'] + '/chat/completions'\n"
        "asked = urllib.request.Request(url, json.dumps(body).encode(), {'content-type': 'application/json'})\n"
        "print(urllib.request.urlopen(asked).read(20))\n",
    )
    command = ["--", sys.executable, str(impatient)]
    recorded = assay("record", *command, cwd=assay.folder, **addresses(slow_server))
    assert recorded.code == 0
    # A part of an answer must not be replayed as all of it.
    assert [one["response"].get("cut") for one in tape(assay)] == [True]
    replayed = assay("replay", *command)
    assert (replayed.code, replayed.out) == (0, recorded.out)


def test_a_provider_that_is_not_there_is_reported_to_the_program(assay: Assay) -> None:
    done = assay("record", *program("openai:hi"), OPENAI_BASE_URL="http://127.0.0.1:1/v1", OPENAI_API_KEY=KEY)
    assert done.code == 3
    assert "502" in done.out
    assert "127.0.0.1:1" in done.out
    assert (assay.folder / "cassette.jsonl").read_text() == ""


def test_a_recording_in_which_nothing_was_recorded_leaves_the_cassette_as_it_was(
    assay: Assay, server: SimServer, wording: Wording
) -> None:
    record(assay, server, "openai:hello")
    before = tape(assay)
    done = assay("record", *program("openai:hi"), OPENAI_BASE_URL="http://127.0.0.1:1/v1", OPENAI_API_KEY=KEY)
    assert done.code == 3
    assert tape(assay) == before
    assert "1 call " in done.err
    assert "127.0.0.1:1" in done.err
    assert "--upstream URL" in done.err
    assert "0 calls " in done.err
    wording(done.err, near="cassette.jsonl")


def test_an_upstream_that_is_no_address_is_refused_before_the_program_starts(
    assay: Assay, wording: Wording
) -> None:
    done = assay("record", "--upstream", "ftp://x", "--", "touch", "started")
    assert done.code == 2
    assert "--upstream: 'ftp://x' " in done.err
    wording(done.err, near="ftp://x")
    assert not (assay.folder / "started").exists()


def test_a_recording_takes_the_place_of_the_one_before(assay: Assay, server: SimServer) -> None:
    record(assay, server, "openai:hello", "openai:again")
    record(assay, server, "openai:hello")
    assert len(tape(assay)) == 1


def test_json_output_is_one_document_whatever_the_program_prints(assay: Assay, server: SimServer) -> None:
    done = assay("record", "--json", *program("openai:hi"), cwd=assay.folder, **addresses(server))
    assert done.json == {"cassette": "cassette.jsonl", "calls": 1, "unreachable": 0, "exit_code": 0}
    replayed = assay("replay", "--json", *program("openai:hi"))
    assert replayed.json == {"cassette": "cassette.jsonl", "calls": 1, "misses": [], "exit_code": 0}


@pytest.mark.parametrize("command", ["record", "replay"])
def test_a_program_that_does_not_exist_leaves_the_cassette_as_it_was(
    assay_inline: AssayInline, command: str, wording: Wording
) -> None:
    kept = '{"assay_cassette": 1, "request": {"method": "GET", "path": "/", "body": null}, ' \
           '"response": {"status": 200, "headers": {}, "pieces": []}}\n'  # fmt: skip
    assay_inline.write("cassette.jsonl", kept)
    refusal = assay_inline(command, "--", "no-such-program").refusal
    assert "'no-such-program'" in refusal
    wording(refusal)
    assert (assay_inline.folder / "cassette.jsonl").read_text() == kept


def test_a_cassette_that_cannot_be_written_is_reported(assay_inline: AssayInline, wording: Wording) -> None:
    assay_inline.write("file", "")
    refusal = assay_inline("record", "--cassette", "file/c.jsonl", "--", "true").refusal
    assert "'file/c.jsonl'" in refusal
    wording(refusal)


def test_the_exit_code_of_the_program_is_handed_on(assay: Assay) -> None:
    assert assay("record", "--", "sh", "-c", "exit 7").code == 7
    assert assay("record", "--", "sh", "-c", "kill -9 $$").code == 137


def test_a_signal_that_comes_before_the_program_is_there_reaches_it() -> None:
    async def scene() -> int:
        signals = Signals()
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(0.1)
        process = await asyncio.create_subprocess_exec("sleep", "600")
        signals.pass_on_to(process)
        return await process.wait()

    assert asyncio.run(scene()) == -signal.SIGTERM


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_program_and_the_recording(assay: Assay, number: signal.Signals) -> None:
    process = subprocess.Popen(
        [COMMAND, "record", *program("wait")],
        cwd=assay.folder,
        env=environment({}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heeding_signals,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "waiting\n"
    process.send_signal(number)
    _, err = process.communicate(timeout=120)
    assert process.returncode in (1, 128 + number)
    assert "0 calls recorded" in err

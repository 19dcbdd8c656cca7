"""Answers over https: each question gets its own answer, however TLS records cut it."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop
from tests.command import Assay
from tests.http.parsing import parse_stream
from tests.http.tls_provider import (
    Certificate,
    answer_to,
    answering,
    make_certificate,
    provider,
    question,
)
from tests.suites.project import Stored, suite

from assay.http.client import HttpClient
from assay.http.events import SseParser

LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
PROGRAM = Path(__file__).with_name("tls_program.py")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return make_certificate(tmp_path_factory.mktemp("tls"))


def request(number: int, **keys: Any) -> bytes:
    return json.dumps({"messages": [{"role": "user", "content": question(number)}], **keys}).encode()


async def ask(client: HttpClient, url: str, number: int) -> str:
    answer = await client.request("POST", url, request(number))
    content: str = answer.json()["choices"][0]["message"]["content"]
    return content


async def ask_for_stream(client: HttpClient, url: str, number: int) -> str:
    text = ""
    async with client.stream("POST", url, request(number, stream=True)) as answer:
        async for event in parse_stream(answer.pieces(), SseParser()):
            choices = json.loads(event.data)["choices"] if event.data != "[DONE]" else []
            text += "".join(choice["delta"].get("content", "") for choice in choices)
    return text


def answers(
    certificate: Certificate, loop: Callable[[], Any], url: str, framing: str, concurrency: int
) -> list[str]:
    async def scene() -> list[str]:
        asking = ask_for_stream if framing == "events" else ask
        async with HttpClient(ca_file=certificate.file, max_connections=concurrency) as client:
            return await asyncio.gather(*(asking(client, url, number) for number in range(100)))

    with asyncio.Runner(loop_factory=loop) as runner:
        return runner.run(asyncio.wait_for(scene(), 120))


@pytest.mark.parametrize(
    ("record_bytes", "is_corked"),
    [(16_384, True), (700, True), (16_384, False)],
    ids=["large records at once", "small records at once", "large records one by one"],
)
@pytest.mark.parametrize("framing", ["length", "chunked", "events", "until close"])
@pytest.mark.parametrize("loop", list(LOOPS))
def test_every_question_gets_its_own_answer(
    certificate: Certificate, loop: str, framing: str, record_bytes: int, is_corked: bool
) -> None:
    with provider(certificate, answering(framing, record_bytes, is_corked)) as server:
        got = answers(certificate, LOOPS[loop], server.url, framing, concurrency=3)
        assert server.connections == (100 if framing == "until close" else 3)
    assert [number for number in range(100) if got[number] != answer_to(question(number))] == []


def test_a_record_for_each_byte_makes_no_difference(certificate: Certificate) -> None:
    for framing in ("length", "chunked", "events"):
        with provider(certificate, answering(framing, record_bytes=1)) as server:

            async def scene(url: str = server.url, framing: str = framing) -> str:
                asking = ask_for_stream if framing == "events" else ask
                async with HttpClient(ca_file=certificate.file) as client:
                    await asking(client, url, 1)
                    return await asking(client, url, 2)

            assert asyncio.run(asyncio.wait_for(scene(), 60)) == answer_to(question(2))


def cases(count: int) -> list[dict[str, Any]]:
    asked = [question(number) for number in range(count)]
    return [{"id": f"c{n}", "input": text, "expected": answer_to(text)} for n, text in enumerate(asked)]


def test_a_program_recorded_over_https_gets_the_right_answers_now_and_in_a_replay(
    assay: Assay, certificate: Certificate
) -> None:
    program = ["--", sys.executable, str(PROGRAM), "100"]
    with provider(certificate, answering()) as server:
        recorded = assay("record", "--upstream", server.url, *program, SSL_CERT_FILE=str(certificate.file))
        assert server.connections == 1
    assert recorded.code == 0, recorded.err
    expected = [answer_to(question(number)) for number in range(100)]
    assert recorded.out.splitlines() == expected
    replayed = assay("replay", *program)
    assert replayed.code == 0, replayed.err
    assert replayed.out.splitlines() == expected


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("has_uvloop", [True, False], ids=["uvloop", "asyncio"])
def test_a_run_over_https_scores_every_answer_right(
    assay: Assay, certificate: Certificate, stream: bool, has_uvloop: bool
) -> None:
    if not has_uvloop:
        assay.write("without/uvloop.py", "raise ImportError('not installed')\n")
    with provider(certificate, answering()) as server:
        agent = {"name": "gpt", "type": "openai", "model": "m", "base_url": server.url, "stream": stream}
        benchmark = {"scorer": "exact", "iterations": {"warmup": 0, "measured": 1}}
        assay.write("s.yaml", suite(cases(100), [agent], benchmark=benchmark))
        done = assay(
            "run", "s.yaml", "-q", OPENAI_API_KEY="sk-none", SSL_CERT_FILE=str(certificate.file),
            PYTHONPATH=str(assay.folder / "without"),
        )  # fmt: skip
    assert done.code == 0, done.err
    stored = Stored(assay.folder)
    assert stored.counts() == {"ok": 100}
    expected = {f"c{number}": answer_to(question(number)) for number in range(100)}
    assert {one.case: one.output for one in stored.measured} == expected


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_a_load_over_https_scores_every_answer_right(
    assay: Assay, certificate: Certificate, stream: bool
) -> None:
    file = assay.write("s.yaml", suite(cases(100), benchmark={"scorer": "exact"}))
    options = ["--requests", "100", "--concurrency", "4", "--ca-file", str(certificate.file), "--json"]
    with provider(certificate, answering()) as server:
        found = assay(
            "load", server.url, "--dataset", file, *options, "--stream" if stream else "--no-stream"
        ).json
        assert server.connections == 4
    assert found["errors"] == {}
    assert (found["quality"]["score"], found["quality"]["scored"]) == (1.0, 100)

"""`cassette:` of an agent: its calls are answered from a recording, without network and key."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.command import Assay, AssayInline
from tests.suites.project import Stored, suite
from tests.wording import Wording

from assay.builtin.agents.http_calls import Caller
from assay.plugin import AgentError
from assay.simulator import SimOptions, SimServer

CASES = [{"id": f"c{n}", "input": f"What is {n} + 1?", "expected": n + 1} for n in range(4)]
AGENTS: dict[str, dict[str, Any]] = {
    "openai": {"type": "openai", "model": "m", "params": {"temperature": 0}},
    "anthropic": {"type": "anthropic", "model": "m"},
    "ollama": {"type": "ollama", "model": "m"},
}
BENCHMARK = {"scorer": "numeric", "iterations": {"warmup": 0, "measured": 2}}


@pytest.fixture(scope="module")
def server() -> Iterator[SimServer]:
    with SimServer(SimOptions(port=0, ttft=0.01, itl=0.0, tokens=5, skill=1.0)) as running:
        yield running


def write(assay: Assay, kind: str, **keys: Any) -> None:
    assay.write("s.yaml", suite(CASES, [{"name": kind, **AGENTS[kind], **keys}], benchmark=BENCHMARK))


def recorded(assay: Assay, kind: str, server: SimServer) -> Stored:
    write(assay, kind)
    run = ["--", sys.executable, "-m", "assay", "run", "s.yaml", "-q"]
    keys = {"OPENAI_API_KEY": "sk-secret-one", "ANTHROPIC_API_KEY": "sk-secret-two"}
    done = assay("record", "--upstream", server.url, *run, cwd=assay.folder, **keys)
    assert done.code == 0, done.err
    return Stored(assay.folder)


def outputs(stored: Stored) -> dict[str, object]:
    return {one.case: one.output for one in stored.measured}


@pytest.mark.parametrize("kind", list(AGENTS))
def test_an_agent_is_answered_from_its_cassette(
    assay_inline: AssayInline, server: SimServer, kind: str
) -> None:
    before = recorded(assay_inline, kind, server)
    assert before.counts() == {"ok": 8}
    write(assay_inline, kind, cassette="cassette.jsonl")
    done = assay_inline.run_inline("s.yaml", "-q")
    assert done.code == 0, done.err
    after = Stored(assay_inline.folder)
    assert after.counts() == {"ok": 8}
    assert outputs(after) == outputs(before)
    assert after.metric("output_tokens") == before.metric("output_tokens")
    assert all((one.detail or {}).get("simulated") for one in after.measured)


@pytest.fixture
def taped(assay_inline: AssayInline) -> AssayInline:
    """A cassette written by hand: two questions to a chat model, with a delay."""
    lines = []
    for question, answer in (("What is 0 + 1?", "1"), ("What is 1 + 1?", "2")):
        body = {"model": "m", "messages": [{"role": "user", "content": question}]}
        whole = {"model": "m-1", "choices": [{"message": {"content": answer}}],
                 "usage": {"prompt_tokens": 5, "completion_tokens": 1}}  # fmt: skip
        document = {
            "assay_cassette": 1,
            "request": {"method": "POST", "path": "/v1/chat/completions", "body": body},
            "response": {
                "status": 200,
                "headers": {"content-type": "application/json"},
                "pieces": [[0.2, json.dumps(whole)]],
            },
        }
        lines.append(json.dumps(document) + "\n")
    assay_inline.write("tapes/c.jsonl", "".join(lines))
    return assay_inline


def ran(assay: AssayInline, cassette: object, cases: int = 2, **keys: Any) -> Stored:
    agent = {"name": "gpt", "type": "openai", "model": "m", "stream": False, "cassette": cassette, **keys}
    one_round = {**BENCHMARK, "iterations": {"warmup": 0, "measured": 1}}
    assay.write("s.yaml", suite(CASES[:cases], [agent], benchmark=one_round))
    done = assay("run", "s.yaml", "-q")
    assert done.code in (0, 1), done.err
    return Stored(assay.folder)


def test_no_key_is_needed(taped: AssayInline) -> None:
    stored = ran(taped, "tapes/c.jsonl", headers={"x-tenant": "${TENANT}"}, model="${MODEL:-m}")
    assert outputs(stored) == {"c0": "1", "c1": "2"}
    assert stored.metric("tokens") == {"c0": 6.0, "c1": 6.0}


def test_the_model_that_answered_is_the_version_of_the_agent(taped: AssayInline) -> None:
    assert ran(taped, "tapes/c.jsonl").run.trials[0].trial.agent.version == "m-1"


def test_the_original_delays_are_real_measurements(taped: AssayInline) -> None:
    stored = ran(taped, {"path": "tapes/c.jsonl", "delays": "original"})
    assert all(one.measurements["seconds"] > 0.19 for one in stored.measured)
    assert not any((one.detail or {}).get("simulated") for one in stored.measured)


def test_a_miss_fails_the_case_and_shows_the_nearest_request(taped: AssayInline) -> None:
    stored = ran(taped, "tapes/c.jsonl", cases=3)
    assert stored.status() == {"c0": "ok", "c1": "ok", "c2": "failed"}
    [error] = [one.error for one in stored.measured if one.case == "c2"]
    assert error is not None
    prompt = "'What is 2 + 1?'"
    assert "POST /v1/chat/completions" in error
    assert prompt in error
    assert error.count("POST /v1/chat/completions") > 1, "the nearest request"


def test_lenient_matching_minds_only_the_words(taped: AssayInline) -> None:
    cassette = {"path": "tapes/c.jsonl", "match": "lenient"}
    assert ran(taped, cassette, params={"temperature": 0.7}).counts() == {"ok": 2}
    assert ran(taped, "tapes/c.jsonl", params={"temperature": 0.7}).counts() == {"failed": 2}


@pytest.mark.parametrize(
    ("cassette", "problem"),
    [
        ("gone.jsonl", "does not exist"),
        (5, "'cassette' must be a path"),
        ({"path": "tapes/c.jsonl", "speed": 1}, "'cassette' must be a path, or a mapping of"),
        ({"path": "tapes/c.jsonl", "match": "roughly"}, "must be strict or lenient"),
        ({"path": "tapes/c.jsonl", "delays": "short"}, "neither original, none nor a number"),
        ("tapes/broken.jsonl", "broken.jsonl:1: is not a recorded exchange"),
    ],
)
def test_a_cassette_that_cannot_work_is_reported_before_anything_runs(
    taped: AssayInline, cassette: object, problem: str
) -> None:
    taped.write("tapes/broken.jsonl", "{\n")
    agent = {"name": "gpt", "type": "openai", "model": "m", "cassette": cassette}
    taped.write("s.yaml", suite(CASES, [agent]))
    refusal = taped("run", "s.yaml").refusal
    assert refusal.startswith("Error: Agent 'gpt': ")
    assert problem in refusal


def test_an_agent_that_makes_no_calls_takes_no_cassette(taped: AssayInline, wording: Wording) -> None:
    taped.write("s.yaml", suite(CASES, [{"name": "o", "type": "oracle", "cassette": "tapes/c.jsonl"}]))
    refusal = taped("run", "s.yaml").refusal
    assert "cassette" in refusal
    wording(refusal)


def test_an_agent_behind_a_url_is_answered_whatever_number_its_requests_have(
    assay_inline: AssayInline, tmp_path: Path
) -> None:
    document = {
        "assay_cassette": 1,
        "request": {"method": "POST", "path": "/ask", "body": {"id": "41", "input": "x", "params": {}}},
        "response": {
            "status": 200,
            "headers": {"content-type": "application/json"},
            "pieces": [[0.0, '{"id": "41", "output": "y"}']],
        },
    }
    assay_inline.write("c.jsonl", json.dumps(document))
    agent = {"name": "web", "type": "http", "url": "http://127.0.0.1:1/ask", "cassette": "c.jsonl"}
    assay_inline.write("s.yaml", suite([{"id": "a", "input": "x", "expected": "y"}], [agent]))
    assert assay_inline("run", "s.yaml", "-q").code == 0
    assert outputs(Stored(assay_inline.folder)) == {"a": "y"}


def test_what_a_server_says_of_itself_is_answered_from_the_cassette(tmp_path: Path) -> None:
    document = {
        "assay_cassette": 1,
        "request": {"method": "GET", "path": "/api/ps", "body": None},
        "response": {
            "status": 200,
            "headers": {"content-type": "application/json"},
            "pieces": [[0.0, '{"models": '], [0.0, "[]}"]],
        },
    }
    (tmp_path / "c.jsonl").write_text(json.dumps(document))
    caller = Caller("http://127.0.0.1:1/api/chat", {})
    caller.answer_from("c.jsonl", tmp_path)
    caller.open()
    assert asyncio.run(caller.look_up("/api/ps")) == {"models": []}
    with pytest.raises(AgentError, match="no recording of GET /api/tags"):
        asyncio.run(caller.look_up("/api/tags"))

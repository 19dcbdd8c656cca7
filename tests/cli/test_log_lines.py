"""`--verbose` and `LOG_LEVEL`: what happens, on standard error."""

from __future__ import annotations

import json

import pytest
from tests.command import Assay
from tests.wording import Wording

SUITE = """
suite: desk
benchmarks:
  - {id: b, scorer: exact, iterations: {warmup: 0, measured: 1}, cases: [{id: one, input: x, expected: x}]}
agents: [{name: leaks, type: python, target: "agents.py:leaks"}]
"""
AGENT = """
import os

def leaks(text):
    raise RuntimeError("refused " + os.environ.get("MY_API_KEY", "nothing"))
"""


@pytest.fixture
def desk(assay_inline: Assay) -> Assay:
    assay_inline.write("agents.py", AGENT)
    assay_inline.write("suite.yaml", SUITE)
    return assay_inline


def test_verbose_tells_files_plan_workers_batches_and_failures(desk: Assay, wording: Wording) -> None:
    done = desk("run", "suite.yaml", "--verbose", "--json")
    run_id = json.loads(done.out)["run_id"]
    lines = [line.split(": ", 1) for line in done.err.splitlines() if " assay." in line]
    told = [(place.split(" ", 1)[1], text) for place, text in lines]
    for place, parts in (
        ("DEBUG assay.spec.document", ["suite.yaml"]),
        ("INFO assay.pipeline.planning", ["desk", "1"]),
        ("INFO assay.execute.supervise", ["b · leaks", "0"]),
        ("DEBUG assay.store.store", ["1"]),
        ("INFO assay.pipeline.run", ["b · leaks, one: failed: ", "RuntimeError"]),
        ("INFO assay.pipeline.run", [run_id, "failed"]),
    ):
        assert any(where == place and all(part in text for part in parts) for where, text in told), place
    started, ended = (text for place, text in told if place == "INFO assay.execute.supervise")
    assert started.split()[1] == ended.split()[1]
    assert "0" in ended.split()
    wording(started, numbers=False)
    wording(ended, numbers=False)
    assert done.out.startswith("{")
    assert done.out.count("\n") == 1


def test_a_log_level_leaves_out_what_is_below_it(desk: Assay) -> None:
    told = desk("run", "suite.yaml", "--json", LOG_LEVEL="info").err
    assert "INFO" in told
    assert "DEBUG" not in told
    assert "assay.pipeline" not in desk("run", "suite.yaml", "--json", LOG_LEVEL="ERROR").err
    assert "assay.pipeline" not in desk("run", "suite.yaml", "--json").err


@pytest.mark.parametrize("command", [("run", "suite.yaml"), ("runs", "list"), ("list",)])
def test_a_log_level_that_does_not_exist_is_refused(desk: Assay, command: tuple[str, ...]) -> None:
    refusal = desk(*command, LOG_LEVEL="loud").refusal
    assert "'loud'" in refusal
    assert "DEBUG, INFO, WARNING" in refusal


def test_secrets_are_not_in_the_log(desk: Assay) -> None:
    told = desk("run", "suite.yaml", "--verbose", "--json", MY_API_KEY="sk-very-secret-1234").err
    assert "refused [redacted]" in told
    assert "very-secret" not in told

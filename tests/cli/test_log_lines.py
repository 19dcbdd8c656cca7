"""`--verbose` and `LOG_LEVEL`: what happens, on standard error."""

from __future__ import annotations

import pytest
from tests.command import Assay

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


def test_verbose_tells_files_plan_workers_batches_and_failures(desk: Assay) -> None:
    done = desk("run", "suite.yaml", "--verbose", "--json")
    for part in (
        "DEBUG assay.spec.document: read suite.yaml",
        "planned desk: 1 trials",
        "started: b · leaks, process 0",
        "ended with code 0",
        "stored 1 executions",
        "b · leaks, one: failed: ",
        " failed after ",
    ):
        assert part in done.err
    assert done.out.startswith("{")
    assert done.out.count("\n") == 1


def test_a_log_level_leaves_out_what_is_below_it(desk: Assay) -> None:
    told = desk("run", "suite.yaml", "--json", LOG_LEVEL="info").err
    assert "INFO" in told
    assert "DEBUG" not in told
    assert "assay.pipeline" not in desk("run", "suite.yaml", "--json", LOG_LEVEL="ERROR").err
    assert "assay.pipeline" not in desk("run", "suite.yaml", "--json").err


@pytest.mark.parametrize("command", [("run", "suite.yaml"), ("runs", "list"), ("list",)])
def test_a_log_level_that_there_is_not_is_refused(desk: Assay, command: tuple[str, ...]) -> None:
    refusal = desk(*command, LOG_LEVEL="loud").refusal
    assert "'loud'" in refusal
    assert "DEBUG, INFO, WARNING" in refusal


def test_secrets_are_not_in_the_log(desk: Assay) -> None:
    told = desk("run", "suite.yaml", "--verbose", "--json", MY_API_KEY="sk-very-secret-1234").err
    assert "refused [redacted]" in told
    assert "very-secret" not in told

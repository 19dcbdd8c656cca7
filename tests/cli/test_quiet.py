"""`--quiet`: the result that was asked for, warnings and errors; no progress, hints or explanations."""

from __future__ import annotations

import re

import pytest
from tests.command import Assay, AssayInline, Prepare
from tests.wording import Wording

SUITE = """
suite: desk
benchmarks:
  - id: b
    scorer: exact
    iterations: {warmup: 0, measured: 2}
    cases: [{id: a, input: x, expected: x}, {id: b, input: y, expected: y}]
agents: [oracle, nop]
"""


@pytest.fixture
def desk(assay_inline: Assay) -> Assay:
    assay_inline.write("suite.yaml", SUITE)
    return assay_inline


def play(assay: AssayInline) -> None:
    assay.write("suite.yaml", SUITE)
    assay.run_inline("suite.yaml", "-q")


@pytest.fixture
def played(assay_inline: Assay, prepare: Prepare) -> Assay:
    prepare(assay_inline, play)
    return assay_inline


def test_a_quiet_run_prints_one_line_that_begins_with_its_id(desk: Assay) -> None:
    done = desk("run", "suite.yaml", "-q")
    [line] = done.out.splitlines()
    run_id, state = line.split()[:2]
    assert desk("show", run_id, "--json").json["run_id"] == run_id
    assert state == "completed"
    assert "8" in line.split()
    assert "oracle" in line
    assert "Next:" not in done.err
    assert all(message.startswith("Warning: ") for message in done.err.splitlines())


def test_the_line_of_one_agent_or_of_code_has_its_figure(desk: Assay) -> None:
    figure = "b · oracle score 1"
    assert figure in desk("run", "suite.yaml", "-q", "--agent", "oracle").out
    assert "noop seconds" in desk("run", "noop", "-q").out


def test_a_quiet_run_tells_of_failures(desk: Assay, wording: Wording) -> None:
    desk.write("agents.py", "def broken(text):\n    raise ValueError('no')\n")
    done = desk("run", "suite.yaml", "-q", "--load", "agents.py", "--agent", "broken")
    assert done.code == 1
    run_id, state, rest = done.out.split(maxsplit=2)
    assert state == "failed"
    assert re.findall(r"\b\d+\b", rest)[:2] == ["4", "4"]
    wording(done.out.replace(run_id, "RUN"))
    assert "Warning: " in done.err


@pytest.mark.parametrize(
    "command",
    [
        ("leaderboard",),
        ("matrix",),
        ("show", "last"),
        ("compare", "oracle", "nop", "--suite", "desk"),
        ("runs", "list"),
        ("run", "suite.yaml", "--dry-run"),
        ("power", "suite.yaml", "--effect", "90%", "--metric", "score"),
    ],
)
def test_results_are_printed_without_hints_and_warnings_go_to_standard_error(
    played: Assay, command: tuple[str, ...]
) -> None:
    loud, quiet = played(*command), played(*command, "-q")
    assert quiet.out.strip()
    assert "Next:" in loud.err
    assert "Next:" not in quiet.err
    assert not [line for line in quiet.out.splitlines() if line.startswith(("! ", "→ ", "? "))]
    if any(line.startswith("! ") for line in loud.out.splitlines()):
        assert "Warning: " in quiet.err


def test_commands_that_only_do_something_say_nothing(desk: Assay) -> None:
    desk("run", "suite.yaml", "-q")
    for command in (
        ("validate", "suite.yaml"),
        ("baseline", "set", "main", "last"),
        ("init", "new"),
        ("runs", "tag", "last", "t"),
        ("db", "export", "copy.csv"),
    ):
        done = desk(*command, "-q")
        assert (done.code, done.out, done.err) == (0, "", ""), command


def test_mistakes_are_reported_all_the_same(desk: Assay) -> None:
    desk.write("wrong.yaml", SUITE.replace("scorer: exact", "scorer: exakt"))
    assert "exakt" in desk("validate", "wrong.yaml", "-q").refusal

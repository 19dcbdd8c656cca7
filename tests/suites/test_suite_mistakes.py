from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.command import AssayInline
from tests.suites.project import QUICK, numbers, suite

SUITE = """\
suite: broken
category: silly
benchmarks:
  - id: one
    cases: one.jsonl
    scorer: [numerik, {name: contains, colour: red}]
  - id: two
    cases: two.csv
    limits: {seconds: -1}
  - id: one
    cases: missing.jsonl
  - id: three
    cases:
      - {id: a, input: x}
      - {id: a, input: y}
      - {expected: z}
      - {input: x, files: [gone.txt]}
      - {input: x, turns: hello}
      - {input: x, tools: [5]}
    expected_outputs: [1]
    scorers: [exact, exact]
agents:
  - {name: good, type: oracle}
  - {name: odd, type: pyton}
  - {name: nameless}
  - {name: dream, type: simulated, qualty: 1}
  - nobody
"""
ONE = '{"id": 1, "input": "a"}\n{"id": 2, "inp\n[1]\n{"id": 1, "input": "b"}\n{"expected": "x"}\n{"input": NaN}\n'
TWO = "id,input,expected\n1,a,b\n2,a\n3,a,b,c\n4,,x\n"
PLACES = (
    "suite.yaml:2: category: must be 'speed'",
    "suite.yaml:6: benchmarks.0.scorer.0: There is no 'numerik' among the scorers",
    "suite.yaml:6: benchmarks.0.scorer.1.colour: 'colour' is not an option of 'contains' (mode, texts, case_sensitive).",
    "one.jsonl:2: is not JSON",
    "one.jsonl:3: is not a case",
    "one.jsonl:4: id: '1' is the id of the case on line 1 already.",
    "one.jsonl:5: has no 'input'.",
    "one.jsonl:6: is not JSON: there is no number NaN.",
    "two.csv:3: has another number of cells than the heading.",
    "two.csv:4: has another number of cells than the heading.",
    "two.csv:5: has no 'input'.",
    "suite.yaml:9: benchmarks.1.limits.seconds: must be greater than 0",
    "missing.jsonl: does not exist.",
    "suite.yaml:10: benchmarks.2.id: 'one' is the id of another benchmark already.",
    "suite.yaml:15: benchmarks.3.cases.1.id: 'a' is the id of the case on line 14 already.",
    "suite.yaml:16: benchmarks.3.cases.2: has no 'input'.",
    "suite.yaml:17: benchmarks.3.cases.3: names files that do not exist: gone.txt.",
    "suite.yaml:18: benchmarks.3.cases.4: 'turns' must be a list",
    "suite.yaml:19: benchmarks.3.cases.5: tool 1 has no 'name'.",
    "suite.yaml:20: benchmarks.3.expected_outputs: There are 1 right outputs for 6 cases.",
    "benchmarks.3.scorer.1: Two scores are called 'exact'. Name one of them: as: NAME",
    "suite.yaml:24: agents.1: Agent 'odd': There is no 'pyton' among the agents",
    "suite.yaml:25: agents.2.type: is missing.",
    "suite.yaml:26: agents.3.qualty: Agent 'dream': 'qualty' is not an option of 'simulated'",
    "suite.yaml:27: agents.4: There is no 'nobody' among the agents",
)


def write_broken(assay: AssayInline) -> None:
    for name, text in (("suite.yaml", SUITE), ("one.jsonl", ONE), ("two.csv", TWO)):
        assay.write(name, text)


@pytest.mark.parametrize("command", ["run", "validate"])
def test_every_mistake_is_told_at_once_and_nothing_is_run(assay_inline: AssayInline, command: str) -> None:
    write_broken(assay_inline)
    refusal = assay_inline(command, "suite.yaml").refusal
    assert [place for place in PLACES if place not in refusal] == []
    assert len(refusal.splitlines()) <= len(PLACES) + 2
    if command == "run":
        assert assay_inline("runs", "list", "--json").json == []


def test_validate_tells_what_a_sound_suite_and_a_file_of_agents_hold(assay_inline: AssayInline) -> None:
    assay_inline.write("bare.yaml", suite(numbers(3)))
    assay_inline.write("agents.yaml", "agents:\n- {name: a, type: nop}\n- {name: b, type: oracle}\n")
    done = assay_inline("validate", "bare.yaml", "agents.yaml")
    assert done.code == 0
    assert done.out.splitlines() == [
        "bare.yaml: fine, 1 benchmark, 3 cases",
        "agents.yaml: fine, 2 agents",
    ]


def test_an_unknown_agent_on_the_command_line_is_named_with_its_option(assay_inline: AssayInline) -> None:
    assay_inline.write("suite.yaml", suite(numbers(1)))
    refusal = assay_inline("run", "suite.yaml", "--agent", "orcale").refusal
    assert "--agent: There is no 'orcale' among the agents" in refusal
    assert "Did you mean 'oracle'?" in refusal


def test_a_suite_without_agents_says_how_to_give_one(assay_inline: AssayInline) -> None:
    assay_inline.write("suite.yaml", suite(numbers(1)))
    assert "names no agent. Give one: --agent NAME" in assay_inline("run", "suite.yaml").refusal


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"name": "regex", "pattern": "("}, "regex"),
        ({"name": "own.py:missing"}, "missing"),
        ({"name": "judge", "agent": "nobody"}, "There is no 'nobody' among the agents"),
    ],
)
def test_a_scorer_that_cannot_be_made_is_told_before_anything_runs(
    assay_inline: AssayInline, options: dict[str, object], problem: str
) -> None:
    assay_inline.write("own.py", "def grade(output, expected): return 1\n")
    assay_inline.write("suite.yaml", suite(numbers(1), ["oracle"], benchmark={"scorer": options}))
    assert problem in assay_inline("run", "suite.yaml").refusal


def test_agents_that_cannot_be_made_are_all_told_before_anything_runs(assay_inline: AssayInline) -> None:
    agents = [
        {"name": "a", "type": "http", "url": "${NOT_SET}/ask"},
        {"name": "b", "type": "python", "target": "gone.py:f"},
        {"name": "c", "type": "recorded", "answers": "gone.jsonl"},
    ]
    assay_inline.write("suite.yaml", suite(numbers(1), agents))
    refusal = assay_inline("run", "suite.yaml").refusal
    assert "Agent 'a' needs the environment variable 'NOT_SET', which is not set." in refusal
    assert "Agent 'b'" in refusal
    assert "Agent 'c'" in refusal


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "holds no keys"),
        ("benchmarks: []\n", "suite: is missing"),
        ("suite: s\nbenchmarks: []\n", "benchmarks: must have at least 1 item"),
        ("suite: s\nbenchmarks: [5]\n", "benchmarks.0: must be a mapping"),
        ("suite: s\nbenchmarks: [{id: b, cases: []}]\n", "holds no case"),
        ("suite: s\nbenchmarks: [{id: b}]\n", "benchmarks.0.cases: is missing"),
        ("suite: s\nbenchmarks: [{id: b, cases: c.txt}]\n", "is not a file of cases"),
    ],
)
def test_a_suite_that_says_nothing_is_refused(
    assay_inline: AssayInline, tmp_path: Path, content: str, problem: str
) -> None:
    assay_inline.write("suite.yaml", content or "[]")
    refusal = assay_inline("run", "suite.yaml", "--agent", "nop").refusal
    assert problem in refusal


def test_a_broken_csv_names_its_line(assay_inline: AssayInline) -> None:
    assay_inline.write("c.csv", 'input,expected\na,b\n"c"d,e\n')
    assay_inline.write("suite.yaml", suite("c.csv"))
    assert "c.csv:3: is not CSV" in assay_inline("run", "suite.yaml", "--agent", "nop").refusal


def test_a_cell_of_a_megabyte_is_no_mistake(assay_inline: AssayInline) -> None:
    assay_inline.write("c.csv", f"input,expected\n{'x' * 2**20},b\n")
    assay_inline.write("suite.yaml", suite("c.csv"))
    assert assay_inline("validate", "suite.yaml").code == 0


def test_broken_json_lines_that_are_deeply_nested_are_named(assay_inline: AssayInline) -> None:
    assay_inline.write("c.jsonl", "[" * 100_000 + "\n" + json.dumps({"input": "x"}))
    assay_inline.write("suite.yaml", suite("c.jsonl", benchmark={"iterations": QUICK}))
    assert "c.jsonl:1: is not JSON" in assay_inline("run", "suite.yaml", "--agent", "nop").refusal


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("c.jsonl", b'{"input": 1}\n{"input": "\xff"}\n{"input"\n\n{"input": "\xc3"}\n', [
            "c.jsonl:2: is not UTF-8 text.",
            "c.jsonl:3: is not JSON: Expecting ':' delimiter (column 9).",
            "c.jsonl:5: is not UTF-8 text.",
        ]),
        ("c.csv", b"id,input\na,b\nc,\xff\n", ["c.csv:3: is not UTF-8 text (byte 15)."]),
    ],
)  # fmt: skip
def test_bytes_that_are_no_text_are_told_with_their_line(
    assay_inline: AssayInline, name: str, content: bytes, told: list[str]
) -> None:
    assay_inline.write(name, content)
    assay_inline.write("s.yaml", suite(name))
    refusal = assay_inline("run", "s.yaml", "--agent", "oracle").refusal
    assert [line.rpartition("/")[2] for line in refusal.splitlines() if name in line] == told


def test_a_benchmark_that_lacks_its_id_or_its_cases_still_has_its_scorer_looked_at(
    assay_inline: AssayInline,
) -> None:
    whole = {"cases": [{"input": "x", "expected": "y"}], "scorer": "exakt"}
    assay_inline.write(
        "s.yaml", json.dumps({"suite": "s", "benchmarks": [whole, {"id": "b", "scorer": "exakt"}]})
    )
    refusal = assay_inline("suite", "check", "s.yaml").refusal
    for told in (
        "0.id: is missing",
        "1.cases: is missing",
        "0.scorer: There is no 'exakt'",
        "1.scorer: There",
    ):
        assert refusal.count(f"benchmarks.{told}") == 1
    assert "4 mistakes" in refusal


UNKNOWN = """\
suite: s
descripton: x
benchmarks:
  - id: one
    scorre: exact
    rubric:
      reference:
        secnds: 1
    cases: [{input: a, expected: b}]
    scorer:
      name: contains
      moode: any
baseline_scores:
  - agent_id: a
    scores: {one: 1.0}
    scroes: {}
agents:
  - name: a
    type: openai
    model: m
    base_url: http://127.0.0.1:1
    retires: 2
  - name: b
    type: openai
    base_url: http://127.0.0.1:1
    retries: many
"""


def test_an_unknown_key_anywhere_is_told_with_its_line_and_the_known_ones(assay_inline: AssayInline) -> None:
    assay_inline.write("s.yaml", UNKNOWN)

    told = assay_inline("run", "s.yaml").refusal.splitlines()[1:]

    for place, known in {
        "s.yaml:2: descripton: ": ("description", "benchmarks"),
        "s.yaml:5: benchmarks.0.scorre: ": ("scorer", "cases"),
        "s.yaml:8: benchmarks.0.rubric.reference.secnds: ": ("seconds", "usd"),
        "s.yaml:12: benchmarks.0.scorer.moode: ": ("mode", "texts"),
        "s.yaml:16: baseline_scores.0.scroes: ": ("scores", "agent_id"),
        "s.yaml:22: agents.0.retires: ": ("retries", "model"),
    }.items():
        (line,) = [line for line in told if line.startswith(place)]
        assert all(name in line for name in known), line
        assert f"Did you mean '{known[0]}'?" in line
    assert any(line.startswith("s.yaml:23: agents.1: ") and "needs 'model'" in line for line in told)
    assert any(line.startswith("s.yaml:26: agents.1.retries: ") and "whole number" in line for line in told)


def test_a_mistake_of_an_agent_is_told_where_it_is_defined(assay_inline: AssayInline) -> None:
    assay_inline.write("assay.toml", '[assay]\nagents = ["agents.yaml"]\n')
    assay_inline.write("agents.yaml", "agents:\n  - name: a\n    type: stub\n    anwser: x\n")
    assay_inline.write("s.yaml", suite(numbers(1)))

    told = assay_inline("run", "s.yaml", "--agent", "a").refusal

    assert "agents.yaml:4: agents.0.anwser: " in told
    assert "Did you mean 'answer'?" in told

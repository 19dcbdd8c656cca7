from __future__ import annotations

import json
import re

import pytest
from tests.command import AssayInline
from tests.suites.project import QUICK, numbers, suite
from tests.wording import Wording

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
PLACES = {
    "suite.yaml:2: category: ": "'speed'",
    "suite.yaml:6: benchmarks.0.scorer.0: ": "'numerik'",
    "suite.yaml:6: benchmarks.0.scorer.1.colour: ": "'colour' 'contains' mode texts case_sensitive",
    "one.jsonl:2: ": "JSON",
    "one.jsonl:3: ": "",
    "one.jsonl:4: id: ": "'1' 1",
    "one.jsonl:5: ": "'input'",
    "one.jsonl:6: ": "JSON NaN",
    "two.csv:3: ": "",
    "two.csv:4: ": "",
    "two.csv:5: ": "'input'",
    "suite.yaml:9: benchmarks.1.limits.seconds: ": "0",
    "missing.jsonl: ": "",
    "suite.yaml:10: benchmarks.2.id: ": "'one'",
    "suite.yaml:15: benchmarks.3.cases.1.id: ": "'a' 14",
    "suite.yaml:16: benchmarks.3.cases.2: ": "'input'",
    "suite.yaml:17: benchmarks.3.cases.3: ": "gone.txt",
    "suite.yaml:18: benchmarks.3.cases.4: ": "'turns'",
    "suite.yaml:19: benchmarks.3.cases.5: ": "1 'name'",
    "suite.yaml:20: benchmarks.3.expected_outputs: ": "1 6",
    "benchmarks.3.scorer.1: ": "'exact' as: NAME",
    "suite.yaml:24: agents.1: ": "'odd' 'pyton'",
    "suite.yaml:25: agents.2.type: ": "",
    "suite.yaml:26: agents.3.qualty: ": "'dream' 'qualty' 'simulated'",
    "suite.yaml:27: agents.4: ": "'nobody'",
}


def write_broken(assay: AssayInline) -> None:
    for name, text in (("suite.yaml", SUITE), ("one.jsonl", ONE), ("two.csv", TWO)):
        assay.write(name, text)


@pytest.mark.parametrize("command", ["run", "validate"])
def test_every_mistake_is_reported_at_once_and_nothing_is_run(
    assay_inline: AssayInline, wording: Wording, command: str
) -> None:
    write_broken(assay_inline)
    refusal = assay_inline(command, "suite.yaml").refusal
    for place, names in PLACES.items():
        [told] = [line.partition(place)[2] for line in refusal.splitlines() if place in line]
        assert (place, [name for name in names.split() if name not in told]) == (place, [])
    assert len(refusal.splitlines()) <= len(PLACES) + 2
    if command == "run":
        assert assay_inline("runs", "list", "--json").json == []
    wording(re.sub(r"(\w+, ){4,}\w+", "…", refusal))  # without all the names that are known


def test_validate_tells_what_a_sound_suite_and_a_file_of_agents_hold(
    assay_inline: AssayInline, wording: Wording
) -> None:
    assay_inline.write("bare.yaml", suite(numbers(3)))
    assay_inline.write("agents.yaml", "agents:\n- {name: a, type: nop}\n- {name: b, type: oracle}\n")
    done = assay_inline("validate", "bare.yaml", "agents.yaml")
    assert done.code == 0
    told = {line.partition(": ")[0]: re.findall(r"\d+", line) for line in done.out.splitlines()}
    assert told == {"bare.yaml": ["1", "3"], "agents.yaml": ["2"]}
    assert "assay run bare.yaml --agent NAME" in done.err
    assert "assay agent add agents.yaml" in assay_inline("validate", "agents.yaml").err
    wording(done.out)


def test_an_unknown_agent_on_the_command_line_is_named_with_its_option(
    assay_inline: AssayInline, wording: Wording
) -> None:
    assay_inline.write("suite.yaml", suite(numbers(1)))
    refusal = assay_inline("run", "suite.yaml", "--agent", "orcale").refusal
    assert all(name in refusal for name in ("--agent: ", "'orcale'", "'oracle'"))
    wording(re.sub(r"(\w+, ){4,}\w+", "…", refusal))


def test_a_suite_without_agents_says_how_to_give_one(assay_inline: AssayInline, wording: Wording) -> None:
    assay_inline.write("suite.yaml", suite(numbers(1)))
    refusal = assay_inline("run", "suite.yaml").refusal
    assert "--agent NAME" in refusal
    wording(refusal)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"name": "regex", "pattern": "("}, "regex"),
        ({"name": "own.py:missing"}, "missing"),
        ({"name": "judge", "agent": "nobody"}, "'nobody'"),
    ],
)
def test_a_scorer_that_cannot_be_made_is_reported_before_anything_runs(
    assay_inline: AssayInline, options: dict[str, object], problem: str
) -> None:
    assay_inline.write("own.py", "def grade(output, expected): return 1\n")
    assay_inline.write("suite.yaml", suite(numbers(1), ["oracle"], benchmark={"scorer": options}))
    assert problem in assay_inline("run", "suite.yaml").refusal


def test_agents_that_cannot_be_made_are_all_reported_before_anything_runs(
    assay_inline: AssayInline, wording: Wording
) -> None:
    agents = [
        {"name": "a", "type": "http", "url": "${NOT_SET}/ask"},
        {"name": "b", "type": "python", "target": "gone.py:f"},
        {"name": "c", "type": "recorded", "answers": "gone.jsonl"},
    ]
    assay_inline.write("suite.yaml", suite(numbers(1), agents))
    refusal = assay_inline("run", "suite.yaml").refusal
    assert "Agent 'a'" in refusal
    assert "'NOT_SET'" in refusal
    wording(refusal, near="'NOT_SET'")
    assert "Agent 'b'" in refusal
    assert "Agent 'c'" in refusal


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ("", "suite.yaml:1: "),
        ("benchmarks: []\n", "suite.yaml:1: suite: "),
        ("suite: s\nbenchmarks: []\n", "suite.yaml:2: benchmarks: "),
        ("suite: s\nbenchmarks: [5]\n", "suite.yaml:2: benchmarks.0: "),
        ("suite: s\nbenchmarks: [{id: b, cases: []}]\n", "suite.yaml:2: benchmarks.0.cases: "),
        ("suite: s\nbenchmarks: [{id: b}]\n", "suite.yaml:2: benchmarks.0.cases: "),
        ("suite: s\nbenchmarks: [{id: b, cases: c.txt}]\n", "c.txt: "),
    ],
)
def test_a_suite_that_says_nothing_is_refused(
    assay_inline: AssayInline, wording: Wording, content: str, place: str
) -> None:
    assay_inline.write("suite.yaml", content or "[]")
    refusal = assay_inline("run", "suite.yaml", "--agent", "nop").refusal
    assert place in refusal
    wording(refusal, near=place)


def test_a_broken_csv_names_its_line(assay_inline: AssayInline, wording: Wording) -> None:
    assay_inline.write("c.csv", 'input,expected\na,b\n"c"d,e\n')
    assay_inline.write("suite.yaml", suite("c.csv"))
    refusal = assay_inline("run", "suite.yaml", "--agent", "nop").refusal
    assert "c.csv:3: " in refusal
    assert "CSV" in refusal
    wording(refusal.partition("CSV")[0])  # what follows are words of Python


def test_a_cell_of_a_megabyte_is_no_mistake(assay_inline: AssayInline) -> None:
    assay_inline.write("c.csv", f"input,expected\n{'x' * 2**20},b\n")
    assay_inline.write("suite.yaml", suite("c.csv"))
    assert assay_inline("validate", "suite.yaml").code == 0


def test_broken_json_lines_that_are_deeply_nested_are_named(
    assay_inline: AssayInline, wording: Wording
) -> None:
    assay_inline.write("c.jsonl", "[" * 100_000 + "\n" + json.dumps({"input": "x"}))
    assay_inline.write("suite.yaml", suite("c.jsonl", benchmark={"iterations": QUICK}))
    refusal = assay_inline("run", "suite.yaml", "--agent", "nop").refusal
    assert "c.jsonl:1: " in refusal
    assert "JSON" in refusal
    wording(refusal.partition("JSON")[0])  # what follows are words of Python


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        (
            "c.jsonl",
            b'{"input": 1}\n{"input": "\xff"}\n{"input"\n\n{"input": "\xc3"}\n',
            {"c.jsonl:2: ": "UTF-8", "c.jsonl:3: ": "JSON 9", "c.jsonl:5: ": "UTF-8"},
        ),
        ("c.csv", b"id,input\na,b\nc,\xff\n", {"c.csv:3: ": "UTF-8 15"}),
    ],
    ids=["jsonl", "csv"],
)
def test_bytes_that_are_not_text_are_reported_with_their_line(
    assay_inline: AssayInline, wording: Wording, name: str, content: bytes, told: dict[str, str]
) -> None:
    assay_inline.write(name, content)
    assay_inline.write("s.yaml", suite(name))
    refusal = assay_inline("run", "s.yaml", "--agent", "oracle").refusal
    lines = [line for line in refusal.splitlines() if name in line]
    for line, (place, names) in zip(lines, told.items(), strict=True):
        assert all(part in line for part in (place, *names.split()))
    wording("\n".join(lines))


def test_a_benchmark_that_lacks_its_id_or_its_cases_still_has_its_scorer_looked_at(
    assay_inline: AssayInline, wording: Wording
) -> None:
    whole = {"cases": [{"input": "x", "expected": "y"}], "scorer": "exakt"}
    assay_inline.write(
        "s.yaml", json.dumps({"suite": "s", "benchmarks": [whole, {"id": "b", "scorer": "exakt"}]})
    )
    refusal = assay_inline("suite", "check", "s.yaml").refusal
    for key in ("0.id", "1.cases", "0.scorer", "1.scorer"):
        assert refusal.count(f"benchmarks.{key}: ") == 1
    assert refusal.count("'exakt'") == 2
    heading = refusal.splitlines()[0]
    assert "4 " in heading
    wording(heading)


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


def test_an_unknown_key_anywhere_is_reported_with_its_line_and_the_known_ones(
    assay_inline: AssayInline, wording: Wording
) -> None:
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
        assert f"'{known[0]}'" in line
    [lacking] = [line for line in told if line.startswith("s.yaml:23: agents.1: ")]
    assert "'model'" in lacking
    wording(lacking)
    [wrong] = [line for line in told if line.startswith("s.yaml:26: agents.1.retries: ")]
    assert "'many'" in wrong
    wording(wrong)


def test_a_mistake_of_an_agent_is_reported_where_it_is_defined(
    assay_inline: AssayInline, wording: Wording
) -> None:
    assay_inline.write("assay.toml", '[assay]\nagents = ["agents.yaml"]\n')
    assay_inline.write("agents.yaml", "agents:\n  - name: a\n    type: stub\n    anwser: x\n")
    assay_inline.write("s.yaml", suite(numbers(1)))

    told = assay_inline("run", "s.yaml", "--agent", "a").refusal

    assert "agents.yaml:4: agents.0.anwser: " in told
    assert "'answer'" in told
    wording(told, near="agents.yaml:4: ")

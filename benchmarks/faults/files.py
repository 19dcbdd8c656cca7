"""Mutants of every kind of file that Assay reads, through the commands that read them."""

from __future__ import annotations

import contextlib
import json
import os
import random
import select
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from faults.campaign import Fault, Outcome, Part, Size
from faults.mutants import KINDS_OF_FILE, mutate
from faults.project import Project

_SECONDS = 5.0
_HANGS_AFTER = 40.0
"""Seconds of a busy machine's clock; what counts is the processor time, and whether there is an end."""
_IN_A_BATCH = 25
_SUITE = """\
suite: sample
version: "1.2"
category: comprehensive
description: Some questions
agents:
  - {name: canned, type: stub, answer: "42", usage: {input_tokens: 8, output_tokens: 1}}
  - {name: past, type: recorded, answers: answers.jsonl}
  - {name: fast, type: simulated, quality: 0.9, seconds: 0.0, usd: 0.001}
  - {name: web, type: http, url: "http://127.0.0.1:9/ask", headers: {Authorization: "Bearer ${WEB_TOKEN:-x}"}, retries: 1}
benchmarks:
  - id: sums
    name: Sums
    test_type: synthetic
    cases: cases.jsonl
    scorer: [numeric, {name: contains, weight: 0.5}]
    iterations: {warmup: 0, measured: 2}
    limits: {seconds: 20, tokens: 1000, usd: 0.01, memory_mb: 256}
    rubric: {weights: {accuracy: 0.5, speed: 0.5}, reference: {seconds: 1.0, tokens: 300, usd: 0.002}}
  - id: table
    name: Table
    cases: cases.csv
    scorer: exact
  - id: inline
    name: Inline
    cases: [{id: a, input: "1", expected: "1"}, {id: b, input: {q: [1, 2]}, expected: "2"}]
    scorer: {name: regex, pattern: "[0-9]+"}
baseline_scores: [{agent_id: canned, scores: {sums: 0.9}}]
"""
_SPEC = """\
experiment: noop
params: {}
iterations: {warmup: 1, measured: 5}
processes: 2
instrumentation: [timing, {name: psutil, interval_ms: 100}]
isolation: process
order: interleaved
limits: {seconds: 30, memory_mb: 512}
output_dir: results
tags: [db]
notes: "why"
seed: 42
parallelism: 1
"""
_SWEEP = """\
experiment: pragma_profile
params: {num_records: 1000}
sweep: {profile: [balanced, performance], num_records: [10, 20]}
strategy: cartesian
iterations: {measured: auto}
until: {interval: 5%, max: 50}
"""
_TEAM = """\
team: pair
agents: [{name: one, type: stub, answer: "1"}, {name: two, type: stub, answer: "2"}]
cases: cases.jsonl
permits: 2
iterations: {warmup: 1, measured: 2}
"""
_AGENTS = """\
agents:
  - {name: ours, type: python, target: "ours.py:ours", version: "3", price: {input: 0.15, output: 0.6}, concurrency: 2}
  - {name: rusty, type: command, command: ["./rusty", "--serve"], mode: lines, env: {A: b}, max_bytes: 1000}
  - {name: gpt, type: openai, model: gpt-4o-mini, base_url: "http://127.0.0.1:9/v1", params: {temperature: 0}, retries: 2, backoff: 0.1}
  - {name: claude, type: anthropic, model: c, base_url: "http://127.0.0.1:9"}
  - {name: gemma, type: ollama, model: "gemma3:latest", params: {num_ctx: 512}, keep_alive: 5m}
  - {name: ceiling, type: oracle}
"""
_TOML = """\
[assay]
db = "sqlite:///.assay/assay.db"
load = ["ours.py"]
agents = ["agents.yaml"]
suites = ["suite.yaml"]
[server]
host = "127.0.0.1"
port = 8765
"""
_PROGRAM = """\
import json, os, urllib.request
body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hello"}]}).encode()
request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, {"content-type": "application/json"})
print(urllib.request.urlopen(request, timeout=20).read().decode())
"""
_PAST = """\
suite: past
version: "1"
agents: [{name: past, type: recorded, answers: answers.jsonl}]
benchmarks: [{id: sums, name: Sums, cases: cases.jsonl, scorer: numeric, iterations: {warmup: 0, measured: 1}}]
"""
_CASES = '{"id": "a", "input": "1 + 1", "expected": 2}\n{"id": "b", "input": "40 + 2", "expected": "42", "level": 3}\n'
_ANSWERS = '{"id": "a", "output": "2", "seconds": 0.5, "usage": {"input_tokens": 3, "output_tokens": 1}}\n{"id": "b", "output": "42", "usd": 0.1}\n'


@dataclass(frozen=True, slots=True)
class Subject:
    """A file to mutate, and the commands that read it with the exit codes that they may have."""

    file: str
    commands: tuple[tuple[tuple[str, ...], tuple[int, ...]], ...]


_PLAIN = (0, 2)
_FOUND = (0, 1, 2)
SUBJECTS = (
    Subject("suite.yaml", ((("validate", "suite.yaml"), _PLAIN), (("run", "suite.yaml", "--dry-run"), _PLAIN), (("suite", "check", "suite.yaml"), _FOUND))),
    Subject("spec.yaml", ((("validate", "spec.yaml"), _PLAIN), (("run", "spec.yaml", "--dry-run"), _PLAIN))),
    Subject("sweep.yaml", ((("validate", "sweep.yaml"), _PLAIN), (("run", "sweep.yaml", "--dry-run"), _PLAIN))),
    Subject("team.yaml", ((("validate", "team.yaml"), _PLAIN), (("team", "team.yaml", "--dry-run"), _PLAIN))),
    Subject("agents.yaml", ((("validate", "agents.yaml"), _PLAIN), (("agent", "add", "agents.yaml"), _PLAIN), (("list", "agents"), _PLAIN))),
    Subject("assay.toml", ((("list", "suites"), _PLAIN), (("runs", "list"), _PLAIN), (("validate", "suite.yaml"), _PLAIN))),
    Subject("cases.jsonl", ((("validate", "suite.yaml"), _PLAIN), (("run", "suite.yaml", "--dry-run"), _PLAIN))),
    Subject("cases.csv", ((("validate", "suite.yaml"), _PLAIN), (("run", "suite.yaml", "--dry-run"), _PLAIN))),
    Subject("answers.jsonl", ((("run", "suite.yaml", "--agent", "past", "--dry-run"), _PLAIN), (("run", "past.yaml", "--isolation", "inline"), _FOUND))),
    Subject("result.json", ((("compare", "result.json", "second.json"), _PLAIN), (("gate", "result.json", "--require", "accuracy>=0.1"), _FOUND), (("compare", "second.json", "result.json", "--json"), _PLAIN))),
    Subject("cassette.jsonl", ((("replay", "--", sys.executable, "-S", "-E", "program.py"), _FOUND),)),
    Subject("series.json", ((("detect", "series.json"), _FOUND), (("detect", "series.json", "--json"), _FOUND))),
    Subject("series.txt", ((("detect", "series.txt", "--lines"), _FOUND),)),
    Subject("trace.csv", ((("load", "http://127.0.0.1:9/v1", "--arrivals", "trace:trace.csv", "--requests", "2"), _FOUND),)),
    Subject("prompts.jsonl", ((("load", "http://127.0.0.1:9/v1", "--dataset", "prompts.jsonl", "--requests", "2"), _FOUND),)),
    Subject(".assay/assay.db", ((("runs", "list"), _PLAIN), (("show", "last"), _PLAIN), (("report", "last", "--format", "md,json", "--out", "out"), _PLAIN), (("db", "info"), _PLAIN), (("leaderboard",), _PLAIN))),
)  # fmt: skip


@contextmanager
def prepare(seed: int, size: Size) -> Iterator[Sequence[Fault]]:
    mutants = size.choose(48, 400, 10_000)
    with tempfile.TemporaryDirectory(prefix="faults-files-") as place:
        sample = Path(place).resolve()
        _write_sample(sample)
        faults = []
        each = max(1, mutants // len(SUBJECTS))
        if size is Size.SMALLEST:
            yield [Fault("all kinds of files", partial(_check_some, seed, sample, 3))]
            return
        for subject in SUBJECTS:
            for start in range(0, each, _IN_A_BATCH):
                numbers = range(start, min(each, start + _IN_A_BATCH))
                name = f"{subject.file} mutants {numbers.start} to {numbers.stop - 1}"
                faults.append(Fault(name, partial(_check, subject, numbers, seed, sample)))
        yield faults


def _check_some(seed: int, sample: Path, each: int, folder: Path) -> Outcome:
    with Child() as child:
        outcomes = [_check_with(child, subject, range(each), seed, sample, folder) for subject in SUBJECTS]
    wrongs = tuple(wrong for outcome in outcomes for wrong in outcome.wrongs)
    return Outcome(sum(outcome.tried for outcome in outcomes), wrongs)


def _check(subject: Subject, numbers: range, seed: int, sample: Path, folder: Path) -> Outcome:
    with Child() as child:
        return _check_with(child, subject, numbers, seed, sample, folder)


def _check_with(
    child: Child, subject: Subject, numbers: range, seed: int, sample: Path, folder: Path
) -> Outcome:
    wrongs = []
    for number in numbers:
        chance = random.Random(f"{seed} {subject.file} {number}")
        place = folder / f"{Path(subject.file).stem}-{number}"
        shutil.copytree(sample, place)
        path = place / subject.file
        if chance.random() < 0.04:
            name, make = chance.choice(list(KINDS_OF_FILE.items()))
            path.unlink()
            make(path)
        else:
            name, mutant = mutate(path.read_bytes(), chance)
            path.write_bytes(mutant)
        words, codes = chance.choice(subject.commands)
        if problem := child.problem(place, words, codes):
            wrongs.append((f"mutant {number} of {subject.file}: {name}, assay {' '.join(words)}", problem))
        shutil.rmtree(place, ignore_errors=True)
    return Outcome(len(numbers), tuple(wrongs))


class Child:
    """A process that runs commands one after the other; a new one takes the place of one that hangs or dies."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def problem(self, folder: Path, words: Sequence[str], codes: Sequence[int]) -> str:
        process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps({"folder": str(folder), "words": words}) + "\n")
        process.stdin.flush()
        is_ready, _, _ = select.select([process.stdout], [], [], _HANGS_AFTER)
        line = process.stdout.readline() if is_ready else ""
        if not line:
            code = process.poll()
            self._end()
            return f"no end within {_HANGS_AFTER:g} s" if not is_ready else f"the process died: {code}"
        return _judge(json.loads(line), codes)

    def _start(self) -> subprocess.Popen[str]:
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
        # In a group of its own, which is ended with all that a command may have left running.
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(Path(__file__).with_name("in_process.py"))],
            env={**kept, "NO_COLOR": "1", "ASSAY_MAX_MINUTES": "1"},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True,
        )  # fmt: skip
        return self._process

    def _end(self) -> None:
        if self._process is not None:
            with contextlib.suppress(OSError):
                os.killpg(self._process.pid, 9)
            self._process.communicate()
            self._process = None


def _judge(found: dict[str, Any], codes: Sequence[int]) -> str:
    if found["problem"]:
        return f"raised {found['problem']}"
    if found["is_traced"]:
        return f"traceback, exit code {found['code']}: {found['err'].strip()[-700:]}"
    if found["code"] not in codes:
        return f"exit code {found['code']}: {found['err'].strip()[-300:]}"
    if found["cpu"] > _SECONDS:
        return f"took {found['cpu']:.1f} s of processor time"
    return ""


def _write_sample(folder: Path) -> None:
    """One of each kind of file, valid; what Assay itself writes is written by it."""
    from assay.simulator import SimOptions, SimServer

    project = Project(folder)
    texts: dict[str, str] = {
        "suite.yaml": _SUITE, "past.yaml": _PAST, "spec.yaml": _SPEC, "sweep.yaml": _SWEEP, "team.yaml": _TEAM, "agents.yaml": _AGENTS, "assay.toml": _TOML,
        "cases.jsonl": _CASES, "answers.jsonl": _ANSWERS, "program.py": _PROGRAM, "cases.csv": "id,input,expected\na,1,1\nb,\"x, y\",2\n",
        "ours.py": "def ours(question):\n    return question\n", "prompts.jsonl": '{"prompt": "Hello"}\n{"prompt": "Bye", "expected": "x"}\n',
        "trace.csv": "timestamp,input_tokens,output_tokens\n0.0,10,5\n0.1,20,5\n0.2,30,5\n", "series.json": str([1.0, 1.1, 1.0, 1.05, 2.0, 2.1, 2.0, 2.05, 2.1]),
        "series.txt": "[1, 1, 1, 2, 2, 2]\n[1.5, 2.5, 1.5]\n",
    }  # fmt: skip
    for name, text in texts.items():
        project.write(name, text)
    steps: list[Callable[[], Any]] = [
        lambda: project("run", "suite.yaml", "--agent", "canned", "--agent", "fast"),
        lambda: project("report", "last", "--format", "json", "--out", "."),
    ]
    for step in steps:
        if problem := step().problem(0, 1):
            raise RuntimeError(f"the sample could not be made: {problem}")
    shutil.copy(folder / "result.json", folder / "second.json")
    with SimServer(SimOptions(port=0, ttft=0.0, itl=0.0, tokens=3)) as server:
        recording = Project(folder, {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "x"})
        if problem := recording("record", "--", sys.executable, "-S", "-E", "program.py").problem(0):
            raise RuntimeError(f"the sample could not be made: {problem}")


PART = Part(
    "files",
    "A damaged file is read or refused with one message and exit code 2 within 5 seconds; never a traceback, a hang or exit code 3.",
    prepare,
)

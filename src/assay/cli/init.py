"""`assay init`: write a sample project that runs at once and offline.

The texts below are the files of the project. They are also the first example that a user reads, so each shows one thing:
settings, agents as Python functions, a suite with its cases, an experiment with params, a spec with a sweep, and two CI
workflows, for the suite and for the spec. Tests run the whole project.
"""

from __future__ import annotations

from pathlib import Path

import click

from assay.cli.output import echo, style_text
from assay.cli.session import Session, common

SETTINGS = """\
# Settings of this project. Everything in it runs offline.
[assay]
db = "sqlite:///.assay/assay.db"
load = ["experiments/*.py"]
agents = ["agents.yaml"]
suites = ["suites/*.yaml"]
"""

AGENTS = """\
# Agents of this project. Other types: command, http, openai, anthropic, ollama, recorded, … (assay list agents)
# Keys stay in the environment: {name: gpt, type: openai, model: gpt-4o-mini, api_key: "${OPENAI_API_KEY}"}
agents:
  - {name: careful, type: python, target: "agents.py:careful", price: free}
  - {name: hasty, type: python, target: "agents.py:hasty", price: free}
"""

AGENTS_CODE = '''\
"""Two agents for the example suite: one works from left to right, the other respects operator precedence."""

import operator
import re

SIGNS = {"+": operator.add, "-": operator.sub, "*": operator.mul}


def careful(question: str) -> str:
    """Products first, then sums."""
    words = _words(question)
    while "*" in words:
        place = words.index("*")
        words[place - 1 : place + 2] = [str(int(words[place - 1]) * int(words[place + 1]))]
    return _from_the_left(words)


def hasty(question: str) -> str:
    return _from_the_left(_words(question))


def _words(question: str) -> list[str]:
    return re.findall(r"\\d+|[+*-]", question)


def _from_the_left(words: list[str]) -> str:
    result = int(words[0])
    for sign, number in zip(words[1::2], words[2::2], strict=True):
        result = SIGNS[sign](result, int(number))
    return f"The answer is {result}."
'''

SUITE = """\
suite: arithmetic
version: "1"
category: accuracy
description: Sums and products, some of which need care.
benchmarks:
  - id: sums
    cases: sums.jsonl
    scorer: numeric
    limits: {seconds: 5}
    rubric:
      reference: {seconds: 0.00001, cpu_seconds: 0.00001}
"""


def _cases() -> str:
    """Thirty questions with their answers, half of them with a product that comes last."""
    import json

    lines = []
    for number in range(30):
        a, b, c = number + 2, number % 7 + 3, number % 5 + 2
        text, answer = (f"{a} + {b} * {c}", a + b * c) if number % 2 else (f"{a} + {b} - {c}", a + b - c)
        lines.append(json.dumps({"id": f"sum-{number:02}", "input": f"What is {text}?", "expected": answer}))
    return "\n".join(lines) + "\n"


EXPERIMENT = '''\
"""Two ways to look something up, as an experiment with params and as plain functions."""

from pydantic import BaseModel, Field

from assay import Experiment, ExperimentContext, benchmark, register_experiment


@register_experiment("lookup")
class Lookup(Experiment):
    """Find the last of `size` keys in a list or in a set."""

    class Params(BaseModel):
        size: int = Field(1000, ge=1)
        container: str = Field("list", pattern="^(list|set)$")

    def setup(self, context: ExperimentContext) -> None:
        keys = [f"key-{number}" for number in range(self.params.size)]
        self.wanted = keys[-1]
        self.keys = keys if self.params.container == "list" else set(keys)
        context.read_back(container=type(self.keys).__name__)

    def execute_once(self, context: ExperimentContext) -> dict[str, float]:
        found = 0
        for _ in range(200):
            found += self.wanted in self.keys
        return {"found": found}


@benchmark(name="join words", iterations=50)
def join_words() -> None:
    " ".join(["word"] * 1000)
'''

SPEC = """\
# yaml-language-server: $schema=../.assay/spec.schema.json
experiment: lookup
params: {size: 5000}
sweep:
  container: [list, set]
iterations: {warmup: 2, measured: 20}
processes: 10            # the unit of comparison: fresh processes, interleaved
limits: {seconds: 10}
seed: 42
tags: [example]
notes: Is a set faster than a list?
"""

WORKFLOW = """\
name: benchmarks
on:
  pull_request:
  push: {branches: [main]}
permissions: {contents: read, pull-requests: write}
jobs:
  benchmark:
    runs-on: ubuntu-latest
    env:
      ASSAY_DB: sqlite:///${{ github.workspace }}/.assay/assay.db
      AGENTS: --agent careful --agent hasty
    steps:
      - uses: actions/checkout@v4
        with: {fetch-depth: 0}
      - uses: actions/setup-python@v5
        with: {python-version: "3.12"}
      - run: pip install assay-bench
      # Both sides run on the same machine, so that the machine does not cause the difference.
      - name: Measure the base branch
        id: base
        if: github.event_name == 'pull_request'
        run: |
          git worktree add ../base ${{ github.event.pull_request.base.sha }}
          cd ../base
          if [ -f assay.toml ]; then
            assay run arithmetic $AGENTS
            assay baseline set main last
            echo "measured=yes" >> "$GITHUB_OUTPUT"
          fi
      - name: Measure the pull request
        run: assay run arithmetic $AGENTS --report html --report junit --out results
      # Answers must not get worse; times of a shared machine may differ a good deal without meaning anything.
      - name: Gate
        if: steps.base.outputs.measured == 'yes'
        run: >-
          assay gate last --baseline main --tolerance seconds=50% --tolerance cpu_seconds=50%
          --junit results/gate.xml --markdown results/gate.md
      - name: Comment on the pull request
        if: always() && steps.base.outputs.measured == 'yes' && hashFiles('results/gate.md') != ''
        env: {GH_TOKEN: "${{ github.token }}"}
        run: |
          cat results/gate.md >> "$GITHUB_STEP_SUMMARY"
          gh pr comment ${{ github.event.number }} --edit-last --create-if-none --body-file results/gate.md
      - uses: actions/upload-artifact@v4
        if: always()
        with: {name: benchmark-report, path: results}
"""

SPEC_WORKFLOW = """\
name: code benchmarks
on:
  pull_request:
permissions: {contents: read}
jobs:
  spec:
    runs-on: ubuntu-latest
    env:
      ASSAY_DB: sqlite:///${{ github.workspace }}/.assay/assay.db
      SPEC: specs/lookup.yaml
    steps:
      - uses: actions/checkout@v4
        with: {fetch-depth: 0}
      - uses: actions/setup-python@v5
        with: {python-version: "3.12"}
      - run: pip install assay-bench
      # Both sides run on this one machine, one after the other; each measures the code of its own checkout.
      - name: Measure what the pull request starts from
        id: base
        run: |
          git worktree add ../base-code ${{ github.event.pull_request.base.sha }}
          cd ../base-code
          if [ -f "$SPEC" ]; then
            assay run "$SPEC"
            assay baseline set code last
            echo "measured=yes" >> "$GITHUB_OUTPUT"
          fi
      - name: Measure what is proposed
        run: assay run "$SPEC" --report html --report md --out results
      # A shared machine may be half as fast a minute later; a smaller tolerance needs a machine of your own.
      - name: Gate
        if: steps.base.outputs.measured == 'yes'
        run: >-
          assay gate last --baseline code --metric seconds --tolerance 50%
          --junit results/gate.xml --markdown results/gate.md
      - name: Show the result
        if: always() && steps.base.outputs.measured == 'yes' && hashFiles('results/gate.md') != ''
        run: cat results/gate.md >> "$GITHUB_STEP_SUMMARY"
      - uses: actions/upload-artifact@v4
        if: always()
        with: {name: code-benchmark-report, path: results}
"""

FILES = {
    "assay.toml": SETTINGS,
    "agents.yaml": AGENTS,
    "agents.py": AGENTS_CODE,
    "suites/arithmetic.yaml": SUITE,
    "suites/sums.jsonl": _cases(),
    "experiments/lookup.py": EXPERIMENT,
    "specs/lookup.yaml": SPEC,
    ".github/workflows/benchmarks.yml": WORKFLOW,
    ".github/workflows/code-benchmarks.yml": SPEC_WORKFLOW,
    ".gitignore": ".assay/\nresults/\nreport-*/\n",
}

STEPS = (
    ("assay run arithmetic", "run two agents on a suite"),
    ("assay leaderboard", "rank them"),
    ("assay compare hasty careful", "better, or noise?"),
    ("assay report last --format html", "write one page with charts"),
    ("assay baseline set main last", "keep this run as a baseline"),
    ("assay run arithmetic", "run the suite again, as after a change"),
    ("assay gate last --metric score", "did it get worse? the same as in CI"),
    ("assay run specs/lookup.yaml", "measure code: a list against a set"),
    ("assay run experiments/lookup.py", "run the experiments of a Python file"),
    ("assay list experiments --params", "list the other experiments"),
)


@click.command()
@click.argument("folder", metavar="[DIR]", default=".", type=click.Path(path_type=Path, file_okay=False))
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@common
def init(session: Session, folder: Path, force: bool) -> None:
    """Write settings, a suite, two agents, an experiment and CI workflows into DIR. All of it runs offline."""
    from assay.errors import AssayError

    # Checked as a whole before anything is written: half a project would be harder to clean up than none.
    present = [name for name in FILES if (folder / name).exists()]
    if present and not force:
        raise AssayError(
            f"'{folder}' already contains {', '.join(present)}. Choose another folder, or overwrite with --force."
        )
    try:
        _write(folder)
    except OSError as error:
        raise AssayError(f"'{folder}' cannot be written: {error.strerror}.") from None
    if session.is_json:
        session.emit({"folder": str(folder), "files": list(FILES), "next": [command for command, _ in STEPS]})
        return
    if session.is_quiet:
        return
    echo(f"Created {len(FILES)} files in {folder}/. Next:")
    steps = STEPS if folder == Path() else ((f"cd {folder}", "open the project"), *STEPS)
    for number, (command, why) in enumerate(steps, 1):
        echo(f"  {number:>2}. ", style_text(f"{command:<34}", bold=True), " ", style_text(why, dim=True))


def _write(folder: Path) -> None:
    import json

    from assay.plugin.private_files import make_folder
    from assay.spec.schema import SpecFile

    # The schema that the first line of the sample spec names, so that an editor completes its keys from the first minute.
    files = {**FILES, ".assay/spec.schema.json": json.dumps(SpecFile.model_json_schema(), indent=1)}
    for name, text in files.items():
        path = folder / name
        make_folder(path.parent)
        path.write_text(text, encoding="utf-8")

"""The example agents, in several languages, put through the example's own cases."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.agents.asking import answers_to

from assay.model import Case, Request
from assay.plugin.agent_pool import make_agent
from assay.spec.agents import read_agents
from assay.spec.suite import read_suite

EXAMPLE = Path(__file__).parents[2] / "examples" / "agents"
COMPILED = {"c": "gcc", "rust": "rustc"}


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy with the agents built, where there is a compiler for them."""
    folder = tmp_path_factory.mktemp("example") / "agents"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("build", "__pycache__", ".assay"))
    subprocess.run(["sh", "build.sh"], cwd=folder, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def cases(example: Path) -> tuple[Case, ...]:
    return read_suite(example / "sums.yaml")[0].benchmarks[0].cases


@pytest.mark.usefixtures("own_names")
@pytest.mark.parametrize("name", ["function", "stream", "lines", "c", "rust", "shell"])
def test_every_example_agent_answers_every_case(name: str, example: Path, cases: tuple[Case, ...]) -> None:
    if name in COMPILED and not (example / "build" / f"adder-{name}").exists():
        pytest.skip(f"no compiler that works; to enable: install {COMPILED[name]}")
    agent = make_agent(read_agents(example / "sums.yaml")[name])
    found = answers_to(agent, [Request(case.id, case.input) for case in cases])
    assert [one.output for one in found] == [case.expected for case in cases]


def test_the_example_says_which_agents_there_are(example: Path) -> None:
    table = [line for line in (EXAMPLE / "README.md").read_text().splitlines() if line.startswith("| ")]
    assert [line.split(" | ")[0].strip("| ") for line in table[1:]] == list(
        read_agents(example / "sums.yaml")
    )

"""Every example of the reference page works as it is written."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server.service import Service, serving

DOCS = Path(__file__).parents[2] / "docs"
EXAMPLES = [
    example.strip()
    for page in ("reference/rest.md", "server.md")
    for example in re.findall(
        r"^```sh\n(curl .*?)\n```$", (DOCS / page).read_text(), re.MULTILINE | re.DOTALL
    )
]


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory, played: Path) -> Iterator[Service]:
    """A server that may run: not the one that other tests read."""
    folder = tmp_path_factory.mktemp("examples")
    shutil.copytree(played, folder, dirs_exist_ok=True)
    with serving(folder) as service:
        yield service


def test_every_endpoint_of_the_specification_has_an_example() -> None:
    for path in ("run", "agents/good/results", "leaderboard", "compare", "agents/good/regressions"):
        assert any(f"/benchmarks/{path}" in example for example in EXAMPLES), path


@pytest.mark.parametrize("example", EXAMPLES, ids=[one.split()[2].partition("8765")[2] for one in EXAMPLES])
def test_the_example_works(own: Service, example: str) -> None:
    command = example.replace("http://127.0.0.1:8765", own.url).replace(
        "curl -s", "curl -s --fail-with-body", 1
    )
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout
    if "/metrics" not in example:
        assert "error" not in (answer := json.loads(done.stdout)) or not answer["error"]

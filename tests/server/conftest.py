from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.command import Assay
from tests.report.browsing import browser, pages
from tests.server.opened import open_url
from tests.server.service import Service, serving

__all__ = ["browser", "open_url", "pages"]

AGENTS = """
import time
def good(text): return text
def bad(text): return text if int(text) % 4 == 0 else "?"
def slow(text): time.sleep(0.5); return text
"""
SETTINGS = """
[assay]
agents = ["agents.yaml"]
suites = ["suites/*.yaml"]
"""
NAMES = ("good", "bad", "slow")


def write_project(folder: Path, server: str = "") -> None:
    """Three agents and a suite of forty cases; `slow` takes half a second for each."""
    assay = Assay(folder)
    assay.write("assay.toml", f"{SETTINGS}\n[server]\n{server}\n")
    assay.write("agents.py", AGENTS)
    agents = "\n".join(
        f"  - {{name: {name}, type: python, target: 'agents.py:{name}', version: '1', price: free}}"
        for name in NAMES
    )
    assay.write("agents.yaml", f"agents:\n{agents}\n")
    cases = "\n".join(f"      - {{id: c{n}, input: '{n}', expected: '{n}'}}" for n in range(40))
    assay.write(
        "suites/desk.yaml",
        "suite: desk\nversion: '1'\ncategory: accuracy\nbenchmarks:\n  - id: refunds\n"
        "    iterations: {warmup: 0, measured: 3}\n    rubric: {reference: {seconds: 0.001}}\n"
        f"    cases:\n{cases}\n",
    )


@pytest.fixture(scope="session")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project in which `good` and `bad` have run the suite once; tests only read it."""
    folder = tmp_path_factory.mktemp("played")
    write_project(folder)
    done = Assay(folder)("run", "desk", "--agent", "good", "--agent", "bad", "-q")
    assert done.code == 0, done.err
    return folder


@pytest.fixture(scope="session")
def server(played: Path) -> Iterator[Service]:
    """A server over results that are there; it runs nothing."""
    with serving(played) as service:
        yield service


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write_project(tmp_path)
    return tmp_path

"""Every command of the page about teams is run as it stands."""

from __future__ import annotations

import json
import shutil
import socket
from pathlib import Path

import pytest
from tests.command import Assay
from tests.test_readme_and_examples import ROOT, blocks, run_in_one_shell, write_files

PAGE = ROOT / "docs" / "teams.md"


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@pytest.mark.slow
def test_the_team_of_the_page_runs(tmp_path: Path) -> None:
    text = PAGE.read_text().replace("9000", str(free_port()))
    write_files(text, tmp_path)
    server, *lines = blocks(text, "sh")[0].splitlines()
    ready = 'until grep -q "listens on" sim.log; do sleep 0.1; done'
    script = [
        server.replace(" &", " > sim.log 2>&1 &"),
        "server=$!",
        'trap "kill $server" EXIT',
        ready,
        *lines,
    ]
    done = run_in_one_shell(script, tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "blind to contention" in done.stdout
    assert (tmp_path / "results" / "run_6" / "metrics.json").is_file()
    assert (tmp_path / "results" / "report.html").is_file()
    assert "chimera_homo" in done.stdout


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler; to enable: apt-get install gcc")
def test_the_same_agent_in_two_languages_is_compared_like_any_two(tmp_path: Path) -> None:
    folder = tmp_path / "agents"
    shutil.copytree(
        ROOT / "examples" / "agents", folder, ignore=shutil.ignore_patterns(".assay", "build", "report-*")
    )
    _, *lines = blocks(PAGE.read_text(), "sh")[1].splitlines()
    done = run_in_one_shell(lines, folder)
    assert done.returncode == 0, done.stderr[-3000:]
    answer = Assay(folder)("compare", "in-python", "in-c", "--metric", "seconds", "--json")
    (one,) = json.loads(answer.out)["comparisons"]
    assert (one["units_a"], one["units_b"]) == (5, 5)
    assert one["interval"] is not None
    assert one["method"].startswith("Student's t ")


def test_the_page_names_every_key_of_a_team_file_and_every_team_that_ships() -> None:
    from assay.spec.files import builtin_teams
    from assay.spec.team import RUN_KEYS, TEAM_KEYS

    text = PAGE.read_text()
    missing = [name for name in (*RUN_KEYS, *TEAM_KEYS, *builtin_teams()) if f"`{name}`" not in text]
    assert missing == []

"""The page about stress tests: its commands run as they stand, and its names and sizes are those of the scenarios."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from tests.command import AssayInline
from tests.sim_llm.asking import quick
from tests.test_readme_and_examples import ROOT, blocks, run_in_one_shell

from assay.plugin import lookup

PAGE = ROOT / "docs" / "stress.md"


def test_every_scenario_is_on_the_page() -> None:
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    assert sorted(row.split("`")[1] for row in rows) == lookup.known("scenarios")


def test_the_scenario_on_the_page_about_plug_ins_runs_as_it_stands(assay_inline: AssayInline) -> None:
    page = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
    [text] = [block for block in blocks(page, "python") if "class Doubled" in block]
    assay_inline.write("mine.py", text)
    with quick() as server:
        asked = ("--scenario", "mine.py::Doubled", "--quick", "--base", "10", "--slo", "latency_p95<60s")
        found = assay_inline("stress", f"{server.url}/v1", *asked, "--json").json["scenarios"]
    assert [(one["scenario"], one["requests_offered"]) for one in found] == [("doubled", 40)]


@pytest.mark.slow
def test_the_commands_of_the_page_run(tmp_path: Path) -> None:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    server, *lines = blocks(PAGE.read_text(encoding="utf-8").replace("9000", str(port)), "sh")[0].splitlines()
    script = [
        server.replace(" &", " > sim.log 2>&1 &"),
        "server=$!",
        'trap "kill $server" EXIT',
        'until grep -q "listens on" sim.log; do sleep 0.1; done',
        *lines,
    ]
    done = run_in_one_shell(script, tmp_path)
    # Ten times what it bears is too much for it: that is what exit code 1 says.
    assert done.returncode == 1, done.stderr[-3000:]
    assert "Resilience" in done.stdout
    assert "skipped: rate_limiting" in done.stdout

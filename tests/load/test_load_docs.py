"""Every command that docs/load.md shows is run against its server, on another port and for a shorter time; its tables are complete."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.test_readme_and_examples import ROOT, commands, run_in_one_shell

from assay.simulator import SimOptions, SimServer

PAGE = ROOT / "docs" / "load.md"
SERVER = SimOptions(port=0, ttft=0.05, itl=0.005, tokens=20, slots=16)
"""The one that the page starts. Without its delays, the loads would be as large as this machine can bear."""


@pytest.mark.slow
def test_every_command_of_the_page_works(tmp_path: Path) -> None:
    with SimServer(SERVER, in_thread=True) as server:
        port = server.url.rpartition(":")[2]
        text = PAGE.read_text().replace("127.0.0.1:9000", f"127.0.0.1:{port}")
        text = text.replace("--duration 5", "--duration 2")
        lines = [line for line in commands(text) if not line.startswith("assay sim-llm")]
        # How fast this machine is at the moment decides what is kept and borne: 1 is an answer, too.
        done = run_in_one_shell([f"{line} || [ $? -eq 1 ]" for line in lines], tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert len(lines) == 9
    assert len((tmp_path / "requests.csv").read_text().splitlines()) == 51


def test_every_kind_of_error_is_explained() -> None:
    sources = [file for folder in ("load", "http") for file in (ROOT / "src" / "assay" / folder).glob("*.py")]
    text = "".join(source.read_text() for source in sources)
    raised = set(re.findall(r'BadReply\("(\w+)"', text)) | set(re.findall(r'errno\.\w+: "(\w+)"', text))
    raised |= set(re.findall(r'kind = "(\w+)"', text)) | {"cut_off", "worker_lost", "disconnected", "tls"}
    told = set(re.findall(r"`(\w+)`", PAGE.read_text()))
    assert len(raised) > 15
    assert raised - told == set()

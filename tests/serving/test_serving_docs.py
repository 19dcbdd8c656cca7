"""Every command that docs/serving.md shows is run against a server on another port, with fewer processes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.sim_llm.asking import quick
from tests.test_readme_and_examples import ROOT, commands, run_in_one_shell, write_files


@pytest.mark.slow
def test_every_command_of_the_page_works(tmp_path: Path) -> None:
    with quick() as server:
        port = server.url.rpartition(":")[2]
        text = (ROOT / "docs" / "serving.md").read_text().replace("127.0.0.1:9000", f"127.0.0.1:{port}")
        text = text.replace("--processes 10", "--processes 3")
        write_files(text, tmp_path)
        lines = [line for line in commands(text) if not line.startswith("assay sim-llm")]
        done = run_in_one_shell(lines, tmp_path)

    assert done.returncode == 0, done.stderr[-3000:]
    assert len([line for line in lines if line.startswith("assay run serving")]) == 5
    assert list(tmp_path.glob("out/*/reports/comparison_report.md"))

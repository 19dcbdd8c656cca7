from __future__ import annotations

from pathlib import Path

import pytest

SUITE = """\
suite: sums
agents:
  - {name: right, type: oracle}
  - {name: wrong, type: nop}
benchmarks:
  - id: add
    iterations: {warmup: 0, measured: 1}
    cases:
      - {id: one, input: "1+1", expected: "2", tags: [easy]}
      - {id: two, input: "2+2", expected: "4"}
      - {id: three, input: "3+3", expected: "6"}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_names: None) -> Path:
    """The current folder, with a suite of three cases, an agent that is right and one that is wrong."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ASSAY_DB", raising=False)
    (tmp_path / "suite.yaml").write_text(SUITE)
    return tmp_path

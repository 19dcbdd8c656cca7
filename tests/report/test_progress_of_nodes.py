"""The progress line of a run on a cluster."""

from __future__ import annotations

import pytest
from tests.store.examples import plan_of, simple_trial

from assay.model import Batch, Execution, Phase, Placement, Status
from assay.report.console import progress


def join(name: str, slots: int, process: int) -> Batch:
    return Batch(nodes={name: {"facts": {"slots": slots}}}, placements=(Placement(0, process, name),))


def test_the_progress_line_tells_nodes_slots_and_rate(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr(progress, "monotonic", lambda: now[0])
    made = Execution(0, 0, Phase.MEASURED, 0, Status.OK, 0.0, {})
    with progress.show_progress(plan_of(simple_trial(0))) as watch:
        now[0] = 60.0  # the cluster starts
        for process, slots in enumerate((16, 16, 8)):
            watch(join(f"n{process}", slots, process))
        watch(Batch(lost_nodes=("n1",)))
        now[0] = 70.0
        watch(Batch((made, made)))

    assert "(2 nodes, 24 slots, 0.2/s)" in capsys.readouterr().err

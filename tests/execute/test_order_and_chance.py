"""All arms are treated alike: their order, their chance, their processes, their folders."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.execute.carrying import HERE, Carried, trial
from tests.execute.conftest import Carry

from assay.model import Execution, Order, Status


def arms(number: int, experiment: str = "observer", **settings: object) -> list[object]:
    return [trial(experiment, index=index, arm="abcdef"[index], **settings) for index in range(number)]  # type: ignore[arg-type]


def by_place(carried: Carried, metric: str) -> dict[tuple[int, int, int], float]:
    return {(e.trial, e.process, e.repetition): e.measurements[metric] for e in carried.executions}


def output(execution: Execution, name: str) -> str:
    assert isinstance(execution.output, dict)
    return str(execution.output[name])


def rounds(carried: Carried) -> list[list[int]]:
    """The trials in the order in which they got each of their processes."""
    order: dict[int, list[int]] = {}
    for execution in carried.executions:
        order.setdefault(execution.process, []).append(execution.trial)
    return list(order.values())


def test_each_of_the_processes_of_a_trial_is_another_process(carry: Carry) -> None:
    carried = carry(trial("observer", measured=2, processes=3))

    assert len(set(carried.values("pid"))) == 3
    assert carried.places == [(0, p, "measured", r) for p in range(3) for r in range(2)]


def test_interleaved_gives_every_trial_one_process_in_each_round(carry: Carry) -> None:
    carried = carry(*arms(4, measured=1, processes=3))

    assert [e.process for e in carried.executions] == [0] * 4 + [1] * 4 + [2] * 4
    assert all(sorted(one) == [0, 1, 2, 3] for one in rounds(carried))
    assert len({tuple(one) for one in rounds(carried)}) > 1


def test_the_order_follows_from_the_seed(carry: Carry) -> None:
    first, again, other = (rounds(carry(*arms(4, measured=1, processes=1), seed=seed)) for seed in (1, 1, 2))

    assert first == again
    assert first != other


def test_sequential_finishes_one_trial_before_the_next(carry: Carry) -> None:
    carried = carry(*arms(2, measured=1, processes=2), order=Order.SEQUENTIAL)

    assert carried.places == [(t, p, "measured", 0) for t in range(2) for p in range(2)]


def test_chance_is_equal_across_arms_and_differs_between_processes(carry: Carry) -> None:
    carried = carry(*arms(2, measured=2, processes=2))

    places = [(p, r) for p in (0, 1) for r in (0, 1)]
    for what in ("random", "hash", "seed"):
        seen = by_place(carried, what)
        assert [seen[0, p, r] for p, r in places] == [seen[1, p, r] for p, r in places], what
        assert seen[0, 0, 0] != seen[0, 1, 0], what


@pytest.mark.parametrize("file", ["numpy_subject.py", "late_numpy_subject.py"])
def test_numpy_is_seeded_after_the_experiment_has_brought_it_along(carry: Carry, file: str) -> None:
    experiment = "numpy_drawer" if file == "numpy_subject.py" else "late_numpy_drawer"

    carried = carry(*arms(2, experiment, measured=1, processes=2), load=HERE / file)

    assert carried.statuses == [Status.OK] * 4
    seen = by_place(carried, "drawn")
    assert seen[0, 0, 0] == seen[1, 0, 0]
    assert seen[0, 1, 0] == seen[1, 1, 0]
    assert seen[0, 0, 0] != seen[0, 1, 0]


def test_processes_have_folders_of_their_own(carry: Carry, tmp_path: Path) -> None:
    carried = carry(*arms(2, measured=1, processes=2), parallelism=2)

    folders = {output(execution, "run_dir") for execution in carried.executions}
    assert len(folders) == 4
    assert carried.values("run_dir_exists") == [1.0] * 4
    assert all(folder.startswith(str(tmp_path)) for folder in folders)


def test_two_workers_do_two_jobs_at_a_time(carry: Carry, tmp_path: Path) -> None:
    room = tmp_path / "room"
    room.mkdir()

    carried = carry(
        *(trial("meeting", index=i, measured=1, name=f"{i}", folder=str(room)) for i in range(2)),
        parallelism=2,
    )

    assert sorted(carried.places) == [(t, 0, "measured", 0) for t in range(2)]
    assert carried.values("present") == [2.0] * 2

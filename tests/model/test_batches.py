"""Batches of workers, joined to one."""

from __future__ import annotations

from assay.model import Batch
from assay.model.execution import JobUsage, join_batches


def test_facts_of_later_batches_replace_those_of_earlier_ones_and_usage_is_added_up() -> None:
    joined = join_batches(
        [
            Batch(stopped={1: "first"}, settled=((1, 0),), usage={1: JobUsage(1.0, 2.0)}, judge_retries={1: 2}),
            Batch(stopped={1: "second"}, settled=((2, 0),), usage={1: JobUsage(3.0, 4.0)}, judge_retries={1: 3}),
        ]
    )  # fmt: skip
    assert joined == Batch(
        stopped={1: "second"},
        settled=((1, 0), (2, 0)),
        usage={1: JobUsage(4.0, 6.0)},
        judge_retries={1: 5},
    )


def test_a_node_that_is_there_again_is_not_lost() -> None:
    batches = [Batch(lost_nodes=("a", "b")), Batch(nodes={"a": {"cpu": 1}}), Batch(lost_nodes=("c",))]
    assert join_batches(batches) == Batch(lost_nodes=("b", "c"), nodes={"a": {"cpu": 1}})

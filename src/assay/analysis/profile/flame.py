"""The flame graph: all samples of an execution's course as frames of a certain width, callers above what they call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from assay.analysis.profile.samples import COMPUTING, IDLE, THREADS, SampledExecution, StackSample
from assay.analysis.profile.usage import SUGGESTIONS
from assay.model.profile import FlameFrame
from assay.stats.intervals import length

MOST_DEPTH = 60
LEAST_SHARE = 0.001
"""Frames that are narrower cannot be seen, and would make the file long."""


@dataclass(slots=True)
class _Node:
    kind: str = ""
    seconds: float = 0.0
    children: dict[str, _Node] = field(default_factory=dict)


def flame_graph(executions: Sequence[SampledExecution]) -> tuple[FlameFrame, ...]:
    """The frames of all sampled executions, with the mean of their times.

    While the main thread waits for others, their frames stand in its place; several at a time make the graph wider than the
    execution was long.
    """
    root, number = _Node(), max(1, len(executions))
    for execution in executions:
        for sample, intervals in execution.during({*SUGGESTIONS, THREADS, IDLE}):
            if sample.cause == THREADS and len(execution.threads) > 1:
                continue
            _add_sample(root, sample, length(intervals) / number)
    root.seconds = sum(child.seconds for child in root.children.values())
    return tuple(_list_frames(root, 0, 0.0, root.seconds))


def _add_sample(node: _Node, sample: StackSample, seconds: float) -> None:
    frames = [
        (f"{frame.function} ({frame.file})", "library" if frame.is_library else "computing")
        for frame in sample.stack
    ]
    if sample.cause != COMPUTING:
        frames.append((sample.cause, "waiting"))
    for name, kind in frames[:MOST_DEPTH]:
        node = node.children.setdefault(name, _Node(kind))
        node.seconds += seconds


def _list_frames(node: _Node, depth: int, start: float, total: float) -> Iterator[FlameFrame]:
    for name, child in sorted(node.children.items(), key=lambda item: -item[1].seconds):
        if child.seconds >= LEAST_SHARE * total:
            yield FlameFrame(name, depth, start, child.seconds, child.kind)
            yield from _list_frames(child, depth + 1, start, total)
        start += child.seconds

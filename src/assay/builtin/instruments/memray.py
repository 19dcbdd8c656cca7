"""The instrument for all memory of a process, by memray: what Python and C libraries allocate, at the moment of the highest sum."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from assay.builtin.instruments.options import whole
from assay.builtin.instruments.source_names import artifact_name, short_path
from assay.model import Better, Metric
from assay.plugin import ExperimentContext, File, NotMeasurable, Reading


class Memray:
    """Memory that the execution held at its peak, line by line, with what C libraries allocated on their own.

    It needs the package memray, and sees only what is allocated while it watches.

    Args:
        top_n: How many lines of code are listed.

    Example:
        instrumentation: [timing, {name: memray, top_n: 20}]
    """

    slows: ClassVar[bool] = True
    metrics: ClassVar[Mapping[str, Metric]] = {
        "memray_peak_bytes": Metric("memray_peak_bytes", "bytes", Better.LOWER),
    }

    def __init__(self, *, top_n: int = 10) -> None:
        self._top_n = whole("memray", "top_n", top_n, 1)
        try:
            import memray  # noqa: F401
        except ImportError:
            raise NotMeasurable("the package memray is not installed: pip install memray") from None

    def start(self, context: ExperimentContext) -> _MemrayTracking:
        import memray

        stack = contextlib.ExitStack()
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="assay-memray-"))
        file = Path(folder, "allocations.bin")
        tracker = contextlib.ExitStack()
        tracker.enter_context(memray.Tracker(file))
        return _MemrayTracking(context, file, tracker, stack)

    def stop(self, state: _MemrayTracking) -> Reading:
        import memray

        state.tracker.close()
        with state.folder, memray.FileReader(state.file) as reader:
            peak = float(reader.metadata.peak_memory)
            top = list(_sum_lines(reader.get_high_watermark_allocation_records(merge_threads=True)))
        content = json.dumps({"top_peak": top[: self._top_n]}, indent=1).encode()
        name = artifact_name("memray", ".json", state.context)
        return Reading({"memray_peak_bytes": peak}, (File(name, "memray", content),))


@dataclass(frozen=True, slots=True)
class _MemrayTracking:
    context: ExperimentContext
    file: Path
    tracker: contextlib.ExitStack
    folder: contextlib.ExitStack


def _sum_lines(records: Any) -> Iterator[dict[str, Any]]:
    """Lines with what they held, the most first; each allocation belongs to the innermost line of Python."""
    held: dict[tuple[str, int], list[int]] = {}
    for record in records:
        frames = record.stack_trace(max_stacks=1)
        if frames:
            _, file, line = frames[0]
            total = held.setdefault((short_path(file), line), [0, 0])
            total[0] += record.size
            total[1] += record.n_allocations
    for (file, line), (size, blocks) in sorted(held.items(), key=lambda item: -item[1][0]):
        yield {"file": file, "line": line, "bytes": size, "blocks": blocks}

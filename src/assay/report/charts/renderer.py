"""Charts drawn in a process of their own, so that a fault of the chart library cannot end the command.

The library is native code: on input that it does not expect it may abort, crash or never return. One child draws all charts
of a report, one after the other; if it dies or hangs, that chart is left out and another child draws the rest.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.plugin.private_files import write_private
from assay.units import signal_name

_LONGEST = 60.0
"""Seconds for one chart, the start of the child included; a large chart takes two."""
_MOST_FAULTS = 3
"""Charts that may fail before the others are given up: then the library itself does not work here."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A chart to be drawn: its specification and its file."""

    spec: dict[str, Any]
    path: Path


@dataclass(frozen=True, slots=True)
class Failure:
    """A chart that could not be drawn, and why."""

    path: Path
    reason: str


def draw(drawings: Sequence[Drawing]) -> list[Failure]:
    """Write every chart that can be drawn as a PNG file; returns the others."""
    failures: list[Failure] = []
    pending = list(drawings)
    while pending:
        drawn_count, reason = _draw_in_child(pending)
        pending = pending[drawn_count:]
        if pending:
            failures.append(Failure(pending.pop(0).path, reason))
        if len(failures) >= _MOST_FAULTS:
            failures += [
                Failure(drawing.path, "not tried because other charts failed") for drawing in pending
            ]
            break
    return failures


def _draw_in_child(drawings: Sequence[Drawing]) -> tuple[int, str]:
    """How many of the charts were drawn, in their order, and what stopped the next one."""
    with tempfile.TemporaryFile() as request, tempfile.TemporaryFile() as complaints:
        for drawing in drawings:
            request.write(json.dumps([str(drawing.path), drawing.spec]).encode() + b"\n")
        request.seek(0)
        child = subprocess.Popen(
            [sys.executable, "-m", __name__], stdin=request, stdout=subprocess.PIPE, stderr=complaints
        )
        try:
            drawn_count, reason = _watch(child, len(drawings))
        finally:
            child.kill()
            child.wait()
            if child.stdout is not None:
                child.stdout.close()
        if drawn_count == len(drawings):
            return drawn_count, ""
        complaints.seek(0)
        lines = complaints.read().decode(errors="replace").strip().splitlines()
        # A panic of the library ends in pages of addresses; its own exception in one line.
        detail = f": {lines[-1]}" if lines and not reason.startswith("killed") else ""
        return drawn_count, f"{reason}{detail}"


def _watch(child: subprocess.Popen[bytes], wanted: int) -> tuple[int, str]:
    """Count the charts that the child reports, a byte each, until it ends or is silent for too long."""
    assert child.stdout is not None
    drawn_count = 0
    while drawn_count < wanted:
        if not select.select([child.stdout], [], [], _LONGEST)[0]:
            return drawn_count, f"killed after {_LONGEST:.0f} s"
        piece = os.read(child.stdout.fileno(), 4096)
        if not piece:
            code = child.wait()
            ended = f"killed by {signal_name(-code)}" if code < 0 else f"exited with code {code}"
            return drawn_count, ended
        drawn_count += len(piece)
    return drawn_count, ""


def _draw_all() -> None:
    """The loop of the child process that draws: a line of JSON comes in, a file is written, and a dot goes out."""
    from vl_convert import vegalite_to_png

    # What the library prints must not be taken for a finished chart.
    reports, devnull = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, 1)
    for line in sys.stdin.buffer:
        path, spec = json.loads(line)
        write_private(Path(path), vegalite_to_png(spec, scale=2))
        os.write(reports, b".")


if __name__ == "__main__":
    _draw_all()

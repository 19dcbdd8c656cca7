"""An error as it is kept with an execution: what it says, and where in the subject's own code it was raised."""

from __future__ import annotations

import traceback
from pathlib import Path
from types import TracebackType

from assay.execute.outcome import shown

_FRAMES = 5
_CHARACTERS = 4000
_HARNESS = str(Path(__file__).parent)
_LOOP = str(Path(traceback.__file__).parent / "asyncio")


def told(error: BaseException) -> str:
    """One line that names the error, and the last frames of the subject's code, without those of the harness."""
    trace = _subjects_part(error.__traceback__)
    lines = traceback.format_exception(type(error), error, trace, limit=-_FRAMES)
    needs_no_place = trace is None or isinstance(error, SystemExit)
    return summary(error) if needs_no_place else f"{summary(error)}\n{''.join(lines)[-_CHARACTERS:]}"


def summary(error: BaseException) -> str:
    """The error in a line."""
    if isinstance(error, SystemExit):
        return f"SystemExit: the experiment called sys.exit({error.code!r})"
    try:
        text = str(error)
    except Exception:
        text = shown(error)
    return f"{type(error).__name__}: {text[:_CHARACTERS]}" if text else type(error).__name__


def _subjects_part(trace: TracebackType | None) -> TracebackType | None:
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith((_HARNESS, _LOOP)):
        trace = trace.tb_next
    return trace

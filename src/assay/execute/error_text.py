"""The text of an error as it is stored with an execution: what it says, and where in the subject's own code it was raised.

Frames of the harness are left out, because they tell the author of an agent or an experiment nothing. An exception of the
subject is foreign code, whose `__str__` may itself raise or return megabytes: nothing here raises, and every text is bounded.
"""

from __future__ import annotations

import traceback
from pathlib import Path

from assay.plugin.outcome import format_value, type_name, writable

_FRAMES = 5
_CHARACTERS = 4000
_HARNESS = tuple(
    str(Path(__file__).parent.parent / folder) for folder in ("execute", "load", "cassette", "http")
)
_LOOP = str(Path(traceback.__file__).parent / "asyncio")


def format_error(error: BaseException) -> str:
    """One line that names the error, and the last frames of the subject's code, without those of the harness."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith((*_HARNESS, _LOOP)):
        trace = trace.tb_next
    if trace is None or isinstance(error, SystemExit):
        return summary(error)
    try:
        lines = traceback.format_exception(type(error), error, trace, limit=-_FRAMES)
    except BaseException:
        # An exception is the subject's code too: its text, notes and causes may raise in turn.
        lines = traceback.format_tb(trace, limit=-_FRAMES)
    trace_text = "".join(lines)
    # The sign of a cut: a secret may be cut as well, and what is left of it is removed there.
    cut = "…" if len(trace_text) > _CHARACTERS else ""
    return f"{summary(error)}\n{cut}{trace_text[-_CHARACTERS:]}"


def summary(error: BaseException) -> str:
    """The error without a traceback: its type and its message."""
    if isinstance(error, SystemExit):
        return f"SystemExit: called sys.exit({format_value(error.code)})"
    name, text = type_name(error), message_of(error)
    return f"{name}: {text}" if text else name


def message_of(error: BaseException) -> str:
    """What the error says, whatever its `__str__` does; never raises, and has a bound."""
    try:
        full_text = str.__str__(str(error))
        text = full_text if len(full_text) <= _CHARACTERS else f"{full_text[:_CHARACTERS]}…"
    except BaseException:
        text = format_value(error)
    return writable(text)

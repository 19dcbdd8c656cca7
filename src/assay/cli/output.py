"""What a command writes: results on standard output, messages on standard error, and no control characters.

Every command writes through `echo`. Data may hold secrets and escape sequences: the first are redacted, and
of the second only the colours that are asked for with `style_text` are sent.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Any, TextIO

import click


class Styled:
    """Text with a colour or a weight. No dataclass: every command imports this, and to make one takes half a millisecond."""

    def __init__(self, text: str, look: dict[str, Any]) -> None:
        self.text, self.look = text, look


def style_text(text: str, **look: Any) -> Styled:
    """`look` as click.style() takes it: fg="red", bold=True, dim=True."""
    return Styled(text, look)


def echo(*parts: str | Styled, err: bool = False) -> None:
    """Write the parts as one line, without secrets and with control characters made visible; a message that cannot be written ends nothing."""
    from assay.model.redaction import make_showable

    chunks = (
        click.style(make_showable(part.text), **part.look)
        if isinstance(part, Styled)
        else make_showable(part)
        for part in parts
    )
    try:
        click.echo("".join(chunks), err=err, color=use_color())
    except BrokenPipeError:
        # The reader closed the pipe. Continue, because the exit code still matters.
        discard(sys.stderr if err else sys.stdout)
    except OSError:
        if not err:
            raise


def use_color() -> bool | None:
    """Say whether to use colour; None leaves it to click, which colours terminals only.

    NO_COLOR is a convention of many programs (no-color.org).
    """
    return False if os.environ.get("NO_COLOR") else None


def prepare_streams() -> None:
    """Make standard input, output and error usable, however they were given.

    A closed one becomes /dev/null: otherwise the next file that is opened, such as the database, takes its number and
    receives what a child process prints. Characters that the encoding lacks are escaped instead of ending the command.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
        stream = getattr(sys, name)
        if stream is None:
            stream = os.fdopen(number, "w" if number else "r", encoding="utf-8", closefd=False)
            setattr(sys, name, stream)
        if number and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def discard(stream: TextIO | None) -> None:
    """Redirect the stream to /dev/null, so that the flush at exit does not fail with EPIPE."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # type: ignore[union-attr]

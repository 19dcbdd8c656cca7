"""Log lines on standard error: `--verbose`, or `LOG_LEVEL` in the environment.

Imported only if one of them is set, to keep the start of other commands fast.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping
from typing import Any

import click

from assay.model.redaction import make_showable

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


def configure_logging(is_verbose: bool, environment: Mapping[str, str] = os.environ) -> None:
    """Send Assay's log lines of this level to standard error; of other packages only warnings and errors."""
    written = environment.get("LOG_LEVEL", "").strip()
    level = "DEBUG" if is_verbose else written.upper() or "WARNING"
    if level not in LEVELS:
        raise click.UsageError(f"LOG_LEVEL is '{written}'. Use one of {', '.join(LEVELS)}.")
    # A program that runs several commands in one process, as tests do, must not log every line as often.
    root = logging.getLogger()
    for handler in [handler for handler in root.handlers if isinstance(handler, _StderrHandler)]:
        root.removeHandler(handler)
    handler = _StderrHandler()
    handler.setFormatter(_RedactingFormatter())
    root.addHandler(handler)
    logging.getLogger("assay").setLevel(level)


class _StderrHandler(logging.StreamHandler[Any]):
    """Writes to what standard error is at the moment: a progress line may have taken its place."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> Any:
        return sys.stderr


class _RedactingFormatter(logging.Formatter):
    """`12:30:59.123 INFO assay.pipeline: message`, without secrets."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s.%(msecs)03d %(levelname)s %(name)s: %(message)s", "%H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        return make_showable(super().format(record))

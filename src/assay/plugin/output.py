"""Standard output belongs to the result of a command: what loaded code prints goes to standard error.

Otherwise a `print` in an agent would get into the JSON that a script reads from `assay … --json`.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def printing_to_stderr() -> Iterator[None]:
    """Send everything printed to standard error, also by C code and child processes, which know file descriptors only."""
    if sys.stdout is not None:
        sys.stdout.flush()
    with contextlib.redirect_stdout(sys.stderr), _descriptor_redirected():
        yield


@contextlib.contextmanager
def _descriptor_redirected() -> Iterator[None]:
    try:
        kept = os.dup(1)
        os.dup2(2, 1)
    except OSError:  # Standard output or standard error is closed: then there is nothing to protect.
        yield
        return
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)

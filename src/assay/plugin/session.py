"""Functions that exist only in the running Python session: lambdas, closures, functions of a script or a notebook.

No other process can import them, so a run that uses one executes it inline, in the process that defined it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from assay.errors import LookupFailed

SESSION = "<session>"
"""Stands where a target or a scorer's name has its file or module: `<session>:name`."""

_functions: ContextVar[Mapping[str, Callable[..., Any]]] = ContextVar("assay_session_functions")


@contextmanager
def session_functions(functions: Mapping[str, Callable[..., Any]]) -> Iterator[None]:
    """Make these functions known by their names until the block ends."""
    token = _functions.set(functions)
    try:
        yield
    finally:
        _functions.reset(token)


def find_session_function(name: str) -> Callable[..., Any]:
    """The function that a target `<session>:name` names."""
    try:
        return _functions.get({})[name]
    except KeyError:
        raise LookupFailed(
            f"The function '{name}' existed only in the Python session that started this run. "
            "Call assay.run() there, or put the function in a module."
        ) from None

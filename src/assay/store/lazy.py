"""Modules of the store that a run can be begun and carried out without: each is imported when one of its functions is called first.

`lazy.search.read_coverage` can be named before `search` is imported, and calling it imports `search`.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay.store import access as access
    from assay.store import alerts as alerts
    from assay.store import answers as answers
    from assay.store import boards as boards
    from assay.store import cases as cases
    from assay.store import history as history
    from assay.store import labels as labels
    from assay.store import page_lists as page_lists
    from assay.store import queue as queue
    from assay.store import references as references
    from assay.store import regressions as regressions
    from assay.store import results as results
    from assay.store import run_lists as run_lists
    from assay.store import schedules as schedules
    from assay.store import search as search
    from assay.store import standings as standings
    from assay.store import success as success
else:

    class _LazyModule:
        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, function: str) -> Any:
            return partial(_call, self._name, function)

    def _call(module: str, function: str, *args: Any, **kwargs: Any) -> Any:
        return getattr(import_module(f"assay.store.{module}"), function)(*args, **kwargs)

    def __getattr__(name: str) -> _LazyModule:
        if name.startswith("_"):
            raise AttributeError(name)
        return _LazyModule(name)

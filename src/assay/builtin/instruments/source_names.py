"""Names of source files and of artifacts."""

from __future__ import annotations

import sys
from functools import lru_cache
from pathlib import PurePath

from assay.plugin import ExperimentContext


@lru_cache(maxsize=4096)
def short_path(file: str) -> str:
    """A source file as it would be imported, or its last two parts: no home folder ends up in a result.

    >>> short_path("<string>"), short_path("/home/ann/secret/tools/tool.py")
    ('<string>', 'tools/tool.py')
    """
    path = PurePath(file)
    if not path.is_absolute():
        return file
    roots = [entry for entry in sys.path if entry and path.is_relative_to(entry)]
    root = max(roots, key=len, default="")
    return path.relative_to(root).as_posix() if root else "/".join(path.parts[-2:])


def artifact_name(stem: str, suffix: str, context: ExperimentContext) -> str:
    """Name an artifact so that it is not mixed with those of the trial's other executions."""
    if context.iteration_index is None:
        return f"{stem}{suffix}"
    return f"{stem}-{context.iteration_index:03d}{suffix}"

"""The agent of an experiment that tests code is the code base that the code belongs to.

Its name and version are those of the git repository and its commit (with `-dirty` if files were changed), of the installed
distribution, or, for a file outside of both, the name and a hash of the file. Runs of one name are a history over versions.
"""

from __future__ import annotations

import inspect
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from assay import __version__
from assay.model import AgentVersion
from assay.plugin.git import ask_git


def code_base(member: Any, distribution: str | None) -> AgentVersion:
    """Whose code an experiment is; an installed plug-in belongs to its distribution."""
    if distribution is not None:
        return _find_distribution_version(distribution)
    file = code_file(member)
    if file is None:
        return AgentVersion("unknown")
    if (repository := _in_repository(file.resolve())) is not None:
        return repository
    return AgentVersion(file.stem, sha256(file.read_bytes()).hexdigest()[:10] if file.is_file() else "")


def forget_commits() -> None:
    """Ask git again from now on: a notebook may see several commits in one process."""
    _in_repository.cache_clear()


def code_file(member: Any) -> Path | None:
    """The file that defines an experiment; None for a function of a notebook."""
    try:
        return Path(inspect.getfile(inspect.unwrap(getattr(member, "experiment", member))))
    except TypeError:
        return None


def _find_distribution_version(name: str) -> AgentVersion:
    """The version of an installed package. A package that is not installed, as a file of the user's is not, has none."""
    from importlib.metadata import PackageNotFoundError, version

    if name == "assay":
        return AgentVersion(name, __version__)
    try:
        return AgentVersion(name, version(name))
    except PackageNotFoundError:
        return AgentVersion(name)


@cache
def _in_repository(file: Path) -> AgentVersion | None:
    """The repository and commit that a file belongs to; None outside of git.

    Untracked files do not make a commit dirty, since no result depends on a file that the code does not have.
    """
    top = ask_git(file.parent, "rev-parse", "--show-toplevel")
    commit = ask_git(file.parent, "rev-parse", "--short=10", "HEAD")
    if not top or not commit:
        return None
    changed = ask_git(file.parent, "status", "--porcelain", "--untracked-files=no")
    return AgentVersion(Path(top).name, f"{commit}-dirty" if changed else commit)

"""Runs code of a different commit: a temporary git worktree, and jobs that take their code from it.

`assay gate --rerun-baseline` runs code of the baseline from the commit that it was measured with. `temporary_checkout` makes
a worktree for as long as the run lasts, `from_checkout` rewrites the paths of a job, and the worker calls `enter_checkout` before it
imports anything of the experiment. Modules that came from the working tree nevertheless are reported by `find_strays`.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from assay.errors import PlanError
from assay.model import Job
from assay.model.settings import Checkout
from assay.plugin.git import ask_git, run_git

_PREFIX = "assay-checkout-"
_SECONDS = 120
_git = partial(ask_git, seconds=_SECONDS)


def from_checkout(job: Job, checkout: Checkout) -> Job:
    """The job with every path of its code moved into the checkout.

    Files of a suite that were loaded for its scorers stay as they are, so that both sides are scored alike.
    """
    job = replace(job, checkout=checkout)
    if job.cleanup is not None:
        job = replace(job, cleanup=replace(job.cleanup, folder=checkout.map_path(job.cleanup.folder)))
    if job.agent is None:
        load = tuple(map(checkout.map_path, job.load))
        return replace(job, experiment=checkout.map_path(job.experiment), load=load)
    options: Any = _move_paths(dict(job.agent.options), checkout)
    folder = checkout.map_path(str(Path(job.agent.folder or ".").resolve()))
    # Found there, it would be called dirty as soon as Python has written its caches.
    version = job.agent.version or checkout.commit[:10]
    return replace(job, agent=replace(job.agent, options=options, folder=folder, version=version))


def enter_checkout(checkout: Checkout) -> None:
    """Change the working folder and `sys.path` of this process from folders of the repository to those of the checkout."""
    here = str(Path.cwd().resolve())
    places = [str(Path(place).resolve()) for place in sys.path if place]
    moved = dict.fromkeys(checkout.map_path(place) for place in places if checkout.map_path(place) != place)
    sys.path[:0] = [place for place in moved if Path(place).is_dir()]
    if (folder := checkout.map_path(here)) != here:
        os.chdir(folder if Path(folder).is_dir() else checkout.folder)


def find_strays(checkout: Checkout) -> list[str]:
    """Files of modules that this process imported from the repository itself and not from the checkout.

    Packages of a virtual environment within the repository are none of its code and are left out.
    """
    files = [getattr(module, "__file__", None) or "" for module in list(sys.modules.values())]
    return sorted(
        str(Path(file).relative_to(checkout.original))
        for file in files
        if checkout.map_path(file) != file and "site-packages" not in Path(file).parts
    )


def _move_paths(value: Any, checkout: Checkout) -> Any:
    if isinstance(value, str):
        return checkout.map_path(value)
    if isinstance(value, Mapping):
        return {key: _move_paths(item, checkout) for key, item in value.items()}
    return [_move_paths(item, checkout) for item in value] if isinstance(value, Sequence) else value


def find_repository(folder: Path) -> str:
    """The top folder of the repository that holds it; empty where there is none, or no git."""
    return _git(folder, "rev-parse", "--show-toplevel") if folder.is_dir() else ""


def find_commit(repository: str, name: str) -> str:
    """The whole id of a commit; empty where the repository does not have it."""
    if not re.fullmatch("[0-9a-f]{7,40}", name):
        return ""
    return _git(Path(repository), "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")


def is_tracked(file: Path) -> bool:
    """Whether git would notice that the file was changed."""
    return bool(_git(file.parent, "ls-files", "--", str(file)))


@contextlib.contextmanager
def temporary_checkout(repository: str, commit: str) -> Iterator[Checkout]:
    """A commit in a temporary folder, as a worktree of the repository; removed at the end.

    A process that is killed cannot remove its own: the next one that needs a checkout does.
    """
    _remove_abandoned(repository)
    folder = str(Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-")).resolve())
    try:
        # Hooks of the user have nothing to do with a checkout that no person works in.
        words = (
            "-c",
            f"core.hooksPath={os.devnull}",
            "worktree",
            "add",
            "--detach",
            "--force",
            folder,
            commit,
        )
        process = run_git(Path(repository), *words, seconds=_SECONDS)
        if process is None or process.returncode:
            reason = (
                process.stderr.strip().splitlines()[-1:] if process is not None else ["git took too long"]
            )
            raise PlanError(
                f"Commit {commit[:10]} of '{repository}' cannot be checked out: {''.join(reason)}"
            )
        yield Checkout(commit, repository, folder)
    finally:
        _remove(repository, folder)


def _remove_abandoned(repository: str) -> None:
    """Remove the checkouts of processes that do not exist any more; the folder's name has the process id."""
    for line in _git(Path(repository), "worktree", "list", "--porcelain").splitlines():
        place = Path(line.removeprefix("worktree "))
        owner = re.match(rf"{_PREFIX}(\d+)-", place.name)
        if line.startswith("worktree ") and owner and not _is_running(int(owner[1])):
            _remove(repository, str(place))


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _remove(repository: str, folder: str) -> None:
    _git(Path(repository), "worktree", "remove", "--force", "--force", folder)
    shutil.rmtree(folder, ignore_errors=True)
    _git(Path(repository), "worktree", "prune")

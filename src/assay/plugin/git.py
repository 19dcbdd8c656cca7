"""Git, asked about a folder."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

# Set within git hooks, these would point away from the folder.
_ELSEWHERE = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")


def run_git(folder: Path, *words: str, seconds: float = 5.0) -> subprocess.CompletedProcess[str] | None:
    """Run git in the folder; None outside of a repository, and if git is missing or takes too long."""
    if not _is_in_repository(folder):
        return None
    try:
        return subprocess.run(
            ["git", "-C", str(folder), *words],
            env={name: value for name, value in os.environ.items() if name not in _ELSEWHERE},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None


def _is_in_repository(folder: Path) -> bool:
    """Look for the repository before git is started, as every worker asks for the version of its agent."""
    place = folder.resolve()
    return any((parent / ".git").exists() for parent in (place, *place.parents))


def ask_git(folder: Path, *words: str, seconds: float = 5.0) -> str:
    """What git prints; empty where there is no git, no repository, or no answer in time."""
    process = run_git(folder, *words, seconds=seconds)
    return process.stdout.strip() if process is not None and process.returncode == 0 else ""

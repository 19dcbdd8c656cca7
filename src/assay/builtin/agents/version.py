"""The version of an agent's files, where the definition gives none: runs of changed code must not be taken for the same."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterable
from pathlib import Path


def version_of(files: Iterable[Path]) -> str:
    """The commit of the first file's folder, with "-dirty" where anything in it was changed; else a hash of them all."""
    present = [file for file in files if file.is_file()]
    if not present:
        return ""
    folder = present[0].parent
    commit = _git(folder, "rev-parse", "--short=10", "HEAD")
    if not commit or not _git(folder, "ls-files", "--", *(str(file) for file in present)):
        digest = hashlib.sha256()
        for file in present:
            digest.update(file.read_bytes())
        return digest.hexdigest()[:10]
    return f"{commit}-dirty" if _git(folder, "status", "--porcelain", "--", ".") else commit


def _git(folder: Path, *words: str) -> str:
    """What git prints; empty where there is no git, no repository, or no answer within five seconds."""
    try:
        process = subprocess.run(
            ["git", "-C", str(folder), *words], capture_output=True, text=True, timeout=5, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return process.stdout.strip() if process.returncode == 0 else ""

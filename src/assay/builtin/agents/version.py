"""The version of an agent's files, where the definition gives none: runs of changed code must not be taken for the same."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from assay.plugin.git import ask_git


def version_of(files: Iterable[Path]) -> str:
    """The commit of the first file's folder, with "-dirty" where anything in it was changed; else a hash of them all."""
    present = [file for file in files if file.is_file()]
    if not present:
        return ""
    folder = present[0].parent
    commit = ask_git(folder, "rev-parse", "--short=10", "HEAD")
    if not commit or not ask_git(folder, "ls-files", "--", *(str(file) for file in present)):
        digest = hashlib.sha256()
        for file in present:
            digest.update(file.read_bytes())
        return digest.hexdigest()[:10]
    return f"{commit}-dirty" if ask_git(folder, "status", "--porcelain", "--", ".") else commit

"""Results that could not be stored, in a file that only its owner can read, until the database is back.

The file has one JSON document a line. The first names the run and the token of the lease under which the results were made;
then come numbered batches. A process that takes the run over adds its own token before it stores them, so that another one, should
that process end meanwhile, still knows which of them the lease has counted.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from assay.model import Batch
from assay.model.codec import from_plain, to_plain
from assay.model.redaction import known_secrets
from assay.plugin.private_files import PRIVATE_FILE, PRIVATE_FOLDER
from assay.store import column_values as plain


def spill_files(folder: str, run_id: str) -> list[Path]:
    """Return the files that may hold results of a run: in the working folder of its owner, or among temporary files."""
    places = [Path(folder) / ".assay"] if folder else []
    user = os.getuid() if hasattr(os, "getuid") else 0
    places.append(Path(tempfile.gettempdir()) / f"assay-{user}")
    return [place / f"unsaved-{run_id}.jsonl" for place in places]


def append(file: Path, lines: Iterable[str]) -> None:
    """Append lines to a file that no other user may read; they are on the disk when this returns."""
    file.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    # The folder for temporary files belongs to everybody: a link that somebody put there must not lead us to another file.
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
    with os.fdopen(os.open(file, flags, PRIVATE_FILE), "a", encoding="utf-8") as written:
        written.writelines(f"{line}\n" for line in lines)
        written.flush()
        os.fsync(written.fileno())


def header(run_id: str, token: str) -> str:
    return json.dumps({"run": run_id, "token": token})


def encode(number: int, batch: Batch) -> str:
    """A batch as a line, without secrets, as the database would hold it."""
    secrets = known_secrets()
    kept = [replace(a, content=secrets.redact_bytes(a.content)) for a in batch.artifacts]
    # What only the running process needs, to count progress and retries, means nothing to the one that reads the file.
    written = to_plain(replace(batch, artifacts=tuple(kept), settled=(), judge_retries={}, notes={}))
    return secrets.redact_json(plain.to_json({"number": number, "batch": written}))


@dataclass(frozen=True, slots=True)
class Spilled:
    """What a file holds: the tokens of all leases that had to do with it, and the batches by their numbers."""

    tokens: frozenset[str]
    batches: tuple[tuple[int, Batch], ...]


def read(file: Path, run_id: str) -> Spilled | None:
    """Read the batches of a file; None if it is not such a file. An incomplete last line is left out."""
    try:
        with file.open(encoding="utf-8") as written:
            # The owner of the open file and not of its name, which could be exchanged in between: somebody else's file would put
            # made-up results into our database.
            about = os.fstat(written.fileno())
            is_ours = not hasattr(os, "getuid") or about.st_uid == os.getuid()
            if not (stat.S_ISREG(about.st_mode) and is_ours):
                return None
            documents: list[dict[str, Any]] = []
            for line in written:
                with contextlib.suppress(ValueError):
                    documents.append(json.loads(line))
    except (OSError, UnicodeDecodeError):
        return None
    if not documents or documents[0].get("run") != run_id:
        return None
    tokens = frozenset(str(document["token"]) for document in documents if "token" in document)
    batches = {
        document["number"]: _from_plain(document["batch"]) for document in documents if "batch" in document
    }
    return Spilled(tokens, tuple(sorted(batches.items())))


def _from_plain(written: dict[str, Any]) -> Batch:
    """A batch from its document. Earlier versions wrote mappings of trials as lists that begin with the trial's number."""
    mappings = {name: dict(written[name]) for name in ("stopped", "versions")}
    usage = written["usage"]
    if isinstance(usage, list):
        usage = {trial: used for trial, *used in usage}
    return from_plain(Batch, {**written, **mappings, "usage": usage})

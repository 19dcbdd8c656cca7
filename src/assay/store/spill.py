"""Results that could not be stored, in a file that only its owner can read, until the database is back.

The file has one JSON document a line. The first names the run and the token of the lease under which the results were made;
then come numbered batches. A process that takes the run over adds its own token before it stores them, so that another one, should
that process end meanwhile, still knows which of them the lease has counted.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import stat
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.model import Artifact, Batch, Execution, Phase, Status
from assay.model.execution import JobUsage
from assay.model.redaction import known_secrets
from assay.plugin.private_files import PRIVATE_FILE, PRIVATE_FOLDER
from assay.store import plain


def spill_files(folder: str, run_id: str) -> list[Path]:
    """Where results of a run may be kept: in the folder that its owner worked in, else among temporary files."""
    places = [Path(folder) / ".assay"] if folder else []
    user = os.getuid() if hasattr(os, "getuid") else 0
    return [place / f"unsaved-{run_id}.jsonl" for place in (*places, _temporary(user))]


def _temporary(user: int) -> Path:
    return Path(tempfile.gettempdir()) / f"assay-{user}"


def append(file: Path, lines: Iterable[str]) -> None:
    """Adds lines to a file that nobody else may read; they are on the disk when this returns."""
    file.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
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
    return secrets.redact_json(plain.to_json({"number": number, "batch": _to_plain(batch)}))


@dataclass(frozen=True, slots=True)
class Spilled:
    """What a file holds."""

    tokens: frozenset[str]
    batches: tuple[tuple[int, Batch], ...]


def read(file: Path, run_id: str) -> Spilled | None:
    """None where there is no such file of ours; a last line that was cut short is left out."""
    try:
        with file.open(encoding="utf-8") as written:
            if not _is_ours(written.fileno()):
                return None
            documents = list(_documents(written))
    except (OSError, UnicodeDecodeError):
        return None
    if not documents or documents[0].get("run") != run_id:
        return None
    tokens = frozenset(str(one["token"]) for one in documents if "token" in one)
    batches = {one["number"]: _from_plain(one["batch"]) for one in documents if "batch" in one}
    return Spilled(tokens, tuple(sorted(batches.items())))


def _is_ours(descriptor: int) -> bool:
    found = os.fstat(descriptor)
    return stat.S_ISREG(found.st_mode) and (not hasattr(os, "getuid") or found.st_uid == os.getuid())


def _documents(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    for line in lines:
        with contextlib.suppress(ValueError):
            yield json.loads(line)


def _to_plain(batch: Batch) -> dict[str, Any]:
    return {
        "executions": [
            {name: getattr(made, name) for name in Execution.__dataclass_fields__}
            for made in batch.executions
        ],
        "artifacts": [
            [kept.trial, kept.name, kept.type, base64.b64encode(_redacted(kept.content)).decode()]
            for kept in batch.artifacts
        ],
        "usage": [
            [trial, used.cpu_seconds, used.wall_seconds, used.peak_bytes]
            for trial, used in batch.usage.items()
        ],
        "stopped": list(batch.stopped.items()),
        "versions": list(batch.versions.items()),
        "costs": dict(batch.costs),
        "unmeasured": dict(batch.unmeasured),
    }


def _redacted(content: bytes) -> bytes:
    return known_secrets().redact_bytes(content)


def _from_plain(written: dict[str, Any]) -> Batch:
    return Batch(
        tuple(map(_execution, written["executions"])),
        tuple(
            Artifact(trial, name, kind, base64.b64decode(content))
            for trial, name, kind, content in written["artifacts"]
        ),
        stopped=dict(written["stopped"]),
        costs=written["costs"],
        unmeasured=written["unmeasured"],
        versions=dict(written["versions"]),
        usage={trial: JobUsage(*used) for trial, *used in written["usage"]},
    )


def _execution(written: dict[str, Any]) -> Execution:
    numbers = {name: float(value) for name, value in written["measurements"].items()}
    parsed = {
        "phase": Phase(written["phase"]),
        "status": Status(written["status"]),
        "started": float(written["started"]),
        "measurements": numbers,
    }
    return Execution(**{**written, **parsed})

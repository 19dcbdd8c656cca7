"""Names of folders and files that results are written to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256


def trial_folder(name: str, started: datetime, trial_id: str) -> str:
    """The name, the time and eight characters that differ for every trial, however alike their names are.

    >>> trial_folder("parse invoices", datetime(2026, 5, 4, 12, 30, 15, tzinfo=UTC), "8f3a1c-0")
    'parse-invoices_20260504_123015_39634ff4'
    """
    moment = started.astimezone(UTC) if started.tzinfo else started
    return f"{safe_name(name)}_{moment:%Y%m%d_%H%M%S}_{sha256(trial_id.encode()).hexdigest()[:8]}"


def distinct_names(texts: Sequence[str]) -> list[str]:
    """Safe names, of which those that would be the same have numbers.

    >>> distinct_names(["a b", "a-b", "c"])
    ['a-b', 'a-b-2', 'c']
    """
    found: list[str] = []
    for text in texts:
        name, number = safe_name(text), 1
        while (numbered := name if number == 1 else f"{name}-{number}") in found:
            number += 1
        found.append(numbered)
    return found


def safe_name(text: str, limit: int = 80) -> str:
    """A name that every file system takes and that leads to no other folder.

    >>> safe_name("../etc/pass wd"), safe_name("size=10 µs"), safe_name("...")
    ('etc-pass-wd', 'size=10-µs', 'unnamed')
    """
    kept = re.sub(r"[^\w.=+,]+", "-", text).strip("-.")
    return kept.encode()[:limit].decode(errors="ignore").rstrip("-.") or "unnamed"

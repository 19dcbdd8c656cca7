"""The agent as a Python function."""

from __future__ import annotations

import re
from collections.abc import Iterator


def add(question: str) -> str:
    return str(sum(int(number) for number in re.findall(r"\d+", question)))


def add_aloud(question: str) -> Iterator[str]:
    """Streams its answer digit by digit."""
    yield from add(question)

"""Reproducible chance: every random decision of the simulated server follows from its seed and the request alone.

A generator with a state would make decisions depend on the order in which requests arrive, which no two runs share.
"""

from __future__ import annotations

from hashlib import blake2b


def chance(seed: int, *about: object) -> float:
    """A number from 0 up to 1 that depends on nothing but the seed and what it is about.

    >>> chance(1, "error", 7) == chance(1, "error", 7) != chance(1, "error", 8)
    True
    """
    # A hash is uniform and quick enough; the separator keeps ("a", "bc") from ("ab", "c").
    text = "\0".join([str(seed), *map(str, about)])
    return int.from_bytes(blake2b(text.encode(errors="replace"), digest_size=8).digest()) / 2**64

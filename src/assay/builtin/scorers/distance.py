"""Distances between sequences, many cells of the table at a time.

The usual table of dynamic programming has a cell for each pair of symbols. Neighbouring cells differ by at most one, so a
column can be kept as the bits of one long whole number, and a few operations on it compute the whole next column, which in
Python is far quicker than a loop over the cells.
"""

from __future__ import annotations

from collections.abc import Sequence

Symbols = Sequence[str]


def edit_distance(a: Symbols, b: Symbols) -> int:
    """Insertions, deletions and replacements that make one the other (Myers 1999, in Hyyrö's form of 2003).

    In `rises` a bit is set where the column grows by one from the cell above, in `falls` where it shrinks by one;
    `distance` is the value of its last cell. `up` and `down` are the same from the column before to this one.
    """
    if len(a) > len(b):
        a, b = b, a
    if not a:
        return len(b)
    places = _places(a)
    last, everything = 1 << (len(a) - 1), (1 << len(a)) - 1
    rises, falls, distance = everything, 0, len(a)
    for symbol in b:
        equal = places.get(symbol, 0)
        crossed = ((((equal & rises) + rises) ^ rises) | equal | falls) & everything
        up = falls | ((crossed | rises) ^ everything)
        down = rises & crossed
        distance += bool(up & last) - bool(down & last)
        up = (up << 1 | 1) & everything
        down = (down << 1) & everything
        rises = down | ((crossed | up) ^ everything)
        falls = up & crossed
    return distance


def common_length(a: Symbols, b: Symbols) -> int:
    """Length of the longest common subsequence (Hyyrö 2004): the number of zero bits that are left in the row."""
    if len(a) > len(b):
        a, b = b, a
    places, everything = _places(a), (1 << len(a)) - 1
    row = everything
    for symbol in b:
        met = row & places.get(symbol, 0)
        row = ((row + met) | (row - met)) & everything
    return len(a) - row.bit_count()


def ends_in_common(a: Symbols, b: Symbols) -> tuple[int, int]:
    """How many symbols the two share at the beginning, and of the rest at the end."""
    shortest = min(len(a), len(b))
    start = next((n for n in range(shortest) if a[n] != b[n]), shortest)
    most = shortest - start
    end = next((n for n in range(most) if a[-1 - n] != b[-1 - n]), most)
    return start, end


def _places(symbols: Symbols) -> dict[str, int]:
    """For each symbol, a number whose set bits are its positions."""
    positions: dict[str, bytearray] = {}
    size = len(symbols) // 8 + 1
    for index, symbol in enumerate(symbols):
        if symbol not in positions:
            positions[symbol] = bytearray(size)
        positions[symbol][index >> 3] |= 1 << (index & 7)
    return {symbol: int.from_bytes(bits, "little") for symbol, bits in positions.items()}

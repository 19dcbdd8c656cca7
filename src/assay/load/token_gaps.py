"""Times between the tokens of an answer, as far as reads can tell them apart."""

from __future__ import annotations

from array import array


class TokenGaps:
    """Gaps since they were last taken. Pieces that came in one read share the time since the read before: when each was sent
    cannot be known.

    >>> gaps = TokenGaps()
    >>> gaps.add([1.0, 1.0, 2.0, 4.0, 4.0]), gaps.take()
    (3, (array('d', [1.0, 1.0, 1.0]), 1))
    """

    __slots__ = ("coalesced", "gaps", "zeros")

    def __init__(self) -> None:
        self.gaps = array("d")
        self.zeros = 0
        """Pieces that came in the same read as the one before, since they were last taken."""
        self.coalesced = 0
        """All gaps so far that are not the time between two reads."""

    def add(self, stamps: list[float]) -> int:
        """The pieces of one answer, by the time of the read that brought each; how many reads there were."""
        # All in one read, as short answers mostly are: nothing is known about the times between them.
        at = stamps[0]
        if at == stamps[-1]:
            self.zeros += len(stamps) - 1
            return 1
        # It is unknown how far apart the pieces of the first read were.
        reads, gap, together = 1, 0.0, 0
        for stamp in stamps[1:]:
            if stamp == at:
                together += 1
                continue
            self._add_read(gap, together)
            reads, gap, together, at = reads + 1, stamp - at, 1, stamp
        self._add_read(gap, together)
        return reads

    def _add_read(self, gap: float, pieces: int) -> None:
        if gap <= 0.0:
            self.zeros += pieces
        elif pieces == 1:
            self.gaps.append(gap)
        else:
            self.gaps.extend([gap / pieces] * pieces)
            self.coalesced += pieces - 1

    def take(self) -> tuple[array[float], int]:
        taken = self.gaps, self.zeros
        self.coalesced += self.zeros
        self.gaps, self.zeros = array("d"), 0
        return taken


class FirstReads:
    """Whether the stamp of an answer's first read is that of its first token.

    The kernel keeps one stamp for all that lies unread, that of the last segment. When the first read brings several tokens though
    the later ones come one by one, earlier segments were waiting, and it is unknown when the first arrived: its time is
    left out. A server that sends its first tokens together as a habit is believed.
    """

    __slots__ = ("_seen", "_suspicious", "censored")
    _HABIT, _FEWEST = 0.2, 20

    def __init__(self) -> None:
        self._seen = self._suspicious = self.censored = 0

    def is_exact(self, stamps: list[float], reads: int) -> bool:
        """Say whether the gaps between tokens are exact, for an answer that came in several reads."""
        self._seen += 1
        together = 1
        while stamps[together] == stamps[0]:
            together += 1
        if together == 1 or (len(stamps) - together) >= 1.5 * (reads - 1):
            return True
        self._suspicious += 1
        if self._seen >= self._FEWEST and self._suspicious > self._HABIT * self._seen:
            return True
        self.censored += 1
        return False

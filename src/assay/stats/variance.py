"""Where variation comes from: a table of cases by rounds, split into the cases', the rounds' and the rest."""

from __future__ import annotations

from dataclasses import dataclass

from assay.stats.sample import Array


@dataclass(frozen=True, slots=True)
class Split:
    """Variances of one observation; None where the table is too small to tell that part."""

    case: float | None
    round: float | None
    """What all cases of a round have in common: the process, the hour, the machine."""
    rest: float
    """From one repetition to the next, beside that."""

    def of_round(self, cases: int) -> float:
        """Variance of the mean of a round of so many cases, the cases being the same."""
        return (self.round or 0.0) + self.rest / cases


def split(table: Array) -> Split | None:
    """Rows are cases, columns are rounds, and every cell is there. None with fewer than two rounds.

    The usual estimates of a two-way layout without replication (Searle, Casella and McCulloch 1992), none below zero.
    """
    cases, rounds = table.shape
    if rounds < 2 or cases < 1:
        return None
    if cases == 1:
        return Split(None, None, float(table.var(ddof=1)))
    by_case, by_round, middle = table.mean(axis=1), table.mean(axis=0), table.mean()
    left = table - by_case[:, None] - by_round[None, :] + middle
    rest = float((left**2).sum()) / ((cases - 1) * (rounds - 1))
    case = max(0.0, float(by_case.var(ddof=1)) - rest / rounds)
    round_ = max(0.0, float(by_round.var(ddof=1)) - rest / cases)
    return Split(case, round_, rest)

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from assay.builtin.scenarios.outcome import Borne, finding, late, recovery_after, text_of
from assay.model.load import Arrivals, Load
from assay.model.stress import Breach, Judgement, ScenarioFinding, Stretch
from assay.plugin.scenario import Bench
from assay.stats.line import growth_exponent
from assay.units import percent, significant, size

_ACCEPTED = 0.95
_FASTER_THAN_INPUT = 1.1


@dataclass(frozen=True, slots=True)
class LargeInputs:
    """Inputs from 1 kB on, each ten times as large as the one before, one at a time."""

    name: ClassVar[str] = "large_inputs"

    sizes: tuple[int, ...] = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
    each: int = 20
    recovery_seconds: float = 10.0

    @classmethod
    def quick(cls) -> LargeInputs:
        return cls(sizes=(1_000, 10_000, 100_000, 1_000_000), each=3, recovery_seconds=1.0)

    def not_for(self, bench: Bench) -> str:
        return (
            ""
            if bench.subject.takes_input
            else "the page is only fetched: there is no input to make larger (--prompt)"
        )

    def run(self, bench: Bench) -> ScenarioFinding:
        # Larger inputs may take longer: a limit that was derived from small ones says nothing about them.
        objectives = () if bench.is_derived else bench.objectives
        done: list[Stretch] = []
        for length in self.sizes:
            load = Load(Arrivals.CLOSED, concurrency=1, seconds=3600.0, count=self.each)
            done.append(bench.put(load, prompts=[text_of(length)], objectives=objectives))
            if not done[-1].completed:
                break
        sizes = self.sizes[: len(done)]
        accepted = [length for length, one in zip(sizes, done, strict=True) if is_accepted(one, self.each)]
        slow = [length for length, one in zip(sizes, done, strict=True) if late(one, objectives)]
        borne = [length for length in accepted if length not in slow]
        breach = first_refused(sizes, done, self.each)
        return finding(
            self,
            bench,
            done,
            Borne(float(self.sizes[-1]), float(max(borne, default=0)), "bytes"),
            breach,
            lasted=sum(one.result.duration for one in done),
            shown=next((one for one in reversed(done) if one.completed), done[-1]),
            recovery=recovery_after(bench, self.recovery_seconds),
            judgements=[
                *growth(sizes, done),
                largest(accepted, self.sizes),
                *refusal(sizes, done, self.each),
            ],
            unasked=self.each * (len(self.sizes) - len(done)),
        )


def is_accepted(stretch: Stretch, each: int) -> bool:
    return stretch.completed >= _ACCEPTED * each


def first_refused(sizes: Sequence[int], done: Sequence[Stretch], each: int) -> Breach | None:
    at = 0.0
    for length, stretch in zip(sizes, done, strict=True):
        if not is_accepted(stretch, each):
            return Breach(
                at, float(length), "bytes", "errors", f"{_failed(stretch)} failed as {_kind(stretch)}"
            )
        if stretch.breach is not None:
            return Breach(at, float(length), "bytes", stretch.breach.cause, stretch.breach.why)
        at += stretch.result.duration
    return None


def _failed(stretch: Stretch) -> str:
    return f"{percent(stretch.error_rate)} of the requests"


def _kind(stretch: Stretch) -> str:
    return max(stretch.errors, key=lambda kind: stretch.errors[kind], default="nothing known")


def growth(sizes: Sequence[int], done: Sequence[Stretch]) -> list[Judgement]:
    points = [(length, took) for length, one in zip(sizes, done, strict=True) for took in one.latencies]
    line = growth_exponent([length for length, _ in points], [took for _, took in points])
    if line is None:
        return []
    text = f"Latency grows with the size to the power of {significant(line.slope)}"
    is_fine = line.low <= _FASTER_THAN_INPUT
    return [Judgement("growth_exponent", text, line.slope, line.low, line.high, "", is_fine)]


def largest(accepted: Sequence[int], sizes: Sequence[int]) -> Judgement:
    if not accepted:
        return Judgement(
            "largest_accepted", f"Not even {size(sizes[0])} is accepted", 0.0, unit="bytes", is_fine=False
        )
    more = ", the most that was tried" if accepted[-1] == sizes[-1] else ""
    return Judgement(
        "largest_accepted", f"Up to {size(accepted[-1])} is accepted{more}", float(accepted[-1]), unit="bytes"
    )


def refusal(sizes: Sequence[int], done: Sequence[Stretch], each: int) -> list[Judgement]:
    """How the first size that is not accepted is refused: a 4xx is proper, anything else is not."""
    for length, stretch in zip(sizes, done, strict=True):
        if not is_accepted(stretch, each):
            kind = _kind(stretch)
            is_proper = kind.startswith("http_4")
            how = "properly refused" if is_proper else "not refused but lost"
            return [
                Judgement(
                    "refusal",
                    f"{size(length)} is {how} ({kind})",
                    float(length),
                    unit="bytes",
                    is_fine=is_proper,
                )
            ]
    return []

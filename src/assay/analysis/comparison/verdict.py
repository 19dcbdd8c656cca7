"""Turns an effect and its interval into better, worse, same or unsure, with a reason.

`rule` is one step of the comparison policy (`policy.py`): *same* if the interval lies within the tolerance, *better* or
*worse* if the difference is significant after correction and larger than the tolerance, else *unsure*. An unsure verdict says
what would settle it, such as how many more repetitions.
"""

from __future__ import annotations

import math
import sys
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from assay.model import Better, Comparison, Metric, Verdict
from assay.model.metric import SCORE_TOLERANCE, is_score
from assay.model.precision import NOISE_FLOORS, TOLERANCE
from assay.stats.effect import Effect
from assay.stats.permutation import repetitions_to_settle
from assay.stats.random_effects import ErrorPart, half_width
from assay.stats.rank_distributions import fewest_units
from assay.stats.sample import Scale, quantile
from assay.units import drop_rounding_error, percent, show, significant

FEWEST_UNITS = 5
FEWEST_PAIRS = 6
"""Five pairs have no interval at 95 %: all signs alike happen once in sixteen times by chance."""
ALPHA = 0.05
POWER = 0.8
TOO_MANY = 1000
"""Advice to run more units than this is not given as a number."""
_SMALLEST, _LARGEST = sys.float_info.min, sys.float_info.max


@dataclass(frozen=True, slots=True)
class FixedCases:
    """Counts for a test over the repetitions of fixed cases."""

    repetitions: int
    """The fewest repetitions of a case on a side."""
    lost: int
    """Cases in which every repetition of B is below every one of A."""
    won: int


@dataclass(frozen=True, slots=True)
class Contrast:
    """A metric of two trials before a verdict: values, effect and interval; `refusal` says why there can be no verdict.

    `unit` is the independent unit that `units_a` and `units_b` count: process, case, round, load or pair of legs.
    """

    metric: Metric
    trial_a: str
    trial_b: str
    value_a: float
    value_b: float
    units_a: int
    units_b: int
    effect: Effect | None
    """None with too few units on a side."""
    is_paired: bool
    refusal: str = ""
    unit: str = "process"
    is_judged: bool = True
    """Whether it gets a verdict; others are only shown."""
    fixed_cases: FixedCases | None = None
    """None if the units are a sample."""
    errors: tuple[ErrorPart, ...] = ()
    """If rounds are the unit: the parts of the effect's error, that of the rounds first."""
    is_session_unknown: bool = False
    """Whether the sides are times of two runs, and the noise between runs is unknown."""

    @property
    def reach(self) -> float:
        """What the tolerance of a difference is a share of: a score's is absolute."""
        return 1.0 if is_score(self.metric) else abs(self.value_a)

    @property
    def is_identical(self) -> bool:
        """Whether both sides have the same values, so that there is nothing to test."""
        effect = self.effect
        return effect is not None and effect.p == 1 and effect.low == effect.high == effect.neutral

    @property
    def can_be_claimed(self) -> bool:
        """Whether it may become better or worse. If so, it belongs to the family that p values are corrected for."""
        has_claim = self.effect is not None and not self.refusal and self.metric.better is not Better.UNKNOWN
        return has_claim and self.is_judged and not self.is_identical


def no_effect(metric: Metric, value: float) -> Effect:
    """The effect of two sides with identical values: there is nothing to test, however few they are."""
    scale = Scale.DIFFERENCE if is_score(metric) or value <= 0 else Scale.RATIO
    neutral = 0.0 if scale is Scale.DIFFERENCE else 1.0
    return Effect(scale, neutral, neutral, neutral, 1.0, "identical values")


def without_rounding(effect: Effect | None, *values: float) -> Effect | None:
    """The effect, with ends and value exactly neutral if they differ from that only by rounding errors of `values`."""
    if effect is None:
        return None
    neutral = effect.neutral
    operands = (neutral,) if effect.scale is Scale.RATIO else (*values, effect.low, effect.high)
    value, low, high = (
        neutral + drop_rounding_error(number - neutral, *operands)
        for number in (effect.value, effect.low, effect.high)
    )
    return replace(effect, value=value, low=low, high=high)


@dataclass(frozen=True, slots=True)
class VerdictReason:
    verdict: Verdict
    reason: str = ""


def tolerance_of(metric: Metric, noise_floor: float | None = None) -> float:
    """The default tolerance of a metric; `noise_floor` is a share, as an A/A run found it."""
    if is_score(metric):
        return SCORE_TOLERANCE
    return max(TOLERANCE, NOISE_FLOORS * (noise_floor or 0.0))


def describe_comparison(contrast: Contrast, tolerance: float) -> Comparison:
    """What the data show, before the correction for a family and the verdict."""
    effect = contrast.effect
    is_ratio = effect is not None and effect.scale is Scale.RATIO
    ratio = effect.value if effect and is_ratio else None
    if effect is None and contrast.value_a > 0 and contrast.value_b > 0:
        ratio = min(contrast.value_b / contrast.value_a, _LARGEST)
    return Comparison(
        metric=contrast.metric,
        trial_a=contrast.trial_a,
        trial_b=contrast.trial_b,
        value_a=contrast.value_a,
        value_b=contrast.value_b,
        units_a=contrast.units_a,
        units_b=contrast.units_b,
        ratio=ratio,
        low=effect.low if effect and is_ratio else None,
        high=effect.high if effect and is_ratio else None,
        p=effect.p if effect else None,
        p_corrected=None,
        tolerance=tolerance,
        verdict=None,
        method=effect.method if effect else "ratio of medians",
        difference=effect.value if effect and not is_ratio else None,
        difference_low=effect.low if effect and not is_ratio else None,
        difference_high=effect.high if effect and not is_ratio else None,
        effect_size=effect.dominance if effect else None,
    )


def rule(contrast: Contrast, p_corrected: float | None, tolerance: float, family: int) -> VerdictReason:
    """Same: the interval lies within ± tolerance. Better or worse: significant after correction, and beyond tolerance.

    `family` is the number of contrasts that `p_corrected` is corrected for.
    """
    # The order is part of the method. Equivalence comes before significance: with very many units a difference of 0.1 % is
    # significant and still the same for every user. A direction is needed only for a claim, so that a metric without one can
    # be the same. Significance and size are both needed, since either alone claims what does not matter or what is not known.
    effect = contrast.effect
    if contrast.refusal:
        return VerdictReason(Verdict.UNSURE, contrast.refusal)
    if effect is None:
        return VerdictReason(Verdict.UNSURE, _too_few(contrast))
    difference = ""
    has_no_ratio = effect.scale is Scale.DIFFERENCE and not effect.low == effect.high == 0
    if has_no_ratio and not is_score(contrast.metric):
        value, low, high = (show(n, contrast.metric.unit) for n in (effect.value, effect.low, effect.high))
        difference = f"Not all values are positive, so there is no ratio; B − A is {value} ({low} to {high})."
    # The limits of a ratio mirror each other, so that swapping the sides swaps the verdict.
    is_ratio, reach = effect.scale is Scale.RATIO, tolerance * contrast.reach
    lowest, highest = (1 / (1 + tolerance), 1 + tolerance) if is_ratio else (-reach, reach)
    if lowest <= effect.low and effect.high <= highest:
        return VerdictReason(Verdict.SAME, difference)
    if contrast.metric.better is Better.UNKNOWN:
        unknown = f"It is unknown whether lower or higher '{contrast.metric.name}' is better."
        return VerdictReason(Verdict.UNSURE, f"{difference} {unknown}".strip())
    if (
        p_corrected is not None
        and p_corrected < ALPHA
        and effect.excludes_neutral
        and is_beyond(contrast, effect, tolerance)
    ):
        is_lower = effect.value < effect.neutral
        is_better = is_lower == (contrast.metric.better is Better.LOWER)
        return VerdictReason(Verdict.BETTER if is_better else Verdict.WORSE, difference)
    advice = _what_would_settle(contrast, effect, tolerance, family)
    return VerdictReason(Verdict.UNSURE, f"{difference} {advice}".strip())


def is_beyond(contrast: Contrast, effect: Effect, tolerance: float) -> bool:
    """Whether the estimate itself is larger than the tolerance: a real but tiny difference is not claimed."""
    if effect.scale is Scale.RATIO:
        return not 1 / (1 + tolerance) <= effect.value <= 1 + tolerance
    return abs(effect.value) > tolerance * contrast.reach


def too_few_rounds(rounds: int) -> str:
    counted = "One round" if rounds == 1 else f"{rounds} rounds"
    return f"{counted}: the variation of times between rounds is unknown; use at least 3 interleaved repetitions."


def _too_few(contrast: Contrast) -> str:
    """Why there is no effect, and how many units it takes."""
    if contrast.unit == "case":
        fewest = min(contrast.units_a, contrast.units_b)
        return f"{'One case is' if fewest == 1 else f'{fewest} cases are'} too few; use more cases."
    if contrast.unit not in ("process", "round", "pair of legs"):
        fewest = min(contrast.units_a, contrast.units_b)
        amount = f"One {contrast.unit}" if fewest == 1 else f"{fewest} {contrast.unit}s"
        return (
            f"{amount} on one side; repeat each at least {FEWEST_UNITS} times: --repetitions {FEWEST_PAIRS}."
        )
    if contrast.units_a == contrast.units_b == 1:
        return "One process per side; run with processes ≥ 10."
    if contrast.units_a == contrast.units_b:
        return f"{contrast.units_a} processes per side; run with processes ≥ 10."
    return f"{contrast.units_a} and {contrast.units_b} processes per side; run with processes ≥ 10."


def _what_would_settle(contrast: Contrast, effect: Effect, tolerance: float, family: int) -> str:
    """Why the verdict is unsure, and how many more units would change that."""
    span = f"{significant(effect.low)} to {significant(effect.high)}"
    what = "ratio" if effect.scale is Scale.RATIO else "difference"
    open_question = f"The {what} may be anywhere from {span}"
    if effect.excludes_neutral and family > 1:
        open_question = f"The {what} is {span}, but that is not significant among {family} comparisons"
    if contrast.fixed_cases is not None:
        now = contrast.fixed_cases.repetitions
        needed = units_needed(replace(contrast, units_a=now, units_b=now), effect, tolerance, family)
        return f"{open_question}; {_what_repetitions_would_settle(contrast.fixed_cases, needed, family)}"
    needed = units_needed(contrast, effect, tolerance, family)
    if needed is None and len(contrast.errors) > 1 and not contrast.is_paired:
        return (
            f"{open_question}, because times vary that much from run to run; measure both sides in one run."
        )
    if needed is None and len(contrast.errors) > 1:
        return f"{open_question}; more rounds alone would not settle it: use more cases as well."
    if needed is None:
        return f"{open_question}; no number of {_units(contrast)} would settle it at a tolerance of {percent(tolerance)}."
    many = f"more than {TOO_MANY:,}" if needed > TOO_MANY else f"about {needed}"
    return f"{open_question}; {many} {_units(contrast)} would settle it."


def _what_repetitions_would_settle(cases: FixedCases, needed: int | None, family: int) -> str:
    """The number of repetitions that would settle it; flips of whole cases need fewer than a shift of chances does."""
    flipped = repetitions_to_settle(cases.lost, cases.won, ALPHA / max(1, family))
    flips = f"{cases.lost} lost, {cases.won} won"
    if cases.repetitions == 1:
        noise = f"with one repetition a flip ({flips}) cannot be distinguished from noise"
        if flipped is None:
            return f"{noise}; run with --repetitions 3 or more."
        return f"{noise}; {max(2, flipped)} repetitions would settle it if every flip persists."
    if flipped is not None and flipped > cases.repetitions:
        return f"{flipped} repetitions would settle it if every flip ({flips}) persists."
    if needed is None:
        return "no number of repetitions would settle it at this tolerance."
    many = f"more than {TOO_MANY:,}" if needed > TOO_MANY else f"about {needed}"
    return f"{many} repetitions would settle it."


def _units(contrast: Contrast) -> str:
    if contrast.unit == "round":
        return "rounds" if contrast.is_paired else "rounds per side"
    if contrast.unit == "pair of legs":
        return "pairs of legs"
    plural = "processes" if contrast.unit == "process" else f"{contrast.unit}s"
    if not contrast.is_paired:
        return f"{plural} per side"
    return plural if contrast.unit == "case" else f"pairs of {plural}"


def units_needed(contrast: Contrast, effect: Effect, tolerance: float, family: int) -> int | None:
    """Units per side at which four repeats in five would end with a verdict other than unsure; None if there is none.

    Half the interval shrinks with the square root of the number of units. It has to become small against the distance
    of the effect from none (a difference is found) or from the tolerance (equivalence is found), whichever is easier.
    """
    half, distance, reach = _on_additive_scale(contrast, effect, tolerance)
    now = min(contrast.units_a, contrast.units_b)
    if contrast.errors:
        return _rounds_needed(contrast.errors, now, family, (distance, reach - distance))
    # The usual formula for sample sizes, (z₁₋α/₂ + z_power)² σ² ÷ δ², as a factor on today's interval, whose half is z₁₋α/₂
    # standard errors wide. The α of a difference is divided by the family, as Holm's first step does; that of equivalence is not.
    plain = quantile(1 - ALPHA / 2)
    to_differ = (quantile(1 - ALPHA / (2 * max(1, family))) + quantile(POWER)) / plain
    to_equal = (plain + quantile(POWER)) / plain
    ways = [(to_differ, distance), (to_equal, reach - distance)]
    shrink = [factor * half / room for factor, room in ways if room > 0]
    if not shrink:
        return None
    needed = math.ceil(now * min(*shrink, float(TOO_MANY)) ** 2)
    fewest = fewest_units(ALPHA / max(1, family), is_paired=contrast.is_paired)
    return max(now + 1, FEWEST_UNITS, fewest, needed)


def _rounds_needed(
    errors: Sequence[ErrorPart], now: int, family: int, rooms: tuple[float, float]
) -> int | None:
    """Rounds needed, found by trying: only the rounds' part of the error shrinks with more rounds.

    `rooms` are the distances that half the interval must fit into, for a difference and for equivalence. None if the other
    parts of the error leave no room at all.
    """
    # `sides` is 1 for paired rounds and up to 2 for two samples: how many degrees of freedom one more round brings.
    first, *others = errors
    sides = first.freedom / max(1, now - 1)
    spread, power = first.error * math.sqrt(now), quantile(POWER)
    levels = (1 - ALPHA / (2 * max(1, family)), 1 - ALPHA / 2)

    def are_enough(rounds: int) -> bool:
        error = spread / math.sqrt(rounds)
        parts = [ErrorPart(error, max(1, int(sides * (rounds - 1)))), *others]
        widths = (half_width(parts, level) + power * error for level in levels)
        return any(width <= room for width, room in zip(widths, rooms, strict=True))

    # More rounds never need more room.
    numbers = list(_numbers_from(now + 1))
    place = bisect_left(numbers, True, key=are_enough)
    if place < len(numbers):
        return numbers[place]
    return None if half_width(others) >= max(rooms) else TOO_MANY + 1


def _numbers_from(first: int) -> Iterator[int]:
    """Up to the most that is advised: one by one at first, then in steps of a tenth."""
    number = first
    while number <= TOO_MANY:
        yield number
        number += max(1, number // 10)


def _on_additive_scale(contrast: Contrast, effect: Effect, tolerance: float) -> tuple[float, float, float]:
    """Half the interval, the effect's distance from none, and the tolerance; as logarithms for ratios."""
    if effect.scale is Scale.DIFFERENCE:
        return (effect.high - effect.low) / 2, abs(effect.value), tolerance * contrast.reach
    low, value, high = (
        math.log(max(number, _SMALLEST)) for number in (effect.low, effect.value, effect.high)
    )
    return (high - low) / 2, abs(value), math.log1p(tolerance)

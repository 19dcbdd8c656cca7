"""From an effect and its interval to better, worse, same or unsure."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from assay.model import Better, Comparison, Metric, Verdict
from assay.model.metric import SCORE_TOLERANCE, is_score
from assay.model.precision import NOISE_FLOORS, TOLERANCE
from assay.stats.correction import benjamini_hochberg, holm
from assay.stats.effect import Effect
from assay.stats.nulls import fewest_units
from assay.stats.permutation import repetitions_to_settle
from assay.stats.random_effects import ErrorPart, half_width
from assay.stats.sample import Scale, quantile
from assay.units import percent, show, significant, without_dust

FEWEST_UNITS = 5
FEWEST_PAIRS = 6
"""Five pairs have no interval at 95 %: all signs alike happen once in sixteen times by chance."""
ALPHA = 0.05
POWER = 0.8
TOO_MANY = 1000
Floors = Mapping[tuple[str, str], float]
"""What was measured, by the name of the trial on side B, and metric to its noise floor."""
Sessions = Mapping[tuple[str, str], ErrorPart]
"""By the same, the error that the difference of two runs has beside that of their rounds, on the scale of logarithms."""
SESSION_UNKNOWN = (
    "Run-to-run noise unknown: it takes 5 earlier runs, or an A/A run (assay noise). "
    "Or measure both sides in one run, as assay gate --rerun-baseline does."
)
_SMALLEST, _LARGEST = sys.float_info.min, sys.float_info.max


@dataclass(frozen=True, slots=True)
class FixedCases:
    """Of a test over the repetitions of these very cases."""

    repetitions: int
    """Of a case on a side, at the least."""
    lost: int
    """Cases in which every repetition of B is below every one of A."""
    won: int


@dataclass(frozen=True, slots=True)
class Contrast:
    """Two sides of a metric before a verdict; `refusal` says why there can be none."""

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
    """Whether somebody asked about it; others are shown without a verdict."""
    fixed_cases: FixedCases | None = None
    """None where units are a sample."""
    errors: tuple[ErrorPart, ...] = ()
    """Where rounds are the unit: what the effect's error consists of, the rounds' part first."""
    is_session_unknown: bool = False
    """Whether the sides are times of two runs, and nobody knows what two runs differ by."""

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
        """Then it belongs to the family that p values are corrected for; identical values can never become a claim."""
        has_claim = self.effect is not None and not self.refusal and self.metric.better is not Better.UNKNOWN
        return has_claim and self.is_judged and not self.is_identical


def no_effect(metric: Metric, value: float) -> Effect:
    """Of two sides with identical values: there is nothing to test, however few they are."""
    scale = Scale.DIFFERENCE if is_score(metric) or value <= 0 else Scale.RATIO
    neutral = 0.0 if scale is Scale.DIFFERENCE else 1.0
    return Effect(scale, neutral, neutral, neutral, 1.0, "identical values")


def without_rounding(effect: Effect | None, *values: float) -> Effect | None:
    """The effect with exactly no difference where there is only the rounding error of both sides' `values`."""
    if effect is None:
        return None
    neutral = effect.neutral
    operands = (neutral,) if effect.scale is Scale.RATIO else (*values, effect.low, effect.high)
    value, low, high = (
        neutral + without_dust(number - neutral, *operands)
        for number in (effect.value, effect.low, effect.high)
    )
    return replace(effect, value=value, low=low, high=high)


@dataclass(frozen=True, slots=True)
class VerdictReason:
    verdict: Verdict
    reason: str = ""


def judged(
    contrasts: Sequence[Contrast], tolerance: float | None = None, noise_floor: float | Floors | None = None
) -> tuple[Comparison, ...]:
    """Verdicts on a family: p values are corrected (Holm) for all that could become a claim."""
    contrasts = [_without_unknown_session(contrast, tolerance) for contrast in contrasts]
    family = [contrast.effect.p for contrast in contrasts if contrast.effect and contrast.can_be_claimed]
    corrected = iter(zip(holm(family).tolist(), benjamini_hochberg(family).tolist(), strict=True))
    found = []
    for contrast in contrasts:
        floor = _floor(contrast, noise_floor)
        width = tolerance_of(contrast.metric, floor) if tolerance is None else tolerance
        p, q = next(corrected) if contrast.can_be_claimed else _uncorrected(contrast)
        found.append(_comparison(contrast, p, q, width, len(family)))
        if tolerance is None and floor is not None:
            found[-1] = _not_called_the_same(found[-1], contrast, floor)
    return tuple(found)


def _uncorrected(contrast: Contrast) -> tuple[float | None, float | None]:
    return (1.0, 1.0) if contrast.is_identical and contrast.is_judged else (None, None)


def _without_unknown_session(contrast: Contrast, tolerance: float | None) -> Contrast:
    """Refused, unless all of the interval lies beyond a tolerance that somebody asked for."""
    effect = contrast.effect
    if not contrast.is_session_unknown or contrast.refusal or effect is None or effect.low == effect.high:
        return contrast
    if tolerance is not None and all(
        _is_beyond(contrast, replace(effect, value=end), tolerance) for end in (effect.low, effect.high)
    ):
        return contrast if effect.excludes_neutral else replace(contrast, refusal=SESSION_UNKNOWN)
    return replace(contrast, refusal=SESSION_UNKNOWN)


def _not_called_the_same(comparison: Comparison, contrast: Contrast, floor: float) -> Comparison:
    """Noise may explain a difference that is there, but does not make both sides equal."""
    effect, usual = contrast.effect, tolerance_of(contrast.metric)
    is_there = effect is not None and effect.excludes_neutral and _is_beyond(contrast, effect, usual)
    if comparison.verdict is not Verdict.SAME or comparison.tolerance <= usual or not is_there:
        return comparison
    reason = (
        f"The difference is no more than twice the measured noise floor of {percent(floor)}, so noise alone may be all of it; "
        "run both sides together in one run, or on a quieter machine."
    )
    return replace(comparison, verdict=Verdict.UNSURE, reason=reason)


def _floor(contrast: Contrast, noise_floor: float | Floors | None) -> float | None:
    """Of all, or of this trial and metric; a percentile has that of its metric, which it varies by at the least."""
    if not isinstance(noise_floor, Mapping):
        return noise_floor
    name = contrast.metric.name
    known = noise_floor.get((contrast.trial_b, name))
    return noise_floor.get((contrast.trial_b, name.rpartition(".")[0])) if known is None else known


def tolerance_of(metric: Metric, noise_floor: float | None = None) -> float:
    """What counts as the same unless somebody says otherwise; `noise_floor` is a share, as an A/A run found it."""
    if is_score(metric):
        return SCORE_TOLERANCE
    return max(TOLERANCE, NOISE_FLOORS * (noise_floor or 0.0))


def _comparison(
    contrast: Contrast, p_corrected: float | None, q: float | None, tolerance: float, family: int
) -> Comparison:
    effect = contrast.effect
    ruling = rule(contrast, p_corrected, tolerance, family) if contrast.is_judged else None
    is_ratio = effect is not None and effect.scale is Scale.RATIO
    return Comparison(
        metric=contrast.metric,
        trial_a=contrast.trial_a,
        trial_b=contrast.trial_b,
        value_a=contrast.value_a,
        value_b=contrast.value_b,
        units_a=contrast.units_a,
        units_b=contrast.units_b,
        ratio=_ratio(contrast),
        low=effect.low if effect and is_ratio else None,
        high=effect.high if effect and is_ratio else None,
        p=effect.p if effect else None,
        p_corrected=p_corrected,
        tolerance=tolerance,
        verdict=ruling.verdict if ruling else None,
        method=effect.method if effect else "ratio of medians",
        difference=effect.value if effect and not is_ratio else None,
        difference_low=effect.low if effect and not is_ratio else None,
        difference_high=effect.high if effect and not is_ratio else None,
        q=q,
        effect_size=effect.dominance if effect else None,
        reason=ruling.reason if ruling else "",
    )


def _ratio(contrast: Contrast) -> float | None:
    """None where values are not all positive: then there are only differences."""
    if contrast.effect:
        return contrast.effect.value if contrast.effect.scale is Scale.RATIO else None
    is_positive = contrast.value_a > 0 and contrast.value_b > 0
    return min(contrast.value_b / contrast.value_a, _LARGEST) if is_positive else None


def rule(contrast: Contrast, p_corrected: float | None, tolerance: float, family: int) -> VerdictReason:
    """Same: the interval lies inside ± tolerance. Better or worse: significant after correction, and beyond tolerance."""
    effect = contrast.effect
    if contrast.refusal:
        return VerdictReason(Verdict.UNSURE, contrast.refusal)
    if effect is None:
        return VerdictReason(Verdict.UNSURE, _too_few(contrast))
    told = "" if is_score(contrast.metric) else _difference(contrast.metric, effect)
    if _is_inside(contrast, effect, tolerance):
        return VerdictReason(Verdict.SAME, told)
    if contrast.metric.better is Better.UNKNOWN:
        unknown = f"Nobody said whether lower or higher '{contrast.metric.name}' is better."
        return VerdictReason(Verdict.UNSURE, f"{told} {unknown}".strip())
    if (
        p_corrected is not None
        and p_corrected < ALPHA
        and effect.excludes_neutral
        and _is_beyond(contrast, effect, tolerance)
    ):
        is_lower = effect.value < effect.neutral
        is_better = is_lower == (contrast.metric.better is Better.LOWER)
        return VerdictReason(Verdict.BETTER if is_better else Verdict.WORSE, told)
    return VerdictReason(
        Verdict.UNSURE, f"{told} {_what_would_settle(contrast, effect, tolerance, family)}".strip()
    )


def _is_beyond(contrast: Contrast, effect: Effect, tolerance: float) -> bool:
    """Whether the estimate itself is larger than what is claimed by default: a real but tiny difference is not."""
    if effect.scale is Scale.RATIO:
        return not 1 / (1 + tolerance) <= effect.value <= 1 + tolerance
    return abs(effect.value) > tolerance * contrast.reach


def _is_inside(contrast: Contrast, effect: Effect, tolerance: float) -> bool:
    """Limits of a ratio mirror each other, so that swapping the sides swaps the verdict."""
    if effect.scale is Scale.RATIO:
        return 1 / (1 + tolerance) <= effect.low and effect.high <= 1 + tolerance
    reach = tolerance * contrast.reach
    return -reach <= effect.low and effect.high <= reach


def too_few_rounds(rounds: int) -> str:
    counted = "One round" if rounds == 1 else f"{rounds} rounds"
    return f"{counted}: how much a time varies from round to round is unknown; repeat at least 3 times, in alternation."


def _too_few(contrast: Contrast) -> str:
    if contrast.unit == "case":
        fewest = min(contrast.units_a, contrast.units_b)
        return f"{'One case is' if fewest == 1 else f'{fewest} cases are'} too few; use more cases."
    if contrast.unit == "load":
        fewest = min(contrast.units_a, contrast.units_b)
        made = "One load" if fewest == 1 else f"{fewest} loads"
        return f"{made} on a side; repeat each at least {FEWEST_UNITS} times: --repetitions {FEWEST_PAIRS}."
    if contrast.units_a == contrast.units_b == 1:
        return "One process a side; run with processes ≥ 10."
    if contrast.units_a == contrast.units_b:
        return f"{contrast.units_a} processes a side; run with processes ≥ 10."
    return f"{contrast.units_a} and {contrast.units_b} processes a side; run with processes ≥ 10."


def _difference(metric: Metric, effect: Effect) -> str:
    """Said in words where there is no ratio, and something to say."""
    if effect.scale is Scale.RATIO or effect.low == effect.high == 0:
        return ""
    value, low, high = (show(number, metric.unit) for number in (effect.value, effect.low, effect.high))
    return f"Not all values are positive, so there is no ratio; B − A is {value} ({low} to {high})."


def _what_would_settle(contrast: Contrast, effect: Effect, tolerance: float, family: int) -> str:
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
    """Cases that flipped in all repetitions need fewer more than a shift of chances does."""
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
        return "rounds" if contrast.is_paired else "rounds a side"
    if contrast.unit == "pair of legs":
        return "pairs of legs"
    plural = {"case": "cases", "load": "loads"}.get(contrast.unit, "processes")
    if not contrast.is_paired:
        return f"{plural} a side"
    return plural if contrast.unit == "case" else f"pairs of {plural}"


def units_needed(contrast: Contrast, effect: Effect, tolerance: float, family: int) -> int | None:
    """Units a side at which four repeats in five would end with a verdict other than unsure; None if there is none.

    Half the interval shrinks with the square root of the number of units. It has to become small against the distance
    of the effect from none (a difference is found) or from the tolerance (equivalence is found), whichever is easier.
    """
    half, distance, reach = _on_additive_scale(contrast, effect, tolerance)
    now = min(contrast.units_a, contrast.units_b)
    if contrast.errors:
        return _rounds_needed(contrast.errors, now, family, (distance, reach - distance))
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
    """Only the rounds' own part of the error shrinks with more of them; the others may leave no room at all."""
    first, *others = errors
    sides = first.freedom / max(1, now - 1)
    spread, power = first.error * math.sqrt(now), quantile(POWER)
    levels = (1 - ALPHA / (2 * max(1, family)), 1 - ALPHA / 2)
    for rounds in _growing(now + 1):
        error = spread / math.sqrt(rounds)
        parts = [ErrorPart(error, max(1, int(sides * (rounds - 1)))), *others]
        widths = (half_width(parts, level) + power * error for level in levels)
        if any(width <= room for width, room in zip(widths, rooms, strict=True)):
            return rounds
    return None if half_width(others) >= max(rooms) else TOO_MANY + 1


def _growing(first: int) -> Iterator[int]:
    """One by one at first, then in steps of a tenth."""
    number = first
    while number <= TOO_MANY:
        yield number
        number += max(1, number // 10)


def _on_additive_scale(contrast: Contrast, effect: Effect, tolerance: float) -> tuple[float, float, float]:
    """Half the interval, the effect's distance from none, and the tolerance; of ratios as logarithms."""
    if effect.scale is Scale.DIFFERENCE:
        return (effect.high - effect.low) / 2, abs(effect.value), tolerance * contrast.reach
    low, value, high = (
        math.log(max(number, _SMALLEST)) for number in (effect.low, effect.value, effect.high)
    )
    return (high - low) / 2, abs(value), math.log1p(tolerance)

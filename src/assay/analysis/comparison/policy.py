"""The one comparison policy: turns the difference of two sides into better, worse, same or unsure.

`compare`, `gate`, `regressions`, `noise`, `cost`, the best point of a sweep and the forecasts of `power` all call `judge`, so the same
data get the same verdict in every command. Two rules apply before: `compare.find_contrasts` chooses the unit of replication and
adds the error between runs to the interval. The others are `POLICY`, in the order in which they apply. The
order matters: the correction for several metrics counts only what may still become a claim, and nothing after the verdict
on the interval makes a claim; later steps only withhold verdicts that noise may explain.

docs/method.md states the rules for users, in the same order ("The order of the rules").
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps

from assay.analysis.comparison.severity import depends_on_machine, loss_of
from assay.analysis.comparison.verdict import (
    Contrast,
    describe_comparison,
    is_beyond,
    rule,
    tolerance_of,
)
from assay.analysis.estimates.completion import inner_name
from assay.analysis.estimates.machine_speed import MachineShift
from assay.model import Comparison, Verdict
from assay.stats.correction import benjamini_hochberg, holm
from assay.stats.random_effects import ErrorPart
from assay.units import percent

Floors = Mapping[tuple[str, str], float]
"""Noise floors as shares, by the name of the trial on side B and the metric."""
Sessions = Mapping[tuple[str, str], ErrorPart]
"""By the same, the error that the difference of two runs has beside that of their rounds, on the scale of logarithms."""
SESSION_UNKNOWN = (
    "Run-to-run noise is unknown. Measure it with 5 earlier runs or an A/A run (assay noise), "
    "or measure both sides in one run (assay gate --rerun-baseline)."
)
_CLAIMS = (Verdict.WORSE, Verdict.BETTER)
_LEAST_LOSS = -0.999
"""A loss of −1 (a time that became 0) has no logarithm."""


@dataclass(frozen=True, slots=True)
class KnownNoise:
    """What results differ by though nothing changed, as far as somebody measured it; by trial of side B."""

    repeated: Floors = field(default_factory=dict)
    """From A/A runs: they widen the tolerance."""
    history: Floors = field(default_factory=dict)
    """From earlier runs, of trials that are compared with another run: claims that are no larger are unsure."""
    sessions: Sessions | None = None
    """Errors of the difference of two runs. Where one is missing, times of two runs are unsure; None asks for none."""
    shifts: Mapping[str, MachineShift] = field(default_factory=dict)
    """By how much the machine itself was slower on side B than on side A, by trial."""

    def floor(self, contrast: Contrast) -> float | None:
        """Return the noise floor that an A/A run of either side measured, or None without one."""
        return _find_floor(self.repeated, contrast)

    def largest_floor(self, contrast: Contrast) -> float | None:
        """Return the larger of the noise floors that A/A runs and earlier runs show.

        A claim must exceed both: an A/A run may have met a quiet hour, and the history shows what hours
        differ by.
        """
        floors = (_find_floor(source, contrast) for source in (self.repeated, self.history))
        return max((floor for floor in floors if floor is not None), default=None)


def _find_floor(floors: Floors, contrast: Contrast) -> float | None:
    """A percentile has the noise floor of its metric, because it varies by at least as much."""
    name = contrast.metric.name
    known = floors.get((contrast.trial_b, name))
    return floors.get((contrast.trial_b, name.rpartition(".")[0])) if known is None else known


@dataclass(frozen=True, slots=True)
class Tolerances:
    """How much worse still counts as the same; None is the method's own tolerance."""

    general: float | None = None
    of_metric: Mapping[str, float] = field(default_factory=dict)

    def find(self, metric: str) -> float | None:
        """The requested tolerance, for this metric or for all; None if there is none."""
        own = {inner_name(name): width for name, width in self.of_metric.items()}
        return own.get(inner_name(metric), self.general)

    @property
    def options(self) -> tuple[str, ...]:
        """As they are written on the command line.

        >>> Tolerances(0.05, {"seconds": 0.2}).options
        ('--tolerance', '5%', '--tolerance', 'seconds=20%')
        """
        general = [] if self.general is None else [f"{100 * self.general:.12g}%"]
        own = [f"{name}={100 * width:.12g}%" for name, width in self.of_metric.items()]
        return tuple(word for width in (*general, *own) for word in ("--tolerance", width))

    def without(self, metrics: Collection[str]) -> Tolerances:
        others = {name: width for name, width in self.of_metric.items() if inner_name(name) not in metrics}
        return Tolerances(self.general, others)


@dataclass(frozen=True, slots=True)
class JudgedContrast:
    """A contrast on its way through the policy: each step fills in what it decides."""

    contrast: Contrast
    asked_tolerance: float | None = None
    """What the user asked for. No measured noise floor widens it."""
    tolerance: float = math.nan
    family: int = 0
    """How many contrasts the p value is corrected for."""
    p_corrected: float | None = None
    q: float | None = None
    verdict: Verdict | None = None
    """None for a metric that is shown without a verdict."""
    reason: str = ""

    @property
    def comparison(self) -> Comparison:
        plain = describe_comparison(self.contrast, self.tolerance)
        return replace(
            plain, p_corrected=self.p_corrected, q=self.q, verdict=self.verdict, reason=self.reason
        )

    def withhold(self, reason: str) -> JudgedContrast:
        """Unsure instead of a claim, for this reason."""
        return replace(self, verdict=Verdict.UNSURE, reason=reason)


Family = Sequence[JudgedContrast]
"""All contrasts of one call: their p values are corrected together."""
Step = Callable[[Family, KnownNoise], Family]
"""One rule of the policy: it returns the same contrasts in the same order, with what it decided filled in."""


def judge(
    contrasts: Sequence[Contrast], noise: KnownNoise | None = None, tolerances: Tolerances | None = None
) -> tuple[Comparison, ...]:
    """The verdicts on one family of contrasts, in their order: every step of `POLICY`, one after the other."""
    widths = tolerances or Tolerances()
    family: Family = [JudgedContrast(contrast, widths.find(contrast.metric.name)) for contrast in contrasts]
    for step in POLICY:
        family = step(family, noise or KnownNoise())
    return tuple(judged.comparison for judged in family)


def judge_first(contrasts: Sequence[Contrast], noise: KnownNoise) -> Comparison:
    """What `judge` says of the first contrast. The others only count in the correction, so they get no verdict, which costs time."""
    family: Family = [JudgedContrast(contrast) for contrast in contrasts]
    for step in POLICY:
        family = step(family, noise)
        if step is correct_for_family:
            family = family[:1]
    return family[0].comparison


def _apply_to_each(rule: Callable[[JudgedContrast, KnownNoise], JudgedContrast]) -> Step:
    """A step of the policy that judges each contrast independently of the others in its family."""

    @wraps(rule)
    def step(family: Family, noise: KnownNoise) -> Family:
        return [rule(judged, noise) for judged in family]

    return step


@_apply_to_each
def set_tolerances(judged: JudgedContrast, noise: KnownNoise) -> JudgedContrast:
    """What the user asked for, else the larger of the default and twice the noise floor of an A/A run.

    This comes first because everything after it depends on the width. A noise floor from earlier runs does not widen the
    tolerance: it would make every slow drift the same, where `withhold_claims_within_noise` leaves it unsure.
    """
    if judged.asked_tolerance is not None:
        return replace(judged, tolerance=judged.asked_tolerance)
    return replace(judged, tolerance=tolerance_of(judged.contrast.metric, noise.floor(judged.contrast)))


@_apply_to_each
def require_run_to_run_noise(judged: JudgedContrast, noise: KnownNoise) -> JudgedContrast:
    """Refuse times of two runs whose run-to-run noise is unknown.

    The exception is an interval that lies beyond a tolerance that the user asked for as a whole. A refused contrast is no
    claim, so this has to come before the correction, which would otherwise count it.
    """
    if not _lacks_run_to_run_noise(judged):
        return judged
    return replace(judged, contrast=replace(judged.contrast, refusal=SESSION_UNKNOWN))


def _lacks_run_to_run_noise(judged: JudgedContrast) -> bool:
    """Whether a contrast of two runs must be refused; see `require_run_to_run_noise`."""
    contrast, effect = judged.contrast, judged.contrast.effect
    if not contrast.is_session_unknown or contrast.refusal or effect is None or effect.low == effect.high:
        return False
    ends = [replace(effect, value=end) for end in (effect.low, effect.high)]
    is_beyond_asked = judged.asked_tolerance is not None and all(
        is_beyond(contrast, end, judged.asked_tolerance) for end in ends
    )
    return not (is_beyond_asked and effect.excludes_neutral)


def correct_for_family(family: Family, noise: KnownNoise) -> Family:
    """Correct the p values of all that could still become a claim (Holm); identical values have p = 1.

    Holm's correction keeps the chance of any false claim in the family below 5 %, and verdicts go by it. The q values of
    Benjamini and Hochberg are shown beside it and decide nothing. What is refused, or shown without a verdict, is no test:
    counting it would make the real tests weaker for nothing.
    """
    claimable = [judged.contrast for judged in family if judged.contrast.can_be_claimed]
    p_values = [contrast.effect.p for contrast in claimable if contrast.effect]
    corrected = iter(zip(holm(p_values).tolist(), benjamini_hochberg(p_values).tolist(), strict=True))
    found = []
    for judged in family:
        p: float | None = None
        q: float | None = None
        if judged.contrast.can_be_claimed:
            p, q = next(corrected)
        elif judged.contrast.is_identical and judged.contrast.is_judged:
            p = q = 1.0
        found.append(replace(judged, p_corrected=p, q=q, family=len(p_values)))
    return found


@_apply_to_each
def rule_on_intervals(judged: JudgedContrast, noise: KnownNoise) -> JudgedContrast:
    """Minimum evidence, equivalence, direction, significance and size of the effect, in this order: see `verdict.rule`.

    This is the only step that makes a claim. Those after it may only withhold one.
    """
    if not judged.contrast.is_judged:
        return judged
    ruling = rule(judged.contrast, judged.p_corrected, judged.tolerance, judged.family)
    return replace(judged, verdict=ruling.verdict, reason=ruling.reason)


@_apply_to_each
def withhold_sameness_within_noise(judged: JudgedContrast, noise: KnownNoise) -> JudgedContrast:
    """Noise may explain a difference beyond the default tolerance, but it does not make both sides equal.

    With a tolerance that only noise has widened, an interval may lie within it and still exclude "no difference": that is
    unsure. With a tolerance that the user asked for it is the same, since the user has said what does not matter.
    """
    contrast, effect = judged.contrast, judged.contrast.effect
    usual = tolerance_of(contrast.metric)
    is_widened = judged.asked_tolerance is None and judged.tolerance > usual
    if judged.verdict is not Verdict.SAME or not is_widened or effect is None:
        return judged
    if not (effect.excludes_neutral and is_beyond(contrast, effect, usual)):
        return judged
    return judged.withhold(
        f"The difference is no more than twice the measured noise floor of {percent(noise.floor(contrast) or 0.0)}, "
        "so it may be noise alone; run both sides together in one run, or on a quieter machine."
    )


@_apply_to_each
def withhold_claims_within_noise(judged: JudgedContrast, noise: KnownNoise) -> JudgedContrast:
    """Claims of at most twice the noise floor of A/A runs or of earlier runs are unsure, unless a tolerance was asked for."""
    floor = noise.largest_floor(judged.contrast)
    if floor is None or judged.asked_tolerance is not None or judged.verdict not in _CLAIMS:
        return judged
    loss, width = loss_of(judged.comparison), tolerance_of(judged.contrast.metric, floor)
    if loss is None or abs(loss.value) > width:
        return judged
    return replace(judged, tolerance=width).withhold(
        f"A change of {percent(abs(loss.value))} is within twice the noise floor of {percent(floor)} between "
        "runs; run both sides again, or together in one run."
    )


@_apply_to_each
def withhold_claims_of_the_machine(judged: JudgedContrast, noise: KnownNoise) -> JudgedContrast:
    """Claims that the machine's own speed may explain are unsure: it moved the same way, and may have moved as far."""
    shift = noise.shifts.get(judged.contrast.trial_b)
    if shift is None or not _is_explained(judged, shift):
        return judged
    moved, spread = (percent(math.expm1(abs(size))) for size in (shift.value, shift.spread))
    if shift.value:
        change = f"was {moved} {'slower' if shift.value > 0 else 'faster'} on a fixed workload"
        change += f" (± {spread})" if shift.error else ""
    else:
        change = f"varied by up to {spread} on a fixed workload"
    return judged.withhold(
        f"The machine itself {change}, which may explain this; run both sides again, or together in one run."
    )


def _is_explained(judged: JudgedContrast, shift: MachineShift) -> bool:
    """Whether the claimed change is no larger than the tolerance and what the machine may explain together."""
    if judged.verdict not in _CLAIMS or not depends_on_machine(judged.contrast.metric):
        return False
    loss = loss_of(judged.comparison)
    if loss is None:
        return False
    slower = math.log1p(max(loss.value, _LEAST_LOSS))
    return abs(slower) <= math.log1p(judged.tolerance) + shift.explains(slower)


# The order matters: see the top of this file.
POLICY: tuple[Step, ...] = (
    set_tolerances,
    require_run_to_run_noise,
    correct_for_family,
    rule_on_intervals,
    withhold_sameness_within_noise,
    withhold_claims_within_noise,
    withhold_claims_of_the_machine,
)

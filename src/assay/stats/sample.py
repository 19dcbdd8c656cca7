"""Arrays as the other modules want them: finite, and on a scale where arithmetic neither overflows nor misleads."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

_NORMAL = NormalDist()
_LARGEST_LOG = math.log(sys.float_info.max)


class Scale(StrEnum):
    """What two samples are compared by: B ÷ A where every value is positive, B − A otherwise."""

    RATIO = "ratio"
    DIFFERENCE = "difference"


@dataclass(frozen=True, slots=True)
class Scaled:
    """Samples brought to one scale, and the way back for what is found there."""

    samples: tuple[Array, ...]
    scale: Scale
    exponent: int = 0

    def back(self, value: float) -> float:
        """A difference on this scale as a ratio or difference of the values themselves."""
        if self.scale is Scale.DIFFERENCE:
            return enlarge(value, self.exponent)
        return math.exp(value if math.isinf(value) else min(value, _LARGEST_LOG))


def finite(values: ArrayLike | Sequence[float]) -> Array:
    """The values that are numbers, in their order."""
    array = np.asarray(values, dtype=np.float64).ravel()
    kept = np.isfinite(array)
    return array if kept.all() else array[kept]


def comparable_scale(*samples: Array) -> Scaled:
    """Logarithms when all values are positive, so that differences are ratios; else the values, shrunk to at most 1."""
    if all((sample > 0).all() for sample in samples):
        return Scaled(tuple(np.log(sample) for sample in samples), Scale.RATIO)
    exponent = magnitude(samples)
    return Scaled(tuple(shrink(sample, exponent) for sample in samples), Scale.DIFFERENCE, exponent)


def magnitude(samples: Iterable[Array]) -> int:
    """The power of two that the largest value stays below; dividing by it costs no digits."""
    largest = max((float(np.abs(sample).max()) for sample in samples if sample.size), default=0.0)
    return math.frexp(largest)[1]


def shrink(values: Array, exponent: int) -> Array:
    """Values divided by 2 to the power of `exponent`, as `magnitude` gives it."""
    return np.ldexp(values, -exponent)


def enlarge(value: float, exponent: int) -> float:
    """The way back from `shrink`; what no longer fits becomes the largest number there is."""
    try:
        return math.ldexp(value, exponent)
    except OverflowError:
        return math.copysign(sys.float_info.max, value)


def order_by_group(values: Array, codes: NDArray[np.intp]) -> NDArray[np.intp]:
    """Positions sorted by group, then by value; codes that fit in 16 bits are sorted in linear time."""
    by_value = np.argsort(values)
    narrow = codes.astype(np.min_scalar_type(int(codes.max(initial=0))))
    return np.asarray(by_value[np.argsort(narrow[by_value], kind="stable")])


def two_sided(z: float) -> float:
    """Chance that a standard normal lies at least this far from zero."""
    return math.erfc(abs(z) / math.sqrt(2))


def quantile(probability: float) -> float:
    """Return a quantile of the standard normal distribution."""
    return _NORMAL.inv_cdf(probability)

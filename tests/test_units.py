"""Numbers as people read them: the unit fits, and rounding errors are not shown."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.plugin.figures import interval_text
from assay.units import SIZES, TIMES, drop_rounding_error, format_signed, percent, seconds, show, size, usd

MAGNITUDES = st.builds(
    lambda digits, power: digits * 10.0**power, st.floats(1.0, 9.9999999), st.integers(-18, 12)
)


def number_in(text: str) -> float:
    found = re.match(r"-?\$?([\d.,]+(?:e[+-]\d+)?)", text)
    assert found is not None, text
    return float(found[1].replace(",", ""))


@given(MAGNITUDES)
def test_a_time_never_reaches_a_thousand_of_its_unit(value: float) -> None:
    text = seconds(value)
    if re.search(r" (ms|µs|ns)$", text):
        assert 0 < number_in(text) < 1000, text
    elif "min" not in text and text != "0 s":
        assert 1 <= number_in(text) < 60, text


@given(MAGNITUDES)
def test_a_time_is_shown_to_three_digits(value: float) -> None:
    text = seconds(value)
    factors = {unit: factor for factor, unit in TIMES}
    unit = text.split()[-1]
    if "min" not in text and value >= 1e-12:
        assert math.isclose(number_in(text) * factors[unit], value, rel_tol=0.0051)


@given(MAGNITUDES)
def test_a_size_never_reaches_1024_of_its_unit(value: float) -> None:
    text = size(value)
    if not text.endswith("TiB"):
        assert number_in(text) < 1024, text
    factors = {unit: factor for factor, unit in SIZES}
    assert math.isclose(number_in(text) * factors[text.split()[-1]], value, rel_tol=0.0051)


@given(MAGNITUDES, st.sampled_from(["s", "bytes", "usd", "%", "1/s", "", "tokens"]))
def test_a_negative_value_reads_as_the_positive_one_with_a_sign(value: float, unit: str) -> None:
    positive, negative = show(value, unit), show(-value, unit)
    assert negative == positive or negative == f"-{positive}"


@given(MAGNITUDES)
def test_an_interval_is_in_the_unit_of_the_figure_itself(value: float) -> None:
    if 1e-12 <= value < 59:
        text = interval_text(value, value * 0.9, value * 1.1, "s")
        assert text.split(" [")[0].split()[-1] == seconds(value).split()[-1]
        assert "1,000" not in text.split(" [")[0]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 s"),
        (1e-20, "0 s"),
        (0.0009996, "1 ms"),
        (0.9996, "1 s"),
        (59.97, "1 min 0 s"),
        (-95, "-1 min 35 s"),
    ],
)
def test_times_at_the_borders_of_units(value: float, text: str) -> None:
    assert seconds(value) == text


def test_money_has_its_sign_before_the_currency() -> None:
    assert usd(-1234.5) == "-$1,234.50"


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
def test_a_difference_that_is_only_a_rounding_error_is_nothing(a: float, b: float) -> None:
    rounding_error = (a + b) - b - a
    if abs(rounding_error) <= 1e-12 * max(abs(a), abs(b)):
        assert drop_rounding_error(rounding_error, a, b) == 0.0


def test_what_is_shown_of_no_difference_is_zero() -> None:
    assert format_signed(drop_rounding_error(0.1 + 0.2 - 0.3, 0.3) * 100) == "0"
    assert percent(0.0) == "0 %"

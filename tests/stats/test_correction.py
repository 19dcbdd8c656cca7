from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.stats.correction import benjamini_hochberg, holm

p_values = st.lists(st.floats(0, 1), min_size=1, max_size=30)


def test_holm_multiplies_the_smallest_by_the_number_of_tests_and_never_falls() -> None:
    # Holm (1979): 0.01·4, 0.02·3 (and not below 0.04), 0.03·2, 0.04·1 raised to 0.06.
    assert holm([0.04, 0.01, 0.03, 0.02]).tolist() == pytest.approx([0.06, 0.04, 0.06, 0.06])


def test_the_example_of_benjamini_and_hochberg_rejects_four_at_five_percent() -> None:
    # Benjamini and Hochberg (1995), section 4.1: 15 comparisons of a thrombolysis trial; Bonferroni and Holm reject three.
    p = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240]
    p += [0.4262, 0.5719, 0.6528, 0.7590, 1.0000]
    assert int((benjamini_hochberg(p) <= 0.05).sum()) == 4
    assert int((holm(p) <= 0.05).sum()) == 3


def test_no_p_values_are_corrected_to_none() -> None:
    assert holm([]).size == benjamini_hochberg([]).size == 0


@given(p_values)
def test_corrections_raise_p_keep_its_order_and_stay_below_one(p: list[float]) -> None:
    for correct in (holm, benjamini_hochberg):
        corrected = correct(p).tolist()
        assert all(
            before <= after * (1 + 1e-12) and after <= 1 for before, after in zip(p, corrected, strict=True)
        )
        ranked = [after for _, after in sorted(zip(p, corrected, strict=True))]
        assert ranked == sorted(ranked)


@given(p_values)
def test_q_values_are_never_above_holm(p: list[float]) -> None:
    assert (benjamini_hochberg(p) <= holm(p) + 1e-12).all()


@pytest.mark.parametrize("size", [1, 2, 7, 100])
def test_both_agree_with_statsmodels(size: int) -> None:
    from statsmodels.stats.multitest import multipletests  # slow to import

    p = np.round(np.random.default_rng(size).random(size) ** 3, 3)
    assert holm(p).tolist() == pytest.approx(multipletests(p, method="holm")[1].tolist())
    assert benjamini_hochberg(p).tolist() == pytest.approx(multipletests(p, method="fdr_bh")[1].tolist())

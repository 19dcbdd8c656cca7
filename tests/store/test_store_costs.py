"""What cost analysis reads is stored with the ratings, on every database."""

from __future__ import annotations

import math

from tests.past import Past
from tests.ratings.tables import failed, ok, rated

from assay.store.store import Store


def test_the_costs_of_cases_and_the_usage_of_a_trial_are_read_as_they_were_stored(store: Store) -> None:
    [trial] = Past(store, "a").run().trials
    tokens = {"input_tokens": 100.0, "output_tokens": 20.0}
    made = rated([ok("c00", 0.75, usd=0.003, **tokens), ok("c00", 0.25, usd=0.001, **tokens), failed("c01")])
    store.rate(trial.id, made)
    kept = store.ratings([trial.id])[trial.id]
    assert kept.usage == made.usage
    assert kept.usage is not None
    assert (kept.usage.executions, kept.usage.unpriced, kept.usage.totals) == (
        3,
        1,
        {"input_tokens": 200.0, "output_tokens": 40.0},
    )
    assert list(kept.case_figures["score"]) == [0.5, 0.0]
    assert list(kept.case_figures["solved"]) == [0.5, 0.0]
    assert math.isclose(kept.case_figures["usd"][0], 0.002, rel_tol=1e-6)
    assert math.isnan(kept.case_figures["usd"][1])
    assert set(kept.marks) == set(made.marks)
    assert store.agent_uses([trial.id])[trial.id].name == "a"

"""Noise floors, and what it takes to find an effect."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.wording import Wording

from assay.analysis.comparison.noise_floor import noise_floors
from assay.analysis.comparison.sample_size import needs
from assay.model import Series, TrialReport, Verdict


def by_case(table: np.ndarray) -> Series:
    cases, rounds = table.shape
    return Series(
        np.repeat(np.arange(cases), rounds).tolist(),
        np.tile(np.arange(rounds), cases).tolist(),
        table.ravel().tolist(),
        "case",
    )


def timed(lab, rounds: float, repetitions: float, cases: int = 30, n: int = 20) -> TrialReport:
    log = lab.chance.normal(0, 0.5, (cases, 1)) + lab.chance.normal(0, rounds, (1, n))
    trial: TrialReport = lab.trial(
        "asked", by_case(np.exp(log + lab.chance.normal(0, repetitions, (cases, n))))
    )
    return trial


def test_the_floor_is_what_whole_rounds_differ_by(lab):
    (floor,) = noise_floors(timed(lab, rounds=0.05, repetitions=0.1))
    assert floor.floor == pytest.approx(np.sqrt(0.05**2 + 0.1**2 / 30), rel=0.35)
    assert floor.tolerance == 2 * floor.floor
    assert floor.share_case is not None
    assert floor.share_case > floor.share_repetition


def test_a_thing_against_itself_is_not_better_or_worse(lab):
    verdicts = [next(iter(noise_floors(timed(lab, 0.0, 0.05)))).verdict for _ in range(40)]
    assert sum(verdict in (Verdict.BETTER, Verdict.WORSE) for verdict in verdicts) <= 3


def test_processes_are_the_rounds_of_an_experiment(lab):
    (floor,) = noise_floors(lab.trial("parse", lab.times(processes=20, each=5, spread=0.03)))
    assert floor.unit == "process"
    assert floor.rounds == 20
    assert floor.floor == pytest.approx(0.033, rel=0.5)


def test_three_rounds_are_too_few_to_tell(lab):
    assert list(noise_floors(lab.trial("parse", lab.times(processes=3)))) == []


def test_a_larger_effect_needs_fewer_processes(lab):
    trial = lab.trial("parse", lab.times(processes=10, spread=0.05))
    (small,), (large,) = (list(needs([trial], effect, ["seconds"])) for effect in (0.06, 0.2))
    assert small.units is not None
    assert large.units is not None
    assert small.units > large.units >= 4
    assert small.executions == 2 * small.units * 5


def test_repetitions_help_where_cases_only_flicker(lab):
    score = (lab.chance.random((200, 4)) < 0.6).astype(float)
    (need,) = needs([lab.trial("asked", more={"score": by_case(score)})], 0.1, ["score"])
    assert need.more_repetitions is not None
    assert 1 <= need.more_repetitions <= 5


def test_no_repetition_helps_where_the_cases_themselves_differ(lab):
    a, b = ((lab.chance.random((40, 1)) < 0.5).astype(float).repeat(3, axis=1) for _ in "ab")
    trials = [
        lab.trial("asked", more={"score": by_case(table)}, agent=agent)
        for table, agent in ((a, "a"), (b, "b"))
    ]
    (need,) = needs(trials, 0.1, ["score"])
    assert need.more_repetitions is None
    assert need.units is not None
    assert need.units > 40
    assert all(name in need.basis for name in ("'a'", "'b'"))


def test_simulated_agents_tell_nothing_of_measured_ones(lab, monkeypatch, wording: Wording):
    # A search of more repetitions takes most of the time, and is the same on both sides.
    monkeypatch.setattr("assay.analysis.comparison.sample_size.MOST_REPETITIONS", 3)
    tables = [(lab.chance.random((40, 3)) < share).astype(float) for share in (0.5, 0.6, 0.9)]
    a, b, made_up = (
        lab.trial("asked", more={"score": by_case(table)}, agent=agent)
        for table, agent in zip(tables, ("a", "b", "model"), strict=True)
    )
    made_up = replace(made_up, applied={"simulated": True})
    (alone,), (beside,) = (list(needs(trials, 0.3, ["score"])) for trials in ([a, b], [a, b, made_up]))
    assert beside == replace(alone, basis=beside.basis)
    assert beside.basis.startswith(alone.basis)
    assert "model" in beside.basis.removeprefix(alone.basis)
    wording(beside.basis)
    (only,) = needs([made_up], 0.3, ["score"])
    assert "simulated" in only.basis
    wording(only.basis)


def test_what_costs_nothing_needs_nothing_said(lab):
    trial = lab.trial("asked", more={"usd": by_case(np.zeros((10, 3)))})
    assert list(needs([trial], 0.05, ["usd"])) == []


def test_the_price_is_that_of_the_executions(lab):
    trial = lab.trial("asked", by_case(np.full((10, 4), 6.0) * lab.chance.lognormal(0, 0.1, (10, 4))))
    (need,) = needs([trial], 0.2, ["seconds"])
    assert need.executions is not None
    assert need.minutes == pytest.approx(need.executions * 6 / 60, rel=0.2)
    assert need.usd is None

from __future__ import annotations

from dataclasses import replace

import numpy as np
from tests.analysis.conftest import Lab
from tests.ratings.boards import ratings
from tests.wording import Wording

from assay.analysis.comparison.compare import compare_reports
from assay.analysis.comparison.head_to_head import showdowns
from assay.model import Rating, Report, Verdict
from assay.model.metric import metric_named
from assay.report.pages.comparison import overall_text


def rated(lab: Lab, seconds: float, skill: float, run_id: str) -> Report:
    """A trial whose 40 cases took so long and went so well."""
    chance = np.random.default_rng(1)
    found = ratings(chance, np.zeros(40), skill, seconds, repetitions=3)
    trial = lab.trial(seconds=lab.times(seconds))
    return lab.report(replace(trial, ratings=found), run_id=run_id)


def test_ratings_are_no_surer_than_the_verdicts_on_times(lab: Lab) -> None:
    a, b = rated(lab, 1.0, 0.5, "r1"), rated(lab, 3.0, 0.5, "r1")
    comparisons = compare_reports(a, b)
    (sure,) = showdowns(a, b, comparisons)
    assert sure.winners["speed"] is not None
    assert sure.winner == sure.winners["speed"]
    (unsure,) = showdowns(a, b, [replace(one, verdict=Verdict.UNSURE) for one in comparisons])
    assert unsure.winners["speed"] is None
    assert unsure.winner is None


def test_ratings_of_two_runs_name_no_winner_on_speed(lab: Lab) -> None:
    a, b = rated(lab, 1.0, 0.5, "r1"), rated(lab, 3.0, 0.5, "r2")
    (found,) = showdowns(a, b, compare_reports(a, b))
    assert found.winners["speed"] is None


def test_quality_decides_whatever_the_times_say(lab: Lab) -> None:
    a, b = rated(lab, 1.0, 0.1, "r1"), rated(lab, 1.0, 0.9, "r2")
    (seconds,) = compare_reports(a, b)
    score = replace(seconds, metric=metric_named("score"), verdict=Verdict.BETTER)
    (found,) = showdowns(a, b, [replace(seconds, verdict=Verdict.UNSURE), score])
    assert found.winners["accuracy"] == found.winner is not None


def test_nobody_is_preferred_where_every_verdict_is_unsure(lab: Lab, wording: Wording) -> None:
    a, b = rated(lab, 1.0, 0.1, "r1"), rated(lab, 1.0, 0.9, "r2")
    (seconds,) = compare_reports(a, b)
    unsure = replace(seconds, verdict=Verdict.UNSURE, reason="more cases would settle it")
    (found,) = showdowns(a, b, [unsure, replace(unsure, metric=metric_named("score"))])
    assert found.winner is None
    assert found.winners["accuracy"] is None
    assert found.winners["overall"] is None
    assert not any(metric in text for text in found.advice for metric in ("score", "seconds"))
    wording("\n".join(found.advice))


def test_a_preference_names_the_verdicts_that_it_follows_from(lab: Lab, wording: Wording) -> None:
    a, b = rated(lab, 1.0, 0.1, "r1"), rated(lab, 1.0, 0.9, "r2")
    (seconds,) = compare_reports(a, b)
    slower = replace(seconds, verdict=Verdict.WORSE)
    score = replace(seconds, metric=metric_named("score"), verdict=Verdict.BETTER)
    (found,) = showdowns(a, b, [slower, score])
    assert found.winner == found.b
    first, second = found.advice[0].split(f"'{found.a}'")
    assert f"'{found.b}'" in first
    assert "score" in first
    assert "seconds" in second
    wording(found.advice[0])


def test_arms_of_one_run_are_no_surer_than_their_times_either(lab: Lab) -> None:
    a, b = rated(lab, 1.0, 0.5, "r1"), rated(lab, 3.0, 0.5, "r1")
    (found,) = showdowns(a, b, [replace(one, verdict=Verdict.UNSURE) for one in compare_reports(a, b)])
    assert found.winners["speed"] is None
    assert found.winner is None


def test_it_is_said_what_the_overall_is_made_of_and_what_only_one_side_has(
    lab: Lab, wording: Wording
) -> None:
    a, b = rated(lab, 1.0, 0.5, "r1"), rated(lab, 1.0, 0.5, "r2")
    (alike,) = showdowns(a, b, compare_reports(a, b))
    assert alike.left_out == ()
    (trial,) = a.trials
    assert trial.ratings is not None
    unknown = {**trial.ratings.dimensions, "speed": Rating("speed", None)}
    lacking = replace(a, trials=(replace(trial, ratings=replace(trial.ratings, dimensions=unknown)),))
    (found,) = showdowns(lacking, b, compare_reports(lacking, b))
    assert found.left_out == ("speed",)
    assert "speed" not in found.ratings
    assert "speed" in overall_text(found).removeprefix(overall_text(replace(found, left_out=())))
    wording(overall_text(found))

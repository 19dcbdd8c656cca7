"""A server that answers nothing for a while, by moments made by hand: found where it was, and not where errors came by chance."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

import pytest
from tests.load.results import result

from assay.analysis.load.judgement import find_outages, judge_load
from assay.model.figure import Figure
from assay.model.load import Arrivals, Load, Moment
from assay.spec.load_settings import objectives_of

WIDTH = 0.25


def moment(place: int, answered: int, unanswered: int, failed: int | None = None) -> Moment:
    return Moment(
        place * WIDTH, WIDTH, answered + unanswered, answered, unanswered if failed is None else failed,
        0, 1, None, None, None, None, answered=answered, unanswered=unanswered,
    )  # fmt: skip


def spans(moments: Sequence[Moment], seconds: float) -> list[tuple[float, float, int]]:
    return [(one.begin, one.begin + one.seconds, one.failed) for one in find_outages(moments, seconds)]


def test_the_dead_half_of_a_load_is_found_with_its_edges() -> None:
    moments = [moment(place, *((5, 0) if place < 20 else (0, 5))) for place in range(40)]
    assert spans(moments, 10) == [(5.0, 10.0, 100)]


def test_a_server_that_hangs_is_dead_until_its_requests_time_out_or_the_load_ends() -> None:
    """Four places of a closed loop ask once, wait for 60 s and never ask again."""
    moments = [moment(place, 4, 0) for place in range(20)] + [moment(20, 0, 4, failed=0)]
    moments += [moment(place, 0, 0, failed=4 if place == 260 else 0) for place in range(21, 262)]
    assert spans(moments, 10) == [(5.0, 10.0, 4)]


def test_a_server_that_recovers_was_dead_only_in_between() -> None:
    moments = [moment(place, *((0, 2) if 8 <= place < 24 else (2, 0))) for place in range(40)]
    assert spans(moments, 10) == [(2.0, 6.0, 32)]


def test_a_short_pause_of_failures_is_no_outage() -> None:
    moments = [moment(place, *((0, 5) if 8 <= place < 16 else (5, 0))) for place in range(80)]
    assert spans(moments, 20) == []


def test_failures_between_long_answers_are_no_outage() -> None:
    """Answers take ten seconds: nothing comes back for as long, although all but a few are answered."""
    moments = [moment(place, *((60, 4) if place % 40 == 0 else (0, 0))) for place in range(160)]
    assert spans(moments, 40) == []


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_errors_by_chance_are_no_outage(share: float) -> None:
    chance = random.Random(7)
    loads = [
        [moment(place, *((0, 1) if chance.random() < share else (1, 0))) for place in range(128)]
        for _ in range(200)
    ]
    assert sum(bool(find_outages(moments, 32)) for moments in loads) <= 1


CLOSED = Load(Arrivals.CLOSED, concurrency=10, seconds=10.0)


def verdict(moments: Iterable[Moment], error_rate: float, slo: str = "", **changes: object) -> bool:
    objectives = objectives_of(slo) if slo else ()
    load = Load(Arrivals.CLOSED, concurrency=10, seconds=10.0, objectives=objectives)
    failed = {"errors": {"http_503": 100}, "error_rate": Figure(error_rate), **changes}
    return judge_load(result(moments=tuple(moments), **failed), load).is_unavailable


def test_a_server_is_unavailable_when_most_requests_fail_or_none_is_answered_for_a_tenth_of_the_time() -> (
    None
):
    dead = [moment(place, *((0, 1) if place >= 20 else (100, 0))) for place in range(40)]
    fine = [moment(place, 100, 0) for place in range(40)]
    assert verdict(dead, 0.01)
    assert verdict(fine, 0.51)
    assert not verdict(fine, 0.5)


def test_an_objective_on_the_error_rate_decides_itself() -> None:
    fine = [moment(place, 100, 0) for place in range(40)]
    assert not verdict(fine, 0.8, slo="error_rate<90%")
    assert verdict(fine, 0.8, slo="latency_p95<9s")


def test_requests_that_this_machine_could_not_send_do_not_make_the_server_unavailable() -> None:
    fine = [moment(place, 100, 0) for place in range(40)]
    assert not verdict(fine, 0.8, errors={"no_ports": 800})

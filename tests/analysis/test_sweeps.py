"""What a sweep's axes do, and which of its points is best."""

from __future__ import annotations

from assay.model import AxisEffect, Report, Series


def swept(lab, medians: dict[tuple[str, int], float], processes: int = 10) -> Report:
    trials = [
        lab.trial(f"{mode}{n}", lab.times(median, processes), axes={"mode": mode, "n": n})
        for (mode, n), median in medians.items()
    ]
    report: Report = lab.report(*trials)
    return report


def within(effect: AxisEffect) -> tuple[float, float]:
    assert effect.effect_low is not None
    assert effect.effect_high is not None
    return effect.effect_low, effect.effect_high


def test_an_axis_tells_how_far_its_best_and_worst_value_are_apart(lab):
    report = swept(lab, {(mode, n): (1.0 if mode == "a" else 1.5) * n for mode in "ab" for n in (1, 2)})
    mode, n = report.axes
    assert (mode.best, mode.worst) == ("a", "b")
    for effect, truth in ((mode, 1.5), (n, 2.0)):
        low, high = within(effect)
        assert low < truth < high
    assert (n.share or 0) > (mode.share or 1)
    assert mode.interacts == n.interacts == ()


def test_an_axis_whose_effect_depends_on_another_is_marked(lab):
    report = swept(lab, {("a", 1): 1.0, ("b", 1): 1.2, ("a", 2): 1.0, ("b", 2): 0.6})
    mode, n = report.axes
    assert mode.interacts == ("n",)
    assert n.interacts == ("mode",)


def test_one_process_gives_no_interval_of_an_effect(lab):
    report = swept(lab, {("a", 1): 1.0, ("b", 1): 1.5}, processes=1)
    mode = next(effect for effect in report.axes if effect.axis == "mode")
    assert mode.effect is not None
    assert mode.effect_low is None


def test_the_best_point_stands_with_those_that_may_be_as_good(lab):
    report = swept(lab, {("a", 1): 1.0, ("a", 2): 1.001, ("b", 1): 1.5, ("b", 2): 1.6})
    (best,) = report.best
    assert {best.trial, *best.alike} == {"a1", "a2"}
    assert best.others == 3


def test_a_point_that_is_ahead_of_all_has_none_beside_it(lab):
    (best,) = swept(lab, {("a", 1): 1.0, ("a", 2): 2.0, ("b", 1): 3.0}).best
    assert best.trial == "a1"
    assert best.alike == ()


def test_without_enough_processes_no_point_is_set_apart(lab):
    (best,) = swept(lab, {("a", 1): 1.0, ("a", 2): 2.0}, processes=2).best
    assert best.alike == ("a2",)


def test_a_point_that_is_certainly_but_hardly_worse_stands_beside_the_best(lab):
    """A difference of 1 % is within the tolerance, however certain it is."""
    trials = [
        lab.trial(f"n{n}", lab.times(median, 10, spread=0.0005), axes={"n": n})
        for n, median in ((1, 1.0), (2, 1.01), (3, 1.2))
    ]
    (best,) = lab.report(*trials).best
    assert (best.trial, best.alike) == ("n1", ("n2",))


def test_points_of_a_suite_with_two_rounds_are_not_set_apart_by_their_times(lab):
    """Fewer than three rounds never support a claim about times."""
    rows = [(case, number) for number in range(2) for case in range(12)]
    trials = []
    for n, factor in ((1, 1.0), (2, 2.0)):
        values = [factor * (1 + case) * (1 + 0.001 * lab.chance.normal()) for case, _ in rows]
        rounds = [number for _, number in rows]
        series = Series([case for case, _ in rows], rounds, values, "case", rounds)
        trials.append(lab.trial(f"n{n}", series, axes={"n": n}))
    (best,) = lab.report(*trials).best
    assert (best.trial, best.alike) == ("n1", ("n2",))


def test_a_value_that_stands_for_several_points_has_no_interval_and_says_so(lab):
    report = swept(lab, {("a", 1): 1.0, ("a", 2): 2.0, ("b", 1): 3.0, ("b", 2): 4.0})
    assert [(effect.is_pooled, effect.lows) for effect in report.axes] == [(True, (None, None))] * 2
    alone = swept(lab, {("a", 1): 1.0, ("b", 1): 3.0})
    (mode,) = (effect for effect in alone.axes if effect.axis == "mode")
    assert not mode.is_pooled
    assert None not in mode.lows


def test_less_work_is_no_better_point(lab):
    trials = [
        lab.trial(f"{profile}-{workload}", lab.times(seconds, 10), axes=axes, benchmark="pragma_profile")
        for profile, workload, seconds in (
            ("balanced", "read_heavy", 2.0),
            ("performance", "read_heavy", 1.0),
            ("balanced", "write_heavy", 8.0),
            ("performance", "write_heavy", 4.0),
        )
        for axes in [{"profile": profile, "workload": workload}]
    ]
    assert [(point.trial, point.others) for point in lab.report(*trials).best] == [
        ("performance-read_heavy", 1),
        ("performance-write_heavy", 1),
    ]
    assert [effect.axis for effect in lab.report(*trials).axes if effect.is_workload] == ["workload"]

"""Right and wrong answers in a stress test: what a suite makes of them, by hand and against servers whose skill is known."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.command import AssayInline
from tests.load.faulty import DONE, FINISH, Guest, delta, faulty, streamed
from tests.sim_llm.asking import quick
from tests.stress.benches import RuleBench, moment, real_bench, stretch
from tests.stress.test_scenarios_for_real import program
from tests.suites.project import numbers, suite
from tests.wording import Wording

from assay.analysis.load.stress import scenario_of, score_of, stress_finding
from assay.builtin.findings import stress_charts as charts
from assay.builtin.scenarios.concurrent_requests import ConcurrentRequests
from assay.builtin.scenarios.failure_recovery import FailureRecovery
from assay.builtin.scenarios.high_load import HighLoad
from assay.builtin.scenarios.large_inputs import LargeInputs
from assay.builtin.scenarios.memory_pressure import MemoryPressure
from assay.builtin.scenarios.rate_limiting import RateLimiting
from assay.builtin.scenarios.spike_load import SpikeLoad
from assay.load import answer_text as keeping
from assay.load.build import Data, LoadOptions
from assay.load.quality import Checker
from assay.load.stress import bench as benching
from assay.load.stress.bench import right_in_time
from assay.load.stress.subject import StressSubject, mark_prompt
from assay.model import AgentUse, Benchmark, Case, ScorerUse
from assay.model.figure import Figure
from assay.model.load import Arrivals, Load, Quality
from assay.model.metric import Better, metric_named
from assay.model.stress import Correctness, ScenarioFinding, Scored, Stretch, stress_metrics
from assay.pipeline.stress import Sizes, StressObserver, StressOptions, run_stress
from assay.plugin.json_data import to_json_data
from assay.plugin.scenario_outcome import compute_correctness, judge_quality
from assay.report.stress import columns, rows, setting_text, stress_document
from assay.spec.settings import find_settings
from assay.stats.resilience import right_among, worth
from assay.store.store import Store

LOAD = Load(Arrivals.CLOSED, concurrency=1, seconds=1.0)
CALM = Quality(Figure(1.0, 1.0, 1.0), 40, 0, dict.fromkeys(range(8), 1.0))
QUIET = StressObserver(lambda text: None, lambda found: None, lambda pulse, load: None)


def answers(*values: float | None, due: float = 0.0, is_in_time: bool = True) -> tuple[Scored, ...]:
    """One answer of each case; half a point passes."""
    return tuple(
        Scored(case, due, is_in_time, value, value is not None and value >= 0.5)
        for case, value in enumerate(values)
    )


def scored(*told: Scored) -> Stretch:
    return replace(stretch(LOAD, completed=len(told)), scored=told)


counts = st.integers(0, 10**6)


@given(counts, counts, counts)
def test_right_answers_in_time_are_never_more_than_answers_in_time(in_time: int, judged: int, wrong: int):
    right = max(0, judged - wrong)
    found = right_among(in_time, right, judged)
    assert 0 <= found <= in_time + 1e-6
    if right == judged:
        assert found == in_time
    if judged == in_time and judged:
        assert found == pytest.approx(right)


@given(counts, counts, counts)
def test_a_share_rests_on_no_more_requests_than_were_offered(offered: int, completed: int, judged: int):
    found = worth(offered, completed, judged)
    assert 0 <= found <= offered
    if judged >= completed:
        assert found == offered


@given(st.lists(st.tuples(st.booleans(), st.none() | st.floats(0, 1)), max_size=30), st.integers(0, 1000))
def test_all_that_came_in_time_is_right_or_not_by_those_that_could_be_judged(
    told: list[tuple[bool, float | None]], late: int
):
    kept = [
        Scored(0, 0.0, is_in_time, value, value is not None and value >= 0.5) for is_in_time, value in told
    ]
    in_time = [one for one in kept if one.is_in_time]
    known = [one for one in in_time if one.value is not None]
    found = right_in_time(len(in_time), kept)
    assert 0 <= found <= len(in_time)
    if len(known) == len(in_time):
        assert found == sum(one.is_right for one in known)


def test_a_score_counts_only_what_is_right_and_in_time_with_the_interval_of_those_judged():
    whole = ScenarioFinding("high_load", seconds=1.0, offered=1000, good=400, completed=800, in_time=500)
    judged = Correctness(Figure(0.8), Figure(0.8), Figure(0.0, -0.1, 0.1), 800, 0, 640)
    every, some = (
        score_of(replace(whole, correctness=one)) for one in (judged, replace(judged, scored=80, right=64))
    )
    assert every.share == some.share == 0.4
    # Wilson (1927) for 400 of 1,000, and for 40 of 100
    assert [every.low, every.high] == pytest.approx([0.3701, 0.4307], abs=1e-4)
    assert [some.low, some.high] == pytest.approx([0.3094, 0.4980], abs=1e-4)


def test_answers_that_are_worse_under_pressure_are_reported_with_an_interval_and_advice(wording: Wording):
    judged = compute_correctness([scored(*answers(*[0.0] * 6, 1.0, 1.0))], CALM)
    assert judged is not None
    assert judged.change is not None
    assert (judged.right, judged.scored, judged.unscored) == (2, 8, 0)
    assert judged.change.value == pytest.approx(-0.75)
    (told,) = judge_quality(judged, CALM)
    assert told.is_fine is False
    assert told.high is not None
    assert told.high < 0
    found = ScenarioFinding("high_load", seconds=1.0, offered=8, good=2, judgements=(told,))
    (advice,) = stress_finding("x", {}, [found]).recommendations
    assert " 0.25" in advice
    wording(advice)


@pytest.mark.parametrize("values", [[1.0] * 8, [0.0, *[1.0] * 7], [0.995] * 8, [1.0, 0.5, 1.0]])
def test_what_chance_or_nothing_explains_is_no_fall(values: list[float]):
    (told,) = judge_quality(compute_correctness([scored(*answers(*values))], CALM), CALM)
    assert told.is_fine is True


def test_one_case_tells_no_change_from_chance_and_no_score_tells_nothing(wording: Wording):
    (alone,) = judge_quality(compute_correctness([scored(*answers(0.0))], CALM), CALM)
    assert alone.is_fine is None
    wording(alone.text)
    (silent,) = judge_quality(compute_correctness([scored(*answers(None, None))], CALM), CALM)
    assert (silent.value, silent.is_fine) == (None, None)
    assert compute_correctness([stretch(LOAD)], CALM) is None
    assert judge_quality(None, None) == []


@pytest.mark.parametrize(
    ("values", "told"),
    [([1.0, None, 0.0], "1 of 3 "), ([None, None], "2 of 2 ")],
    ids=["one", "all"],
)
def test_answers_that_no_scorer_can_judge_are_reported(
    values: list[float | None], told: str, wording: Wording
):
    def warnings(*values: float | None) -> tuple[str, ...]:
        bench = RuleBench(
            lambda load, prompts: replace(stretch(load, moments=(moment(0),)), scored=answers(*values))
        )
        return HighLoad(seconds=1.0).run(bench).warnings

    assert warnings(1.0, 0.0) == ()
    (warning,) = warnings(*values)
    assert warning.startswith(told)
    wording(warning)


def test_a_case_that_was_asked_more_often_counts_no_more():
    often = [*answers(1.0, 0.0), *answers(1.0)[:1] * 98]
    judged = compute_correctness([scored(*often)], None)
    assert judged is not None
    assert judged.score is not None
    assert judged.score.value == pytest.approx(0.5)


def test_a_spike_is_judged_by_what_was_due_in_it():
    course = tuple(moment(n) for n in range(6))
    told = (*answers(*[1.0] * 8), *answers(*[0.0] * 8, due=1.5), *answers(*[1.0] * 8, due=4.0))
    bench = RuleBench(lambda load, prompts: replace(stretch(load, moments=course), scored=told))
    bench.calm_quality = CALM
    found = SpikeLoad(before=1.0, spike=2.0, after=3.0).run(bench)
    assert found.correctness is not None
    assert found.correctness.score is not None
    assert (found.correctness.score.value, found.correctness.right) == (0.0, 16)
    assert {one.name: one.is_fine for one in found.judgements}["quality"] is False


def test_concurrency_is_judged_at_its_highest_level_and_told_by_level(wording: Wording):
    def rule(load: Load, prompts: object) -> Stretch:
        if load.is_open:
            return stretch(load, moments=(moment(0), moment(1)))
        right = 1.0 if (load.concurrency or 0) < 4 else 0.0
        return replace(stretch(load), scored=answers(*[right] * 8))

    bench = RuleBench(rule)
    bench.calm_quality = CALM
    found = ConcurrentRequests(levels=(1, 2, 4), seconds=1.0, recovery_seconds=1.0).run(bench)
    by_name = {one.name: one for one in found.judgements}
    assert by_name["quality"].is_fine is False
    told = by_name["quality_by_level"].text
    assert re.findall(r"\d", told) == list("112140")
    wording(told)


def test_a_finding_with_its_correctness_comes_back_from_the_store():
    judged = Correctness(Figure(0.5, 0.4, 0.6), None, None, 9, 1, 5)
    whole = ScenarioFinding("high_load", good=5, in_time=9, correctness=judged)
    assert scenario_of(to_json_data(asdict(whole))) == whole
    older = asdict(whole)
    del older["correctness"], older["in_time"]
    assert scenario_of(to_json_data(older)).correctness is None


def sums(count: int = 6) -> Data:
    """Cases that the simulated server knows the answers of, and answers as often as its skill says."""
    cases = tuple(Case(f"c{n}", f"What is {n} + 7?", expected=str(n + 7)) for n in range(count))
    benchmark = Benchmark("sums", "sums", cases, scorers=(ScorerUse("exact"),))
    pairs = [(benchmark, case) for case in cases]
    return Data([case.input for case in cases], Checker(pairs))


def with_suite(url: str, data: Data, use: AgentUse | None = None, base: float = 20.0) -> benching.StressBench:
    bench = real_bench(url, base, use)
    bench.subject = replace(bench.subject, data=data)
    bench.calm_quality = CALM
    return bench


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine the last answers may take longer than the half second that they are waited for."""
    monkeypatch.setattr(benching, "_SHORTEST_GRACE", 30.0)


@pytest.mark.parametrize(("skill", "least", "most"), [(0.0, 0, 0), (1.0, 40, 40), (0.5, 1, 39)])
def test_the_share_of_right_answers_is_the_skill_of_the_server(skill: float, least: int, most: int):
    with quick(skill=skill) as server:
        bench = with_suite(f"{server.url}/v1", sums())
        found = HighLoad(seconds=1.0, times=2.0, recovery_seconds=0.5).run(bench)
    assert found.correctness is not None
    assert (found.completed, found.in_time, found.correctness.scored) == (40, 40, 40)
    # All came in time and all were judged: what counts is what was right, one by one.
    assert found.good == found.correctness.right
    assert least <= found.good <= most


@pytest.mark.parametrize(("limit", "most", "scored"), [("MOST_CHARACTERS", 1, 1), ("MOST_ANSWERS", 10, 10)])
def test_of_many_or_long_answers_an_even_choice_stands_for_all(
    monkeypatch: pytest.MonkeyPatch, limit: str, most: int, scored: int
):
    monkeypatch.setattr(keeping, limit, most)
    with quick(skill=1.0) as server:
        bench = with_suite(f"{server.url}/v1", sums())
        found = HighLoad(seconds=1.0, times=2.0, recovery_seconds=0.5).run(bench)
    assert found.correctness is not None
    assert (found.completed, found.correctness.scored, found.good) == (40, scored, 40)


def test_made_up_inputs_are_not_judged_and_it_is_said(wording: Wording):
    with quick(skill=0.0) as server:
        bench = with_suite(f"{server.url}/v1", sums())
        found = LargeInputs(sizes=(1_000, 10_000), each=2, recovery_seconds=0.5).run(bench)
        grown = MemoryPressure(contexts=(10, 20), each=2, recovery_seconds=0.5).run(bench)
    for one in (found, grown):
        assert one.correctness is None
        assert one.good == one.completed == 4
        (told,) = (told for told in one.judgements if told.name == "quality")
        assert (told.value, told.is_fine) == (None, None)
        wording(told.text)


def test_requests_that_are_marked_to_be_told_apart_are_judged_by_their_own_case():
    with quick(skill=1.0) as server:
        found = FailureRecovery(seconds=0.6, rounds=1).run(with_suite(f"{server.url}/v1", sums(7)))
        use = AgentUse("served", "openai", {"base_url": f"{server.url}/v1", "model": "m", "retries": 20})
        limited = RateLimiting(seconds=1.0, retry_after=0.2, most_per_second=8.0).run(
            with_suite("", sums(3), use)
        )
    for one in (found, limited):
        assert one.correctness is not None
        assert one.correctness.right == one.correctness.scored > 0
    assert limited.correctness is not None
    assert limited.correctness.scored == 8


def test_a_server_behind_a_proxy_is_asked_without_the_marks():
    heard: list[str] = []

    def answered(guest: Guest) -> None:
        heard.append(asked(guest))
        guest.say(streamed([delta(content="7"), FINISH, DONE]))

    with faulty(answered) as server:
        for use in (None, AgentUse("served", "openai", {"base_url": server.url, "model": "m"})):
            FailureRecovery(seconds=0.4, rounds=1).run(with_suite("" if use else server.url, sums(3), use))
    assert set(heard) == set(sums(3).prompts)


def test_each_case_is_asked_as_often_as_the_others_and_every_request_is_another():
    prompts = StressSubject(LoadOptions("http://127.0.0.1:9/v1"), data=sums(7)).number_prompts(16)
    assert len(prompts) == len(set(prompts)) == 21
    assert all(str(prompt).startswith(f"What is {place % 7} + 7?") for place, prompt in enumerate(prompts))
    assert mark_prompt({"a": 1}, 3) == {"a": 1}
    objects = Data([{"a": 1}], sums(1).check)
    assert not StressSubject(LoadOptions("http://127.0.0.1:9/v1"), data=objects).can_be_told_apart


def test_a_program_is_judged_through_its_own_code(tmp_path: Path):
    cases = tuple(Case(f"c{n}", str(n), expected=str(n) if n else "else") for n in range(4))
    pairs = [(Benchmark("b", "b", cases, scorers=(ScorerUse("exact"),)), case) for case in cases]
    data = Data([case.input for case in cases], Checker(pairs))
    found = HighLoad(seconds=1.0, times=2.0, recovery_seconds=0.5).run(
        with_suite("", data, program(tmp_path), base=10.0)
    )
    assert found.correctness is not None
    # It says what it is asked, which is wrong of one case in four.
    assert (found.completed, found.good, found.correctness.right) == (20, 15, 15)


def asked(guest: Guest) -> str:
    content: str = json.loads(guest.request.partition(b"\r\n\r\n")[2])["messages"][-1]["content"]
    return content


def test_a_server_that_answers_worse_under_pressure_is_found_out(tmp_path: Path, wording: Wording):
    (tmp_path / "s.yaml").write_text(suite(numbers(8), benchmark={"scorer": "exact"}))

    def tired(guest: Guest) -> None:
        """Thirty answers are at the base rate; what follows is nonsense."""
        text = asked(guest) if guest.number <= 30 else "busy"
        guest.say(streamed([delta(content=text), FINISH, DONE]))

    with faulty(tired) as server, Store.open(f"sqlite:///{tmp_path}/x.db") as store:
        load = LoadOptions(server.url, model="m", slo="latency_p95<60s", dataset=str(tmp_path / "s.yaml"))
        scenario = HighLoad(seconds=1.0, times=2.0, recovery_seconds=0.5)
        sizes = Sizes(search=0.5, calm=0.5, sustain=0.5)
        options = StressOptions(load, base=20.0)
        done = run_stress(options, store, find_settings(tmp_path), QUIET, [scenario], sizes).finding
    assert done.calm_score is not None
    assert done.calm_score.value == 1.0
    (one,) = done.scenarios
    assert (one.completed, one.in_time, one.good) == (40, 40, 0)
    assert score_of(one).value == 0.0
    assert {told.name: told.is_fine for told in one.judgements}["quality"] is False
    assert any(text.startswith("high_load: ") for text in done.recommendations)
    assert "Quality" in columns(done)
    assert all(len(cells) == len(columns(done)) for cells in rows(done))
    drawn = charts.quality(done)
    assert drawn is not None
    calm, under_load = (row["where"] for row in drawn["data"]["values"])
    assert under_load == "high_load"
    wording(calm)
    assert charts.quality(stress_finding("x", {}, done.scenarios[:0])) is None
    document = stress_document(done)
    assert document["correctness"]["calm_score"] == 1.0
    told = document["scenarios"][0]["quality"]
    assert (told["score"], told["calm"], told["change"]) == (0.0, 1.0, -1.0)
    assert told["change_interval"][1] < 0
    metrics = stress_metrics(one, score_of(one))
    assert (metrics["quality"], metrics["score"]) == (0.0, 0.0)
    assert metric_named("quality").better is Better.HIGHER


def test_the_command_takes_a_suite_and_says_plainly_where_there_is_none(
    assay_inline: AssayInline, wording: Wording
):
    file = assay_inline.write("s.yaml", suite(numbers(3), benchmark={"scorer": "exact"}))
    arguments = ("--scenario", "large_inputs", "--quick", "--base", "20", "--slo", "latency_p95<60s")
    with quick() as server:
        url = f"{server.url}/v1"
        without = assay_inline("stress", url, *arguments).out
        judged = assay_inline("stress", url, *arguments, "--dataset", file, "--json").json
        shown = assay_inline("show", judged["run"]).out
        both = assay_inline("stress", url, "--dataset", file, "--prompt", "x").refusal
    assert "--dataset SUITE" in " ".join(without.split())
    assert judged["correctness"]["judged"] is True
    by = judged["correctness"]["by"]
    assert "s.yaml" in by
    assert by.endswith(" 0.5")
    wording(by)
    assert judged["scenarios"][0]["quality"] is None
    assert "".join(by.split()) in "".join(shown.split())
    assert "--prompt or --dataset" in both


def test_what_was_not_judged_is_said_in_the_setting(wording: Wording):
    told = setting_text(stress_finding("x", {}, []))
    assert "--dataset SUITE" in told
    wording(told)

"""The rules that find savings, on executions made by hand: what they claim, what they leave alone, and by how much."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from assay.analysis.profile import samples as causes
from assay.analysis.profile.opportunities import find_opportunities
from assay.analysis.profile.samples import Call, SampledExecution, StackFrame, StackSample, read_calls
from assay.analysis.profile.tokens import analyse_tokens
from assay.analysis.profile.usage import bottlenecks, parallelization, span_usage, utilization


def call(
    place: int, start: float, seconds: float, kind: str = "llm", parent: int | None = None, **attributes: Any
) -> Call:
    known = {"input_hash": f"i{place}", "output_hash": f"o{place}", **attributes}
    return Call(place, "ask", kind, start, seconds, parent, known)


def execution(*calls: Call, seconds: float = 1.0, **others: Any) -> SampledExecution:
    return SampledExecution(0, seconds, calls, **others)


def categories(*executions: SampledExecution) -> list[str]:
    return [found.category for found in find_opportunities(executions)]


def at(start: float, end: float, cause: str, line: int = 1, lock: str = "") -> StackSample:
    return StackSample(start, end, (StackFrame("work", "agent.py", line),), cause, lock)


def test_independent_calls_in_a_row_could_run_at_once():
    (found,) = find_opportunities([execution(call(0, 0, 0.4), call(1, 0.4, 0.3), call(2, 0.7, 0.3))])
    assert found.category == "parallelization"
    assert found.seconds == pytest.approx(0.6)  # 1.0 in a row, 0.4 for the longest
    assert found.impact == pytest.approx(0.6)


def test_calls_that_need_each_other_are_left_alone():
    assert categories(execution(call(0, 0, 0.5), call(1, 0.5, 0.5, uses=[0]))) == []


def test_only_what_does_not_need_the_first_call_counts_as_saving():
    first, left, right = call(0, 0, 0.2), call(1, 0.2, 0.4, uses=[0]), call(2, 0.6, 0.4, uses=[0])
    (found,) = find_opportunities([execution(first, left, right)])
    assert found.seconds == pytest.approx(0.4)


def blind(name: str, kind: str, number: int, **attributes: Any) -> list[Call]:
    """Calls in a row that say nothing of their inputs and outputs."""
    return [Call(n, name.format(n), kind, n / number, 1 / number, None, attributes) for n in range(number)]


def test_calls_without_known_inputs_or_outputs_may_need_each_other():
    assert categories(execution(*blind("ask", "llm", 4))) == []
    assert categories(execution(*blind("step {}", "tool", 4))) == []
    assert categories(execution(*blind("fetch", "tool", 3))) == []


def test_a_loop_over_items_is_found_without_outputs():
    (found,) = find_opportunities([execution(*blind("fetch", "tool", 5))])
    assert found.category == "parallelization"
    assert found.seconds == pytest.approx(0.8)
    assert categories(execution(*blind("ask", "llm", 5, input_shape="s", input_hash="x"))) != []
    assert categories(execution(*blind("query", "tool", 20))) == ["batching"]


def test_a_context_that_grows_shows_in_tokens_alone():
    calls = [
        Call(
            n,
            "ask",
            "llm",
            n / 4,
            0.25,
            None,
            {"input_tokens": 300 * (n + 1), "output_tokens": 50, "cached_tokens": 0},
        )
        for n in range(4)
    ]
    used = {"tokens": 3200.0, "input_tokens": 3000.0, "output_tokens": 200.0}
    (found,) = find_opportunities([execution(*calls, measurements=used)])
    assert (found.category, found.tokens) == ("growing context", 350 + 650 + 950)
    assert analyse_tokens(execution(*calls, measurements=used)).wasted == 1950


def test_a_thread_that_sleeps_with_a_lock_is_a_matter_of_the_lock():
    main = (at(0, 1, causes.THREADS),)
    one = (at(0, 0.5, causes.SLEEPING, 4),)
    two = (at(0, 0.5, causes.LOCKED, lock="[lock 1]"), at(0.5, 1, causes.SLEEPING, 4))
    three = (at(0, 1, causes.LOCKED, lock="[lock 1]"),)
    (found,) = find_opportunities([execution(threads=(main, one, two, three))])
    assert (found.category, found.seconds) == ("lock contention", 1.0)


def test_calls_that_overlap_already_are_left_alone():
    assert categories(execution(call(0, 0, 0.9), call(1, 0.05, 0.9))) == []


def test_the_same_input_with_the_same_output_is_asked_once():
    calls = [call(n, n * 0.25, 0.25, input_hash="same", output_hash="o") for n in range(4)]
    (found,) = find_opportunities([execution(*calls)])
    assert found.category == "caching"
    assert found.seconds == pytest.approx(0.75)


def test_the_same_input_with_other_outputs_is_sampling_on_purpose():
    calls = [call(n, n * 0.25, 0.25, input_hash="same") for n in range(4)]
    assert "caching" not in categories(execution(*calls))


def test_many_short_queries_of_one_shape_could_be_one():
    calls = [call(n, n * 0.05, 0.05, "tool", input_shape="s") for n in range(20)]
    (found,) = find_opportunities([execution(*calls)])
    assert found.category == "batching"
    assert found.seconds == pytest.approx(0.95)


def test_queries_that_follow_each_other_s_results_are_left_alone():
    calls = [call(n, n * 0.05, 0.05, "tool", input_shape="s", uses=[n - 1] if n else []) for n in range(20)]
    assert categories(execution(*calls)) == []


def test_threads_that_wait_for_one_lock_are_found_and_waiting_by_design_is_not():
    main = (at(0, 1, causes.THREADS),)
    one, two = (at(0.3, 1, causes.LOCKED, lock="[lock 1]"),), (at(0.6, 1, causes.LOCKED, lock="[lock 1]"),)
    (found,) = find_opportunities([execution(threads=(main, one, two))])
    assert found.category == "lock contention"
    assert found.seconds == pytest.approx(0.7)
    assert found.location == "agent.py:1 work"
    assert categories(execution(threads=(main, (at(0, 1, causes.THREADS),)))) == []


def test_sleep_counts_where_no_call_is_open():
    main = (at(0, 0.5, causes.SLEEPING, 3), at(0.5, 1, causes.COMPUTING))
    (found,) = find_opportunities([execution(threads=(main,))])
    assert (found.category, found.location) == ("sleep", "agent.py:3 work")
    assert found.seconds == pytest.approx(0.5)
    assert categories(execution(call(0, 0, 0.5), threads=(main,))) == []


def test_a_thread_that_sleeps_beside_the_execution_is_left_alone():
    threads = ((at(0, 1, causes.COMPUTING),), (at(0, 1, causes.SLEEPING),))
    assert categories(execution(threads=threads)) == []


def parsing(**counts: int) -> Mapping[str, Any]:
    return {"function": "work", "file": "agent.py", "line": 1, **counts}


def in_parser(start: float, end: float) -> StackSample:
    stack = (StackFrame("work", "agent.py", 1), StackFrame("decode", "json/decoder.py", 337, True))
    return StackSample(start, end, stack, causes.COMPUTING)


def test_parsing_the_same_document_again_is_found_and_many_documents_are_not():
    threads = ((in_parser(0, 0.8), at(0.8, 1, causes.COMPUTING)),)
    again = parsing(calls=10, documents=1, characters=100, repeated_characters=90)
    (found,) = find_opportunities([execution(threads=threads, parsing=(again,))])
    assert found.category == "repeated parsing"
    assert found.seconds == pytest.approx(0.72)
    once = parsing(calls=10, documents=10, characters=100, repeated_characters=0)
    assert categories(execution(threads=threads, parsing=(once,))) == []


def test_the_same_query_in_a_loop_is_found_at_its_line():
    threads = ((at(0, 0.8, causes.COMPUTING), at(0.8, 1, causes.COMPUTING, 2)),)
    loop = parsing(calls=20, documents=1)
    (found,) = find_opportunities([execution(threads=threads, queries=(loop,))])
    assert (found.category, found.location) == ("batching", "agent.py:1 work")
    assert found.seconds == pytest.approx(0.76)
    assert categories(execution(threads=threads, queries=(parsing(calls=20, documents=20),))) == []


def prompts(cached: int) -> list[Call]:
    def prompt(place: int) -> Call:
        size = 1000 * (place + 1)
        return call(
            place, place * 0.2, 0.2, uses=[place - 1] if place else [], input_tokens=size // 4, output_tokens=10,
            cached_tokens=cached * place, input_characters=size, prefix_characters=1000 * place,
        )  # fmt: skip

    return [prompt(place) for place in range(4)]


def test_a_context_that_grows_uncached_is_found_and_a_cached_one_is_not():
    used = {"tokens": 2540.0, "input_tokens": 2500.0, "output_tokens": 40.0}
    (found,) = find_opportunities([execution(*prompts(0), measurements=used)])
    assert (found.category, found.tokens) == ("growing context", 250 + 500 + 750)
    assert found.impact == pytest.approx(1500 / 2540)
    assert categories(execution(*prompts(250), measurements=used)) == []


def test_short_prompts_that_begin_alike_are_left_alone():
    calls = [
        call(n, n / 4, 0.25, uses=[n - 1] if n else [], input_tokens=100, output_tokens=9, input_characters=400, prefix_characters=380 if n else 0)
        for n in range(4)
    ]  # fmt: skip
    used = {"tokens": 436.0, "input_tokens": 400.0, "output_tokens": 36.0}
    assert categories(execution(*calls, measurements=used)) == []


def test_tokens_are_unknown_where_nobody_said():
    assert analyse_tokens(execution()).efficiency is None
    used = {"input_tokens": 2500.0, "output_tokens": 40.0}
    tokens = analyse_tokens(execution(*prompts(0), measurements=used))
    assert tokens.wasted == 1500
    assert tokens.efficiency == pytest.approx(1 - 1500 / 2540)


def test_what_only_one_of_three_executions_shows_is_no_finding():
    slept = execution(threads=((at(0, 1, causes.SLEEPING),),))
    calm = execution(threads=((at(0, 1, causes.COMPUTING),),))
    assert categories(slept, calm, calm) == []
    assert categories(slept, slept, calm) == ["sleep"]


def test_parallelization_goes_from_0_in_a_row_to_1_at_once():
    row = [call(0, 0, 0.5), call(1, 0.5, 0.5)]
    half = [call(0, 0, 0.5), call(1, 0.25, 0.5)]
    once = [call(0, 0, 0.5), call(1, 0, 0.5)]
    assert [parallelization(calls) for calls in (row, half, once)] == [0, pytest.approx(0.5), 1]
    assert parallelization([call(0, 0, 0.5), call(1, 0.5, 0.5, uses=[0])]) is None


ROWS = tuple((n / 10, n / 20, 100.0 + 10 * n, n * 2, 0) for n in range(11))


def test_utilization_follows_its_formulas():
    threads = ((at(0, 0.25, causes.IO), at(0.25, 1, causes.COMPUTING)),)
    found = utilization([execution(threads=threads, rows=ROWS, cores=2)])
    assert found.cpu == pytest.approx(0.5 / 2)  # half a CPU second in a second with two cores
    assert found.memory == pytest.approx(150 / 200)
    assert found.io == pytest.approx(0.75)


def test_waiting_of_a_thread_counts_while_the_main_one_waits_for_it():
    threads = ((at(0, 0.5, causes.THREADS), at(0.5, 1, causes.COMPUTING)), (at(0, 1, causes.IO),))
    assert utilization([execution(threads=threads)]).io == pytest.approx(0.5)


def test_phases_have_what_the_process_used_meanwhile_and_the_harness_its_own():
    spans = [
        ["plan", "agent", 0.0, 0.4],
        ["ask", "llm", 0.1, 0.2, {"parent": 0}],
        ["harness", "harness", 1.0, 0.1],
    ]
    plan, ask, other, harness = span_usage(execution(*read_calls(spans), rows=ROWS))
    assert [phase.name for phase in (plan, ask, harness)] == ["plan", "ask", "harness"]
    assert (plan.depth, ask.depth) == (0, 1)
    assert plan.cpu_seconds == pytest.approx(0.2)
    assert (plan.memory_bytes, plan.io_operations) == (140, 8)
    assert other.seconds == pytest.approx(0.6)
    assert plan.share + other.share + harness.share == pytest.approx(1)


def test_spans_without_parents_nest_by_their_times():
    outer, inner = read_calls([["all", "agent", 0.0, 1.0], ["ask", "llm", 0.2, 0.3]])
    assert (outer.parent, inner.parent) == (None, 0)


def test_bottlenecks_are_wall_time_at_the_subject_s_own_lines():
    library = StackFrame("recv", "socket.py", 700, True)
    waited = StackSample(0, 0.6, (StackFrame("ask", "agent.py", 7), library), causes.IO)
    first, second = bottlenecks([execution(threads=((waited, at(0.6, 1, causes.COMPUTING, 9)),))])
    assert (first.location, first.cause, first.seconds) == ("agent.py:7 ask", causes.IO, 0.6)
    assert second.location == "agent.py:9 work"

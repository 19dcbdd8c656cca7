from __future__ import annotations

from typing import Any

import pytest
from tests.sim_llm.asking import GENERATE, OLLAMA, get, lines, post, quick, said

from assay.testing.sim_llm import SimServer

MS = 1_000_000


def loaded(server: SimServer) -> list[str]:
    return [model["name"] for model in get(server, "/api/ps")["models"]]


def generate(text: str, **more: Any) -> dict[str, Any]:
    return {"model": "m", "prompt": text, **more}


def test_generating_streams_lines_by_default_and_ends_with_figures() -> None:
    with quick(tokens=3) as server:
        found = lines(server, GENERATE, generate("two words"))

    assert [line["done"] for line in found] == [False, False, False, True]
    assert len("".join(line["response"] for line in found).split()) == 3
    assert (found[-1]["prompt_eval_count"], found[-1]["eval_count"]) == (2, 3)
    assert found[-1]["done_reason"] == "stop"


def test_the_durations_are_the_ones_that_were_set() -> None:
    with quick(ttft=0.02, itl=0.005, tokens=3, load_time=0.03) as server:
        first = post(server, GENERATE, generate("hello", stream=False)).json()
        second = post(server, GENERATE, generate("hello", stream=False)).json()

    assert first["load_duration"] == 30 * MS
    assert first["prompt_eval_duration"] == 20 * MS
    assert first["eval_duration"] == 10 * MS
    assert first["total_duration"] == pytest.approx(60 * MS)
    assert second["load_duration"] == 0


def test_a_model_pays_for_loading_in_real_time_once_until_it_is_unloaded() -> None:
    with quick(load_time=0.05) as server:
        times = []
        for keep_alive in ("5m", 0, "5m"):
            response = post(server, GENERATE, generate("hello", stream=False, keep_alive=keep_alive))
            times.append(response.ended - response.sent)

    assert times[0] > 0.05
    assert times[1] < times[0]
    assert times[2] > 0.05


def test_the_loaded_models_are_listed_until_they_expire() -> None:
    with quick() as server:
        assert loaded(server) == []
        post(server, GENERATE, generate("hello"))
        post(server, OLLAMA, said("hello", keep_alive=-1) | {"model": "other"})
        assert loaded(server) == ["m", "other"]
        post(server, GENERATE, generate("hello", keep_alive=0))
        assert loaded(server) == ["other"]


def test_an_empty_prompt_loads_and_unloads() -> None:
    with quick() as server:
        load = post(server, GENERATE, {"model": "m", "stream": False}).json()
        assert loaded(server) == ["m"]
        unload = post(server, OLLAMA, {"model": "m", "messages": [], "keep_alive": 0, "stream": False}).json()
        assert loaded(server) == []

    assert (load["done_reason"], load["response"]) == ("load", "")
    assert unload["done_reason"] == "unload"


def test_chatting_gives_messages_and_obeys_num_predict() -> None:
    with quick(tokens=9) as server:
        found = lines(server, OLLAMA, said("hello", options={"num_predict": 2, "seed": 1}))
        whole = post(
            server, OLLAMA, said("hello", options={"num_predict": 2, "seed": 1}, stream=False)
        ).json()

    assert "".join(line["message"]["content"] for line in found) == whole["message"]["content"]
    assert (found[-1]["done_reason"], found[-1]["eval_count"]) == ("length", 2)


def test_a_tool_call_has_its_arguments_as_a_mapping() -> None:
    question = said('[[call: add {"a": 1}]]', tools=[{"type": "function", "function": {"name": "add"}}])
    with quick() as server:
        streamed = lines(server, OLLAMA, question)
        whole = post(server, OLLAMA, question | {"stream": False}).json()

    expected = [{"function": {"name": "add", "arguments": {"a": 1}}}]
    assert whole["message"]["tool_calls"] == expected
    assert [line["message"].get("tool_calls") for line in streamed] == [expected, None]


def test_the_installed_models_are_listed() -> None:
    with quick() as server:
        assert [model["name"] for model in get(server, "/api/tags")["models"]] == ["sim-llm:latest"]


@pytest.mark.parametrize(
    "document",
    [
        {"prompt": "no model"},
        generate("x", keep_alive="soon"),
        generate("x", options=[]),
        generate("x", stream="no"),
    ],
)
def test_what_ollama_would_refuse_is_refused_in_its_words(document: dict[str, Any]) -> None:
    with quick() as server:
        response = post(server, GENERATE, document)

    assert response.status == 400
    assert isinstance(response.json()["error"], str)

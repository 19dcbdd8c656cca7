from __future__ import annotations

from time import perf_counter
from typing import Any

import pytest
from tests.sim_llm.asking import GENERATE, OLLAMA, get, lines, post, quick, said

from assay.simulator import SimServer

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
    with quick(load_time=1.5) as server:
        times = []
        for keep_alive in ("5m", 0, "5m"):
            started = perf_counter()
            post(server, GENERATE, generate("hello", stream=False, keep_alive=keep_alive))
            times.append(perf_counter() - started)

    assert times[0] > 1.5
    assert times[1] < times[0]
    assert times[2] > 1.5


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


def running(server: SimServer) -> dict[str, Any]:
    (found,) = get(server, "/api/ps")["models"]
    return dict(found)


def test_the_context_that_a_model_got_is_reported_and_is_never_more_than_it_was_trained_for() -> None:
    with quick(max_context=8192) as server:
        contexts = []
        for options in ({}, {"num_ctx": 512}, {"num_ctx": 100_000}):
            post(server, GENERATE, generate("hello", options=options))
            contexts.append(running(server)["context_length"])

    assert contexts == [4096, 512, 8192]


def test_layers_on_the_gpu_and_a_larger_context_take_memory() -> None:
    with quick() as server:
        post(server, GENERATE, generate("hello", options={"num_gpu": 0, "num_ctx": 512}))
        none = running(server)
        post(server, GENERATE, generate("hello", options={"num_gpu": 999, "num_ctx": 1024}))
        all_of_them = running(server)

    assert none["size_vram"] == 0
    assert all_of_them["size_vram"] == all_of_them["size"] > none["size"]


def test_another_context_loads_the_model_again_and_other_options_do_not() -> None:
    asked: list[dict[str, Any]] = [
        {"num_ctx": 512},
        {"num_ctx": 512, "temperature": 0.1},
        {"num_ctx": 1024},
        {"num_ctx": 1024, "num_gpu": 3},
    ]
    with quick(load_time=0.01) as server:
        loads = [
            post(server, GENERATE, generate("hello", stream=False, options=options)).json()["load_duration"]
            for options in asked
        ]

    assert [load > 0 for load in loads] == [True, False, True, True]


@pytest.mark.parametrize("path", [GENERATE, OLLAMA, "/v1/chat/completions"])
def test_a_model_that_is_not_there_is_not_found(path: str) -> None:
    with quick(models="m,other") as server:
        found = [
            post(server, path, {**generate("hello"), **said("hello"), "model": m}) for m in ("m", "absent")
        ]

    assert [response.status for response in found] == [200, 404]
    assert "'absent'" in found[1].body.decode()

"""When the pieces of an answer came, of every agent that has a stream."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.sim_llm.asking import quick

from assay.builtin.agents.anthropic import Anthropic
from assay.builtin.agents.ollama import Ollama
from assay.builtin.agents.openai import OpenAI
from assay.model import Answer, Request
from assay.plugin.agent import AgentError

KINDS = {"openai": (OpenAI, "/v1"), "anthropic": (Anthropic, ""), "ollama": (Ollama, "")}


def made(kind: str, url: str, **options: Any) -> Any:
    member, path = KINDS[kind]
    keys = {} if kind == "ollama" else {"api_key": "k"}
    return member(model="m", base_url=url + path, **keys, **options)


def answered(kind: str, url: str, **options: Any) -> Answer:
    agent = made(kind, url, **options)

    async def ask() -> Answer:
        agent.open()
        try:
            found: Answer = await agent.answer(Request("1", "Hello", max_tokens=5))
            return found
        finally:
            await agent.close()

    return asyncio.run(ask())


@pytest.mark.parametrize("kind", KINDS)
def test_each_piece_has_its_time_and_the_whole_has_its_end(kind: str) -> None:
    with quick(tokens=5, itl=0.002) as server:
        answer = answered(kind, server.url)

    at = answer.content_seconds
    assert len(at) == 5
    assert list(at) == sorted(at)
    assert at[0] == answer.first_token_seconds
    assert answer.seconds is not None
    assert answer.seconds >= at[-1]


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_in_one_piece_has_only_an_end(kind: str) -> None:
    with quick(tokens=5) as server:
        answer = answered(kind, server.url, stream=False)

    assert answer.content_seconds == ()
    assert answer.first_token_seconds is None
    assert (answer.seconds or 0) > 0


def test_other_paths_of_the_same_server_can_be_looked_up() -> None:
    with quick() as server:
        agent = made("openai", server.url)

        async def looked_up() -> Any:
            agent.open()
            try:
                loaded = await agent.look_up("/api/ps")
                await agent.look_up("/api/generate", {"model": "m", "stream": False})
                with pytest.raises(AgentError, match="HTTP 404"):
                    await agent.look_up("/nowhere")
                return loaded, await agent.look_up("/api/ps")
            finally:
                await agent.close()

        before, after = asyncio.run(looked_up())

    assert before == {"models": []}
    assert [model["name"] for model in after["models"]] == ["m"]

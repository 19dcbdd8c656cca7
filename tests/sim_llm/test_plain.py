"""The simulated server, asked as agents of the type `http` ask."""

from __future__ import annotations

import asyncio
import json

from tests.sim_llm.asking import post, quick

from assay.builtin.agents.http import Http
from assay.model import Answer, Request


def _answer(url: str, **options: object) -> Answer:
    async def ask() -> Answer:
        agent = Http(url, **options)  # type: ignore[arg-type]
        agent.open()
        try:
            return await agent.answer(Request(id="1", input="What is 2 + 3?"))
        finally:
            await agent.close()

    return asyncio.run(ask())


def test_an_http_agent_gets_output_usage_and_model() -> None:
    with quick(skill=1.0) as server:
        answer = _answer(f"{server.url}/ask")
    assert "5" in str(answer.output)
    assert answer.usage.input_tokens == 5
    assert answer.usage.output_tokens
    assert answer.model == "sim-llm"


def test_a_streamed_answer_says_the_same_and_has_a_first_token() -> None:
    with quick(skill=1.0) as server:
        whole = _answer(f"{server.url}/ask")
        streamed = _answer(f"{server.url}/ask", params={"stream": True})
    assert streamed.output == whole.output
    assert streamed.first_token_seconds is not None


def test_a_question_without_input_is_refused_by_name() -> None:
    with quick() as server:
        response = post(server, "/ask", {"question": "?"})
    assert response.status == 400
    assert "'input'" in json.loads(response.body)["error"]

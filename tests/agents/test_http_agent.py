"""The agent type `http`."""

from __future__ import annotations

import pytest
from tests.agents.asking import answer, answers, answers_to
from tests.agents.scripted import Heard, ScriptedServer, lines, response

from assay.builtin.agents.http import Http
from assay.model import Request
from assay.plugin.agent import AgentError, InvalidAnswer


def _doubled(heard: Heard) -> bytes:
    return response(
        {"id": heard.json["id"], "output": heard.json["input"] * 2, "usage": {"output_tokens": 1}}
    )


def test_a_request_is_posted_and_the_answer_read() -> None:
    with ScriptedServer(_doubled) as server:
        found = answers(Http(server.url + "/ask"), 1, "ab")
    assert [one.output for one in found] == [2, "abab"]
    assert found[0].usage.output_tokens == 1
    assert server.requests[0].line.startswith("POST /ask ")


def test_many_are_asked_at_once() -> None:
    with ScriptedServer(_doubled) as server:
        found = answers(Http(server.url), *range(30), at_once=True)
    assert [one.output for one in found] == [2 * number for number in range(30)]


def test_params_and_headers_are_sent() -> None:
    with ScriptedServer(response({"output": 1})) as server:
        agent = Http(server.url, headers={"X-Team": "blue"}, params={"a": 1, "b": 1})
        answers_to(agent, [Request("c1", "x", {"b": 2})])
    assert server.requests[0].headers["x-team"] == "blue"
    assert server.requests[0].json == {"id": "1", "input": "x", "params": {"a": 1, "b": 2}}


def test_the_output_may_be_anywhere_in_the_answer() -> None:
    with ScriptedServer(response({"result": [{"text": "42"}]})) as server:
        assert answer(Http(server.url, output="result.0.text")).output == "42"


def test_an_answer_without_the_output_says_where_it_was_sought() -> None:
    with (
        ScriptedServer(response({"result": []})) as server,
        pytest.raises(InvalidAnswer, match=r"at 'result\.0\.text'"),
    ):
        answer(Http(server.url, output="result.0.text"))


def test_plain_text_is_an_answer() -> None:
    with ScriptedServer(response("grüße".encode(), kind="text/plain; charset=utf-8")) as server:
        assert answer(Http(server.url)).output == "grüße"


def test_lines_are_streamed() -> None:
    with ScriptedServer(
        lines({"delta": "a"}, {"delta": "b"}, {"id": "1", "output": None, "usd": 0.5})
    ) as server:
        found = answer(Http(server.url))
    assert (found.output, found.usd) == ("ab", 0.5)
    assert found.first_token_seconds is not None


def test_an_error_of_the_agent_is_a_failure() -> None:
    script = response({"output": None, "error": "out of paper"})
    with ScriptedServer(script) as server, pytest.raises(AgentError, match="out of paper"):
        answer(Http(server.url))


@pytest.mark.parametrize(
    ("said", "problem"),
    [({"answer": 1}, "no 'output'"), ({"id": "99", "output": 1}, "'99'"), (3, "no 'output'")],
)
def test_what_is_no_answer_is_invalid(said: object, problem: str) -> None:
    with ScriptedServer(response(said)) as server, pytest.raises(InvalidAnswer, match=problem):
        answer(Http(server.url))

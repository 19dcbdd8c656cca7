"""The agent type `python`."""

from __future__ import annotations

import inspect
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.agents.asking import answer, answers_to

from assay.builtin.agents.python import Python
from assay.model import Request
from assay.plugin.agent import BadAgent, InvalidAnswer

pytestmark = pytest.mark.usefixtures("own_names")

FUNCTIONS = """
import asyncio, time
from assay.model import Answer, Request, ToolCall

def double(number): return number * 2
def with_params(text, temperature=0.5): return f"{text} at {temperature}"
def with_all(text, **params): return sorted(params)
def whole(request): return {"id": request.id, "expected": request.expected, "params": dict(request.params)}
def annotated(asked: Request): return asked.id
async def later(number):
    await asyncio.sleep(0)
    return number + 1
def pieces(text):
    yield ""
    time.sleep(0.02)
    yield "one "
    yield "two"
    yield {"usage": {"output_tokens": 2}}
async def later_pieces(text):
    yield "a"
    yield "b"
def told(text): return {"output": text, "usage": {"input_tokens": 3}, "usd": 0.5, "model": "m1",
                        "tool_calls": [{"name": "look", "arguments": {"up": 1}}],
                        "spans": [{"name": "think", "kind": "llm", "start": 0, "seconds": 0.25}]}
def made(text): return Answer(text, tool_calls=(ToolCall("x"),))
def structure(text): return {"output": 1, "other": 2}
def fails(text): raise ValueError("no idea")
def odd_pieces(text):
    yield 3
def forgot_await(text): return later(1)
def odd_usage(text): return {"output": 1, "usage": [1]}
class Caller:
    async def __call__(self, text): return text
called = Caller()
nothing = 3
"""


@pytest.fixture
def made(tmp_path: Path) -> Any:
    (tmp_path / "functions.py").write_text(FUNCTIONS)

    def make(name: str, **options: Any) -> Python:
        return Python(f"functions.py:{name}", folder=str(tmp_path), **options)

    return make


def test_a_plain_function_answers_by_a_plain_call(made: Any) -> None:
    agent = made("double")
    assert not inspect.iscoroutinefunction(agent.answer)
    assert agent.answer(Request("1", 21)).output == 42


@pytest.mark.parametrize("name", ["later", "later_pieces", "called"])
def test_an_async_function_makes_an_async_agent(made: Any, name: str) -> None:
    assert inspect.iscoroutinefunction(made(name).answer)


def test_an_async_function_is_awaited(made: Any) -> None:
    assert answer(made("later"), 1).output == 2


def test_an_object_that_can_be_called_is_an_agent(made: Any) -> None:
    assert answer(made("called"), "yes").output == "yes"


def test_a_generator_streams_and_its_first_text_is_timed(made: Any) -> None:
    found = answer(made("pieces"))
    assert found.output == "one two"
    assert found.usage.output_tokens == 2
    assert found.first_token_seconds is not None
    assert found.first_token_seconds >= 0.02


def test_an_async_generator_streams(made: Any) -> None:
    found = answer(made("later_pieces"))
    assert found.output == "ab"
    assert found.first_token_seconds is not None


def test_what_is_not_streamed_has_no_first_token(made: Any) -> None:
    assert answer(made("double"), 1).first_token_seconds is None


def test_params_of_the_case_go_to_parameters_of_their_names(made: Any) -> None:
    request = Request("1", "warm", {"temperature": 30, "unrelated": 1})
    assert answers_to(made("with_params"), [request])[0].output == "warm at 30"


def test_params_of_the_definition_are_defaults(made: Any) -> None:
    agent = made("with_params", params={"temperature": 7})
    found = answers_to(agent, [Request("1", "x"), Request("2", "x", {"temperature": 8})])
    assert [one.output for one in found] == ["x at 7", "x at 8"]


def test_a_function_with_keywords_gets_all_params(made: Any) -> None:
    assert answers_to(made("with_all"), [Request("1", "x", {"b": 1, "a": 2})])[0].output == ["a", "b"]


def test_a_function_of_the_request_gets_all_but_the_right_answer(made: Any) -> None:
    request = Request("c1", "x", {"topic": "sums"}, expected="secret")
    assert answers_to(made("whole"), [request])[0].output == {
        "id": "c1",
        "expected": None,
        "params": {"topic": "sums"},
    }


def test_an_annotation_tells_that_the_request_is_wanted(made: Any) -> None:
    assert answers_to(made("annotated"), [Request("c9", "x")])[0].output == "c9"


def test_an_answer_object_brings_usage_calls_spans_cost_and_model(made: Any) -> None:
    found = answer(made("told"))
    assert (found.output, found.usage.input_tokens, found.usd, found.model) == ("hello", 3, 0.5, "m1")
    assert (found.tool_calls[0].name, dict(found.tool_calls[0].arguments)) == ("look", {"up": 1})
    assert (found.spans[0].kind, found.spans[0].seconds) == ("llm", 0.25)


def test_an_answer_may_be_made_by_the_function(made: Any) -> None:
    assert answer(made("made")).tool_calls[0].name == "x"


def test_a_structure_with_other_keys_is_the_output_itself(made: Any) -> None:
    assert answer(made("structure")).output == {"output": 1, "other": 2}


def test_what_the_function_raises_reaches_the_runner(made: Any) -> None:
    with pytest.raises(ValueError, match="no idea"):
        answer(made("fails"))


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("odd_pieces", "must be text, not int"),
        ("odd_usage", "'usage' must be an object"),
    ],
)
def test_nonsense_is_an_invalid_answer(made: Any, name: str, problem: str) -> None:
    with pytest.raises(InvalidAnswer, match=problem):
        answer(made(name))


def test_a_forgotten_async_is_reported(made: Any) -> None:
    with pytest.raises(InvalidAnswer, match="declare it async"):
        answer(made("forgot_await"))


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("functions.py:absent", "no function 'absent'"),
        ("functions.py:nothing", "no function 'nothing'"),
        ("absent.py:f", "There is no file"),
        ("functions.py", "must be written"),
        ("absent_module:f", "module 'absent_module' cannot be imported"),
    ],
)
def test_a_target_that_is_not_there_is_reported_before_anything_runs(
    made: Any, tmp_path: Path, target: str, problem: str
) -> None:
    made("double")
    with pytest.raises(BadAgent, match=problem):
        Python(target, folder=str(tmp_path))


def test_params_that_the_function_does_not_have_are_refused(made: Any) -> None:
    with pytest.raises(BadAgent, match="no parameters for colour"):
        made("with_params", params={"colour": "red"})


def test_a_module_beside_the_definition_is_found(tmp_path: Path) -> None:
    (tmp_path / "beside_it.py").write_text("def f(x): return x")
    assert answer(Python("beside_it:f", folder=str(tmp_path)), 5).output == 5


def test_the_version_is_a_hash_outside_of_git_and_changes_with_the_file(made: Any, tmp_path: Path) -> None:
    before = made("double").found_version()
    (tmp_path / "functions.py").write_text(FUNCTIONS + "\n# changed")
    assert len(before) == 10
    assert made("double").found_version() != before


def test_the_version_is_the_commit_and_says_when_files_were_changed(made: Any, tmp_path: Path) -> None:
    agent = made("double")
    name = ["-c", "user.name=ann", "-c", "user.email=ann@example.org"]
    for words in (["init", "-q"], ["add", "functions.py"], [*name, "commit", "-qm", "first"]):
        subprocess.run(["git", "-C", tmp_path, *words], check=True)
    (tmp_path / ".gitignore").write_text("*\n")
    clean = agent.found_version()
    (tmp_path / "functions.py").write_text(FUNCTIONS + "\n# changed")
    assert not clean.endswith("-dirty")
    assert agent.found_version() == f"{clean}-dirty"

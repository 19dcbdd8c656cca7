"""The agent type `command`, when the program misbehaves: recorded as what it is, and the next request is answered."""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from tests.agents.asking import answer, answers, outcomes
from tests.agents.programs import command
from tests.wording import Wording

from assay.builtin.agents.command import Command
from assay.model import Answer, Request
from assay.plugin.agent import AgentError, InvalidAnswer

LOGGED = "for r in requests():\n    print('about to', file=sys.stderr, flush=True)\n    "


def _misbehaving(tmp_path: Path, what: str, concurrency: int = 1, **options: object) -> Any:
    """Does it once for the input "bad" and answers all others."""
    program = f"""for r in requests():
    if r['input'] == 'bad':
        {what}
    else:
        say(id=r['id'], output=r['input'])
"""
    return command(tmp_path, program, concurrency=concurrency, **options)


INVALID = {
    "garbage": ("print('what?', flush=True)", "not JSON: 'what\\?'.*\"output\".*plain: true"),
    "a list": ("print('[1]', flush=True)", "must be a JSON object"),
    "another id": ("say(id='77', output=1)", "response id is '77', expected"),
    "no id": ("say(output=1)", "no 'id'"),
    "invalid utf-8": ("sys.stdout.buffer.write(b'{\"id\": \"2\\xff\"}\\n'); sys.stdout.flush()", "not UTF-8"),
    "not a number": ("print('{\"id\": \"2\", \"output\": NaN}', flush=True)", "not JSON"),
    "deep nesting": ("print('[' * 100000, flush=True)", "not JSON"),
    "odd usage": ("say(id=r['id'], output=1, usage=3)", "'usage' must be an object"),
    "a span before time": (
        "say(id=r['id'], output=1, spans=[{'name': 'a', 'start': -1, 'seconds': 1}])", "'start' must be from 0 to .* seconds, not -1"
    ),
    "an endless duration": ("print('{\"id\": \"2\", \"output\": 1, \"durations\": {\"load\": 1e999}}', flush=True)", "must be from 0 to .* seconds, not inf"),
    "odd spans": ("say(id=r['id'], output=1, spans=[{}])", "a span needs"),
    "odd calls": ("say(id=r['id'], output=1, tool_calls=[{'name': 'f', 'arguments': '{'}])", "arguments for tool 'f'"),
    "odd pieces": ("say(id=r['id'], delta=[])", "must be text, not list"),
    "too much": ("say(id=r['id'], output='x' * 50_000_000)", "more than 1,000,000 bytes"),
}  # fmt: skip


@pytest.mark.parametrize("concurrency", [1, 2])
@pytest.mark.parametrize("fault", INVALID)
def test_what_is_no_answer_is_invalid_and_the_next_request_is_answered(
    tmp_path: Path, fault: str, concurrency: int
) -> None:
    what, problem = INVALID[fault]
    agent = _misbehaving(tmp_path, what, concurrency, max_bytes=1_000_000)
    before, bad, after = outcomes(agent, "good", "bad", "fine")
    assert isinstance(bad, InvalidAnswer)
    with pytest.raises(InvalidAnswer, match=problem):
        raise bad
    assert isinstance(before, Answer)
    assert isinstance(after, Answer)
    assert after.output == "fine"


FAILED = {
    "exits": ("sys.exit(3)", "exited with code 3 instead of answering"),
    "is killed": ("os.kill(os.getpid(), 9)", "killed by SIGKILL"),
    "exits half way": ("print('{\"id\": ', end='', flush=True); sys.exit(0)", "in the middle of an answer"),
    "closes its output": ("os.close(1); time.sleep(600)", "closed its standard output instead of answering"),
    "reports an error": ("say(id=r['id'], error='quota exceeded')", "quota exceeded"),
}


@pytest.mark.parametrize("concurrency", [1, 2])
@pytest.mark.parametrize("fault", FAILED)
def test_a_failure_is_reported_and_the_next_request_is_answered(
    tmp_path: Path, fault: str, concurrency: int
) -> None:
    what, problem = FAILED[fault]
    bad, after = outcomes(_misbehaving(tmp_path, what, concurrency), "bad", "fine")
    assert isinstance(bad, AgentError)
    assert not isinstance(bad, InvalidAnswer)
    with pytest.raises(AgentError, match=problem):
        raise bad
    assert isinstance(after, Answer)
    assert after.output == "fine"


def test_a_failure_carries_what_the_program_said_last(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match=r"exited with code 4(.|\n)*about to"):
        answer(command(tmp_path, LOGGED + "sys.exit(4)"))


def test_a_second_answer_is_ignored_with_a_remark(tmp_path: Path) -> None:
    program = (
        "for r in requests():\n    say(id=r['id'], output=r['input'])\n    say(id=r['id'], output='again')"
    )
    first, second, third = answers(command(tmp_path, program), 1, 2, 3)
    assert [first.output, second.output, third.output] == [1, 2, 3]
    assert "ignored" in (second.log or "") + (third.log or "")


def test_a_late_second_answer_is_not_taken_for_the_next_one(tmp_path: Path, wording: Wording) -> None:
    program = """before = None
for r in requests():
    if before: say(id=before, output='late')
    time.sleep(0.05)
    say(id=r['id'], output=r['input'])
    before = r['id']
"""
    found = answers(command(tmp_path, program), 1, 2, 3)
    assert [one.output for one in found] == [1, 2, 3]
    assert "request 1" in (found[1].log or "")
    wording(found[1].log, near="request 1")


def test_a_program_that_answers_only_the_request_before_is_found_out(
    tmp_path: Path, wording: Wording
) -> None:
    found = outcomes(command(tmp_path, "for r in requests(): say(id='1', output=1)"), 1, 2)
    assert isinstance(found[0], Answer)
    assert isinstance(found[1], InvalidAnswer)
    assert "request 2" in str(found[1])
    wording(found[1])


def test_a_program_that_writes_much_without_a_request_is_replaced(tmp_path: Path, wording: Wording) -> None:
    program = """for r in requests():
    say(id=r['id'], output=r['input'])
    while r['input'] == 'talk' and not os.path.exists('listened'): time.sleep(0.01)
    if r['input'] == 'talk':
        os.write(1, b'x' * 40_000)
        open('talked', 'w').close()
"""
    agent = command(tmp_path, program, max_bytes=30_000)
    agent.open()
    agent.answer(Request("1", "talk"))
    (tmp_path / "listened").touch()
    while not (tmp_path / "talked").exists():
        time.sleep(0.01)
    found = agent.answer(Request("2", "next"))
    agent.close()
    assert found.output == "next"
    assert "bytes" in (found.log or "")
    wording(found.log, near="bytes", numbers=False)


def test_one_that_ended_between_two_requests_is_started_again_and_says_so(tmp_path: Path) -> None:
    program = "r = next(requests())\nsay(id=r['id'], output=os.getpid())\nprint('bye', file=sys.stderr)"
    agent = command(tmp_path, program)
    agent.open()
    first = agent.answer(Request("1", 1))
    os.waitid(os.P_PID, first.output, os.WEXITED | os.WNOWAIT)
    second = agent.answer(Request("2", 1))
    agent.close()
    assert first.output != second.output
    assert "restarted" in (second.log or "")
    assert "bye" in (first.log or "") + (second.log or "")


CLOSES_AFTER_AN_ANSWER = {
    "closes its input": "os.close(0); time.sleep(600)",
    "closes its output": "os.close(1); time.sleep(600)",
    "exits": "os._exit(3)",
}


@pytest.mark.parametrize("concurrency", [1, 2])
@pytest.mark.parametrize("is_late", [False, True], ids=["at once", "with the next request in its pipe"])
@pytest.mark.parametrize("fault", CLOSES_AFTER_AN_ANSWER)
def test_a_pipe_closed_after_an_answer_costs_no_later_request(
    tmp_path: Path, fault: str, is_late: bool, concurrency: int
) -> None:
    program = f"""import select
for r in iter(lambda: json.loads(b"".join(iter(lambda: os.read(0, 1), b"\\n"))), None):
    say(id=r["id"], output=r["input"])
    if r["input"] == "bad":
        {is_late} and select.select([0], [], [])
        {CLOSES_AFTER_AN_ANSWER[fault]}
"""
    agent = command(tmp_path, program, concurrency=concurrency)
    answers = outcomes(agent, "good", "bad", "x" * 200_000, "fine")
    assert [getattr(answer, "output", answer) for answer in answers] == ["good", "bad", "x" * 200_000, "fine"]


def test_a_program_that_closes_its_input_unread_fails_before_its_time_is_up(tmp_path: Path) -> None:
    [bad] = outcomes(command(tmp_path, "os.close(0); time.sleep(600)"), "bad")
    assert isinstance(bad, AgentError)
    assert "standard input" in str(bad)


@pytest.mark.parametrize("size", [10, 1_000_000])
def test_a_program_that_never_reads_blocks_nobody_for_ever(tmp_path: Path, size: int) -> None:
    agent = command(tmp_path, "time.sleep(600)", concurrency=2)

    async def ask() -> float:
        agent.open()
        started = time.perf_counter()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await agent.answer(Request("1", "x" * size))
        waited = time.perf_counter() - started
        agent.close()
        return waited

    assert asyncio.run(ask()) < 60


def test_an_answer_after_the_timeout_is_not_taken_for_the_next_one(tmp_path: Path) -> None:
    program = """for r in requests():
    while r['input'] == 'slow' and not os.path.exists('given up'): time.sleep(0.01)
    say(id=r['id'], output=r['input'])
"""
    agent = command(tmp_path, program, concurrency=2)

    async def ask() -> Any:
        agent.open()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await agent.answer(Request("1", "slow"))
        (tmp_path / "given up").touch()
        found = await agent.answer(Request("2", "next"))
        agent.close()
        return found

    assert asyncio.run(ask()).output == "next"


class Interrupted(BaseException):
    pass


def test_a_plain_call_that_is_broken_off_ends_the_program(tmp_path: Path) -> None:
    import signal

    def interrupt(*_: object) -> None:
        raise Interrupted

    program = """import signal
for r in requests():
    if r['input'] == 'slow':
        os.kill(os.getppid(), signal.SIGALRM)
        time.sleep(600)
    say(id=r['id'], output=r['input'])
"""
    agent = command(tmp_path, program)
    agent.open()
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(Interrupted):
            agent.answer(Request("1", "slow"))
    finally:
        signal.signal(signal.SIGALRM, before)
    assert agent.answer(Request("2", "next")).output == "next"
    agent.close()


ONCE = {
    "no answer": ("sys.stdin.read()", InvalidAnswer, "without an answer"),
    "plain text": ("print('42')", InvalidAnswer, "plain: true"),
    "fails": ("say(output=1)\nsys.exit(2)", AgentError, "exited with code 2"),
    "another id": ("say(id='9', output=1)", InvalidAnswer, "'9'.*'1'"),
    "an error": ("say(error='broken')", AgentError, "broken"),
}


@pytest.mark.parametrize("fault", ONCE)
def test_a_process_for_one_case_may_fail_too(tmp_path: Path, fault: str) -> None:
    program, kind, problem = ONCE[fault]
    with pytest.raises(kind, match=problem):
        answer(command(tmp_path, program, mode="once"))


def test_a_process_left_behind_that_holds_the_pipe_does_not_hold_us(tmp_path: Path) -> None:
    program = "import subprocess\nsubprocess.Popen(['sh', '-c', 'sleep 20; touch ended'])\nsay(output=1)"
    assert answer(command(tmp_path, program, mode="once")).output == 1
    assert not (tmp_path / "ended").exists()


def test_a_program_that_cannot_be_started_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "not-a-program").write_text("plain text")
    (tmp_path / "not-a-program").chmod(0o755)
    with pytest.raises(AgentError, match="cannot be started"):
        answer(Command(["./not-a-program"], folder=str(tmp_path)))


def test_lies_about_usage_are_passed_on_for_the_runner_to_judge(tmp_path: Path) -> None:
    agent = _misbehaving(tmp_path, "say(id=r['id'], output=1, usage={'input_tokens': -5})")
    assert answer(agent, "bad").usage.input_tokens == -5


def test_requests_hold_no_line_breaks_of_their_own(tmp_path: Path) -> None:
    program = "for line in sys.stdin.buffer: print(json.dumps({'id': '1', 'output': len(line.splitlines())}), flush=True)"
    assert answer(command(tmp_path, program), json.dumps({"a": "\n\r\x0b"})).output == 1


def test_of_two_answers_in_mode_once_the_last_counts_with_a_remark(tmp_path: Path, wording: Wording) -> None:
    found = answer(command(tmp_path, "say(output=1)\nprint('so')\nsay(output=2)", mode="once"))
    assert found.output == 2
    assert (found.log or "").startswith("[1 answer ")
    wording(found.log)


@pytest.mark.parametrize("concurrency", [1, 2])
def test_a_process_that_is_left_behind_does_not_hold_up_the_answer(tmp_path: Path, concurrency: int) -> None:
    program = "say(output=1)\nif os.fork() == 0:\n    time.sleep(20)\n    open('ended', 'w')"
    found = answer(command(tmp_path, program, mode="once", concurrency=concurrency))
    assert found.output == 1
    assert not (tmp_path / "ended").exists()

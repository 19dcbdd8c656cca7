"""The agent type `command`, when all goes well."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import sys
from pathlib import Path

import pytest
from tests.agents.asking import answer, answers, answers_to
from tests.agents.programs import ECHO, command
from tests.execute.carrying import eventually

from assay.builtin.agents.command import Command
from assay.model import Request
from assay.model.redaction import redact
from assay.plugin.agent import AgentError, BadAgent

STREAM = """for r in requests():
    say(id=r['id'], delta='')
    time.sleep(0.05)
    say(id=r['id'], delta='one ')
    time.sleep(0.05)
    say(id=r['id'], delta='two')
    say(id=r['id'], usage={'output_tokens': 2})
"""


def test_a_program_answers_line_by_line(tmp_path: Path) -> None:
    found = answers(command(tmp_path, ECHO), "a", {"b": [1, None]}, "ü\u2028\n")
    assert [one.output for one in found] == ["a", {"b": [1, None]}, "ü\u2028\n"]


def test_one_process_serves_all_requests(tmp_path: Path) -> None:
    agent = command(tmp_path, "for r in requests(): say(id=r['id'], output=os.getpid())")
    assert len({one.output for one in answers(agent, 1, 2, 3)}) == 1


def test_with_one_request_at_a_time_it_is_a_plain_call(tmp_path: Path) -> None:
    assert not inspect.iscoroutinefunction(command(tmp_path, ECHO).answer)
    assert inspect.iscoroutinefunction(command(tmp_path, ECHO, concurrency=2).answer)


def test_as_many_processes_as_requests_under_way(tmp_path: Path) -> None:
    program = (
        "for r in requests():\n    time.sleep(0.3)\n    say(id=r['id'], output=[r['input'], os.getpid()])"
    )
    agent = command(tmp_path, program, concurrency=3)
    found = answers(agent, 1, 2, 3, at_once=True)
    assert [one.output[0] for one in found] == [1, 2, 3]
    assert len({one.output[1] for one in found}) == 3


def test_processes_are_used_again(tmp_path: Path) -> None:
    agent = command(tmp_path, "for r in requests(): say(id=r['id'], output=os.getpid())", concurrency=2)

    async def ask() -> set[object]:
        agent.open()
        pids = set()
        for number in range(6):
            found = await asyncio.gather(*(agent.answer(Request(f"{number}", 1)) for _ in range(2)))
            pids |= {one.output for one in found}
        agent.close()
        return pids

    assert len(asyncio.run(ask())) == 2


@pytest.mark.parametrize("concurrency", [1, 2])
def test_streamed_pieces_are_joined_and_the_first_is_timed(tmp_path: Path, concurrency: int) -> None:
    found = answer(command(tmp_path, STREAM, concurrency=concurrency))
    assert found.output == "one two"
    assert found.usage.output_tokens == 2
    assert found.first_token_seconds is not None
    assert found.first_token_seconds >= 0.05


def test_standard_error_is_the_log_of_its_own_answer(tmp_path: Path) -> None:
    program = "for r in requests():\n    print('saw', r['input'], file=sys.stderr, flush=True)\n    say(id=r['id'], output=1)"
    first, second = answers(command(tmp_path, program), "one", "two")
    assert (first.log, second.log) == ("saw one\n", "saw two\n")


def test_a_flood_of_standard_error_is_bounded_and_stops_nobody(tmp_path: Path) -> None:
    program = "for r in requests():\n    sys.stderr.write('x' * 3_000_000)\n    sys.stderr.flush()\n    say(id=r['id'], output=1)"
    found = answer(command(tmp_path, program))
    assert found.output == 1
    assert found.log is not None
    assert len(found.log) < 17_000
    assert "bytes left out" in found.log


def test_params_history_tools_and_files_are_sent(tmp_path: Path) -> None:
    agent = command(tmp_path, "for r in requests(): say(id=r['id'], output=r)", params={"a": 1, "b": 1})
    request = Request(
        "c1", "x", {"b": 2}, ({"role": "user", "content": "y"},), ({"name": "t"},), {"f": "/f"}, "secret", 50
    )
    seen = answers_to(agent, [request])[0].output
    assert seen == {
        "id": "1", "input": "x", "params": {"a": 1, "b": 2}, "history": [{"role": "user", "content": "y"}],
        "tools": [{"name": "t"}], "files": {"f": "/f"}, "max_tokens": 50,
    }  # fmt: skip


def test_it_runs_in_its_folder_with_its_environment_and_no_shell(tmp_path: Path) -> None:
    program = "for r in requests(): say(id=r['id'], output=[os.getcwd(), os.environ['COLOUR'], sys.argv[1]])"
    agent = command(tmp_path, program, "$(ls); *", env={"COLOUR": "blue"})
    assert answer(agent).output == [str(tmp_path.resolve()), "blue", "$(ls); *"]


def test_a_secret_of_the_environment_is_not_kept_in_an_output(tmp_path: Path) -> None:
    program = "for r in requests(): say(id=r['id'], output={'said': [os.environ['MY_KEY']], 'n': os.environ['PLACE']})"
    known = {"MY_KEY": "sk-very-secret-indeed", "PLACE": "/somewhere/on/the/disk"}
    assert redact(answer(command(tmp_path, program, env=known)).output) == {
        "said": ["[redacted]"],
        "n": "/somewhere/on/the/disk",
    }


def test_a_secret_of_the_environment_is_not_logged(tmp_path: Path) -> None:
    program = "for r in requests():\n    print(os.environ, file=sys.stderr, flush=True)\n    say(id=r['id'], error=os.environ['KEY'])"
    with pytest.raises(AgentError) as caught:
        answer(command(tmp_path, program, env={"KEY": "sk-very-secret"}))
    assert "sk-very-secret" not in redact(str(caught.value))
    assert "[redacted]" in str(caught.value)


def test_a_large_answer_and_a_large_request_pass(tmp_path: Path) -> None:
    text = "x" * 3_000_000
    assert answer(command(tmp_path, ECHO), text).output == text


def test_a_program_that_talks_before_it_has_read_all_does_not_block(tmp_path: Path) -> None:
    program = """
while True:
    size = 0
    for _ in range(200):
        say(id='1', delta='y' * 1000)
    line = sys.stdin.readline()
    say(id='1', output=len(line))
"""
    assert answer(command(tmp_path, program), "x" * 1_000_000).output > 1_000_000


def test_once_starts_a_process_for_each_case(tmp_path: Path) -> None:
    program = "r = json.loads(sys.stdin.read())\nprint('loading...')\nsay(output=[r['input'], os.getpid()])"
    first, second = answers(command(tmp_path, program, mode="once"), "a", "b")
    assert (first.output[0], second.output[0]) == ("a", "b")
    assert first.output[1] != second.output[1]


def test_once_takes_plain_text_if_told_to(tmp_path: Path) -> None:
    program = "r = json.loads(sys.stdin.readline())\nprint('the answer\\n')\nprint(r['input'] * 2)"
    assert answer(command(tmp_path, program, mode="once", plain=True), 21).output == "the answer\n\n42"


def test_once_streams(tmp_path: Path) -> None:
    program = "sys.stdin.read()\nsay(delta='a')\ntime.sleep(0.05)\nsay(delta='b')\nsay(output=None)"
    found = answer(command(tmp_path, program, mode="once"))
    assert found.output == "ab"
    assert found.first_token_seconds is not None


def test_once_many_at_a_time(tmp_path: Path) -> None:
    agent = command(
        tmp_path, "r = json.loads(sys.stdin.read())\nsay(output=r['input'])", mode="once", concurrency=4
    )
    assert [one.output for one in answers(agent, 1, 2, 3, 4, at_once=True)] == [1, 2, 3, 4]


def test_the_cpu_time_of_its_processes_is_known(tmp_path: Path) -> None:
    program = "for r in requests():\n    t = time.process_time()\n    while time.process_time() < t + 0.05: pass\n    say(id=r['id'], output=1)"
    agent = command(tmp_path, program)
    agent.open()
    before = agent.cpu_seconds()
    agent.answer(Request("1", 1))
    spent = agent.cpu_seconds() - before
    agent.close()
    assert spent >= (0.05 if sys.platform == "linux" else 0.0)


def test_closing_ends_its_processes(tmp_path: Path) -> None:
    agent = command(tmp_path, "for r in requests(): say(id=r['id'], output=os.getpid())\ntime.sleep(60)")
    pid = answer(agent).output
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"command": "echo hello"}, "must be a list of words"),
        ({"command": []}, "must be a list of words"),
        ({"command": ["./absent"]}, "no program './absent'"),
        ({"command": ["no-such-program-anywhere"]}, "in the PATH"),
        ({"command": ["./plain.txt"]}, "chmod"),
        ({"command": ["cat"], "mode": "twice"}, "must be 'lines'"),
    ],
)
def test_a_definition_that_cannot_work_is_reported(
    tmp_path: Path, options: dict[str, object], problem: str
) -> None:
    (tmp_path / "plain.txt").write_text("text")
    with pytest.raises(BadAgent, match=problem):
        Command(folder=str(tmp_path), **options)  # type: ignore[arg-type]


def test_the_version_is_that_of_the_files_it_names(tmp_path: Path) -> None:
    before = command(tmp_path, ECHO).found_version()
    assert before
    assert command(tmp_path, ECHO + "\n# changed").found_version() != before


LOOK = """import socket
for r in requests():
    try: text = open(r['input']).read()
    except OSError as error: text = type(error).__name__
    say(id=r['id'], output=[text, sorted(os.environ), os.getpid() < 10, len(socket.if_nameindex())])
"""


@pytest.mark.usefixtures("bubblewrap")
def test_a_program_in_a_sandbox_sees_its_folder_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    folder, other = tmp_path / "project", tmp_path / "other"
    for place in (folder / ".assay", other):
        place.mkdir(parents=True)
        (place / "file").write_text("seen")
    (folder / "file").write_text("mine")
    options = {"sandbox": "bubblewrap", "env": {"MY_KEY": "1"}}
    agent = command(folder, LOOK, **options)
    asked = [str(folder / "file"), str(folder / ".assay" / "file"), str(other / "file"), "/etc/shadow"]
    found = [one.output for one in answers(agent, *asked)]
    assert [one[0] for one in found] == ["mine", *["FileNotFoundError"] * 3]
    assert "MY_KEY" in found[0][1]
    assert "SOME_API_KEY" not in found[0][1]
    assert found[0][2] is True  # a process id of its own namespace
    more = command(folder, LOOK, **options, readable=[str(other)], network="none")
    (one,) = answers(more, str(other / "file"))
    assert one.output[0] == "seen"
    assert one.output[3] == 1  # only its own loopback


@pytest.mark.usefixtures("bubblewrap")
def test_a_program_in_a_sandbox_changes_nothing_and_leaves_nothing(tmp_path: Path) -> None:
    mark = f"sandboxed-{os.getpid()}"
    program = f"""import subprocess
for r in requests():
    subprocess.Popen(['/bin/sh', '-c', 'sleep 60; : {mark}'], start_new_session=True)
    try: open('new', 'w'); done = True
    except OSError: done = False
    say(id=r['id'], output=done)
"""
    agent = command(tmp_path, program, sandbox="bubblewrap")
    (one,) = answers(agent, "x")
    assert one.output is False
    assert not (tmp_path / "new").exists()
    assert eventually(lambda: not _running(mark))


def _running(mark: str) -> list[str]:
    found = []
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if mark.encode() in line.read_bytes():
                found.append(str(line))
    return found


@pytest.mark.usefixtures("bubblewrap")
def test_time_and_memory_of_a_program_in_a_sandbox_are_its_own(tmp_path: Path) -> None:
    program = "for r in requests():\n    block = bytearray(60 << 20)\n    sum(range(3_000_000))\n    say(id=r['id'], output=1)"
    agent = command(tmp_path, program, sandbox="bubblewrap")
    agent.open()
    before = agent.cpu_seconds()
    agent.answer(Request("1", "x"))
    assert agent.cpu_seconds() - before > 0.01
    assert (agent.peak_bytes() or 0) > 60 << 20
    agent.close()


@pytest.mark.parametrize(
    "options",
    [
        {"sandbox": "chroot"},
        {"network": "none"},
        {"sandbox": "bubblewrap", "network": "off"},
        {"readable": ["/x"]},
    ],
)
def test_odd_options_of_a_sandbox_are_refused(tmp_path: Path, options: dict[str, object]) -> None:
    with pytest.raises(BadAgent):
        command(tmp_path, ECHO, **options)


def test_a_sandbox_that_is_not_there_is_refused_when_the_agent_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None if name == "bwrap" else f"/bin/{name}")
    with pytest.raises(BadAgent, match="bubblewrap"):
        command(tmp_path, ECHO, sandbox="bubblewrap")

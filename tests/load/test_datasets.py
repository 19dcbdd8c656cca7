"""What a load asks: the same data set by `assay load` and by `assay run load`; and whom: agents found by their names."""

from __future__ import annotations

import json

import pytest
from tests.command import AssayInline
from tests.load.faulty import DONE, FINISH, Guest, delta, faulty, streamed
from tests.suites.project import numbers, suite
from tests.wording import Wording

ECHO = "def echo(text):\n    return '7' if text == '3' else text\n"
AGENT = {"name": "echo", "type": "python", "target": "echo.py:echo"}


def asked(guest: Guest) -> str:
    content: str = json.loads(guest.request.partition(b"\r\n\r\n")[2])["messages"][-1]["content"]
    return content


def mostly_right(guest: Guest) -> None:
    text = asked(guest)
    guest.say(streamed([delta(content="7" if text == "3" else text), FINISH, DONE]))


def prompts_sent(requests: list[bytes]) -> list[str]:
    return [json.loads(one.partition(b"\r\n\r\n")[2])["messages"][-1]["content"] for one in requests]


@pytest.mark.parametrize("name", ["s.yaml", "s.json"])
def test_a_load_experiment_asks_the_cases_of_a_suite_and_scores_them_like_assay_load(
    assay_inline: AssayInline, name: str
) -> None:
    assay_inline.write(name, suite(numbers(4), benchmark={"scorer": "exact"}))
    with faulty(mostly_right) as server:
        command = assay_inline("load", server.url, "--dataset", name, "--requests", "8", "--json").json
        first = prompts_sent(server.requests)
    with faulty(mostly_right) as server:
        settings = [f"target={server.url}", f"dataset={name}", "requests=8"]
        words = [word for text in settings for word in ("--set", text)]
        experiment = assay_inline("run", "load", *words, "--json").json
        second = prompts_sent(server.requests)

    assert first == second == ["0", "1", "2", "3"] * 2
    assert command["quality"]["score"] == 0.75
    assert experiment["trials"][0]["metrics"]["score"]["mean"] == 0.75


def test_a_data_set_may_be_csv_jsonl_lines_or_the_name_of_a_suite(assay_inline: AssayInline) -> None:
    assay_inline.write("assay.toml", '[assay]\nsuites = ["suites/*.yaml"]\n')
    assay_inline.write("suites/s.yaml", suite([{"input": "a"}, {"input": "b"}]))
    assay_inline.write("p.csv", "id,prompt\n1,a\n\n2,b\n")
    assay_inline.write("p.jsonl", '{"question": "a"}\n{"input": "b"}\n')
    assay_inline.write("p.txt", "a\nb\n")
    for name in ("p.csv", "p.jsonl", "p.txt", "s"):
        with faulty(mostly_right) as server:
            settings = (f"target={server.url}", f"dataset={name}", "requests=2", "prompt_cache=keep")
            words = [word for text in settings for word in ("--set", text)]
            assert assay_inline("run", "load", *words, "--json").json["status"] == "completed"
            assert prompts_sent(server.requests) == ["a", "b"], name


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("none.csv", None, "none.csv: "),
        ("p.csv", "id,words\n1,a\n", "p.csv:1: "),
        ("p.csv", 'id,prompt\n1,a\n2,"  "\n', "p.csv:3: "),
        ("s.yaml", "suite: s\nbenchmarks: []\n", "s.yaml"),
        ("nobody", None, "'nobody'"),
    ],
    ids=["no_file", "no_column", "no_prompt", "no_benchmark", "no_suite"],
)
def test_a_data_set_that_is_wrong_is_refused_before_anything_is_sent(
    assay_inline: AssayInline, name: str, text: str | None, says: str, wording: Wording
) -> None:
    if text is not None:
        assay_inline.write(name, text)
    with faulty(mostly_right) as server:
        words = ("--set", f"target={server.url}", "--set", f"dataset={name}")
        for command in (("run", "load", *words), ("load", server.url, "--dataset", name)):
            told = " ".join(assay_inline(*command).refusal.split())
            assert says in told
            wording(told)
        assert server.requests == []


def test_an_agent_that_a_suite_in_the_folder_defines_is_loaded_by_its_name(assay_inline: AssayInline) -> None:
    assay_inline.write("echo.py", ECHO)
    assay_inline.write("s.yaml", suite(numbers(4), [AGENT], benchmark={"scorer": "exact"}))

    command = assay_inline("load", "echo", "--dataset", "s.yaml", "--requests", "8", "--json").json
    words = ("--set", "target=echo", "--set", "dataset=s.yaml", "--set", "requests=8")
    experiment = assay_inline("run", "load", *words, "--json").json

    assert command["quality"]["score"] == 0.75
    assert experiment["trials"][0]["metrics"]["score"]["mean"] == 0.75


def test_an_agent_of_a_suite_of_the_project_is_put_under_stress(assay_inline: AssayInline) -> None:
    assay_inline.write("assay.toml", '[assay]\nsuites = ["suites/*.yaml"]\n')
    assay_inline.write("suites/echo.py", ECHO)
    assay_inline.write("suites/s.yaml", suite(numbers(2), [AGENT]))

    words = ("--quick", "--scenario", "concurrent_requests", "--base", "20", "--slo", "latency_p95<60s")
    done = assay_inline("stress", "echo", *words, "--json")

    assert done.code in (0, 1), done.err
    assert json.loads(done.out)["scenarios"][0]["scenario"] == "concurrent_requests"


@pytest.mark.parametrize("command", ["load", "stress"])
def test_an_unknown_agent_is_refused_with_the_files_that_were_searched(
    assay_inline: AssayInline, command: str, wording: Wording
) -> None:
    assay_inline.write("assay.toml", '[assay]\nagents = ["mine.yaml"]\nsuites = ["suites/*.yaml"]\n')
    assay_inline.write("mine.yaml", json.dumps({"agents": [{"name": "other", "type": "nop"}]}))
    assay_inline.write("suites/s.yaml", suite(numbers(1), [AGENT]))
    assay_inline.write("here.yaml", suite(numbers(1)))
    assay_inline.write("broken.yaml", "a: [")
    assay_inline.write("notes.yaml", "just: notes\n")

    told = " ".join(assay_inline(command, "ecko").refusal.split())

    assert "'echo'" in told
    assert "mine.yaml, suites/s.yaml, here.yaml" in told
    assert ": broken.yaml" in told
    assert "notes.yaml" not in told
    wording(told)


def test_an_agent_that_two_suites_define_differently_is_refused(
    assay_inline: AssayInline, wording: Wording
) -> None:
    assay_inline.write("a.yaml", suite(numbers(1), [{"name": "x", "type": "stub", "answer": "1"}]))
    assay_inline.write("b.yaml", suite(numbers(1), [{"name": "x", "type": "stub", "answer": "2"}]))

    assay_inline.write("c.yaml", suite(numbers(1), [{"name": "y", "type": "nop"}]))

    assert assay_inline("load", "y", "--requests", "2", "--json").json["requests_completed"] == 2
    told = " ".join(assay_inline("load", "x").refusal.split())
    assert "'a.yaml'" in told
    assert "'b.yaml'" in told
    wording(told)


def test_a_registered_agent_is_the_target_of_a_load_experiment(assay_inline: AssayInline) -> None:
    assay_inline.write("echo.py", ECHO)
    agents = assay_inline.write(
        "agents/agents.yaml", json.dumps({"agents": [{**AGENT, "target": "../echo.py:echo"}]})
    )
    assay_inline("agent", "add", agents)

    done = assay_inline("run", "load", "--agent", "echo", "--set", "requests=3", "--json").json

    assert done["status"] == "completed"
    assert done["trials"][0]["agent"]["name"] == "echo"


def bodies_of(requests: list[bytes]) -> list[dict[str, object]]:
    return [json.loads(one.partition(b"\r\n\r\n")[2]) for one in requests]


def test_rows_say_how_long_an_answer_may_be_and_may_be_whole_chats(assay_inline: AssayInline) -> None:
    chat = [
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hi"},
        {"role": "user", "content": "Bye"},
    ]
    rows = [{"prompt": "a", "max_tokens": 5}, {"messages": chat, "max_tokens": 7}, {"prompt": "b"}]
    assay_inline.write("p.jsonl", "\n".join(json.dumps(row) for row in rows))
    with faulty(mostly_right) as server:
        words = ("--dataset", "p.jsonl", "--requests", "3", "--max-tokens", "9", "--prompt-cache", "keep")
        assert assay_inline("load", server.url, *words).code == 0
        kept = bodies_of(server.requests)
    with faulty(mostly_right) as server:
        assert assay_inline("load", server.url, *words[:-1], "unique").code == 0
        unique = bodies_of(server.requests)

    assert [body["max_tokens"] for body in kept] == [5, 7, 9] == [body["max_tokens"] for body in unique]
    assert kept[1]["messages"] == chat
    sent = unique[1]["messages"]
    assert isinstance(sent, list)
    assert sent[1:] == chat[1:]
    assert sent[0]["content"].endswith(" Be short.")
    assert len(sent[0]["content"].split()) == 4 + 2


def test_columns_of_a_csv_data_set_say_how_long_an_answer_may_be(assay_inline: AssayInline) -> None:
    assay_inline.write("p.csv", "prompt,max_tokens\na,5\nb,\n")
    with faulty(mostly_right) as server:
        assert assay_inline("load", server.url, "--dataset", "p.csv", "--requests", "2").code == 0
        assert [body.get("max_tokens") for body in bodies_of(server.requests)] == [5, None]


def test_an_agent_under_load_is_told_what_a_run_tells_it(assay_inline: AssayInline) -> None:
    """The metadata of a case, less that by which its answers are judged."""
    agent = {"name": "triple", "type": "python", "target": "triple.py:triple"}
    assay_inline.write(
        "triple.py",
        "def triple(text, **case):\n"
        "    assert 'solution' not in case, 'it sees the answer'\n"
        "    return str(case['factor'] * int(text))\n",
    )
    cases = [
        {"id": f"c{n}", "input": str(n), "expected": str(3 * n), "factor": 3, "solution": str(3 * n)}
        for n in range(4)
    ]
    assay_inline.write("s.yaml", suite(cases, [agent], benchmark={"scorer": "exact"}))

    found = assay_inline("load", "triple", "--dataset", "s.yaml", "--requests", "8", "--json").json

    assert (found["requests_completed"], found["quality"]["score"]) == (8, 1.0)

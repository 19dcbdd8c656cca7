from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from tests.command import AssayInline
from tests.suites.project import QUICK, Stored, numbers, suite
from tests.wording import Wording

from assay.model import AgentUse
from assay.model.secret import plain_secrets
from assay.plan.overrides import options_for
from assay.plan.suite import overlay_options

AGENTS = "def fast(text): return text\ndef shout(text, mark='!'): return text + mark\n"


def accuracy(assay: AssayInline) -> dict[str, float]:
    with sqlite3.connect(assay.folder / ".assay" / "assay.db") as connection:
        return dict(connection.execute("SELECT name, accuracy FROM trials ORDER BY id"))


def test_a_spec_puts_agents_through_a_suite_that_stands_elsewhere(assay_inline: AssayInline) -> None:
    assay_inline.write("suites/s.yaml", suite(numbers(3), [{"name": "not asked", "type": "oracle"}]))
    spec = {
        "suite": "suites/s.yaml",
        "agents": [{"name": "mine", "type": "python", "target": "agents.py:shout"}],
        "params": {"mark": ""},
        "iterations": {"warmup": 0, "measured": 2},
        "concurrency": 3,
        "seed": 5,
        "budget": {"tokens": 100},
        "tags": ["nightly"],
    }
    assay_inline.write("agents.py", AGENTS)
    assay_inline.write("spec.yaml", json.dumps(spec))
    assert assay_inline.run_inline("spec.yaml", "-q").code == 0
    stored = Stored(assay_inline.folder)
    assert (stored.run.seed, stored.run.budget.tokens, stored.run.tags) == (5, 100, ("nightly",))
    assert [(t.trial.name, t.trial.concurrency) for t in stored.run.trials] == [("b · mine", 3)]
    assert stored.counts() == {"ok": 6}
    assert set(stored.metric("score").values()) == {1.0}


def test_an_axis_of_a_spec_varies_an_option_of_the_agent(assay_inline: AssayInline) -> None:
    assay_inline.write("s.yaml", suite(numbers(2)))
    assay_inline.write("agents.py", AGENTS)
    agent = {"name": "mine", "type": "python", "target": "agents.py:shout"}
    assay_inline.write(
        "spec.yaml", json.dumps({"suite": "s.yaml", "agents": [agent], "sweep": {"mark": ["", "?"]}})
    )
    assert assay_inline.run_inline("spec.yaml", "-q", "--repetitions", "1", "--warmup", "0").code == 0
    assert accuracy(assay_inline) == {"b · mine[mark=]": 1.0, "b · mine[mark=?]": 0.0}


def test_options_of_the_simulated_agent_set_its_accuracy(assay_inline: AssayInline) -> None:
    agent = {"name": "dream", "type": "simulated", "seconds": 0, "seed": 3}
    assay_inline.write("s.yaml", suite(numbers(200), [agent]))
    assert assay_inline.run_inline("s.yaml", "-q", "--set", "agent.quality=0.5").code == 0
    assert assay_inline.run_inline("s.yaml", "-q", "--sweep", "agent.quality=0.2,0.8").code == 0
    found = accuracy(assay_inline)
    assert found["b · dream"] == pytest.approx(0.5, abs=0.12)
    assert found["b · dream[quality=0.2]"] == pytest.approx(0.2, abs=0.12)
    assert found["b · dream[quality=0.8]"] == pytest.approx(0.8, abs=0.12)


def test_a_name_that_a_type_does_not_know_is_a_param_of_its_model(assay_inline: AssayInline) -> None:
    agent = {"name": "gemma", "type": "ollama", "model": "m", "base_url": "http://127.0.0.1:1"}
    assay_inline.write("s.yaml", suite(numbers(1), [agent]))
    done = assay_inline.run_inline(
        "s.yaml", "--set", "agent.num_ctx=512", "--set", "agent.model=n", "--dry-run"
    )
    assert done.code == 0
    stored = assay_inline.run_inline("s.yaml", "-q", "--set", "agent.num_ctx=512", "--set", "agent.retries=0")
    assert stored.code == 1
    use = Stored(assay_inline.folder).run.trials[0].trial.agent_use
    assert use is not None
    assert (use.options["params"], use.options["retries"]) == ({"num_ctx": 512}, 0)


def test_agents_of_the_project_are_known_by_name(assay_inline: AssayInline) -> None:
    assay_inline.write("assay.toml", '[assay]\nagents = ["agents/*.yaml"]\nsuites = ["suites/*.yaml"]\n')
    assay_inline.write("agents/a.yaml", "agents: [{name: mine, type: python, target: 'own.py:fast'}]")
    assay_inline.write("agents/own.py", AGENTS)
    assay_inline.write("suites/s.yaml", suite(numbers(2)))
    assert assay_inline.run_inline("s", "-q", "--agent", "mine").code == 0
    assert Stored(assay_inline.folder).counts() == {"ok": 2}


def test_a_suite_without_agents_takes_all_of_the_project(assay_inline: AssayInline) -> None:
    assay_inline.write("assay.toml", '[assay]\nagents = ["a.yaml"]\n')
    assay_inline.write("a.yaml", "agents: [{name: x, type: oracle}, {name: y, type: nop}]")
    assay_inline.write("s.yaml", suite(numbers(1)))
    done = assay_inline.run_inline("s.yaml", "--json")
    assert [trial["name"] for trial in done.json["trials"]] == ["b · x", "b · y"]


def test_registered_agents_and_suites_are_known_by_name_anywhere(assay_inline: AssayInline) -> None:
    db = f"sqlite:///{assay_inline.folder}/shared.db"
    assay_inline.write("def/a.yaml", "agents: [{name: kept, type: python, target: 'own.py:fast'}]")
    assay_inline.write("def/own.py", AGENTS)
    assay_inline.write("def/s.yaml", suite(numbers(2)))
    assert assay_inline("agent", "add", "def/a.yaml", "--db", db, "-q").code == 0
    assert assay_inline("suite", "add", "def/s.yaml", "--db", db, "-q").code == 0
    assert [one["name"] for one in assay_inline("agent", "list", "--db", db, "--json").json] == ["kept"]
    elsewhere = assay_inline.folder / "elsewhere"
    elsewhere.mkdir()
    done = assay_inline("run", "s", "--agent", "kept", "--db", db, "--json", cwd=elsewhere)
    assert done.json["trials"][0]["counts"] == {"ok": 2}


def test_a_broken_suite_cannot_be_registered(assay_inline: AssayInline, wording: Wording) -> None:
    assay_inline.write("s.yaml", suite([{"id": "x"}]))
    refusal = assay_inline("suite", "add", "s.yaml").refusal
    assert "'input'" in refusal
    wording(refusal, near="'input'")


def test_a_variable_that_is_not_set_is_reported_before_anything_runs(
    assay_inline: AssayInline, wording: Wording
) -> None:
    agents = [{"name": "fine", "type": "oracle"}, {"name": "web", "type": "http", "url": "${WEB}/ask"}]
    assay_inline.write("s.yaml", suite(numbers(1), agents))
    refusal = assay_inline.run_inline("s.yaml").refusal
    assert refusal.count("\n") == 1
    assert all(name in refusal for name in ("'web'", "'WEB'"))
    assert "'fine'" not in refusal
    wording(refusal)
    assert assay_inline("runs", "list", "--json").json == []


def test_a_run_cannot_be_resumed_without_the_variables_that_it_needs(
    assay_inline: AssayInline, wording: Wording
) -> None:
    agent = {"name": "web", "type": "http", "url": "${WEB}/ask", "retries": 0}
    assay_inline.write("s.yaml", suite(numbers(2), [agent]))
    assert assay_inline("run", "s.yaml", "-q", WEB="http://127.0.0.1:1").code == 1
    refusal = assay_inline("run", "--resume", "last").refusal
    assert "'WEB'" in refusal
    wording(refusal)


SECRET = "hunter2-is-a-secret-word"
TELLTALE = """
import os, sys
def leak(text):
    print("log", file=sys.stderr)
    return text
"""


def everything_in(path: Path) -> str:
    with sqlite3.connect(path) as connection:
        return "\n".join(connection.iterdump())


def test_what_the_environment_knows_is_stored_nowhere(assay_inline: AssayInline) -> None:
    agents = [
        {"name": "web", "type": "http", "url": "http://127.0.0.1:1/?key=${TOKEN}", "retries": 0,
         "headers": {"Authorization": "Bearer ${TOKEN}"}},
        {"name": "gpt", "type": "openai", "model": "m", "api_key": "${TOKEN}", "retries": 0,
         "base_url": "http://127.0.0.1:1/v1"},
        {"name": "mine", "type": "python", "target": "agents.py:leak"},
    ]  # fmt: skip
    assay_inline.write("agents.py", TELLTALE)
    assay_inline.write("s.yaml", suite(numbers(2), agents))
    done = assay_inline("run", "s.yaml", "--report", "html,json,md", "--out", "out", TOKEN=SECRET)
    assert done.code == 1
    assert SECRET not in done.out + done.err
    assert "${TOKEN}" in everything_in(assay_inline.folder / ".assay" / "assay.db")
    written = [path for path in assay_inline.folder.rglob("*") if path.is_file()]
    assert len(written) > 5
    assert [path for path in written if SECRET.encode() in path.read_bytes()] == []


@pytest.mark.parametrize(
    ("option", "key"),
    [
        ({"api_key": SECRET}, "api_key"),
        ({"api_key": "${TOKEN:-" + SECRET + "}"}, "api_key"),
        ({"headers": {"X-Auth": f"Bearer {SECRET}"}}, "headers.X-Auth"),
        ({"base_url": f"http://127.0.0.1:1/v1?key={SECRET}"}, "base_url"),
        ({"base_url": f"http://me:{SECRET}@127.0.0.1:1/v1"}, "base_url"),
        ({"params": {"user_password": SECRET}}, "params.user_password"),
        ({"system": "use sk-proj-4fJ7dK2mQ9xW1zR8tt"}, "system"),
        ({"type": "command", "command": ["cat", "--api-key", SECRET]}, "command.2"),
        ({"type": "command", "command": ["cat", f"--token={SECRET}"]}, "command.1"),
        ({"type": "command", "command": ["env", f"MY_KEY={SECRET}", "cat"]}, "command.1"),
        ({"type": "command", "command": ["cat", "ghp_16C7e42F292c6912E7710c838347Ae178B4a"]}, "command.1"),
    ],
)
def test_a_secret_that_is_written_out_is_refused(
    option: dict[str, object], key: str, assay_inline: AssayInline
) -> None:
    agent = {"name": "gpt", "type": "openai", "model": "m", **option}
    assay_inline.write("s.yaml", suite(numbers(2), [agent]))
    done = assay_inline.run_inline("s.yaml")
    assert done.code == 2
    assert "s.yaml:" in done.err
    assert f"agents.0.{key}" in done.err
    assert "${NAME}" in done.err
    assert SECRET not in done.out + done.err


def test_a_secret_in_a_judge_or_beside_the_file_is_refused(assay_inline: AssayInline) -> None:
    agent = {"name": "gpt", "type": "openai", "model": "m"}
    judge = {"name": "judge", "agent": {**agent, "api_key": SECRET}, "criteria": ["right"]}
    assay_inline.write("judged.yaml", suite(numbers(2), ["nop"], benchmark={"scorer": [judge]}))
    assay_inline.write("s.yaml", suite(numbers(2), [agent]))
    for given in (["judged.yaml"], ["s.yaml", "--set", f"agent.api_key={SECRET}"]):
        done = assay_inline.run_inline(*given)
        assert done.code == 2
        assert "api_key" in done.err
        assert "${NAME}" in done.err
        assert SECRET not in done.out + done.err
    stored = assay_inline.folder / ".assay" / "assay.db"
    assert not stored.exists() or SECRET not in everything_in(stored)


@pytest.mark.parametrize(
    ("given", "changed"),
    [
        ({"headers.X-Team": "blue"}, {"params": {"a": 1}, "headers": {"X-Team": "blue"}}),
        ({"params.temperature": 0.5}, {"params": {"a": 1, "temperature": 0.5}}),
        ({"params.deep.er": 2}, {"params": {"a": 1, "deep": {"er": 2}}}),
        ({"top_k": 3, "system": "x"}, {"params": {"a": 1, "top_k": 3}, "system": "x"}),
    ],
)
def test_set_changes_an_option_of_an_agent_or_a_part_of_it(
    given: dict[str, object], changed: dict[str, object]
) -> None:
    use = AgentUse("gpt", "openai", {"params": {"a": 1}})
    set_for_one = {f"gpt.{key}": value for key, value in given.items()}
    for options in (set_for_one, {f"agent.{key}": value for key, value in given.items()}):
        assert overlay_options(use, options_for(use, [use], options)).options == changed


@pytest.mark.parametrize(
    "given", [f"gpt.api_key={SECRET}", f"gpt.headers.Authorization={SECRET}", f"gpt.params.api_key={SECRET}",
              f"gpt.extra.api_key={SECRET}", f"gpt.base_url=http://me:{SECRET}@127.0.0.1/v1"]
)  # fmt: skip
def test_a_secret_or_an_unknown_option_that_is_set_is_refused(given: str, assay_inline: AssayInline) -> None:
    assay_inline.write("s.yaml", suite(numbers(1), [{"name": "gpt", "type": "openai", "model": "m"}]))
    assert SECRET not in assay_inline.run_inline("s.yaml", "--set", given).refusal


def test_a_secret_among_the_params_of_an_experiment_is_refused(assay_inline: AssayInline) -> None:
    assay_inline.write(
        "mine.py", "from assay import benchmark\n@benchmark\ndef mine(api_key='', size=1): ...\n"
    )
    for given in (f"api_key={SECRET}", "api_key=sk-proj-4fJ7dK2mQ9xW1zR8tt"):
        refusal = assay_inline.run_inline("mine.py", "--set", given).refusal
        assert "api_key" in refusal
        assert given.partition("=")[2] not in refusal


def test_an_option_with_the_value_of_a_secret_variable_is_refused(assay_inline: AssayInline) -> None:
    agent = {"name": "gpt", "type": "openai", "model": "gpt-4o-mini", "base_url": "http://127.0.0.1:1/v1"}
    assay_inline.write("s.yaml", suite(numbers(1), [agent]))
    done = assay_inline("run", "s.yaml", MODEL_KEY="gpt-4o-mini")
    assert done.code == 2
    assert "'MODEL_KEY'" in done.err
    assert "gpt-4o-mini" not in done.err


def test_only_what_is_secret_has_to_be_named(assay_inline: AssayInline) -> None:
    env = {"MAX_TOKENS": "4096", "KEY_FILE": "/etc/key.pem", "MY_API_KEY": "${TOKEN}", "AUTHOR": "somebody"}
    agent = {"name": "c", "type": "command", "command": ["cat"], "env": env}
    assay_inline.write("s.yaml", suite(numbers(1), [agent]))
    assert assay_inline("run", "s.yaml", "-q", TOKEN=SECRET).code in (0, 1)
    assert plain_secrets({"stop_token": "<|endoftext|>", "api_key": "EMPTY", "max_tokens": 4096}) == []
    for stand_in in ("test", "sk-test-key", "dummy_token", "fake-123", "xxxx", "not-needed"):
        assert plain_secrets({"api_key": stand_in}) == []
    for key in ("sk-1234567890abcdef", "tested-and-found", "sk-testing-it", SECRET):
        assert plain_secrets({"api_key": key}) == [("api_key",)]


def test_the_seed_of_a_suite_gives_the_same_order(assay_inline: AssayInline) -> None:
    agents = ["oracle", "nop"]
    assay_inline.write("s.yaml", suite(numbers(1), agents, seed=7, benchmark={"iterations": QUICK}))
    orders = []
    for _ in range(2):
        assert assay_inline.run_inline("s.yaml", "-q", "--repetitions", "4").code == 0
        stored = Stored(assay_inline.folder)
        orders.append([one.trial for one in sorted(stored.all, key=lambda one: one.started)])
    assert orders[0] == orders[1]

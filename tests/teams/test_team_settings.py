"""Options of a team's agents are read back from their servers, as those of `serving` are."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.command import AssayInline
from tests.wording import Wording

from assay.builtin.experiments.team import asking_once
from assay.builtin.experiments.team_settings import TeamSettings
from assay.execute.team.member import Answered
from assay.model import Execution, Phase, Status
from assay.plugin.agent_pool import AgentPool
from assay.simulator import SimOptions, SimServer


def member(name: str, url: str, model: str = "m", **params: Any) -> dict[str, Any]:
    return {"name": name, "type": "ollama", "model": model, "base_url": url, "params": params}


def run(assay: AssayInline, agents: list[dict[str, Any]], *more: str, **keys: Any) -> dict[str, Any]:
    document = {
        "team": "duo",
        "agents": agents,
        "cases": [{"id": "a", "input": "Say something."}],
        "iterations": {"warmup": 0, "measured": 1},
        "seed": 1,
        **keys,
    }
    file = assay.write("team.json", json.dumps(document))
    done = assay("team", file, "--json", *more)
    assert done.code == 0, done.err
    found: dict[str, Any] = done.json
    return found


def applied(done: dict[str, Any], leg: str) -> dict[str, Any]:
    [found] = [trial["applied"] for trial in done["trials"] if trial["axes"]["leg"] == leg]
    return {name: value for name, value in found.items() if name != "leg" and "base_url" not in name}


def told(done: dict[str, Any], code: str) -> list[str]:
    """Without the remark on the leg: on a busy machine, agents that answer at once may miss each other."""
    return [
        warning["message"]
        for warning in done["warnings"]
        if warning["code"] == code and "The setting 'leg'" not in warning["message"]
    ]


def small(**more: Any) -> SimServer:
    return SimServer(SimOptions(ttft=0.0, itl=0.0, tokens=5, max_context=2048, **more))


def test_an_option_that_the_server_ignored_is_reported_with_its_agent(
    assay_inline: AssayInline, wording: Wording
) -> None:
    with small() as server:
        agents = [member("a", server.url, num_ctx=512), member("b", server.url, "n", num_ctx=4096)]
        done = run(assay_inline, agents)

    for leg in ("sequential", "concurrent"):
        read = applied(done, leg)
        assert read == {"a.model": "m", "a.num_ctx": 512, "b.model": "n", "b.num_ctx": 2048}
    (doubt,) = set(told(done, "setting-not-taken"))
    assert re.findall(r"'(.*?)'", doubt) == ["b.num_ctx", "4096", "2048"]
    assert not told(done, "setting-not-told")
    wording(doubt)


def test_an_option_that_no_server_tells_is_named_and_makes_no_arms_identical(
    assay_inline: AssayInline, wording: Wording
) -> None:
    with small() as server:
        agents = [member("a", server.url), member("b", server.url)]
        done = run(assay_inline, agents, sweep={"temperature": [0.5, 1.0]})

    (doubt,) = told(done, "setting-not-told")
    assert re.findall(r"'(.*?)'", doubt) == ["a.temperature", "b.temperature"]
    wording(doubt)
    assert not told(done, "identical-arms")
    assert not told(done, "setting-not-taken")


def test_agents_that_ask_one_model_for_different_things_are_told_apart_only_one_after_the_other(
    assay_inline: AssayInline,
) -> None:
    """Of a model that was loaded anew for each of two agents, the server tells what it had last."""
    with small() as server:
        done = run(
            assay_inline, [member("a", server.url, num_ctx=512), member("b", server.url, num_ctx=1024)]
        )

    alone, together = applied(done, "sequential"), applied(done, "concurrent")
    assert (alone["a.num_ctx"], alone["b.num_ctx"]) == (512, 1024)
    assert (together["a.num_ctx"], together["b.num_ctx"]) == (None, None)
    assert not told(done, "setting-not-taken")


def test_a_server_that_is_named_by_a_variable_is_read_back_too(assay_inline: AssayInline) -> None:
    with small() as server:
        agents = [member("a", "${NOT_SET_AT_ALL:-" + server.url + "}", num_ctx=4096), member("b", server.url)]
        done = run(assay_inline, agents)
    assert applied(done, "sequential")["a.num_ctx"] == 2048


def test_agents_without_a_server_tell_nothing_and_work_all_the_same(assay_inline: AssayInline) -> None:
    agents = [{"name": name, "type": "stub", "answer": "x"} for name in ("a", "b")]
    done = run(assay_inline, agents)
    assert applied(done, "sequential") == applied(done, "concurrent") == {"a.answer": "x", "b.answer": "x"}


def test_a_limit_of_tokens_that_was_kept_to_counts_as_taken(assay_inline: AssayInline) -> None:
    with small() as server:
        agents = [member("a", server.url, num_predict=3), member("b", server.url)]
        done = run(assay_inline, agents)
    assert applied(done, "concurrent")["a.num_predict"] == 3
    assert not told(done, "setting-not-told")


def test_a_model_that_a_variable_names_is_the_model_that_was_asked_for(assay_inline: AssayInline) -> None:
    with small() as server:
        agents = [
            member("a", server.url, "${NOT_SET_AT_ALL:-m:latest}", num_ctx=4096),
            member("b", server.url, "${NOT_SET_AT_ALL:-n}", num_ctx=512),
        ]
        done = run(assay_inline, agents)
    read = applied(done, "sequential")
    assert (read["a.model"], read["b.model"]) == ("${NOT_SET_AT_ALL:-m:latest}", "${NOT_SET_AT_ALL:-n}")
    # Only by its true name is a model found among those that are loaded.
    assert (read["a.num_ctx"], read["b.num_ctx"]) == (2048, 512)
    (doubt,) = set(told(done, "setting-not-taken"))
    assert re.findall(r"'(.*?)'", doubt) == ["a.num_ctx", "4096", "2048"]


def test_options_of_the_client_itself_make_no_arms_identical(assay_inline: AssayInline) -> None:
    with small() as server:
        agents = [member("a", server.url), member("b", server.url)]
        done = run(assay_inline, agents, sweep={"system": ["Be brief.", "Be kind."]})
    assert not told(done, "identical-arms")
    assert not told(done, "setting-not-taken")


def test_a_number_below_zero_leaves_it_to_the_server(assay_inline: AssayInline) -> None:
    with small() as server:
        agents = [member("a", server.url, num_predict=-1, num_gpu=-1), member("b", server.url)]
        done = run(assay_inline, agents)
    assert not told(done, "setting-not-taken")


def test_agents_of_a_team_ask_once_unless_their_file_says_otherwise() -> None:
    assert asking_once("ollama", {"model": "m"}) == {"retries": 0, "model": "m"}
    assert asking_once("ollama", {"model": "m", "retries": 2})["retries"] == 2
    assert asking_once("stub", {"answer": "x"}) == {"answer": "x"}


def test_a_limit_of_tokens_is_of_each_answer_where_a_case_has_several(assay_inline: AssayInline) -> None:
    with small() as server:
        agents = [
            {
                "name": name,
                "type": "client",
                "model": "m",
                "base_url": f"{server.url}/v1",
                "params": {"max_tokens": 5},
            }
            for name in ("a", "b")
        ]
        done = run(assay_inline, agents, cases=[{"id": "a", "input": ["One.", "Two.", "Three."]}])
    assert applied(done, "concurrent")["a.max_tokens"] == 5
    assert not told(done, "setting-not-taken")


@pytest.mark.parametrize("model", ["smollm2", "models/tiny.gguf"])
def test_a_local_model_is_the_file_that_its_name_stands_for(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its answers name the file; an answer of another file is of another model."""
    file = tmp_path / "models" / "tiny.gguf"
    file.parent.mkdir()
    file.touch()
    monkeypatch.setattr("assay.builtin.agents.llama._find_installed_model", lambda: file)
    definition = {
        "name": "a",
        "type": "llama",
        "options": {"model": model},
        "cases": [],
        "folder": str(tmp_path),
    }
    with contextlib.closing(AgentPool()) as pool:
        settings = TeamSettings([definition], pool)
        assert settings.after([_answered("tiny")])["a.model"] == model
        assert settings.after([_answered("another")])["a.model"] == "another"


def _answered(model: str) -> Answered:
    execution = Execution(0, 0, Phase.MEASURED, 0, Status.OK, 0.0, {"seconds": 1.0}, applied={"model": model})
    return Answered("a", "case", 0.0, 1.0, 0.0, execution)

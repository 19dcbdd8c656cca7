"""Agents behind a server as what `assay run serving --agent A` puts to the test."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.command import AssayInline
from tests.serving.serving import executions
from tests.sim_llm.asking import quick
from tests.wording import Wording

from assay.builtin.experiments.serving_params import ServingParams, params_of
from assay.model import AgentUse
from assay.plugin.agent import BadAgent


def agents(folder: Path, *definitions: Mapping[str, object]) -> None:
    (folder / "agents.yaml").write_text(json.dumps({"agents": list(definitions)}))
    (folder / "assay.toml").write_text('[assay]\nagents = ["agents.yaml"]\n')


def ollama(name: str, url: str, **params: object) -> dict[str, object]:
    return {"name": name, "type": "ollama", "model": "m", "base_url": url, "params": params}


def test_an_agent_brings_its_server_its_model_and_its_options(assay_inline: AssayInline) -> None:
    with quick() as server:
        agents(assay_inline.folder, ollama("gemma", server.url, num_ctx=512, num_predict=3))
        done = assay_inline("run", "serving", "--agent", "gemma", "--json").json

    (trial,) = done["trials"]
    assert trial["agent"]["name"] == "gemma"
    assert trial["name"] == "serving · gemma"
    assert trial["applied"]["num_ctx"] == 512
    assert {one.measurements["output_tokens"] for one in executions(assay_inline)} == {3}


def test_a_model_that_a_variable_names_is_loaded_and_asked_by_its_name(assay_inline: AssayInline) -> None:
    with quick() as server:
        named = {**ollama("gemma", server.url, num_ctx=512), "model": "${NOT_SET_AT_ALL:-m}"}
        agents(assay_inline.folder, named)
        done = assay_inline("run", "serving", "--agent", "gemma", "--json").json

    (trial,) = done["trials"]
    assert {one.status for one in executions(assay_inline)} == {"ok"}
    assert (trial["applied"]["model"], trial["applied"]["num_ctx"]) == ("${NOT_SET_AT_ALL:-m}", 512)
    assert "setting-not-taken" not in {warning["code"] for warning in done["warnings"]}


def test_an_agent_without_a_limit_of_tokens_is_refused_by_what_it_wrote(
    assay_inline: AssayInline, wording: Wording
) -> None:
    agents(assay_inline.folder, ollama("gemma", "http://127.0.0.1:9", num_predict=-1))
    refusal = assay_inline("run", "serving", "--agent", "gemma").refusal
    assert " -1 tokens" in refusal
    wording(refusal)


def test_a_sweep_goes_before_the_options_of_the_agent(assay_inline: AssayInline) -> None:
    with quick() as server:
        agents(assay_inline.folder, ollama("gemma", server.url, num_ctx=512))
        for name in ("num_ctx", "agent.num_ctx"):
            sweep = ["--agent", "gemma", "--sweep", f"{name}=256,1024", "--json"]
            done = assay_inline("run", "serving", *sweep).json
            assert [trial["applied"]["num_ctx"] for trial in done["trials"]] == [256, 1024]


def test_several_agents_are_measured_in_one_run(assay_inline: AssayInline) -> None:
    with quick() as server:
        openai = {"name": "o", "type": "openai", "model": "m", "base_url": f"{server.url}/v1"}
        agents(assay_inline.folder, ollama("a", server.url, num_ctx=64), openai)
        done = assay_inline("run", "serving", "--agent", "a", "--agent", "o", "--json").json

    assert [trial["agent"]["name"] for trial in done["trials"]] == ["a", "o"]
    assert [trial["parameters"]["api"] for trial in done["trials"]] == ["ollama", "openai"]


def test_a_spec_may_name_its_agents(assay_inline: AssayInline) -> None:
    with quick() as server:
        spec = {"experiment": "serving", "agents": [ollama("gemma", server.url)], "params": {"max_tokens": 2}}
        assay_inline.write("spec.yaml", json.dumps(spec))
        done = assay_inline("run", "spec.yaml", "--json").json

    assert [trial["name"] for trial in done["trials"]] == ["serving · gemma"]


def test_an_agent_that_is_not_there_is_reported(assay_inline: AssayInline, wording: Wording) -> None:
    refusal = assay_inline("run", "serving", "--agent", "gema").refusal
    assert "'gema'" in refusal
    wording(refusal.partition(" Agents:")[0])


@pytest.mark.parametrize("name", ["nop", "oracle"])
def test_an_agent_without_a_server_is_refused(assay_inline: AssayInline, name: str, wording: Wording) -> None:
    refusal = assay_inline("run", "serving", "--agent", name, "--set", "model=m").refusal
    assert "ollama and openai" in refusal
    wording(refusal)


def test_an_experiment_that_takes_no_agent_says_so(assay_inline: AssayInline, wording: Wording) -> None:
    refusal = assay_inline("run", "noop", "--agent", "nop").refusal
    assert "'noop'" in refusal
    wording(refusal)


@pytest.mark.parametrize("options", [{"stream": False}, {"cassette": "x.yaml"}])
def test_an_agent_that_cannot_be_timed_is_refused(options: dict[str, object], wording: Wording) -> None:
    with pytest.raises(BadAgent, match="'a'") as refused:
        params_of(AgentUse("a", "openai", {"model": "m", **options}))
    wording(refused.value)


def test_a_server_in_the_definition_of_an_agent_is_a_server_that_was_named() -> None:
    use = AgentUse("a", "openai", {"model": "m", "base_url": "http://gpu.example/v1", "params": {"seed": 3}})
    params = ServingParams.model_validate(params_of(use))

    assert (params.url, params.api, params.options) == ("http://gpu.example/v1", "openai", {"seed": 3})


def test_keys_are_read_from_the_environment_and_stored_nowhere(assay_inline: AssayInline) -> None:
    with quick() as server:
        key = {"api_key": "${SERVING_KEY}", "base_url": f"{server.url}/v1"}
        agents(assay_inline.folder, {"name": "o", "type": "openai", "model": "m", **key})
        words = ("run", "serving", "--agent", "o", "--json", "--out", "out")
        assert assay_inline(*words, SERVING_KEY="sk-very-secret-key").code == 0
        written = [file for file in assay_inline.folder.rglob("*") if file.is_file()]
        assert not any(b"sk-very-secret-key" in file.read_bytes() for file in written)
        assert assay_inline(*words).code == 1


def test_a_run_that_was_planned_with_an_agent_is_resumed_with_it(assay_inline: AssayInline) -> None:
    with quick() as server:
        agents(assay_inline.folder, ollama("gemma", server.url, num_ctx=512))
        done = assay_inline("run", "serving", "--agent", "gemma", "--json").json
        again = assay_inline("run", "--resume", done["run_id"], "--json").json

    assert [trial["name"] for trial in again["trials"]] == ["serving · gemma"]

"""The options of a load: declared once, for the command line, for params and for Python."""

from __future__ import annotations

import click
import pytest

from assay.builtin.experiments.load import LoadExperiment
from assay.cli.load import load
from assay.cli.stress import stress
from assay.errors import SpecError
from assay.load.build import build_prepared_agent_load
from assay.load.options import LoadOptions, load_options
from assay.model import AgentUse


def flags_of(command: click.Command) -> dict[str, click.Option]:
    return {option.name or "": option for option in command.params if isinstance(option, click.Option)}


def test_every_option_of_the_command_line_is_a_param_with_the_same_explanation() -> None:
    flags, params = flags_of(load), LoadExperiment.Params.model_fields
    assert set(params) == {"agent", *(option.name for option in load_options())}
    for option in load_options():
        explained = params[option.name].description
        assert explained
        if option.written.group == "params":
            assert option.name not in flags
            continue
        assert option.flag in flags[option.name].opts
        assert flags[option.name].help == option.written.help
        if "--" not in option.written.help and not option.written.param_help:
            assert explained == option.written.help
        assert "--" not in explained


def test_what_requests_are_is_said_alike_for_loads_and_stress_tests() -> None:
    flags = flags_of(stress)
    assert all(option.name in flags for option in load_options("requests"))
    assert "rate" not in flags


def test_params_become_the_options_that_the_command_line_gives() -> None:
    params = LoadExperiment.Params.model_validate(
        {"target": "http://127.0.0.1:9/v1", "duration": 2, "input_tokens": 500, "header": ["X-Team: blue"]}
    )
    assert params.options() == LoadOptions(
        "http://127.0.0.1:9/v1", duration="2.0", input_tokens="500", header=("X-Team: blue",)
    )


@pytest.mark.parametrize("name", [option.name for option in load_options() if option.written.needs_server])
def test_an_option_that_needs_a_server_is_refused_for_an_agent_without_one(name: str) -> None:
    values = {"header": ("X-Team: blue",), "insecure": True, "ignore_eos": True, "min_tokens": 1}
    values |= {
        "shared_prefix": 1,
        "model": "m",
        "ca_file": "ca.pem",
        "cancel_after": "1s",
        "executor": "local",
        "generators": 2,
    }
    with pytest.raises(SpecError) as refused:
        build_prepared_agent_load(LoadOptions("nop", **{name: values[name]}), AgentUse("nop", "nop"), ())  # type: ignore[arg-type]
    assert [mistake.file for mistake in refused.value.mistakes] == [f"--{name.replace('_', '-')}"]

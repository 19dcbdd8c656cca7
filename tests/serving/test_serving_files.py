"""The files of the seed's single-agent benchmark."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.command import AssayInline
from tests.serving.serving import codes, run
from tests.sim_llm.asking import quick
from tests.wording import Wording

from assay.builtin.reporters.serving_pages import _together
from assay.model import Verdict

PROFILES = ("--sweep", "profile=baseline,chimera", "--report", "serving", "--out", "out")


def written(assay: AssayInline) -> dict[str, str]:
    out = assay.folder / "out"
    return {str(path.relative_to(out)): path.read_text() for path in out.rglob("*") if path.is_file()}


def folders(assay: AssayInline) -> set[str]:
    return {name.partition("/")[0] for name in written(assay) if name.endswith("data/metrics.json")}


def metrics(assay: AssayInline) -> Any:
    (name,) = [name for name in written(assay) if name.endswith("data/metrics.json")]
    return json.loads(written(assay)[name])


def conclusion(assay: AssayInline) -> str:
    (name,) = [name for name in written(assay) if name.endswith("comparison_report.md")]
    return written(assay)[name].partition("## Conclusion")[2].partition("##")[0]


def test_every_file_of_the_seed_is_there(assay_inline: AssayInline) -> None:
    with quick() as server:
        done = run(assay_inline, server.url, *PROFILES, "--repetitions", "2").json

    folder = "m_gpu80_ctx512_temp0.8_topp0.9_topk40_rep1.1"
    expected = {f"reports/{side}_report_run_{n}.md" for side in ("baseline", "chimera") for n in (1, 2)}
    expected |= {"data/metrics.json", "reports/comparison_report.md"}
    assert {f"{folder}/{name}" for name in expected} <= written(assay_inline).keys()
    assert sorted(done["files"]) == sorted(f"out/{folder}/{name}" for name in expected)


def test_the_figures_have_the_names_of_the_seed(assay_inline: AssayInline) -> None:
    with quick(ttft=0.01, itl=0.001) as server:
        run(assay_inline, server.url, *PROFILES, "--repetitions", "2")
    first, second = metrics(assay_inline)
    results, delta = first["chimera_results"], first["performance_delta"]
    aggregate = results["metrics"]["aggregate_metrics"]

    assert (first["run_number"], second["run_number"]) == (1, 2)
    assert results["config"]["num_ctx"] == 512
    assert results["metrics"]["agent_type"] == "chimera"
    assert aggregate["request_count"] == 1
    assert aggregate["total_tokens_generated"] == 4
    assert aggregate["average_ttft_ms"] >= 10
    assert results["report"]
    assert delta["ttft_reduction_percent"] == pytest.approx(
        (delta["baseline_ttft_ms"] - delta["chimera_ttft_ms"]) / delta["baseline_ttft_ms"] * 100
    )
    assert delta["throughput_improvement_percent"] == 0
    assert first["baseline_duration"] * 1000 == pytest.approx(delta["baseline_duration_ms"])


def test_folders_are_named_after_what_the_server_really_had(assay_inline: AssayInline) -> None:
    with quick(max_context=300) as server:
        run(assay_inline, server.url, "--sweep", "num_ctx=100,200,400", "--report", "serving", "--out", "out")

    assert folders(assay_inline) == {"m_ctx200", "m_ctx300"}


def test_each_point_is_held_against_the_baseline_with_the_same_start(assay_inline: AssayInline) -> None:
    with quick() as server:
        sweep = ("--sweep", "num_ctx=100,200", "--sweep", "start=warm,cold")
        run(assay_inline, server.url, *sweep, "--report", "serving", "--out", "out")

    assert folders(assay_inline) == {"m_ctx200", "m_ctx200_cold"}


def test_a_lone_point_has_nothing_to_be_held_against(assay_inline: AssayInline, wording: Wording) -> None:
    with quick() as server:
        run(assay_inline, server.url, "--report", "serving", "--out", "out")

    assert folders(assay_inline) == {"m_ctx4096"}
    assert metrics(assay_inline)[0]["performance_delta"] is None
    wording(conclusion(assay_inline))


def test_what_is_equal_is_called_a_tie(assay_inline: AssayInline, wording: Wording) -> None:
    """The server itself tells how fast it wrote, so that this does not hang on the machine of the test."""
    with quick(itl=0.001) as server:
        run(assay_inline, server.url, *PROFILES, "--processes", "8")

    said = conclusion(assay_inline).partition("(eval_tokens_per_second)")[2].partition("\n")[0]
    assert " 0 % " in said
    wording(said)


def test_a_slower_server_is_called_worse(assay_inline: AssayInline, wording: Wording) -> None:
    with quick(itl=0.001) as fast, quick(itl=0.01) as slow:
        urls = f"url={fast.url},{slow.url}"
        words = (
            "--set",
            "model=m",
            "--sweep",
            urls,
            "--processes",
            "8",
            "--report",
            "serving",
            "--out",
            "out",
        )
        assay_inline("run", "serving", *words)

    said = conclusion(assay_inline).partition("(eval_tokens_per_second)")[2].partition("\n")[0]
    assert " worse, −90 %" in said
    wording(said)


def test_one_process_a_side_decides_nothing(assay_inline: AssayInline, wording: Wording) -> None:
    with quick() as server:
        run(assay_inline, server.url, *PROFILES, "--repetitions", "3")

    said = conclusion(assay_inline)
    assert f"**{_together([Verdict.UNSURE])}**" in said
    wording(said, near="**")


def test_an_ignored_setting_leaves_no_conclusion(assay_inline: AssayInline, wording: Wording) -> None:
    with quick(max_context=600) as server:
        done = run(assay_inline, server.url, *PROFILES, "--processes", "5").json

    said = conclusion(assay_inline)
    assert "setting-not-taken" in codes(done)
    assert "**" not in said
    wording(said)


def test_a_run_that_failed_is_in_the_files_as_what_it_is(assay_inline: AssayInline) -> None:
    with quick(models="other") as server:
        assert run(assay_inline, server.url, *PROFILES).code == 1
    (only,) = metrics(assay_inline)

    assert only["baseline_results"]["status"] == "failed"
    assert "not found" in only["baseline_results"]["error"]
    assert only["baseline_results"]["analysis"]["summary"].startswith("No answer:")
    assert only["performance_delta"] is None


def test_other_runs_have_no_such_files(assay_inline: AssayInline, tmp_path: Path, wording: Wording) -> None:
    told = assay_inline("run", "noop", "--report", "serving").err
    assert "'serving'" in told
    wording(told.partition("' ")[2], near="'serving'")


@pytest.mark.parametrize(
    ("verdicts", "names", "is_decided"),
    [
        ("better same same", {"better"}, True),
        ("worse same unsure", {"worse"}, False),
        ("better worse same", {"better", "worse"}, True),
        ("same same same", {"tie"}, True),
        ("same unsure unsure", {"tie"}, False),
        ("unsure unsure", set(), False),
    ],
)
def test_the_conclusion_follows_from_the_verdicts(
    verdicts: str, names: set[str], is_decided: bool, wording: Wording
) -> None:
    said = _together([Verdict(word) for word in verdicts.split()])
    assert {word for word in ("better", "worse", "tie") if re.search(rf"\b{word}\b", said)} == names
    assert ("decided" in said.lower()) is not is_decided
    wording(said)

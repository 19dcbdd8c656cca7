from __future__ import annotations

import json
import math
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from assay.errors import ReportError
from assay.model import Artifact, Execution, Phase, Report, Status, TrialReport
from assay.plugin.file_names import safe_name, trial_folder
from assay.plugin.json_data import format_strict_json
from assay.report.documents.json import Json
from assay.report.documents.result import (
    read_result,
    result_schema,
    run_document,
    seed_result,
    write_output_dir,
)


def closed(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with every key that it does not name refused, so that no part of a document goes undescribed."""
    for part in (schema, *schema["$defs"].values()):
        part["additionalProperties"] = False
    return schema


def without_numbers(make_report: Callable[..., Report], make_trial: Callable[..., TrialReport]) -> Report:
    odd = Execution(
        1,
        0,
        Phase.MEASURED,
        0,
        Status.OK,
        math.nan,
        {"seconds": math.inf, "x": math.nan},
        output={"a": [math.nan]},
    )
    trial = make_trial(1, "odd", 0.1, processes=1, repetitions=3)
    broken = replace(trial.estimates[0], mean=math.nan, p99=math.inf, low=math.nan, high=1.0)
    return make_report(replace(trial, executions=(odd,), estimates=(broken,)))


def test_a_document_follows_its_schema_and_has_no_key_beyond_it(swept):
    jsonschema.validate(run_document(swept), closed(result_schema()))
    jsonschema.validate(run_document(swept, with_executions=False), closed(result_schema()))


def test_what_is_not_a_number_becomes_null(make_report, make_trial):
    document = run_document(without_numbers(make_report, make_trial))
    text = format_strict_json(document)
    entry = json.loads(text, parse_constant=pytest.fail)["trials"][0]
    assert entry["metrics"]["seconds"]["mean"] is None
    assert entry["metrics"]["seconds"]["interval"] is None
    assert entry["iteration_metrics"][0] | {"output": None} == {
        "index": 0,
        "process": 0,
        "phase": "measured",
        "status": "ok",
        "started": None,
        "duration_s": None,
        "loops": 1,
        "metrics": {"x": None},
        "output": None,
    }
    jsonschema.validate(document, closed(result_schema()))


def test_the_streamed_file_is_the_document(swept, tmp_path):
    (path,) = Json().write(swept, tmp_path)
    assert path.name == "result.json"
    assert json.loads(path.read_text(encoding="utf-8")) == json.loads(format_strict_json(run_document(swept)))


def test_a_run_without_trials_is_still_a_document(make_report, tmp_path):
    (path,) = Json().write(make_report(), tmp_path)
    assert json.loads(path.read_text(encoding="utf-8"))["trials"] == []


def test_writing_many_executions_takes_no_more_memory_than_writing_few(make_report, make_trial, tmp_path):
    def peak(repetitions: int) -> int:
        report = make_report(make_trial(1, "many", 0.1, repetitions=repetitions))
        tracemalloc.start()
        Json().write(report, tmp_path)
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return used

    peak(10)
    assert peak(600) < peak(60) + 100_000


def test_a_document_is_read_back_as_the_report_that_it_was(swept, tmp_path):
    (path,) = Json().write(swept, tmp_path)
    read = read_result(path)
    assert read.run.id == swept.run.id
    assert read.run.started == swept.run.started
    assert read.run.environment.facts == swept.run.environment.facts
    assert read.axes == swept.axes
    assert read.doubts == swept.doubts
    assert [trial.stored for trial in read.trials] == [trial.stored for trial in swept.trials]
    assert [trial.estimates for trial in read.trials] == [trial.estimates for trial in swept.trials]
    assert [trial.series for trial in read.trials] == [trial.series for trial in swept.trials]
    assert [trial.counts for trial in read.trials] == [trial.counts for trial in swept.trials]
    assert [trial.failures for trial in read.trials] == [trial.failures for trial in swept.trials]


SEED_001 = {
    "name": "observation_flow",
    "run_id": "ab12cd34",
    "parameters": {"radius": 6},
    "iterations": {"warmup": 1, "measured": 3},
    "metrics": {"duration_s": {"mean": 0.2, "p50": 0.2, "p95": 0.3, "p99": 0.3}},
    "iteration_metrics": [
        {
            "index": i,
            "duration_s": 0.1 * (i + 1),
            "metrics": {"observes_per_sec": 10.0 * i, "profile": {"t": 0.5}},
        }
        for i in range(3)
    ],
    "environment": {"os": "Linux", "python": "3.11"},
    "vcs": {"commit": "abc", "branch": "main", "dirty": False},
    "artifacts": [],
    "tags": ["perf"],
    "notes": "",
    "status": "success",
}


def test_a_result_of_seed_001_is_read(tmp_path):
    path = tmp_path / "result.json"
    path.write_text(json.dumps(SEED_001))
    (trial,) = read_result(path).trials
    assert trial.name == "observation_flow"
    assert trial.stored.trial.params == {"radius": 6}
    assert trial.stored.trial.iterations.measured == 3
    assert trial.series["seconds"].values == pytest.approx([0.1, 0.2, 0.3])
    assert trial.series["observes_per_sec"].values == [0, 10, 20]
    assert trial.series["profile.t"].values == [0.5] * 3


def test_the_flat_result_of_a_trial_keeps_its_processes_and_leaves_out_failures(swept, tmp_path):
    trial = swept.trials[-1]
    path = tmp_path / "flat.json"
    path.write_text(format_strict_json(seed_result(swept, trial)))
    (read,) = read_result(path).trials
    assert read.series == trial.series
    assert read.counts == {"ok": 500, "failed": 1, "timeout": 1}


def test_the_flat_result_has_the_layout_of_seed_001(swept):
    flat = seed_result(swept, swept.trials[0])
    assert flat.keys() >= SEED_001.keys()
    assert flat["schema"] == "assay.trial/1"
    assert flat["status"] == "success"
    assert flat["metrics"]["duration_s"].keys() >= {"mean", "p50", "p95", "p99"}
    assert flat["iteration_metrics"][0].keys() >= {"index", "duration_s", "metrics"}
    assert flat["environment"] == {
        "os": "Linux 6.8.0",
        "python": "3.11.9",
        "machine": "x86_64",
        "processor": "AMD EPYC 7763",
        "hostname": "bench-1",
    }
    assert flat["artifacts"] == [{"name": "psutil.jsonl", "type": "psutil", "path": "psutil.jsonl"}]


def test_a_trial_without_an_ok_execution_has_failed(make_report, make_trial, make_failure):
    broken = make_trial(1, "broken", 0.1, ok=False, failures=(make_failure(1, Status.CRASHED, "signal 11"),))
    report = make_report(broken)
    assert run_document(report)["trials"][0]["status"] == "failed"
    assert seed_result(report, broken)["status"] == "failed"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("not json", "is not JSON"),
        ("[1, 2]", "is not a result file"),
        ('{"name": "x"}', "is not a result file"),
        ('{"schema": "assay.result/9", "trials": []}', "is not a result file"),
        ('{"schema": "assay.result/1", "run_id": 5}', "damaged result file: run_id"),
        (
            '{"name": "x", "metrics": {}, "iteration_metrics": [{"index": "first"}]}',
            "iteration_metrics.0.index",
        ),
        ("[" * 100_000, "is not JSON"),
    ],
)
def test_a_file_that_is_no_result_is_named_with_what_is_expected(tmp_path, content, said):
    path = tmp_path / "other.json"
    path.write_text(content)
    with pytest.raises(ReportError, match=r"assay\.result/1") as raised:
        read_result(path)
    assert str(path) in str(raised.value)
    assert said in str(raised.value)


def test_a_folder_instead_of_a_file_is_a_clear_message(tmp_path):
    with pytest.raises(ReportError, match="is a folder"):
        read_result(tmp_path)


def test_a_document_without_executions_cannot_be_compared_and_says_so(swept, tmp_path):
    path = tmp_path / "result.json"
    path.write_text(format_strict_json(run_document(swept, with_executions=False)))
    with pytest.raises(ReportError, match="has no executions"):
        read_result(path)


def test_ratings_without_one_of_the_dimensions_are_damage_and_named(swept, tmp_path):
    document = run_document(swept)
    rating = {"value": 0.5, "interval": None, "basis": "cases"}
    document["trials"][0] |= {"ratings": {"speed": rating, "accuraxy": rating}, "overall": rating}
    path = tmp_path / "result.json"
    path.write_text(format_strict_json(document))
    with pytest.raises(ReportError, match=r"damaged result file: .*lack accuracy, efficiency"):
        read_result(path)


def test_a_sweep_gets_a_folder_a_trial_and_a_summary(swept, tmp_path):
    written = write_output_dir(swept, tmp_path)
    first = tmp_path / trial_folder(swept.trials[0].name, swept.run.started, f"{swept.run.id}-0")
    assert {path.name for path in first.iterdir()} == {f"{first.name}.json", "README.md", "psutil.jsonl"}
    assert first.name.startswith("parse-size=100-mode=fast_20260504_123015_")
    summary = (tmp_path / "SWEEP_SUMMARY.md").read_text(encoding="utf-8")
    assert all(path.parent.name in summary for path in written if path.name == "README.md")
    median = r"123 µs \[118, 128\]"
    assert median in summary
    assert len([path for path in tmp_path.iterdir() if path.is_dir()]) == len(swept.trials)


def test_one_trial_gets_no_sweep_summary(small, tmp_path):
    write_output_dir(small, tmp_path)
    assert not (tmp_path / "SWEEP_SUMMARY.md").exists()


def test_trials_of_one_name_get_folders_of_their_own(make_report, make_trial, tmp_path):
    report = make_report(make_trial(1, "same", 0.1), make_trial(2, "same", 0.1))
    write_output_dir(report, tmp_path)
    assert len([path for path in tmp_path.iterdir() if path.is_dir()]) == 2


def test_artifacts_stay_in_their_folder_and_overwrite_nothing(make_report, make_trial, tmp_path):
    names = ("../../evil", "README.md", "x.prof", "x.prof")
    artifacts = tuple(Artifact(1, name, "file", b"content") for name in names)
    report = make_report(make_trial(1, "t", 0.1, artifacts=artifacts))
    written = write_output_dir(report, tmp_path)
    assert [path.name for path in written[2:]] == ["evil", "README-2.md", "x.prof", "x-2.prof"]
    assert {path.parent for path in written} == {written[0].parent}
    assert written[1].read_bytes() != b"content"


@pytest.mark.parametrize(
    "name", ["", "...", "/", "a/b", "..", "x" * 500, "µ" * 300, "nul\0byte", "line\nbreak"]
)
def test_any_name_makes_a_folder(tmp_path, name):
    safe = safe_name(name)
    (tmp_path / safe).mkdir()
    assert [path.name for path in tmp_path.iterdir()] == [safe]


def test_importing_the_document_loads_no_heavy_package():
    code = "import sys, assay.report.documents.result, assay.report.console.run; print(sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    for package in ("'numpy'", "'pydantic'", "'rich'", "'jinja2'", "'vl_convert'"):
        assert package not in loaded


def documented(page: str, title: str) -> dict[str, str]:
    """Fields of one table of the page, with their meanings."""
    table = page.split(f"\n### {title}\n", 1)[1].split("\n#", 1)[0]
    rows = (line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| `"))
    return {row[0].strip("`"): row[-1] for row in rows}


def test_the_documentation_lists_exactly_the_fields_of_the_schema():
    page = (Path(__file__).parents[2] / "docs" / "result-format.md").read_text(encoding="utf-8")
    schema = result_schema()
    for title, part in {"Result": schema, **schema["$defs"]}.items():
        meanings = {name: field["description"] for name, field in part["properties"].items()}
        assert documented(page, title) == meanings
